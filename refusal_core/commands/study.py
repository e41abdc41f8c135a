"""The full study of a refusal direction: held-out scores, nulls, interval, leakage and geometry as JSON."""

from __future__ import annotations

import argparse

from refusal_core.commands import activation_files, terminal
from refusal_core.direction.findings import auroc_words, split_sentence
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.meaning import Meaning, meaning_of
from refusal_core.direction.nulls import RandomDirections
from refusal_core.direction.scores import CategoryScore
from refusal_core.direction.splits import SplitComparison
from refusal_core.direction.study import Settings, Study
from refusal_core.direction.study import study as run_study
from refusal_core.errors import one_line
from refusal_core.metrics.intervals import Rate

NAME = "study"
HELP = "the full study of a refusal direction in two activation exports"
_CATEGORIES_SHOWN = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("train", metavar="TRAIN.npz", help="activations, labels, ids and categories to fit on")
    parser.add_argument(
        "test",
        metavar="TEST.npz",
        nargs="?",
        help="the same of other examples, to score on; without it categories are left out one by one and compared "
        "with random splits of the one file",
    )
    for name, text in (("model", "model and revision"), ("layer", "layer"), ("pooling", "token position or pooling")):
        parser.add_argument(
            f"--{name}",
            metavar=name[0].upper(),
            help=f"{text} of the export, written into the result; a description only",
        )
    parser.add_argument(
        "--repeats",
        type=int,
        default=Settings.repeats,
        metavar="N",
        help="shuffles and random directions to draw; 200 for a first look (default: 999)",
    )
    parser.add_argument(
        "--split-repeats",
        type=int,
        default=Settings.split_repeats,
        metavar="N",
        help="random partitions in the comparison of splits (default: 20)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of all draws (default: 0)")
    parser.add_argument(
        "--hold-out",
        action="append",
        default=[],
        metavar="CATEGORY",
        help="of one pooled file, a category to test on instead of fitting on it; may be given again",
    )
    parser.add_argument(
        "--hold-out-share", type=float, metavar="X", help="of one pooled file, the share of random rows to test on"
    )
    activation_files.add_meaning(parser)
    activation_files.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    settings = Settings(
        repeats=args.repeats,
        seed=args.seed,
        split_repeats=args.split_repeats,
        threads=args.threads,
        model=args.model,
        layer=args.layer,
        pooling=args.pooling,
        label_means=args.label_means,
    )
    with activation_files.opened(args.output) as output, terminal.progress(NAME) as job:
        paths = [args.train, *([args.test] if args.test else [])]
        train, test = activation_files.read(
            args, paths, job, held_out=tuple(args.hold_out), held_out_share=args.hold_out_share, seed=args.seed
        )
        result = run_study(train, test, settings, job)
        output.write(result.to_json())
    summarise(result)
    return 0


def summarise(result: Study) -> None:
    """The answer in one sentence, then what carries it, for the person at the terminal."""
    terminal.say(result.headline)
    meaning = meaning_of(result.extraction.get("label_means"))
    scores = result.test
    if not isinstance(scores, NotAvailable):
        terminal.say(f"  AUROC {auroc_words(vars(result))}")
        majority, random = result.baselines["majority"], result.baselines.get("random_directions")
        terminal.say(
            f"  majority label {majority.label}: accuracy {majority.accuracy:.3f} "
            f"(this direction: {scores.accuracy:.3f})"
        )
        if isinstance(random, RandomDirections):
            terminal.say(f"  random directions: balanced accuracy {random.mean:.3f}, sd {random.sd or 0:.3f}")
        for name, found in result.nulls.items():
            said = (
                found.not_available
                if isinstance(found, NotAvailable)
                else f"p = {found.p_value:.2g}, {found.repeats:,} labelings ({found.method})"
            )
            terminal.say(f"  {name.replace('_', ' ')}: {said}")
        for category in scores.by_category[:_CATEGORIES_SHOWN]:
            seen = " (in training too)" if category.seen_in_train else ""
            terminal.say(f"  {one_line(category.category, 60)}{seen}: {_rates(category, meaning)}")
        if len(scores.by_category) > _CATEGORIES_SHOWN:
            terminal.say(f"  and {len(scores.by_category) - _CATEGORIES_SHOWN} more categories in the JSON")
        if isinstance(result.split_comparison, SplitComparison):
            terminal.say(f"  {split_sentence(result.split_comparison)}")
    for warning in result.warnings:
        terminal.say(f"warning: {one_line(warning)}")


def _rates(category: CategoryScore, meaning: Meaning) -> str:
    parts = []
    for label, kind in (("0", "false"), ("1", "missed")):
        value, interval = getattr(category, f"{kind}_refusal_rate"), getattr(category, f"{kind}_refusal_rate_interval")
        if value is not None:
            parts.append(f"{getattr(meaning, kind)} {Rate(value, category.label_counts[label], interval)}")
    return ", ".join(parts)
