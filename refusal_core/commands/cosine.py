"""The cosine of the directions of two activation exports, between what noise allows and what shuffled labels give."""

from __future__ import annotations

import argparse

from refusal_core.activations.npz import map_argument, read_export
from refusal_core.commands import activation_files, terminal
from refusal_core.direction.cosine import cosine
from refusal_core.direction.result import Settings
from refusal_core.errors import one_line

NAME = "cosine"
HELP = "the cosine of two refusal directions, with its ceiling and its floor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A.npz", help="the export of the first direction")
    parser.add_argument("second", metavar="B.npz", help="the export of the second one, of as many dimensions")
    activation_files.add_other_layer(parser)
    parser.add_argument(
        "--repeats", type=int, default=Settings.repeats, metavar="N", help="shuffles to draw (default: 999)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of all draws (default: 0)")
    activation_files.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    settings = Settings(repeats=args.repeats, seed=args.seed, threads=args.threads)
    options = {"columns": map_argument(args.map), "bits": args.bits, "labels": activation_files.labels_of(args)}
    with activation_files.opened(args.output) as output, terminal.progress(NAME) as job:
        exports = []
        second = activation_files.other_layer_of(args, args.second)
        for path, layer_index in ((args.first, args.layer_index), (args.second, second)):
            terminal.refuse_same_file(path, args.output)
            exports.append(read_export(path, layer_index=layer_index, job=job, **options))
        result = cosine(*exports, settings, job)
        output.write(result.to_json())
    terminal.say(result.headline)
    terminal.say(f"  without dimension {result.without_top.dimension}: {result.without_top.cosine:.2f}")
    if result.score_correlation is not None:
        terminal.say(f"  correlation of what the two call the rows: {result.score_correlation:.2f}")
    for warning in result.warnings:
        terminal.say(f"warning: {one_line(warning)}")
    return 0
