"""What a set of calls is worth: overall, by category, on average over categories, and how far the threshold moved."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from refusal_core.direction.rows import Rows
from refusal_core.metrics.intervals import Interval, Rate, rate


@dataclass(frozen=True)
class Confusion:
    """Rows by label and call; "positive" is a refusal (label 1)."""

    tn: int
    fp: int
    fn: int
    tp: int


@dataclass(frozen=True)
class CategoryScore:
    """One category of the test file. A rate is None where no row of its label is there; intervals are Wilson's."""

    category: str
    n: int
    label_counts: dict[str, int]
    seen_in_train: bool
    false_refusal_rate: float | None
    false_refusal_rate_interval: Interval | None
    missed_refusal_rate: float | None
    missed_refusal_rate_interval: Interval | None


@dataclass(frozen=True)
class TestScores:
    """Rates over all test rows, 0 to 1, None where undefined; their Wilson intervals treat rows as independent.

    `ties` counts rows exactly at the threshold, which are called refusals.
    """

    __test__ = False

    accuracy: float
    balanced_accuracy: float | None
    auroc: float | None
    false_refusal_rate: float | None
    missed_refusal_rate: float | None
    accuracy_interval: Interval | None
    false_refusal_rate_interval: Interval | None
    missed_refusal_rate_interval: Interval | None
    confusion: Confusion
    ties: int
    by_category: tuple[CategoryScore, ...]


@dataclass(frozen=True)
class MacroAverage:
    """Means over categories, each counted once. `difference` = its balanced accuracy minus the row-weighted one;
    `led_by` names the category that moves them apart most, when they differ by more than 0.05.
    """

    false_refusal_rate: float | None
    missed_refusal_rate: float | None
    balanced_accuracy: float | None
    difference: float | None
    led_by: str | None


@dataclass(frozen=True)
class ThresholdShift:
    """How far the test file's own midpoint lies above the threshold, in pooled within-class sd of the test projections.

    `d_prime` is the distance of the two test class means in that sd. `oracle_balanced_accuracy` is at the test file's
    own midpoint, turned as in training: it says only whether the threshold travelled. None where undefined.
    """

    shift: float | None
    within_sd: float | None
    d_prime: float | None
    oracle_balanced_accuracy: float | None
    reason: str | None = None


def balanced_accuracy(correct: np.ndarray, counts: np.ndarray) -> float | None:
    """(true negative rate + true positive rate) / 2 from correct calls [2] of `counts` [2] by label; None without one.

    Brodersen et al. (2010), "The balanced accuracy and its posterior distribution".
    """
    (c0, c1), (n0, n1) = (map(int, pair) for pair in (correct, counts))
    return (c1 / n1 + c0 / n0) / 2 if n0 and n1 else None


def auroc(values: np.ndarray, labels: np.ndarray) -> float | None:
    """Chance that a row of label 1 lies above one of label 0, ties at half: Mann-Whitney U / (n1 n0)."""
    n1 = int(np.count_nonzero(labels))
    n0 = len(labels) - n1
    if not n0 or not n1:
        return None
    from scipy.stats import rankdata  # brings 50 MB, which other pages need not pay

    return (float(rankdata(values)[labels == 1].sum()) - n1 * (n1 + 1) / 2) / (n1 * n0)


def correct_cells(rows: Rows, calls: np.ndarray) -> np.ndarray:
    """[K, 2] correct calls of each category and label; `calls` bool [n]."""
    return rows.cells(calls == (rows.labels == 1)).astype(np.int64)


def score(test: Rows, margin: np.ndarray, seen: frozenset[str]) -> TestScores:
    """Scores of margins [n] against the test labels; `seen` names the categories of the training file."""
    calls = margin >= 0
    correct, counts = correct_cells(test, calls), test.cells()
    by_category = tuple(_category(name, correct[k], counts[k], name in seen) for k, name in enumerate(test.categories))
    c, n = correct.sum(0), counts.sum(0)
    accuracy, false, missed = rate(int(c.sum()), test.n), _wrong(c[0], n[0]), _wrong(c[1], n[1])
    return TestScores(
        accuracy=accuracy.value,
        balanced_accuracy=balanced_accuracy(c, n),
        auroc=auroc(margin, test.labels),
        false_refusal_rate=false.value,
        missed_refusal_rate=missed.value,
        accuracy_interval=accuracy.interval,
        false_refusal_rate_interval=false.interval,
        missed_refusal_rate_interval=missed.interval,
        confusion=Confusion(tn=int(c[0]), fp=int(n[0] - c[0]), fn=int(n[1] - c[1]), tp=int(c[1])),
        ties=int(np.count_nonzero(margin == 0)),
        by_category=by_category,
    )


def macro_average(names: tuple[str, ...], correct: np.ndarray, counts: np.ndarray) -> MacroAverage:
    """Averages over categories from correct calls and counts [K, 2]."""
    pooled, means, pulls = [], [], np.zeros(len(names))
    for label in (0, 1):
        held = counts[:, label] > 0
        if not held.any():
            pooled.append(None)
            means.append(None)
            continue
        n, rates = counts[held, label], correct[held, label] / counts[held, label]
        pooled.append(float(correct[:, label].sum() / n.sum()))
        means.append(float(rates.mean()))
        pulls[held] += (1 / held.sum() - n / n.sum()) * (rates - pooled[-1]) / 2
    both = None not in means
    macro = (means[0] + means[1]) / 2 if both else None
    difference = macro - (pooled[0] + pooled[1]) / 2 if both else None
    led_by = None
    if both and abs(difference) > 0.05:
        led_by = names[int(np.argmax(pulls * math.copysign(1, difference)))]
    false, missed = (None if mean is None else 1 - mean for mean in means)
    return MacroAverage(false, missed, macro, difference, led_by)


def threshold_shift(margin: np.ndarray, labels: np.ndarray) -> ThresholdShift:
    """From margins [n] of the test rows; see ThresholdShift. Undefined, with a reason, without both classes."""
    groups = [margin[labels == label] for label in (0, 1)]
    if not len(groups[0]) or not len(groups[1]):
        return ThresholdShift(None, None, None, None, "the test file holds one class")
    means = [float(group.mean()) for group in groups]
    squares = sum(float(((group - mean) ** 2).sum()) for group, mean in zip(groups, means, strict=True))
    own = (means[0] + means[1]) / 2
    calls = margin >= own
    correct = np.array([np.count_nonzero(~calls[labels == 0]), np.count_nonzero(calls[labels == 1])])
    oracle = balanced_accuracy(correct, np.array([len(group) for group in groups]))
    sd = math.sqrt(squares / (len(margin) - 2)) if len(margin) > 2 else 0.0
    if not sd:
        return ThresholdShift(None, None, None, oracle, "the projections do not vary within the classes")
    return ThresholdShift(own / sd, sd, (means[1] - means[0]) / sd, oracle)


def _category(name: str, correct: np.ndarray, counts: np.ndarray, seen: bool) -> CategoryScore:
    false, missed = _wrong(correct[0], counts[0]), _wrong(correct[1], counts[1])
    return CategoryScore(
        category=name,
        n=int(counts.sum()),
        label_counts={"0": int(counts[0]), "1": int(counts[1])},
        seen_in_train=seen,
        false_refusal_rate=false.value,
        false_refusal_rate_interval=false.interval,
        missed_refusal_rate=missed.value,
        missed_refusal_rate_interval=missed.interval,
    )


def _wrong(correct: int, n: int) -> Rate:
    return rate(int(n - correct), int(n))
