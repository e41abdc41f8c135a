"""How fast the direction study is against what a researcher writes by hand, and against scikit-learn.

One process, one BLAS thread, both sides on the same arrays in memory; only the ratios mean anything. The plain loop is
timed on a few repeats and multiplied out. "Ours" is fit, label shuffles, random directions and intervals; the nulls'
scores are compared with the loop's on shared labelings before any time is believed.

    python benchmarks/study_speed.py            both sizes, float32 and float16
    python benchmarks/study_speed.py --small    the small size only
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.model_selection import PredefinedSplit, permutation_test_score
from sklearn.neighbors import NearestCentroid
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from refusal_core.activations.npz import Export, read_export
from refusal_core.direction import geometry, intervals, leakage, nulls, scores, variants
from refusal_core.direction.fit import fit, margins
from refusal_core.direction.result import random_streams
from refusal_core.direction.rows import Rows, rows_of
from refusal_core.jobs import Job

SIZES = ((2_000, 4_096, 200), (20_000, 4_096, 1_000))
CATEGORIES = 20
AIMS = {("float32", 2_000): 12, ("float32", 20_000): 20}
SKLEARN_AIM, MEMORY_AIM = 100, 1.5


def made(n: int, d: int, dtype: type, part: int) -> Export:
    """Half of `n` rows of a weak planted direction, in 20 categories of one label each, others in each file."""
    rng = np.random.default_rng(part)
    rows = n // 2
    code = np.arange(rows) % CATEGORIES
    labels = (code % 2).astype(np.int8)
    values = rng.standard_normal((rows, d), dtype=np.float32)
    values[:, :8] += 0.3 * labels[:, None]
    names = tuple(f"file {part} topic {k}" for k in code)
    ids = tuple(f"{part}-{i}" for i in range(rows))
    values = values.astype(dtype)
    return Export(f"{part}.npz", str(part), values, labels, ids, names, values.dtype.name, float(np.abs(values).max()))


def balanced(calls: np.ndarray, y: np.ndarray) -> float:
    return (np.mean(calls[y == 1]) + np.mean(~calls[y == 0])) / 2


def loop(
    x: np.ndarray, y: np.ndarray, z: np.ndarray, w: np.ndarray, labels: np.ndarray, rng: np.random.Generator
) -> list[float]:
    """The plain loop: per repeat one shuffled and one random direction; both are projected on the training rows, cut
    halfway between the projected class means, and scored on the test rows. `labels` holds the permutations to fit on.
    """
    found = []
    for shuffled in labels:
        rng.permutation(y)  # what drawing `shuffled` costs
        u = x[shuffled].mean(0) - x[~shuffled].mean(0)
        u = u / np.linalg.norm(u)
        projected = x @ u
        threshold = (projected[shuffled].mean() + projected[~shuffled].mean()) / 2
        found.append(balanced(z @ u >= threshold, w))
        g = rng.standard_normal(x.shape[1]).astype(x.dtype)
        projected = x @ g
        a, b = projected[y].mean(), projected[~y].mean()
        calls = z @ g >= (a + b) / 2
        balanced(calls if a >= b else ~calls, w)
    return found


def ours(train: Rows, test: Rows, repeats: int) -> np.ndarray:
    """Fit, scores, shuffles, random directions, intervals; the shuffles' scores."""
    job, streams = Job(), random_streams(1)
    direction = fit(train, job)
    margin = margins(test, direction.unit, direction.midpoint, job)
    found = scores.score(test, margin, frozenset(train.categories))
    sets = [
        nulls.fitted(train, direction, nulls.shuffled_labels(train, repeats, streams["shuffled labels"]), job),
        nulls.random_directions(train, direction, repeats, streams["random directions"]),
    ]
    shuffled, random = nulls.scores_of(test, direction, sets, job)
    nulls.null(shuffled, found.balanced_accuracy, claim="", labelings=None)
    nulls.summary(random)
    intervals.category_interval(scores.correct_cells(test, margin >= 0), test.cells(), streams["bootstrap"])
    return shuffled


