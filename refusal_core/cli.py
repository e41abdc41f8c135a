"""The command line: `python -m refusal_core.cli COMMAND`. Each command is a module of `refusal_core.commands`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from refusal_core.commands import classify, climb, evaluate, train
from refusal_core.errors import Cancelled, RefusalCoreError, one_line

COMMANDS = (classify, evaluate, train, climb)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one sentence, without the usage text around it."""

    def error(self, message: str) -> None:
        print(one_line(f"{message}; see {self.prog} --help."), file=sys.stderr)
        raise SystemExit(2)


def parser() -> argparse.ArgumentParser:
    """The parser with one subcommand a module of COMMANDS."""
    root = _Parser(
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
    try:
        return args.run(args)
    except RefusalCoreError as problem:
        print(one_line(str(problem)), file=sys.stderr)
        return problem.exit_code
    except KeyboardInterrupt:
        print(Cancelled(), file=sys.stderr)
        return Cancelled.exit_code
    except BrokenPipeError:  # the reader of our stdout has gone, for example `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main())
