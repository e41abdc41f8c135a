"""The held-out analysis of a refusal direction: fitted on one activation export, scored on another."""

from __future__ import annotations

import argparse

from refusal_core.commands import activation_files, study, terminal
from refusal_core.direction.study import Settings, held_out

NAME = "heldout"
HELP = "fit a refusal direction on one activation export and score it on another"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("train", metavar="TRAIN.npz", help="activations, labels, ids and categories to fit on")
    parser.add_argument("test", metavar="TEST.npz", help="the same of other examples, to score on")
    activation_files.add_meaning(parser)
    activation_files.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    settings = Settings(threads=args.threads, label_means=args.label_means)
    with activation_files.opened(args.output) as output, terminal.progress(NAME) as job:
        train, test = activation_files.read(args, [args.train, args.test], job)
        result = held_out(train, test, settings, job)
        output.write(result.to_json())
    study.summarise(result)
    return 0
