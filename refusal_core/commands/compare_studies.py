"""Two studies of the same test examples, paired by example: two layers, two models, or two training files."""

from __future__ import annotations

import argparse

from refusal_core.activations.npz import map_argument, read_export
from refusal_core.commands import activation_files, terminal
from refusal_core.direction.compare import StudyComparison, compare
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.result import Settings
from refusal_core.direction.study import held_out
from refusal_core.errors import InputError, one_line
from refusal_core.jobs import Job

NAME = "compare-studies"
HELP = "the difference of two studies of the same test examples, paired"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("train", metavar="TRAIN.npz", help="what the first study is fitted on")
    parser.add_argument("test", metavar="TEST.npz", help="what it is scored on")
    parser.add_argument("other_train", metavar="TRAIN2.npz", nargs="?", help="the second study's; without it the same")
    parser.add_argument("other_test", metavar="TEST2.npz", nargs="?", help="the same examples as TEST.npz")
    activation_files.add_other_layer(parser)
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of all draws (default: 0)")
    activation_files.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if (args.other_train is None) != (args.other_test is None):
        raise InputError("the second study has a training file only", where="TEST2.npz", fix="name two files, or four")
    others = (args.other_train or args.train, args.other_test or args.test)
    if others == (args.train, args.test) and args.other_layer_index in (None, args.layer_index):
        raise InputError(
            "both studies are the same", where="TRAIN2.npz", fix="name two other files, or give --other-layer-index"
        )
    with activation_files.opened(args.output) as output, terminal.progress(NAME) as job:
        second = activation_files.other_layer_of(args, others[0])
        sides = [
            _study(args, (args.train, args.test), args.layer_index, job),
            _study(args, others, second, job),
        ]
        result = compare(*(side[0] for side in sides), *(side[1] for side in sides), seed=args.seed)
        output.write(result.to_json())
    _summarise(result)
    return 0


def _study(args: argparse.Namespace, paths: tuple[str, str], layer_index: int | None, job: Job) -> tuple:
    """The held-out study of a train and a test file, and the test export."""
    options = {
        "columns": map_argument(args.map),
        "bits": args.bits,
        "labels": activation_files.labels_of(args),
        "layer_index": layer_index,
        "job": job,
    }
    for path in paths:
        terminal.refuse_same_file(path, args.output)
    train, test = (read_export(path, **options) for path in paths)
    return held_out(train, test, Settings(threads=args.threads), job), test


def _summarise(result: StudyComparison) -> None:
    terminal.say(result.headline)
    if not isinstance(result.sign_flip, NotAvailable):
        found = result.sign_flip
        terminal.say(
            f"  swapping whole categories: p = {found.p_value:.2g}, {found.patterns:,} patterns ({found.method})"
        )
    terminal.say(f"  right in A alone: {len(result.only_a):,}; right in B alone: {len(result.only_b):,}")
    for category in result.by_category:
        terminal.say(f"  {one_line(category.category, 60)}: {category.difference:+.2f} (n = {category.n:,})")
    for warning in result.warnings:
        terminal.say(f"warning: {one_line(warning)}")
