"""The options and the reading that the commands over activation exports share."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import IO

from refusal_core.activations.arrays import BITS
from refusal_core.activations.npz import Export, map_argument
from refusal_core.activations.peek import Peek
from refusal_core.activations.reading import Reading, read_parts
from refusal_core.commands import terminal
from refusal_core.direction.meaning import MEANINGS
from refusal_core.errors import InputError
from refusal_core.jobs import Job
from refusal_core.reports import atomic_file


def add_arguments(parser: argparse.ArgumentParser, *, layer_index: bool = True) -> None:
    """The shared options; without --layer-index for a command that takes all layers."""
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="NAME=KEY",
        help="our name of a member = the file's, for example --map activations=acts; may be given again",
    )
    if layer_index:
        parser.add_argument(
            "--layer-index", type=int, metavar="N", help="which layer of [examples, layers, dimensions] to read, from 0"
        )
    parser.add_argument("--zero", metavar="VALUE", help="the label that means 0, where the files say it otherwise")
    parser.add_argument("--one", metavar="VALUE", help="the label that means 1, as --one=refused or --one=1")
    parser.add_argument("--bits", choices=BITS, help="what 16-bit integers or typeless 2-byte activations are")
    parser.add_argument(
        "--output", default="-", metavar="F", help="JSON file to write; - writes standard output (default: -)"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="threads of the matrix products; another number may change the last digits (default: 1)",
    )


def add_meaning(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--label-means",
        choices=list(MEANINGS),
        help="what label 1 says: the response refused, or the prompt is harmful; rates are worded by it",
    )


def add_other_layer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--other-layer-index",
        type=int,
        metavar="N",
        help="the layer of the second one (default: as --layer-index, where the file has several)",
    )


def other_layer_of(args: argparse.Namespace, path: str) -> int | None:
    """Which layer of the second side's file `path` is read."""
    if args.other_layer_index is not None or args.layer_index is None:
        return args.other_layer_index
    key = map_argument(args.map).get("activations", "activations")
    peek = Peek(path, os.path.basename(path))
    return args.layer_index if key in peek.members and peek.layers(key) else None


def labels_of(args: argparse.Namespace) -> tuple[str, str] | None:
    """What stands for 0 and for 1. Raises InputError when only one of the two is given."""
    if (args.zero is None) != (args.one is None):
        raise InputError("only one of --zero and --one is given", fix="name both labels, --zero=VALUE --one=VALUE")
    return None if args.zero is None else (args.zero, args.one)


@contextlib.contextmanager
def opened(output: str) -> Iterator[IO[str]]:
    """The file `output`, or stdout for "-"; opened before the work, so that a wrong place is found first."""
    if output == "-":
        yield sys.stdout
        sys.stdout.flush()
    else:
        with atomic_file(output) as file:
            yield file


def read(
    args: argparse.Namespace,
    paths: list[str],
    job: Job,
    *,
    held_out: tuple[str, ...] = (),
    held_out_share: float | None = None,
    seed: int = 0,
) -> tuple[Export, Export | None]:
    """The training part and the test part, the second None where one file is given and nothing is held out."""
    for path in paths:
        terminal.refuse_same_file(path, args.output)
    reading = Reading(map_argument(args.map), labels_of(args), args.bits, args.layer_index, held_out, held_out_share)
    return read_parts([(path, None) for path in paths], reading, seed, job)
