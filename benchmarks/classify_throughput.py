"""Rows a second of the classifier against the usual ways to run it, on this machine, in one process.

    python benchmarks/classify_throughput.py [--rows 200] [--rounds 3] [--threads N] [--clock wall|cpu] [--data FILE]

The same checkpoint in float32 and the same rows, all cut by the tokenizer's own rule (`truncation=True`) at 512 tokens,
or at the checkpoint's limit when that is lower:

  (a) transformers' pipeline("text-classification"), one row at a time
  (b) the same with batch_size=32
  (c) Classifier.predict, which sorts by length

and, as what (c) adds for files, (d) answer_rows: reading ahead on a second thread, repeats computed once; and (e), (c)
in int8 where the extra int8 is installed, with the share of labels that it flips. The rate of matrix
multiplication is measured in the same rounds, so that a busy machine slows both. Ratios are medians over rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from refusal_core.classifier import Classification, Classifier, load  # noqa: E402
from refusal_core.classifier.checkpoint import STARTER_FOLDER  # noqa: E402
from refusal_core.classifier.encode import LONGEST_FIRST  # noqa: E402
from refusal_core.classifier.stream import answer_rows  # noqa: E402
from refusal_core.errors import MissingPackage  # noqa: E402
from refusal_core.exchange_files import read_exchanges  # noqa: E402
from refusal_core.exchanges import Exchange  # noqa: E402
from refusal_core.metrics.intervals import rate  # noqa: E402

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "refusals" / "validation.jsonl"
CORPUS = sorted(Path(__file__).resolve().parents[1].glob("refusal_core/training/corpus/*.jsonl"))
INT8 = "(e) (c) in int8"
GAP = 1e-4  # labels may differ where the two most probable classes are closer than this


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--checkpoint", default="starter", help="starter or a folder")
    parser.add_argument(
        "--data", type=Path, nargs="+", help="exchanges to classify (default: mixed-length ones at hand)"
    )
    parser.add_argument("--threads", type=int, help="of torch (default: as it chooses)")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu counts this process's own time: steadier on a busy machine, and fair with --threads 1",
    )
    args = parser.parse_args()

    if args.threads:
        os.environ["OMP_NUM_THREADS"] = str(args.threads)  # read when torch is imported, and by load
    clock = time.perf_counter if args.clock == "wall" else time.process_time
    rows, origin = _rows(args.data, args.rows)
    classifier = load(args.checkpoint)
    length = min(512, classifier.info.max_tokens)
    folder = STARTER_FOLDER if args.checkpoint == "starter" else Path(args.checkpoint)
    pipe = _pipeline(folder, length)
    ways: dict[str, Callable[[], list]] = {
        "(a) pipeline, one by one": lambda: _by_pipeline(pipe, rows, 1),
        "(b) pipeline, batch_size=32": lambda: _by_pipeline(pipe, rows, 32),
        "(c) Classifier.predict": lambda: classifier.predict(rows, max_length=length, truncation=LONGEST_FIRST),
        "(d) answer_rows": lambda: [
            answered.answer
            for part in answer_rows(classifier, rows, max_length=length, truncation=LONGEST_FIRST)
            for answered in part
        ],
    }
    try:
        quick = load(args.checkpoint, int8=True)
        ways[INT8] = lambda: quick.predict(rows, max_length=length, truncation=LONGEST_FIRST)
        ways[INT8]()  # warms up
    except MissingPackage as problem:
        print(f"(e) is left out: {problem}")
    answers = classifier.predict(rows, max_length=length, truncation=LONGEST_FIRST)  # warms up, and tells the lengths
    tokens = [answer.tokens.input for answer in answers]
    work = sum(_operations(classifier, n) for n in tokens)
    print(
        f"{len(rows)} rows of {origin}; {sum(tokens):,} tokens, {min(tokens)} to {max(tokens)} a row, cut at {length}",
        end="",
    )
    print(" (the checkpoint's limit)" if length < 512 else "")

    seconds: dict[str, list[float]] = {name: [] for name in ways}
    rates: list[float] = []
    results: dict[str, list] = {}
    for _ in range(args.rounds):
        rates.append(_matmul_rate(clock))
        for name, way in ways.items():
            begun = clock()
            results[name] = way()
            seconds[name].append(clock() - begun)
    names = list(ways)
    print(f"matrix multiplication: {statistics.median(rates) / 1e9:.0f} billion operations a second")
    print(f"{'':<29}{'rows/s':>8}{'(c) is':>10}{'of matmul':>11}{'labels that differ':>20}")
    for name in names:
        ratio = statistics.median(mine / ours for mine, ours in zip(seconds[name], seconds[names[2]], strict=True))
        share = statistics.median(work / s / rate for s, rate in zip(seconds[name], rates, strict=True))
        differ, close = _differences(answers, results[name])
        print(
            f"{name:<29}{len(rows) / statistics.median(seconds[name]):>8.1f}{ratio:>9.2f}x{share:>10.0%}"
            f"{differ:>9} (+{close} near ties)"
        )
    if INT8 in results:
        faster = statistics.median(c / e for c, e in zip(seconds[names[2]], seconds[INT8], strict=True))
        flipped = rate(sum(_differences(answers, results[INT8])), len(rows))
        pairs = [(a.probabilities, b.probabilities) for a, b in zip(answers, results[INT8], strict=True)]
        moved = max(abs(a[label] - b[label]) for a, b in pairs for label in a)
        print(f"(e) is {faster:.2f}x of (c); labels flipped {flipped}; a probability moved by {moved:.3f} at most")


def _rows(files: Sequence[Path] | None, count: int) -> tuple[list[Exchange], str]:
    """Every k-th usable row, so that all lengths of the files are there."""
    files = files or ([SHARED] if SHARED.exists() else CORPUS)
    found = [
        row for file in files for row in read_exchanges(file) if isinstance(row, Exchange) and row.response.strip()
    ]
    step = max(len(found) // count, 1)
    return found[::step][:count], ", ".join(file.name for file in files)


def _pipeline(folder: Path, length: int):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return pipeline(
        "text-classification",
        model=model,
        tokenizer=tokenizer,
        device="cpu",
        top_k=None,
        truncation=True,
        max_length=length,
    )


def _by_pipeline(pipe, rows: Sequence[Exchange], batch_size: int) -> list[dict[str, float]]:
    pairs = [{"text": row.prompt, "text_pair": row.response} for row in rows]
    return [{score["label"]: score["score"] for score in scores} for scores in pipe(pairs, batch_size=batch_size)]


def _operations(classifier: Classifier, tokens: int) -> float:
    """Multiplications and additions of one row of `tokens` tokens: linear layers, and attention's two products."""
    import torch

    config = classifier._model.config
    linear = sum(
        module.weight.numel()
        for name, module in classifier._model.base_model.named_modules()
        if isinstance(module, torch.nn.Linear) and "pooler" not in name
    )
    return 2 * tokens * linear + 4 * tokens * tokens * config.hidden_size * config.num_hidden_layers


def _matmul_rate(clock: Callable[[], float], size: int = 1536, seconds: float = 1.5) -> float:
    """Operations a second of a float32 matrix product, the median of what fits into `seconds`."""
    import torch

    one, other = torch.rand(size, size), torch.rand(size, size)
    taken, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until or not taken:
        begun = clock()
        torch.mm(one, other)
        taken.append(clock() - begun)
    return 2 * size**3 / statistics.median(taken)


def _differences(ours: Sequence[Classification], theirs: Sequence[Classification | dict]) -> tuple[int, int]:
    """Labels that differ: where the answer is clear, and where its two most probable classes are within GAP."""
    differ = close = 0
    for mine, other in zip(ours, theirs, strict=True):
        label = max(other, key=other.get) if isinstance(other, dict) else other.label
        if label != mine.label:
            first, second = sorted(mine.probabilities.values(), reverse=True)[:2]
            differ, close = differ + (first - second > GAP), close + (first - second <= GAP)
    return differ, close


if __name__ == "__main__":
    main()
