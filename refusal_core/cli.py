"""The command line: `python -m refusal_core.cli COMMAND`. Each command is a module of `refusal_core.commands`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from refusal_core.commands.entry import Parser, guarded, leave, starting

if __name__ == "__main__":
    starting()

from refusal_core.commands import (  # noqa: E402
    classify,
    climb,
    compare_studies,
    convert,
    cosine,
    evaluate,
    export,
    runs,
    scorecard,
    sweep,
    train,
)

COMMANDS = (classify, evaluate, train, runs, scorecard, export, convert, sweep, compare_studies, cosine, climb)


def parser() -> argparse.ArgumentParser:
    """The parser with one subcommand a module of COMMANDS."""
    root = Parser(
        prog="python -m refusal_core.cli",
        description="What kind of answer is this, and did the checkpoint get better? Offline.",
    )
    commands = root.add_subparsers(metavar="COMMAND", required=True)
    for module in COMMANDS:
        sub = commands.add_parser(module.NAME, help=module.HELP, description=(module.__doc__ or "").split("\n")[0])
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code: 0 done, 1 impossible, 2 wrong input, 130 stopped by the user."""
    args = parser().parse_args(arguments)
    return guarded(args.run, args)


if __name__ == "__main__":
    leave(main())
