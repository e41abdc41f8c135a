"""What every entry point does: one-sentence errors, exit codes, Ctrl+C."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from refusal_core.errors import Cancelled, RefusalCoreError, one_line


class Parser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one sentence, without the usage text around it."""

    def error(self, message: str) -> None:
        print(one_line(f"{message}; see {self.prog} --help."), file=sys.stderr)
        raise SystemExit(2)


def starting() -> None:
    """Ctrl+C is one sentence already while the commands are imported, which takes seconds; until `guarded`."""
    signal.signal(signal.SIGINT, _stopped_early)


def _stopped_early(*_: object) -> None:
    os.write(2, f"{Cancelled()}\n".encode())
    os._exit(Cancelled.exit_code)


def guarded(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """`run(args)` as an exit code: 0 done, 1 impossible, 2 wrong input, 130 stopped by the user."""
    if signal.getsignal(signal.SIGINT) is _stopped_early:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return run(args)
    except RefusalCoreError as problem:
        print(one_line(str(problem)), file=sys.stderr)
        return problem.exit_code
    except MemoryError:
        print("Not enough memory; close other programs, or work on less at a time.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(Cancelled(), file=sys.stderr)
        return Cancelled.exit_code
    except BrokenPipeError:  # the reader of our stdout has gone, for example `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as problem:
        print(one_line(f"{problem.filename or 'The work'} failed: {problem.strerror or problem}."), file=sys.stderr)
        return 1


def main_of(module: object, prog: str, arguments: Sequence[str] | None) -> int:
    """Run one command module by itself, as `prog`."""
    parser = Parser(prog=prog, description=(module.__doc__ or "").split("\n")[0])
    module.add_arguments(parser)
    return guarded(module.run, parser.parse_args(arguments))


def leave(code: int) -> NoReturn:
    """End the process with this exit code."""
    if code == Cancelled.exit_code:  # a thread may still be in a library that aborts when Python ends under it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
