"""The same rows scored twice: on categories left out of the fit, and on rows left out at random.

The difference says how much of a random split's score is knowledge of the categories. Paired by row: correctness when
the row's category is left out, minus its mean correctness when random folds of the categories' sizes are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from refusal_core.direction.intervals import NotAvailable, cluster_variance, too_few_categories
from refusal_core.direction.rows import Rows, group_sums, wide_blocks
from refusal_core.direction.scores import balanced_accuracy
from refusal_core.jobs import Job
from refusal_core.metrics.intervals import LEVEL

REPEATS = 20  # random partitions; each costs two passes over the rows


@dataclass(frozen=True)
class SplitCategory:
    """One category: its rows, and the share called right when it is left out and when random rows are."""

    category: str
    n: int
    left_out: float
    random: float


@dataclass(frozen=True)
class DifferenceInterval:
    """Cluster t interval of a difference of balanced accuracies, -1 to 1, and the two-sided p-value of none."""

    method: str
    level: float
    low: float
    high: float
    degrees_of_freedom: float
    p_value: float


@dataclass(frozen=True)
class SplitComparison:
    """Scores on the same rows; `difference` = left out by category minus left out at random (balanced accuracies).

    `random_sd` is of the balanced accuracies of the `repeats` random partitions.
    """

    examples: int
    categories: int
    repeats: int
    left_out_accuracy: float
    left_out_balanced_accuracy: float
    random_accuracy: float
    random_balanced_accuracy: float
    random_sd: float | None
    difference: float
    interval: DifferenceInterval | NotAvailable
    by_category: tuple[SplitCategory, ...]


def compare_splits(
    rows: Rows, rng: np.random.Generator, repeats: int = REPEATS, job: Job | None = None
) -> SplitComparison | NotAvailable:
    """Leave-one-category-out against `repeats` random partitions into folds of the categories' sizes.

    Not available when leaving a category out takes a class away. Random folds whose complement lacks a class are drawn
    again, 100 times at most.
    """
    job = job or Job()
    cells = rows.cells()
    rest = cells.sum(0) - cells
    if (rest == 0).any():
        name = rows.categories[int(np.argmax((rest == 0).any(1)))]
        return NotAvailable(f'without the category "{name}" one class is missing, so no direction can be fitted')
    left_out = out_of_fold(rows, rows.code, len(rows.categories), job)
    total, values = np.zeros(rows.n), []
    for _ in range(repeats):
        folds = _random_folds(rows, cells.sum(1), rng)
        if folds is None:
            return NotAvailable("random folds of the categories' sizes keep losing a class")
        correct = out_of_fold(rows, folds, len(rows.categories), job)
        total += correct
        values.append(_balanced(rows, correct))
    return _comparison(rows, left_out.astype(np.float64), total / repeats, np.array(values))


def out_of_fold(rows: Rows, fold: np.ndarray, folds: int, job: Job) -> np.ndarray:
    """bool [n]: whether the direction fitted on all other folds calls each row right; `fold` [n] is 0 to folds - 1.

    Every direction is a difference of sums by fold and label, so all are fitted in one pass and used in another.
    """
    sums = group_sums(rows, 2 * fold + rows.labels, 2 * folds, job).reshape(folds, 2, rows.d)
    counts = np.bincount(2 * fold + rows.labels, minlength=2 * folds).reshape(folds, 2)
    means = (sums.sum(0) - sums) / (counts.sum(0) - counts)[:, :, None]
    deltas, midpoints = means[:, 1] - means[:, 0], means.mean(1)
    calls = np.empty(rows.n, bool)
    for where, centred in wide_blocks(rows, job):
        own = fold[where]
        centred -= midpoints[own]
        calls[where] = np.einsum("ij,ij->i", centred, deltas[own]) >= 0
    return calls == (rows.labels == 1)


class Stacked:
    """Two arrays as one along the first axis, without a copy; gives slices of rows only."""

    def __init__(self, first: np.ndarray, second: np.ndarray) -> None:
        self._first, self._second = first, second
        self.shape = (len(first) + len(second), first.shape[1])

    def __getitem__(self, where: slice) -> np.ndarray:
        border = len(self._first)
        if where.stop <= border:
            return self._first[where]
        if where.start >= border:
            return self._second[where.start - border : where.stop - border]
        parts = self._first[where.start :], self._second[: where.stop - border]
        return np.concatenate([part.astype(np.float64) for part in parts])


def pooled(train: Rows, test: Rows) -> Rows:
    """Both files' rows as one, the training rows first."""
    names = tuple(sorted({*train.categories, *test.categories}))
    place = {name: k for k, name in enumerate(names)}
    code = [np.array([place[name] for name in rows.categories], np.intp)[rows.code] for rows in (train, test)]
    ids = train.ids + test.ids
    return Rows(
        name=f"{train.name} and {test.name}",
        values=Stacked(train.values, test.values),
        labels=np.concatenate([train.labels, test.labels]),
        categories=names,
        code=np.concatenate(code),
        ids=ids,
        order=np.array(sorted(range(len(ids)), key=ids.__getitem__), np.intp),
        largest=max(train.largest, test.largest),
    )


