"""What the commands share: options of one kind, and progress on stderr."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from refusal_core.classifier.encode import MIDDLE, TRUNCATIONS
from refusal_core.errors import InputError
from refusal_core.jobs import Job, Progress
from refusal_core.reports import atomic_file


@contextlib.contextmanager
def progress(description: str) -> Iterator[Job]:
    """A job whose progress is drawn on stderr: a bar on a terminal, a line every few seconds elsewhere."""
    from tqdm import tqdm

    with tqdm(
        desc=description, file=sys.stderr, unit=" items", mininterval=0.2 if sys.stderr.isatty() else 10, delay=1
    ) as bar:

        def show(now: Progress) -> None:
            bar.total, bar.unit = now.total, f" {now.unit}"
            bar.update(now.done - bar.n)

        yield Job(show=show)


def say(text: str) -> None:
    """A message for the person at the terminal; results go to stdout."""
    print(text, file=sys.stderr)


def add_classifier_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--checkpoint",
        default="starter",
        metavar="NAME",
        help="starter, a checkpoint folder, or a hub id owner/name[@revision] (default: starter)",
    )
    parser.add_argument(
        "--batch-size", type=int, default=32, metavar="N", help="exchanges in one forward pass at most (default: 32)"
    )
    parser.add_argument(
        "--max-length",
        type=int,
        metavar="N",
        help="tokens of one exchange that are read at most (default: the checkpoint's limit, at most 4096)",
    )
    parser.add_argument(
        "--truncation",
        choices=TRUNCATIONS,
        default=MIDDLE,
        help="middle keeps a long response's head and tail and the prompt's end; "
        "longest-first is the tokenizer's truncation=True (default: middle)",
    )
    parser.add_argument(
        "--int8",
        action="store_true",
        help="compute in 8-bit integers: for speed, not for published numbers (needs the extra int8)",
    )


def add_input_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "input",
        metavar="IN",
        help="JSONL, JSON list, CSV or Parquet file with prompt and response, or chat messages; - reads standard input",
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="NAME=KEY",
        help="our name of a column and the file's, for example --map prompt=question; may be given again",
    )
    parser.add_argument(
        "--every-turn", action="store_true", help="of a chat, classify every assistant turn instead of the last one"
    )


def columns(pairs: list[str], names: Collection[str], example: str) -> dict[str, str]:
    """`--map NAME=KEY` arguments over these names. Raises InputError for another form."""
    found: dict[str, str] = {}
    for pair in pairs:
        ours, equals, key = (part.strip() for part in pair.partition("="))
        if not equals or not key or ours not in names or ours in found:
            raise InputError(
                f'"{pair}" maps no column',
                where="--map",
                why=f"NAME is {', '.join(names)}, each once",
                fix=f"write NAME=KEY, for example {example}",
            )
        found[ours] = key
    return found


def classifier_options(args: argparse.Namespace) -> dict:
    """The keyword arguments of `Classifier.predict` that were given."""
    return {"batch_size": args.batch_size, "max_length": args.max_length, "truncation": args.truncation}


def source_of(args: argparse.Namespace) -> tuple[Path | BinaryIO, str]:
    """The input to read, and its name in messages."""
    if args.input == "-":
        # Not sys.stdin's own buffer: its lock stops the interpreter's end while another thread waits for the pipe.
        return open(0, "rb", closefd=False), "standard input"  # noqa: SIM115
    return Path(args.input), Path(args.input).name


class _Probe(Exception):
    pass


def check_writable(output: str) -> None:
    """Say at once, not after hours, what keeps the output from being written. Raises as `atomic_file` does."""
    with contextlib.suppress(_Probe), atomic_file(output):
        raise _Probe


def refuse_same_file(source: str, output: str) -> None:
    """Raise InputError when the output would replace the input."""
    with contextlib.suppress(OSError):
        if source != "-" and output != "-" and os.path.samefile(source, output):
            raise InputError("the output is the input file", where="--output", fix="name another file")
