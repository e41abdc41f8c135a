"""`scorecard`: run a suite of assertions over checkpoints; the exit code is the gate."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import IO

from refusal_core.commands import terminal
from refusal_core.errors import InputError
from refusal_core.plots.scorecard_report import scorecard_report
from refusal_core.reports import atomic_file, to_json
from refusal_core.scorecard import BesideSuite, Choice, Scorecard, read_suite, schema
from refusal_core.scorecard import run as run_suite
from refusal_core.scorecard.draft import draft
from refusal_core.scorecard.junit import junit
from refusal_core.scorecard.report import json_text, terminal_table, write_csv_rows
from refusal_core.scorecard.result import FAILED, NOTHING_RAN

NAME = "scorecard"
HELP = "run a suite of assertions over checkpoints"
_OUTPUTS = ("json", "csv", "junit", "html")
_WIDE = 120  # characters, where the output is no terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", nargs="?", metavar="SUITE.yaml", help="the suite; its paths start at its own folder")
    parser.add_argument("--json", metavar="F", help="write scorecard.json")
    parser.add_argument("--csv", metavar="F", help="write one line a row")
    parser.add_argument("--junit", metavar="F", help="write JUnit XML for a CI server")
    parser.add_argument("--html", metavar="F", help="write a report that opens in any browser")
    parser.add_argument("--checkpoints", metavar="GLOB", help="only these columns, for example 'cand-*'")
    parser.add_argument("--baseline", metavar="ID", help="compare with this checkpoint instead of the suite's")
    parser.add_argument("--filter", metavar="ID", help="only this test, assertion, or test/assertion; * stands for any")
    parser.add_argument(
        "--fail-exit-code",
        type=int,
        default=FAILED,
        metavar="N",
        help=f"of a failed suite, 3 to 255 (default: {FAILED})",
    )
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of a suite, for editors, and stop")
    parser.add_argument(
        "--draft", metavar="PREDICTIONS", help="print a suite drafted from a predictions file, and stop"
    )


def run(args: argparse.Namespace) -> int:
    if args.schema or args.draft:
        print(to_json(schema(), indent=2) if args.schema else draft(Path(args.draft)), end="\n" if args.schema else "")
        return 0
    if args.suite is None:
        raise InputError("no suite is named", where="scorecard", fix="name a YAML file, or see --help")
    if not 3 <= args.fail_exit_code <= 255 or args.fail_exit_code == NOTHING_RAN:
        raise InputError(
            f"it is {args.fail_exit_code}", where="--fail-exit-code", why="3 to 255, but not 5, was expected"
        )
    file = read_suite(args.suite)
    choice = Choice(args.checkpoints, args.baseline, args.filter, args.fail_exit_code)
    with contextlib.ExitStack() as stack:
        files = _opened(args, stack)
        with terminal.progress("scorecard") as job:
            scorecard = run_suite(file, BesideSuite(Path(args.suite).resolve().parent), job, choice=choice)
        _write(files, scorecard, args)
    width = shutil.get_terminal_size((_WIDE, 40)).columns if sys.stdout.isatty() else _WIDE
    print(terminal_table(scorecard, max(width, 60)))
    print(scorecard.sentence)
    return scorecard.exit_code


def command_of(args: argparse.Namespace) -> str:
    """The command line that makes the same scorecard."""
    import shlex

    parts = ["python -m refusal_core.cli scorecard", shlex.quote(args.suite)]
    for name in ("checkpoints", "baseline", "filter"):
        if (value := getattr(args, name)) is not None:
            parts.append(f"--{name} {shlex.quote(value)}")
    return " ".join(parts)


def _opened(args: argparse.Namespace, stack: contextlib.ExitStack) -> dict[str, IO[str]]:
    """The files to write, by option; opened before the work, so that a wrong place is found first."""
    wanted = {name: path for name in _OUTPUTS if (path := getattr(args, name)) is not None}
    places = [os.path.realpath(path) for path in wanted.values() if not path.startswith("/dev/")]
    if len(set(places)) < len(places):
        raise InputError("two outputs are one file", where=" and ".join(f"--{name}" for name in wanted))
    for path in wanted.values():
        terminal.refuse_same_file(args.suite, path)
    return {name: stack.enter_context(atomic_file(path)) for name, path in wanted.items()}


def _write(files: dict[str, IO[str]], scorecard: Scorecard, args: argparse.Namespace) -> None:
    texts = {
        "json": lambda: json_text(scorecard),
        "junit": lambda: junit(scorecard),
        "html": lambda: scorecard_report(scorecard, command=command_of(args)),
    }
    for name, file in files.items():
        if name == "csv":
            write_csv_rows(file, scorecard)
        else:
            file.write(texts[name]())
