"""`train`: fine-tune a classifier on labelled exchanges."""

from __future__ import annotations

import argparse
from pathlib import Path

from refusal_core.classifier import load
from refusal_core.classifier.evaluation import evaluate
from refusal_core.commands import terminal
from refusal_core.commands.evaluate import summarise
from refusal_core.commands.evaluate import write as write_evaluation
from refusal_core.errors import InputError

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
        "--any-language", action="store_true", help="also use rows whose category starts with ko/, zh/ or fi/"
    )


def run(args: argparse.Namespace) -> int:
    from refusal_core.training.card import model_card
    from refusal_core.training.encoder import ENCODER_NAME, encoder_folder
    from refusal_core.training.recipe import Settings, read_training_data, train

    if args.output.exists() and any(args.output.iterdir()):
        raise InputError("the folder is not empty", where=str(args.output), fix="name a new folder")
    options = {"commercial_only": not args.any_licence, "english_only": not args.any_language}
    data, validation = read_training_data(args.train, **options), read_training_data(args.validation, **options)
    for name, part in (("training", data), ("validation", validation)):
        left_out = ", ".join(f"{n:,} {reason}" for reason, n in part.left_out.items())
        terminal.say(f"{len(part.exchanges):,} {name} rows" + (f"; left out: {left_out}" if left_out else ""))
    settings = Settings(epochs=args.epochs, seed=args.seed)
    base = args.model or encoder_folder()
    train(data, validation, base, args.output, settings)
    with terminal.progress("score") as job:
        scores = evaluate(load(str(args.output)), validation.exchanges, split="validation", job=job)
    name = ENCODER_NAME if args.model is None else base.name
    card = model_card(args.output.name, name, data, scores, validation.exchanges, settings)
    (args.output / "README.md").write_text(card, encoding="utf-8")
    write_evaluation(scores, args.output / "run")
    summarise(scores)
    return 0
