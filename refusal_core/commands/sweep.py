"""The held-out score of a refusal direction at each layer: the p-values pay for the choice of a layer."""

from __future__ import annotations

import argparse

from refusal_core.activations.layers import Layers, open_layers
from refusal_core.activations.npz import map_argument
from refusal_core.commands import activation_files, terminal
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.result import Settings
from refusal_core.direction.sweep import sweep
from refusal_core.direction.sweep_result import LayerScore, Sweep, with_interval
from refusal_core.errors import InputError, one_line
from refusal_core.jobs import Job

NAME = "sweep"
HELP = "the held-out score of a refusal direction at each layer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--train",
        nargs="+",
        required=True,
        metavar="F.npz",
        help="one export of shape [examples, layers, dimensions], or one export a layer, in order",
    )
    parser.add_argument(
        "--test",
        nargs="+",
        metavar="F.npz",
        help="the same of other examples, to score on; without it categories are left out one by one",
    )
    parser.add_argument(
        "--layers", metavar="N,N,...", help="places of the layers to take, from 0 (default: all that are there)"
    )
    parser.add_argument(
        "--repeats", type=int, default=Settings.repeats, metavar="N", help="shuffles to draw (default: 999)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of all draws (default: 0)")
    activation_files.add_arguments(parser, layer_index=False)


def run(args: argparse.Namespace) -> int:
    settings = Settings(repeats=args.repeats, seed=args.seed, threads=args.threads)
    places = whole_numbers(args.layers, "--layers") if args.layers else None
    with activation_files.opened(args.output) as output, terminal.progress(NAME) as job:
        train = _opened(args, args.train, job)
        test = _opened(args, args.test, job) if args.test else None
        result = sweep(train, test, settings, places, job)
        output.write(result.to_json())
    _summarise(result)
    return 0


def whole_numbers(text: str, where: str) -> list[int]:
    """ "3,5,8" as numbers. Raises InputError for anything else."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f'"{text}" is no list of whole numbers', where=where, fix="write them with commas, for example 8,12,16"
        ) from None


def _opened(args: argparse.Namespace, paths: list[str], job: Job) -> Layers:
    for path in paths:
        terminal.refuse_same_file(path, args.output)
    labels = activation_files.labels_of(args)
    return open_layers(paths, columns=map_argument(args.map), bits=args.bits, labels=labels, job=job)


def _summarise(result: Sweep) -> None:
    terminal.say(result.headline)
    for layer in result.layers:
        terminal.say(f"  layer {one_line(layer.layer, 60)}: {_line(layer, result.null)}")
    for warning in result.warnings:
        terminal.say(f"warning: {one_line(warning)}")


def _line(layer: LayerScore, null: str) -> str:
    if layer.problem:
        return layer.problem
    found = layer.nulls[null]
    said = "" if isinstance(found, NotAvailable) else f", p = {found.adjusted_p_value:.2g} over all layers"
    return f"balanced accuracy {with_interval(layer)}{said}"
