"""`evaluate`: score a checkpoint on labelled exchanges."""

from __future__ import annotations

import argparse
from itertools import chain

from refusal_core.classifier import load
from refusal_core.classifier.evaluation import FILES, Evaluation, evaluate, write_files
from refusal_core.commands import terminal
from refusal_core.exchange_files import map_argument, read_exchanges
from refusal_core.reports import atomic_folder

NAME = "evaluate"
HELP = "score a checkpoint on labelled exchanges"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    terminal.add_input_options(parser)
    parser.add_argument("--output", required=True, metavar="DIR", help=f"folder to write: {', '.join(FILES)}")
    terminal.add_classifier_options(parser)


def run(args: argparse.Namespace) -> int:
    source, name = terminal.source_of(args)
    with atomic_folder(args.output, FILES) as folder, terminal.progress("evaluate") as job:
        rows = read_exchanges(
            source, name=name, columns=map_argument(args.map), every_turn=args.every_turn, need_label=True
        )
        rows = chain([next(rows)], rows)  # a file that cannot be read is refused before the checkpoint is loaded
        classifier = load(args.checkpoint, int8=args.int8)
        result = evaluate(classifier, rows, job=job, **terminal.classifier_options(args))
        write_files(result, folder)
    summarise(result)
    return 0


def summarise(result: Evaluation) -> None:
    """The scores with their intervals, for the person at the terminal."""
    for note in result.checkpoint.notes:
        terminal.say(note)
    terminal.say(f"accuracy {result.report.accuracy}, macro F1 {result.report.macro.f1:.4f}")
    for scores in result.report.classes:
        terminal.say(f"  {scores.label:<22} F1 {scores.f1}, precision {scores.precision}, recall {scores.recall}")
    if result.unclassified:
        first = next(p.answer for p in result.predictions if p.answer.label is None or p.true is None)
        terminal.say(f"{result.unclassified:,} rows are in no score, the first one (id {first.id}): {first.error}")
