"""`train`: fine-tune a classifier on labelled exchanges."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path

from refusal_core.classifier import hub
from refusal_core.commands import terminal
from refusal_core.commands.evaluate import summarise
from refusal_core.errors import InputError
from refusal_core.training.card import TEST_REMARK
from refusal_core.training.data import GROUPED, SPLITS, Parts, TrainingData, read_training_data, split
from refusal_core.training.encoder import ENCODER_NAME, encoder_folder
from refusal_core.training.recipe import train
from refusal_core.training.settings import Settings, option_of
from refusal_core.training.workplace import refuse_occupied

NAME = "train"
HELP = "fine-tune a classifier on labelled exchanges"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = {"nargs": "+", "type": Path, "metavar": "FILE"}
    parser.add_argument("--data", **files, help="labelled exchanges, split into training, validation and test rows")
    parser.add_argument(
        "--split",
        choices=SPLITS,
        default=GROUPED,
        help="how --data is split, 80/10/10 of each class: grouped keeps rows of one prompt together; plain does not "
        "(default: grouped)",
    )
    parser.add_argument("--train", **files, help="labelled exchanges to train on, instead of --data")
    parser.add_argument("--validation", **files, help="labelled exchanges that choose the weights")
    parser.add_argument("--test", **files, help="labelled exchanges that are scored once, at the end")
    parser.add_argument(
        "--test-remark", default=TEST_REMARK, metavar="TEXT", help="what the card says about the test rows"
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="checkpoint folder or hub id to start from (default: the encoder of the train extra)",
    )
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="new folder for the checkpoint")
    parser.add_argument("--resume", action="store_true", help="go on with a training of this output that was stopped")
    parser.add_argument(
        "--trackio", metavar="PROJECT", help="also write the curves to a local Trackio store in the output folder"
    )
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
    for each in fields(Settings):
        help = each.metadata["help"]
        if isinstance(each.default, bool):
            parser.add_argument(option_of(each.name), action="store_true", help=help)
        else:
            kind, name = type(each.default), "N" if isinstance(each.default, int) else "X"
            help = f"{help} (default: {each.default:g})".replace("%", "%%")
            parser.add_argument(option_of(each.name), type=kind, default=each.default, metavar=name, help=help)


def run(args: argparse.Namespace) -> int:
    settings = Settings(**{each.name: getattr(args, each.name) for each in fields(Settings)})
    settings.check()
    refuse_occupied(args.output, resume=args.resume)
    parts = _parts(args, settings.seed)
    for name, part in (("training", parts.train), ("validation", parts.validation), ("test", parts.test)):
        left_out = ", ".join(f"{n:,} {reason}" for reason, n in part.left_out.items())
        terminal.say(f"{len(part.exchanges):,} {name} rows" + (f"; left out: {left_out}" if left_out else ""))
    with terminal.progress("train") as job:
        result = train(
            parts,
            args.model or encoder_folder(),
            args.output,
            settings,
            resume=args.resume,
            trackio=args.trackio,
            base_name=_base_name(args.model),
            test_remark=args.test_remark,
            job=job,
        )
    terminal.say(f"kept: {result.kept}; temperature {result.temperature:g}")
    summarise(result.test or result.validation)
    return 0


def _parts(args: argparse.Namespace, seed: int) -> Parts:
    options = {"commercial_only": not args.any_licence, "without": [_pair(text) for text in args.leave_out]}
    if args.data:
        if args.train or args.validation or args.test:
            raise InputError("--data stands alone", why="it is split into all three parts", fix="leave the others out")
        return split(read_training_data(args.data, **options), how=args.split, seed=seed)
    if not (args.train and args.validation):
        raise InputError("there is nothing to train on", why="--data, or --train and --validation were expected")
    test = read_training_data(args.test, **options) if args.test else TrainingData((), {})
    return Parts(read_training_data(args.train, **options), read_training_data(args.validation, **options), test)


def _base_name(model: str | None) -> str:
    if model is None:
        return ENCODER_NAME
    is_folder = Path(model).is_dir() or not hub.parse_name(model)
    return Path(model).resolve().name if is_folder else model


def _pair(text: str) -> tuple[str, str]:
    field, equals, beginning = text.partition("=")
    if not (field and equals and beginning):
        raise InputError(f'"{text}" is not FIELD=BEGINNING', where="--leave-out", fix="write for example category=ko/")
    return field, beginning
