"""`classify`: the class of each exchange of a file, one JSON line a row, in input order."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO

from refusal_core.classifier import Classifier, load
from refusal_core.classifier.predict import CHUNK_ROWS
from refusal_core.classifier.result import Classification
from refusal_core.classifier.stream import Answered, answer_rows
from refusal_core.commands import terminal
from refusal_core.errors import InputError
from refusal_core.exchange_files import map_argument, read_exchanges
from refusal_core.jobs import Journal
from refusal_core.reports import atomic_file, to_json

NAME = "classify"
HELP = "classify the exchanges of a file, one JSON line a row"
UNFINISHED = ".unfinished"  # after the output's name: what is done so far


def add_arguments(parser: argparse.ArgumentParser) -> None:
    terminal.add_input_options(parser)
    parser.add_argument(
        "--output", default="-", metavar="OUT", help="JSON-lines file to write; - writes standard output (default: -)"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help=f"go on from what a stopped run with the same input and options left in OUT{UNFINISHED}",
    )
    terminal.add_classifier_options(parser)


def run(args: argparse.Namespace) -> int:
    terminal.refuse_same_file(args.input, args.output)
    source, name = terminal.source_of(args)
    keeps = os.path.isfile(args.input) and args.output != "-" and _is_plain(args.output)
    if args.resume and not keeps:
        raise InputError(
            "only a run from a file to a file can be resumed", where="--resume", fix="name files for IN and --output"
        )
    rows = read_exchanges(source, name=name, columns=map_argument(args.map), every_turn=args.every_turn)
    rows = chain([next(rows)], rows)  # a file that cannot be read is refused before the checkpoint is loaded
    classifier = load(args.checkpoint, int8=args.int8)
    classifier.check_options(**terminal.classifier_options(args))
    for note in classifier.info.notes:
        terminal.say(note)
    counts: Counter[str] = Counter()
    rows_out = _kept_rows(args, classifier, rows) if keeps else _rows(args, classifier, rows)
    with _opened(args.output) as output:
        for row in rows_out:
            output.write(to_json(row) + "\n")
            counts[row["label"] or "not classified"] += 1
    if keeps:
        _journal_path(args.output).unlink(missing_ok=True)
    terminal.say(
        f"{counts.total():,} rows by {classifier.info.name}: "
        + ", ".join(f"{n:,} {label}" for label, n in counts.most_common())
    )
    return 0


def _rows(args: argparse.Namespace, classifier: Classifier, rows: Iterator) -> Iterator[dict]:
    """The output's rows as they are answered."""
    with terminal.progress("classify") as job:
        job.start(None, "rows")
        for part in answer_rows(classifier, rows, job=job, **terminal.classifier_options(args)):
            yield from map(_row, part)


def _kept_rows(args: argparse.Namespace, classifier: Classifier, rows: Iterator) -> Iterator[dict]:
    """The output's rows, after all are answered: until then they lie in a journal beside it, so a kill loses little."""
    terminal.check_writable(args.output)
    options = terminal.classifier_options(args)
    journal = Journal(_journal_path(args.output), _settings(args, classifier, options))
    if not args.resume and journal.path.exists():
        terminal.say(f"Beginning anew: {journal.path.name} of a stopped run is replaced; --resume would go on from it.")
        journal.delete()
    sizes = [len(piece["rows"]) for piece in journal.done()]
    if args.resume:
        terminal.say(f"Going on after {sum(sizes):,} rows that are done.")
    earlier = (list(map(Classification.from_row, piece["rows"])) for piece in islice(journal.done(), len(sizes)))
    parts = 0
    try:
        with journal, terminal.progress("classify") as job:
            job.start(None, "rows")
            for part in answer_rows(classifier, rows, finished=earlier, job=job, **options):
                parts += 1
                if parts > len(sizes):
                    journal.add({"rows": list(map(_row, part))})
                    sizes.append(len(part))
    except InputError:
        journal.delete()  # the input has to be mended, and is another one then
        raise
    except BaseException:
        if sizes:
            terminal.say(f"{sum(sizes):,} rows are done and kept in {journal.path.name}; --resume goes on from there.")
        else:
            journal.delete()
        raise
    return (row for piece in journal.done() for row in piece["rows"])


def _row(answered: Answered) -> dict:
    return {**answered.answer.as_row(), "matcher": answered.matched and answered.matched.label}


def _settings(args: argparse.Namespace, classifier: Classifier, options: dict) -> dict:
    """What the answers depend on: a run with other settings is not mixed with this one."""
    with open(args.input, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "schema": "refusal-classify/1",
        "input": digest,
        "checkpoint": classifier.info.digest,
        "precision": classifier.info.precision,
        "options": {**options, "map": map_argument(args.map), "every_turn": args.every_turn, "chunk": CHUNK_ROWS},
    }


def _journal_path(output: str) -> Path:
    return Path(os.path.realpath(output) + UNFINISHED)


def _is_plain(output: str) -> bool:
    """Whether the output is, or will be, a file: no pipe or device."""
    return os.path.isfile(output) or not os.path.exists(output)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    if path == "-":
        yield sys.stdout
        sys.stdout.flush()
    else:
        with atomic_file(path) as file:
            yield file
