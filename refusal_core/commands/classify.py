"""`classify`: the class of each exchange of a file, one JSON line a row, in input order."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import IO

from refusal_core.classifier import load
from refusal_core.classifier.matcher import match
from refusal_core.commands import terminal
from refusal_core.exchange_files import map_argument, read_exchanges
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.reports import atomic_file, to_json

NAME = "classify"
HELP = "classify the exchanges of a file, one JSON line a row"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    terminal.add_input_options(parser)
    parser.add_argument(
        "--output", default="-", metavar="OUT", help="JSON-lines file to write; - writes standard output (default: -)"
    )
    terminal.add_classifier_options(parser)


def run(args: argparse.Namespace) -> int:
    terminal.refuse_same_file(args.input, args.output)
    source, name = terminal.source_of(args)
    rows = read_exchanges(source, name=name, columns=map_argument(args.map), every_turn=args.every_turn)
    rows = chain([next(rows)], rows)  # a file that cannot be read is refused before the checkpoint is loaded
    classifier = load(args.checkpoint)
    for note in classifier.info.notes:
        terminal.say(note)
    matched: list[str | None] = []
    counts: Counter[str] = Counter()
    with _opened(args.output) as output, terminal.progress("classify") as job:
        job.start(None, "rows")
        for answer in classifier.predict_rows(
            _with_matcher(rows, matched), job=job, **terminal.classifier_options(args)
        ):
            output.write(to_json({**answer.as_row(), "matcher": matched.pop(0)}) + "\n")
            counts[answer.label or "not classified"] += 1
    terminal.say(
        f"{counts.total():,} rows by {classifier.info.name}: "
        + ", ".join(f"{n:,} {label}" for label, n in counts.most_common())
    )
    return 0


def _with_matcher(rows: Iterator[Exchange | BadRow], matched: list[str | None]) -> Iterator[Exchange | BadRow]:
    """`rows`, with the phrase matcher's class of each put into `matched` as it passes."""
    for row in rows:
        matched.append(match(row.response).label if isinstance(row, Exchange) else None)
        yield row


@contextlib.contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    if path == "-":
        yield sys.stdout
        sys.stdout.flush()
    else:
        with atomic_file(path) as file:
            yield file
