"""Prompts through a language model into an NPZ that the study reads: one position of the residual stream a prompt."""

from __future__ import annotations

import argparse
import os
from collections import Counter

from refusal_core.activations.export import export
from refusal_core.activations.export_parts import UNFINISHED
from refusal_core.activations.export_settings import EXCHANGE, PROMPT, Exported, ExportSettings, Labels
from refusal_core.activations.language_model import LAST, POOLINGS
from refusal_core.activations.load_model import PRECISIONS, load_language_model
from refusal_core.activations.prompts import COLUMNS, Skipped, read_prompts
from refusal_core.classifier.predict import load
from refusal_core.commands import terminal
from refusal_core.commands.sweep import whole_numbers
from refusal_core.direction.meaning import MEANINGS, REFUSED
from refusal_core.errors import InputError, one_line
from refusal_core.labels import DEFAULT_FOLD, FOLDS
from refusal_core.reports import atomic_file, to_json

NAME = "export"
HELP = "prompts through a language model into an NPZ of activations"
_SKIPPED_SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        required=True,
        metavar="NAME",
        help="a causal language model: a folder with safetensors, a .gguf file, or a hub id owner/name[@revision]",
    )
    parser.add_argument(
        "--prompts",
        required=True,
        metavar="FILE",
        help="JSONL, JSON list, CSV or Parquet with prompt (or messages), category, and id, label, response if known",
    )
    parser.add_argument("--output", required=True, metavar="F.npz", help="the NPZ to write")
    parser.add_argument(
        "--layers",
        required=True,
        metavar="N,N|all",
        help="hidden states to keep: 0 is the embedding, k is after block k",
    )
    parser.add_argument(
        "--pooling", choices=POOLINGS, default=LAST, help=f"what becomes of the tokens read (default: {LAST})"
    )
    parser.add_argument(
        "--read",
        choices=(PROMPT, EXCHANGE),
        default=PROMPT,
        help="whether the model reads the prompt, up to where its answer begins, or the response too (default: prompt)",
    )
    parser.add_argument(
        "--generate", type=int, default=0, metavar="N", help="write up to N tokens of response where none is given"
    )
    parser.add_argument(
        "--classify", action="store_true", help="label by whether the response is a refusal, by the classifier"
    )
    parser.add_argument(
        "--checkpoint", default="starter", metavar="NAME", help="the classifier's checkpoint (default: starter)"
    )
    parser.add_argument(
        "--fold",
        choices=tuple(FOLDS),
        default=DEFAULT_FOLD.key,
        help=f"what counts as refused (default: {DEFAULT_FOLD.key})",
    )
    parser.add_argument(
        "--positive", metavar="TEXT,TEXT", help="labels of the column that count as 1; all others are 0 then"
    )
    parser.add_argument(
        "--label-means",
        choices=list(MEANINGS),
        help="what label 1 says, written into the file, where a study reads it; with --classify it is refused",
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="NAME=KEY",
        help="our name of a column = the file's, for example --map category=topic; may be given again",
    )
    parser.add_argument("--system", metavar="TEXT", help="a system prompt before every prompt")
    parser.add_argument("--no-template", action="store_true", help="feed prompts as they are, without a chat template")
    parser.add_argument("--batch-size", type=int, default=8, metavar="N", help="prompts at once at most (default: 8)")
    parser.add_argument("--max-length", type=int, metavar="N", help="leave out rows of more tokens than this")
    parser.add_argument(
        "--dtype", choices=("float16", "float32"), default="float32", help="the type to write (default: float32)"
    )
    parser.add_argument(
        "--precision", choices=PRECISIONS, default="float32", help="what the model computes in (default: float32)"
    )
    parser.add_argument("--device", default="cpu", metavar="D", help="cpu, or a device of torch such as cuda")
    parser.add_argument("--table", metavar="F.jsonl", help="write id, prompt, response, category and label beside it")
    parser.add_argument(
        "--resume", action="store_true", help=f"go on from what a stopped run left in OUTPUT{UNFINISHED}"
    )


def run(args: argparse.Namespace) -> int:
    settings = ExportSettings(
        layers=None if args.layers == "all" else tuple(whole_numbers(args.layers, "--layers")),
        pooling=args.pooling,
        reads=args.read,
        dtype=args.dtype,
        batch_size=args.batch_size,
        max_length=args.max_length,
        new_tokens=args.generate,
        system=args.system,
        template=not args.no_template,
    )
    _check_places(args)
    prompts, unread = read_prompts(args.prompts, columns=terminal.columns(args.map, COLUMNS, "category=topic"))
    classifier = load(args.checkpoint) if args.classify else None
    positive = tuple(part.strip() for part in args.positive.split(",")) if args.positive else ()
    meaning = MEANINGS[args.label_means].title if args.label_means and not args.classify else None
    labels = Labels(classifier, positive, FOLDS[args.fold], meaning, args.label_means)
    model = load_language_model(args.model, device=args.device, precision=args.precision)
    if not args.resume and os.path.exists(args.output + UNFINISHED):
        terminal.say("Beginning anew: what a stopped run left is replaced; --resume would go on from it.")
    try:
        with terminal.progress(NAME) as job:
            result = export(prompts, model, args.output, settings, labels, resume=args.resume, job=job)
    except BaseException:
        if os.path.exists(args.output + UNFINISHED):
            terminal.say("What is done is kept beside the output; --resume goes on from there.")
        raise
    if args.table:
        with atomic_file(args.table) as file:
            file.writelines(to_json(row) + "\n" for row in result.rows)
    _summarise(result, unread, model.description)
    return 0


def _check_places(args: argparse.Namespace) -> None:
    """Say before the work what keeps the outputs from being written, or from being true."""
    if args.classify and args.label_means not in (None, REFUSED.key):
        raise InputError(
            "labels by --classify say whether the response refused",
            where="--label-means",
            fix="leave one of the two options out",
        )
    for path, option in ((args.output, "--output"), (args.table, "--table")):
        if path is None:
            continue
        terminal.refuse_same_file(args.prompts, path)
        if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise InputError("the folder to write in does not exist", where=option, fix="create it first")


def _summarise(result: Exported, unread: tuple[Skipped, ...], model: str) -> None:
    terminal.say(
        f"{result.shape[0]:,} examples of shape {list(result.shape[1:])} from {model}: "
        f"{result.label_counts[0]:,} of label 0, {result.label_counts[1]:,} of label 1 "
        f"({result.metadata['label_1_means']}), {result.categories:,} categories."
    )
    if classes := Counter(row["class"] for row in result.rows if "class" in row):
        terminal.say("  " + ", ".join(f"{n:,} {name}" for name, n in classes.most_common()))
    for note in result.notes:
        terminal.say(f"note: {note}")
    skipped = (*unread, *result.skipped)
    for row in skipped[:_SKIPPED_SHOWN]:
        terminal.say(f"left out: {one_line(row.id, 60)}: {one_line(row.reason, 200)}")
    if len(skipped) > _SKIPPED_SHOWN:
        terminal.say(f"left out: {len(skipped) - _SKIPPED_SHOWN:,} more")
    if not all(result.label_counts):
        terminal.say("warning: only one label is there, so no direction can be fitted to this file.")