def best(work: Callable[[], object], runs: int) -> float:
    """The shortest of `runs` times, seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def alternating(one: Callable[[], object], other: Callable[[], object], runs: int) -> tuple[float, float]:
    """The shortest times of two works that take turns, so that a busy machine slows both."""
    times = [(best(one, 1), best(other, 1)) for _ in range(runs)]
    return min(a for a, _ in times), min(b for _, b in times)


def peak_over(work: Callable[[], object]) -> int:
    """Bytes allocated at the highest point of `work`."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def measure(n: int, d: int, repeats: int, dtype: type) -> bool:
    exports = made(n, d, dtype, 1), made(n, d, dtype, 2)
    train, test = (rows_of(export) for export in exports)
    runs, few = (5, 12) if n <= 2_000 else (3, 6)
    x, y, z, w = train.values, train.labels == 1, test.values, test.labels == 1
    labels = nulls.shuffled_labels(train, repeats, random_streams(1)["shuffled labels"])

    mine, plain = alternating(
        lambda: ours(train, test, repeats), lambda: loop(x, y, z, w, labels[:few], np.random.default_rng(0)), runs
    )
    plain *= repeats / few
    gap = np.abs(
        ours(train, test, repeats)[:few]
        - loop(x.astype(np.float64), y, z.astype(np.float64), w, labels[:few], np.random.default_rng(0))
    )
    arrays = x.nbytes + z.nbytes
    peak = arrays + peak_over(lambda: ours(train, test, repeats))
    allowed = MEMORY_AIM * arrays + (2 * repeats + 1) * d * 4
    name = np.dtype(dtype).name
    aim = AIMS.get((name, n), 0)
    met = plain / mine >= aim and peak <= allowed and gap.max() < 2 / len(w)
    print(f"{n:,} x {d:,}, R {repeats:,}, {name}")
    print(
        f"  plain loop / ours            {plain / mine:8.1f}   {f'aim {aim}' if aim else ''}"
        f"   ({plain:.2f} s / {mine:.3f} s)"
    )
    print(f"  largest difference of a score {gap.max():.1e}")
    print(f"  peak / what is allowed       {peak / allowed:8.2f}   ({peak / 1e6:.0f} MB, arrays {arrays / 1e6:.0f} MB)")
    if (name, n) == ("float32", 2_000):
        met &= against_sklearn(x, y, z, w, repeats, mine)
    apart(exports, train, test, mine)
    return met


def against_sklearn(x: np.ndarray, y: np.ndarray, z: np.ndarray, w: np.ndarray, repeats: int, mine: float) -> bool:
    both, labels = np.concatenate([x, z]), np.concatenate([y, w]).astype(int)
    split = PredefinedSplit([-1] * len(y) + [0] * len(w))
    few = 10

    def permute() -> None:
        permutation_test_score(
            NearestCentroid(), both, labels, cv=split, n_permutations=few, scoring="balanced_accuracy", n_jobs=1
        )

    theirs = best(permute, 1) / (few + 1) * (repeats + 1)
    print(f"  permutation_test_score / ours {theirs / mine:7.1f}   aim {SKLEARN_AIM}   ({theirs:.2f} s)")
    return theirs / mine >= SKLEARN_AIM


def apart(exports: tuple[Export, Export], train: Rows, test: Rows, mine: float) -> None:
    """Leakage, geometry and the variants as shares of our time; reading and hashing a stored and a deflated file."""
    direction = fit(train)
    margin = margins(test, direction.unit, direction.midpoint)
    rng = np.random.default_rng(0)
    spread = geometry.spread(train, direction)
    parts = {
        "fit": lambda: fit(train),
        "leakage": lambda: leakage.leakage(train, test, margin, rng),
        "geometry": lambda: geometry.geometry(train, test, direction, margin, geometry.spread(train, direction)),
        "scaled variant": lambda: variants.scaled(test, direction, spread),
        "shrunk variant": lambda: variants.shrunk(train, test, direction, spread, rng),
    }
    print(
        "  apart, as shares of ours:    "
        + ", ".join(f"{name} {best(work, 1) / mine:.2f}" for name, work in parts.items())
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.npz"
        export = exports[0]
        members = {
            "activations": export.activations,
            "labels": export.labels,
            "ids": np.array(export.ids),
            "categories": np.array(export.categories),
        }
        np.savez(path, **members)

        def load() -> None:
            with np.load(path) as file:
                [file[key] for key in file.files]

        theirs, reading = best(load, 3), best(lambda: read_export(path), 3)
        print(
            f"  read, check and hash / np.load {reading / theirs:6.1f}"
            f"   ({reading:.3f} s for {path.stat().st_size / 1e6:.0f} MB)"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--small", action="store_true", help="the small size only")
    sizes = SIZES[:1] if parser.parse_args().small else SIZES
    with threadpool_limits(limits=1):
        met = [measure(*size, dtype) for size in sizes for dtype in (np.float32, np.float16)]
    print("every aim met" if all(met) else "an aim was missed")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