def _random_folds(rows: Rows, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    ordered = np.repeat(np.arange(len(sizes)), sizes)
    totals = np.array(rows.label_counts)
    for _ in range(100):
        fold = np.empty(rows.n, np.intp)
        fold[rows.order] = rng.permutation(ordered)
        held = np.bincount(2 * fold + rows.labels, minlength=2 * len(sizes)).reshape(-1, 2)
        if (held < totals).all():
            return fold
    return None


def _balanced(rows: Rows, correct: np.ndarray) -> float:
    return balanced_accuracy(rows.cells(correct).sum(0), rows.cells().sum(0))


def _comparison(rows: Rows, left_out: np.ndarray, random: np.ndarray, values: np.ndarray) -> SplitComparison:
    counts = rows.cells()
    sums = [rows.cells(correct) for correct in (left_out, random)]
    rates = [(s.sum(0) / counts.sum(0)).mean() for s in sums]
    by_category = tuple(
        SplitCategory(name, int(counts[k].sum()), *(float(s[k].sum() / counts[k].sum()) for s in sums))
        for k, name in enumerate(rows.categories)
    )
    return SplitComparison(
        examples=rows.n,
        categories=len(rows.categories),
        repeats=len(values),
        left_out_accuracy=float(left_out.mean()),
        left_out_balanced_accuracy=float(rates[0]),
        random_accuracy=float(random.mean()),
        random_balanced_accuracy=float(rates[1]),
        random_sd=float(values.std(ddof=1)) if len(values) > 1 else None,
        difference=float(rates[0] - rates[1]),
        interval=difference_interval(sums[0] - sums[1], counts),
        by_category=by_category,
    )


def difference_interval(
    sums: np.ndarray, counts: np.ndarray, level: float = LEVEL
) -> DifferenceInterval | NotAvailable:
    """The cluster t on paired differences summed by category and label, [K, 2], over `counts` rows.

    The same variance and degrees of freedom as the interval of a balanced accuracy, without the logit. Analysing paired
    differences after Miller (2024), "Adding error bars to evals", arXiv 2411.00640.
    """
    if reason := too_few_categories(counts):
        return NotAvailable(reason)
    variance, freedom = cluster_variance(sums, counts)
    if variance <= 1e-24:
        return NotAvailable("every category shows the same difference, so categories show no spread")
    value, error = float((sums.sum(0) / counts.sum(0)).mean()), math.sqrt(variance)
    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    return DifferenceInterval(
        method="cluster t over categories",
        level=level,
        low=value - half,
        high=value + half,
        degrees_of_freedom=freedom,
        p_value=float(2 * stdtr(freedom, -abs(value) / error)),
    )
