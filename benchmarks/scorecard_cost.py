"""What a scorecard costs beside the classification that it rests on, on this machine, in one process.

    python benchmarks/scorecard_cost.py [--exchanges 1000] [--assertions 200] [--checkpoints 5] [--rounds 1]

First: so many assertions over so many checkpoints of so many exchanges, cold (an empty cache) and warm (the next run),
as multiples of the bare classification of the distinct exchanges by each checkpoint (aims: at most 1.15 and 0.05). The
checkpoints are copies of the starter with a digest of their own each. The bare classification and the cold run take
turns, so that a busy machine slows both.

Second: the paired bootstrap of macro F1 over 10,000 items and 2,000 resamples against a plain loop that resamples items
and computes the score of each resample with numpy (aim: at least 50 times faster).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402

from refusal_core.classifier import load  # noqa: E402
from refusal_core.classifier.checkpoint import STARTER_FOLDER  # noqa: E402
from refusal_core.exchanges import Exchange  # noqa: E402
from refusal_core.labels import LABELS  # noqa: E402
from refusal_core.metrics.compare import paired  # noqa: E402
from refusal_core.metrics.items import Items  # noqa: E402
from refusal_core.metrics.metric import Metric  # noqa: E402
from refusal_core.metrics.scores import bootstrap_of  # noqa: E402
from refusal_core.scorecard import BesideSuite, read_suite, run  # noqa: E402
from refusal_core.scorecard.cache import AnswerCache  # noqa: E402

CORPUS = sorted(Path(__file__).resolve().parents[1].glob("refusal_core/training/corpus/*.jsonl"))
KINDS = [  # as often as the list has room, over and over
    "{type: metric, metric: accuracy, threshold: 0.8}",
    "{type: metric, metric: recall, label: full_refusal, threshold: 0.8}",
    "{type: metric, metric: f1, average: macro, threshold: 0.8}",
    "{type: metric, metric: precision, label: partial_refusal, threshold: 0.8}",
    "{type: no-regression, metric: accuracy, min_absolute_change: -0.01}",
    "{type: no-regression, metric: f1, average: macro, min_absolute_change: -0.01}",
    "{type: confusion, true: partial_refusal, predicted: compliant, max_rate: 0.1}",
    "{type: rate, label_set: refusal, max_rate: 0.5}",
    "{type: equals, value_field: true_class, min_pass_rate: 0.7}",
    "{type: metric, metric: brier, threshold: 0.5}",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--exchanges", type=int, default=1_000)
    parser.add_argument("--assertions", type=int, default=200)
    parser.add_argument("--checkpoints", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", choices=("suite", "bootstrap"), help="one of the two parts")
    args = parser.parse_args()
    if args.only != "bootstrap":
        suite_cost(args)
    if args.only != "suite":
        bootstrap_cost()


def suite_cost(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rows = exchanges(args.exchanges)
        (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        names = [checkpoint(folder, number) for number in range(args.checkpoints)]
        (folder / "suite.yaml").write_text(suite(names, args.assertions), encoding="utf-8")
        file, resolver = read_suite(folder / "suite.yaml"), BesideSuite(folder)
        distinct = list({(r["prompt"], r["response"]): Exchange(r["prompt"], r["response"]) for r in rows}.values())
        load(str(folder / names[0])).predict(distinct[:32])  # warms up
        bare, cold, warm = [], [], []
        for number in range(args.rounds):
            cache = AnswerCache(folder / f"cache-{number}.sqlite")
            bare.append(timed(lambda: [load(str(folder / name)).predict(distinct) for name in names]))
            cold.append(timed(lambda cache=cache: run(file, resolver, cache=cache)))
            warm.append(timed(lambda cache=cache: run(file, resolver, cache=cache)))
        ratios = [[s / b for s, b in zip(seconds, bare, strict=True)] for seconds in (cold, warm)]
        print(
            f"{args.assertions} assertions x {args.checkpoints} checkpoints over {len(distinct):,} distinct exchanges: "
            f"bare {statistics.median(bare):.1f} s, cold {statistics.median(cold):.1f} s, "
            f"warm {statistics.median(warm):.2f} s"
        )
        for name, ratio, aim in (("cold", ratios[0], 1.15), ("warm", ratios[1], 0.05)):
            print(f"  {name} over bare: {statistics.median(ratio):.3f} (aim: at most {aim})")


def exchanges(count: int) -> list[dict]:
    """Rows of the project's corpus, then the same with a mark, so that all are different."""
    lines = [json.loads(line) for path in CORPUS for line in path.read_text(encoding="utf-8").splitlines()]
    step = max(1, len(lines) // count)
    rows = []
    for number, row in enumerate(islice(cycle(lines[::step]), count)):
        mark = "" if number < len(lines[::step]) else f" ({number})"
        rows.append(
            {"id": number, "prompt": row["prompt"] + mark, "response": row["response"], "label": row["label"],
             "true_class": row["label"]}
        )  # fmt: skip
    return rows


def checkpoint(folder: Path, number: int) -> str:
    """The starter with another digest: a space more in its config."""
    name = f"checkpoint-{number}"
    (folder / name).mkdir()
    for path in STARTER_FOLDER.iterdir():
        if path.is_file():
            shutil.copyfile(path, folder / name / path.name)
    config = folder / name / "config.json"
    config.write_text(config.read_text(encoding="utf-8") + "\n" * number, encoding="utf-8")
    return name


def suite(names: list[str], assertions: int) -> str:
    columns = ", ".join(f"{{id: {name}, path: {name}}}" for name in names)
    lines = "".join(f"      - {kind}\n" for kind in islice(cycle(KINDS), assertions))
    return (
        f"version: 1\ncheckpoints: [{columns}]\nbaseline: {names[0]}\n"
        f"datasets: [{{id: d, path: data.jsonl}}]\ntests:\n  - id: t\n    assert:\n{lines}"
    )


def bootstrap_cost(n: int = 10_000, resamples: int = 2_000, looped: int = 100) -> None:
    """`looped` rounds of the plain loop stand for `resamples` of them."""
    rng = np.random.default_rng(0)
    true = rng.integers(5, size=n)
    sides = [np.where(rng.random(n) < 0.85, true, rng.integers(5, size=n)) for _ in range(2)]
    ids = tuple(map(str, range(n)))
    new, old = (Items(LABELS, ids, true, side) for side in sides)
    metric = Metric("f1", average="macro")
    ours = min(timed(lambda: bootstrap_of([new, old], metric, resamples=resamples).interval()) for _ in range(3))
    whole = min(timed(lambda: paired(new, old, metric, resamples=resamples)) for _ in range(3))

    def f1(predicted: np.ndarray, rows: np.ndarray) -> float:
        matrix = np.zeros((5, 5))
        np.add.at(matrix, (true[rows], predicted[rows]), 1)
        return float(np.mean(2 * np.diag(matrix) / (matrix.sum(axis=0) + matrix.sum(axis=1))))

    def loop() -> list[float]:
        drawn = (rng.integers(n, size=n) for _ in range(looped))
        return [f1(sides[0], rows) - f1(sides[1], rows) for rows in drawn]

    plain = timed(loop) * resamples / looped
    print(
        f"paired bootstrap, {n:,} items, {resamples:,} resamples: ours {ours * 1e3:.0f} ms, plain loop {plain:.1f} s: "
        f"{plain / ours:.0f} times (aim: at least 50); with both sides' own intervals {whole * 1e3:.0f} ms"
    )


def timed(work) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
