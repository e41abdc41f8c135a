"""`train`: fine-tune a classifier on labelled exchanges."""

from __future__ import annotations

import argparse
from pathlib import Path

from refusal_core.classifier import Classifier, load
from refusal_core.classifier.evaluation import evaluate
from refusal_core.commands import terminal
from refusal_core.commands.evaluate import summarise
from refusal_core.commands.evaluate import write as write_evaluation
from refusal_core.errors import InputError
from refusal_core.training.card import VALIDATION_REMARK, Scored, model_card
from refusal_core.training.encoder import ENCODER_NAME, encoder_folder
from refusal_core.training.recipe import Settings, TrainingData, read_training_data, train

NAME = "train"
HELP = "fine-tune a classifier on labelled exchanges"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--train", required=True, nargs="+", type=Path, metavar="FILE", help="labelled exchanges to train on"
    )
    parser.add_argument(
        "--validation",
        required=True,
        nargs="+",
        type=Path,
        metavar="FILE",
        help="labelled exchanges that choose the epoch",
    )
    parser.add_argument(
        "--test", nargs="+", type=Path, metavar="FILE", help="labelled exchanges that are scored once, at the end"
    )
    parser.add_argument(
        "--test-remark",
        default="These rows were scored once, at the end, and decided nothing.",
        metavar="TEXT",
        help="what the card says about the test rows",
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="DIR",
        help="checkpoint folder to start from (default: the encoder of the train extra)",
    )
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="new folder for the checkpoint")
    parser.add_argument("--epochs", type=int, default=2, help="passes over the training rows (default: 2)")
    parser.add_argument("--seed", type=int, default=0, help="seed of shuffling, dropout and the new head (default: 0)")
    parser.add_argument(
        "--any-licence", action="store_true", help="also use rows whose license field marks non-commercial use (NC)"
    )
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="FIELD=BEGINNING",
        help="leave out rows whose field begins so, for example category=ko/; may be given again",
    )


def run(args: argparse.Namespace) -> int:
    if args.output.is_file():
        raise InputError("this is a file", where=str(args.output), fix="name a new folder")
    if args.output.exists() and any(args.output.iterdir()):
        raise InputError("the folder is not empty", where=str(args.output), fix="delete it, or name a new one")
    options = {"commercial_only": not args.any_licence, "without": [_pair(text) for text in args.leave_out]}
    data, validation = read_training_data(args.train, **options), read_training_data(args.validation, **options)
    test = read_training_data(args.test, **options) if args.test else TrainingData((), {})
    for name, part in (("training", data), ("validation", validation), ("test", test)):
        left_out = ", ".join(f"{n:,} {reason}" for reason, n in part.left_out.items())
        terminal.say(f"{len(part.exchanges):,} {name} rows" + (f"; left out: {left_out}" if left_out else ""))
    settings = Settings(epochs=args.epochs, seed=args.seed)
    base = args.model or encoder_folder()
    train(data, validation, base, args.output, settings)
    classifier = load(str(args.output))
    parts = [_score(classifier, validation, "validation", VALIDATION_REMARK)]
    if args.test:
        parts.append(_score(classifier, test, "test", args.test_remark))
    name = ENCODER_NAME if args.model is None else base.name
    card = model_card(args.output.name, name, data, parts, settings)
    (args.output / "README.md").write_text(card, encoding="utf-8")
    write_evaluation(parts[-1].evaluation, args.output / "run")
    summarise(parts[-1].evaluation)
    return 0


def _pair(text: str) -> tuple[str, str]:
    field, equals, beginning = text.partition("=")
    if not (field and equals and beginning):
        raise InputError(f'"{text}" is not FIELD=BEGINNING', where="--leave-out", fix="write for example category=ko/")
    return field, beginning


def _score(classifier: Classifier, data: TrainingData, split: str, remark: str) -> Scored:
    with terminal.progress(f"score {split}") as job:
        scores = evaluate(classifier, data.exchanges, split=split, job=job)
    return Scored(f"Scores on the {split} rows", remark, scores, data.exchanges)
