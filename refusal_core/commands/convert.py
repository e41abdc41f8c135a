"""Other layouts of activations into the NPZ that the study reads: .npy, safetensors, a folder, a file a class."""

from __future__ import annotations

import argparse

from refusal_core.activations.arrays import BITS
from refusal_core.activations.convert import COLUMNS, convert
from refusal_core.activations.npz import MEANS, METADATA
from refusal_core.activations.write import DTYPES
from refusal_core.commands import terminal
from refusal_core.commands.sweep import whole_numbers
from refusal_core.direction.meaning import MEANINGS

NAME = "convert"
HELP = "other layouts of activations into our NPZ"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="IN",
        help=".npy, .npz or .safetensors files, or folders of .npy or .safetensors files with an example each",
    )
    parser.add_argument("--output", required=True, metavar="F.npz", help="the NPZ to write")
    parser.add_argument("--labels", metavar="N,N", help="one label an input, for example 0,1 for harmless and harmful")
    parser.add_argument(
        "--table", metavar="T", help="CSV, JSONL or Parquet with a row an example: label, and id and category if known"
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="NAME=KEY",
        help="our name of a column of the table (id, label, category) = the table's; may be given again",
    )
    parser.add_argument(
        "--positive", metavar="TEXT,TEXT", help="labels of the table that count as 1; all others are 0 then"
    )
    parser.add_argument("--key", metavar="NAME", help="the tensor or member to read where a file holds several")
    parser.add_argument(
        "--stack", choices=("examples", "layers"), help="what several tensors of two axes in one file are"
    )
    parser.add_argument(
        "--layers", metavar="NAME,NAME", help="names of the layer axis of [examples, layers, dimensions]"
    )
    parser.add_argument("--bits", choices=BITS, help="what 16-bit integers or typeless 2-byte values of an NPZ are")
    parser.add_argument("--dtype", choices=DTYPES, help="the type to write (default: as it is; bfloat16 as float32)")
    for name in METADATA:
        parser.add_argument(f"--{name}", metavar=name[0].upper(), help=f"the {name} of the export, written into it")
    parser.add_argument(
        "--label-means", choices=list(MEANINGS), help="what label 1 says, written into the file, where a study reads it"
    )


def run(args: argparse.Namespace) -> int:
    for path in args.inputs:
        terminal.refuse_same_file(path, args.output)
    with terminal.progress(NAME) as job:
        result = convert(
            args.inputs,
            args.output,
            labels=whole_numbers(args.labels, "--labels") if args.labels else None,
            table=args.table,
            columns=terminal.columns(args.map, COLUMNS, "label=refused"),
            positive=_texts(args.positive),
            key=args.key,
            stack=args.stack,
            bits=args.bits,
            dtype=args.dtype,
            layers=_texts(args.layers) or None,
            metadata={name: getattr(args, name) for name in (*METADATA, MEANS) if getattr(args, name)},
            job=job,
        )
    terminal.say(
        f"{result.examples:,} examples of shape {list(result.shape[1:])} as {result.dtype}: "
        f"{result.label_counts[0]:,} of label 0, {result.label_counts[1]:,} of label 1, "
        f"{result.categories:,} categories."
    )
    for note in result.notes:
        terminal.say(f"note: {note}")
    return 0


def _texts(value: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if value else ()
