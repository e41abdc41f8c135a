"""The command line: `python -m refusal_core.cli COMMAND`. Each command is a module of `refusal_core.commands`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from refusal_core.commands import classify, climb, evaluate, runs, train
from refusal_core.commands.entry import Parser, guarded

COMMANDS = (classify, evaluate, train, runs, climb)


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
    code = main()
    if code == 130:  # a thread may still be in a library that aborts the process when Python ends under it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
