"""The command line: `python -m refusal_core.cli COMMAND`. Each command is a module of `refusal_core.commands`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from refusal_core.commands.entry import Parser, guarded, leave, starting

# Name of each command and its module in `refusal_core.commands`, in the order of the help. Only the module of the
# command that is given is imported: all of them take three times as long to start.
COMMANDS = {
    "classify": "classify",
    "evaluate": "evaluate",
    "train": "train",
    "runs": "runs",
    "scorecard": "scorecard",
    "export": "export",
    "convert": "convert",
    "sweep": "sweep",
    "compare-studies": "compare_studies",
    "cosine": "cosine",
    "run": "climb",
}


# Commands that are modules of their own; their lines below the help.
OWN_MODULES = {
    "refusal_core.heldout": "fit a refusal direction on one activation export and score it on another",
    "refusal_core.study": "the same with nulls, intervals, leakage and geometry: the full study",
}


def _epilog() -> str:
    lines = (f"  python -m {module} --help\n      {does}" for module, does in OWN_MODULES.items())
    return "\n".join(("commands of their own:", *lines))


def parser(names: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser with a subcommand for each of `names`, keys of COMMANDS."""
    root = Parser(
        prog="python -m refusal_core.cli",
        description="What kind of answer is this, and did the checkpoint get better? Offline.",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = root.add_subparsers(metavar="COMMAND", required=True)
    for name in names:
        module = import_module(f"refusal_core.commands.{COMMANDS[name]}")
        sub = commands.add_parser(name, help=module.HELP, description=(module.__doc__ or "").split("\n")[0])
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code: 0 done, 1 impossible, 2 wrong input, 130 stopped by the user."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    names = arguments[:1] if arguments[:1] and arguments[0] in COMMANDS else tuple(COMMANDS)
    args = parser(names).parse_args(arguments)
    return guarded(args.run, args)


if __name__ == "__main__":
    starting()
    leave(main())
