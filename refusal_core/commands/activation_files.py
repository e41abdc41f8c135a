"""The options and the reading that the commands over activation exports share."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import IO

from refusal_core.activations.arrays import BITS
from refusal_core.activations.npz import Export, map_argument, read_export
from refusal_core.commands import terminal
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


@contextlib.contextmanager
def opened(output: str) -> Iterator[IO[str]]:
    """The file `output`, or stdout for "-"; opened before the work, so that a wrong place is found first."""
    if output == "-":
        yield sys.stdout
        sys.stdout.flush()
    else:
        with atomic_file(output) as file:
            yield file


def read(args: argparse.Namespace, paths: list[str], job: Job) -> list[Export]:
    """The exports in the order of `paths`."""
    for path in paths:
        terminal.refuse_same_file(path, args.output)
    columns = map_argument(args.map)
    return [read_export(path, columns=columns, bits=args.bits, layer_index=args.layer_index, job=job) for path in paths]
