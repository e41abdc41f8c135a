"""Any metric of labelled predictions, or of a confusion matrix, with its n and interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from refusal_core.metrics.intervals import LEVEL, Interval, Rate, f1_interval, wilson
from refusal_core.metrics.items import Items
from refusal_core.metrics.metric import NAMES, Metric, of_counts, place_of
from refusal_core.metrics.probabilities import ece_if_calibrated, statistic_of
from refusal_core.metrics.report import report_from_matrix
from refusal_core.metrics.resample import MIN_CLUSTERS, RESAMPLES, Bootstrap, Statistic, Units, bootstrap

__all__ = ["NAMES", "Metric", "bootstrap_of", "score", "score_matrix", "scores_by_class", "undefined_classes", "value"]


def value(items: Items, metric: Metric) -> float | None:
    """The metric alone, without interval; None where it is undefined."""
    if metric.needs_probabilities:
        statistic = statistic_of(items, metric)
        whole = statistic(np.ones((1, len(items)))) if len(items) else [np.nan]
    else:
        whole = _of_matrix(items.matrix, items.labels, metric)
    return float(whole[0]) if np.isfinite(whole[0]) else None


def score(items: Items, metric: Metric, *, seed: int = 0, resamples: int = RESAMPLES, level: float = LEVEL) -> Rate:
    """The metric with its interval: Wilson's for a proportion, `f1_interval` for the F1 of a class, both where items
    stand alone; else a BCa bootstrap over items (over clusters where there are groups), stratified by true class.

    `Rate.n` is the support for a recall, the predicted count for a precision, TP + FP + FN for an F1 of a class, and
    the items otherwise. The interval is None where it would have no width, or with fewer than MIN_CLUSTERS clusters.
    ECE is biased upwards: the lower end is reflected, and 0 where a calibrated model might well show as much; the upper
    end is the percentile. Raises InputError for a label that is not there, or probabilities that are missing.
    """
    if not metric.needs_probabilities and not items.clustered:
        return score_matrix(items.matrix, items.labels, metric, seed=seed, resamples=resamples, level=level)
    number, n = value(items, metric), _n(items.matrix, items.labels, metric)
    if number is None or n == 0:
        return Rate(number, n, None)
    boot = bootstrap_of([items], metric, seed=seed, resamples=resamples)
    if boot is None:
        return Rate(number, n, None)
    if metric.name == "ece":
        return Rate(number, n, _ece_interval(items, metric, boot, seed, level))
    return Rate(number, n, boot.interval(level))


def score_matrix(
    matrix: Sequence[Sequence[int]] | NDArray[np.integer],
    labels: Sequence[str],
    metric: Metric,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Rate:
    """The same from a confusion matrix (rows true, columns predicted) whose items stand alone."""
    matrix = np.array(report_from_matrix(matrix, labels).matrix, dtype=np.int64)  # checked
    labels = tuple(labels)
    whole = float(_of_matrix(matrix, labels, metric)[0])
    number, n = (whole if np.isfinite(whole) else None), _n(matrix, labels, metric)
    if number is None or n == 0:
        return Rate(number, n, None)
    if metric.name == "accuracy" or metric.average == "micro":
        return Rate(number, n, wilson(int(np.trace(matrix)), n, level))
    if metric.label is not None:
        c = place_of(metric, labels)
        tp = int(matrix[c, c])
        if metric.name == "f1":
            return Rate(number, n, f1_interval(tp, int(matrix[:, c].sum()) - tp, int(matrix[c].sum()) - tp, level))
        return Rate(number, n, wilson(tp, n, level))
    true, called = np.nonzero(matrix)
    boot = _bootstrap_cells(metric, labels, true, [called], matrix[true, called], seed, resamples)
    return Rate(number, n, boot and boot.interval(level))


def scores_by_class(items: Items, name: str, **options) -> dict[str, Rate]:
    """`score` of precision, recall, f1 or roc_auc for each class."""
    zero_division = options.pop("zero_division", "undefined")
    return {c: score(items, Metric(name, label=c, zero_division=zero_division), **options) for c in items.labels}


def undefined_classes(matrix: NDArray[np.integer], labels: Sequence[str], metric: Metric) -> tuple[str, ...]:
    """The classes whose precision, recall or F1 is 0/0: those that the metric's `rule` is about."""
    if metric.name not in ("precision", "recall", "f1"):
        return ()
    matrix = np.asarray(matrix)
    size = {
        "precision": matrix.sum(axis=0), "recall": matrix.sum(axis=1), "f1": matrix.sum(axis=0) + matrix.sum(axis=1),
    }[metric.name]  # fmt: skip
    chosen = [metric.label] if metric.label is not None else labels
    return tuple(c for c, n in zip(labels, size, strict=True) if n == 0 and c in chosen)


def bootstrap_of(
    sides: Sequence[Items], metric: Metric, *, seed: int = 0, resamples: int = RESAMPLES
) -> Bootstrap | None:
    """Bootstrap of the metric of one set of items, or of the first less the second over the same items.

    The sides hold the same ids, classes and groups in the same order. The same seed draws the same items or clusters
    for every checkpoint; where the confusion cells say all that the metric asks, only their counts are drawn.
    """
    first = sides[0]
    if first.clustered:
        units, cluster = _clusters(first)
        if len(units.count) < MIN_CLUSTERS:
            return None
    elif metric.needs_probabilities:
        units, cluster = Units(first.true, np.ones(len(first), dtype=np.int64)), None
    else:
        k = len(first.labels)
        codes, count = np.unique(_code(k, [first.true, *(side.predicted for side in sides)]), return_counts=True)
        true, *called = _decode(k, codes, 1 + len(sides))
        return _bootstrap_cells(metric, first.labels, true, called, count, seed, resamples)
    parts = []
    for side in sides:
        if metric.needs_probabilities:
            of_items = statistic_of(side, metric)
            parts.append(of_items if cluster is None else _spread(of_items, cluster))
        else:
            parts.append(counts_statistic(metric, side.labels, side.true, side.predicted, cluster))
    return bootstrap(units, _difference(parts), seed=seed, resamples=resamples)


def counts_statistic(
    metric: Metric,
    labels: Sequence[str],
    true: NDArray[np.integer],
    called: NDArray[np.integer],
    cluster: NDArray[np.integer] | None = None,
) -> Statistic:
    """The metric as a function of weights [r, m] of m cells (their true and predicted class) or clusters of them."""
    k = len(labels)
    unit = np.arange(len(true)) if cluster is None else cluster
    m = int(unit.max()) + 1 if len(unit) else 0

    def by_class(place: NDArray[np.integer], of: NDArray | None = None) -> NDArray[np.float64]:
        return np.bincount(unit * k + place, weights=of, minlength=m * k).reshape(m, k).astype(np.float64)

    tables = np.hstack([by_class(true, (true == called).astype(float)), by_class(true), by_class(called)])
    return lambda w: of_counts(metric, labels, *np.split(w @ tables, 3, axis=1))


def _bootstrap_cells(
    metric: Metric,
    labels: Sequence[str],
    true: NDArray[np.integer],
    called: list[NDArray[np.integer]],
    count: NDArray[np.integer],
    seed: int,
    resamples: int,
) -> Bootstrap | None:
    """Of m cells: their true class, what each side called it, and how many items are in it; each [m]."""
    if count.sum() == 0:
        return None
    true, called, count, quarters = _with_what_could_be(len(labels), true, called, count)
    parts = [counts_statistic(metric, labels, true, side) for side in called]
    return bootstrap(Units(true, count, quarters), _difference(parts), seed=seed, resamples=resamples)


def _with_what_could_be(
    k: int, true: NDArray[np.integer], called: list[NDArray[np.integer]], count: NDArray[np.integer]
) -> tuple[NDArray[np.integer], list[NDArray[np.integer]], NDArray[np.integer], NDArray[np.integer]]:
    """The cells, and how many quarters of an item more each is drawn for, where the items show too little of a class.

    One side: a class that is always right, or never, could have been the other way too. Two sides: an item of any class
    could have been right on one side only. Wrong is the commonest wrong answer of the class, or the commonest class.
    """
    support = np.bincount(true, weights=count, minlength=k)
    wrong = np.zeros((k, k))
    for side in called:
        np.add.at(wrong, (true, side), count)
    np.fill_diagonal(wrong, -1)
    usual = (wrong + support / (support.sum() + 1) * (1 - np.eye(k))).argmax(axis=1)
    if len(called) == 2:
        classes = np.flatnonzero(support)
        ways = [[classes, usual[classes]], [usual[classes], classes]]
    else:
        right = np.bincount(true, weights=count * (true == called[0]), minlength=k)
        classes = np.flatnonzero((support > 0) & ((right == 0) | (right == support)))
        ways = [[np.where(right[classes] > 0, usual[classes], classes)]]
    codes = np.concatenate([_code(k, [true, *called]), *(_code(k, [classes, *way]) for way in ways)])
    cells, at = np.unique(codes, return_inverse=True)
    counts = np.bincount(at[: len(count)], weights=count, minlength=len(cells)).astype(np.int64)
    true, *called = _decode(k, cells, 1 + len(called))
    return true, called, counts, np.bincount(at[len(count) :], minlength=len(cells))


def _code(k: int, places: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
    """One number for each cell: its true class and its answers as digits to the base k."""
    return sum(place.astype(np.int64) * k**digit for digit, place in enumerate(reversed(places)))


def _decode(k: int, codes: NDArray[np.int64], digits: int) -> list[NDArray[np.int64]]:
    return [codes // k**digit % k for digit in reversed(range(digits))]


def _clusters(items: Items) -> tuple[Units, NDArray[np.int64]]:
    """Clusters as units, each in the stratum of its rarest true class, so that small classes do not vanish."""
    _, cluster = np.unique(items.groups, return_inverse=True)
    sizes = np.bincount(items.true, minlength=len(items.labels))
    by_rarity = np.argsort(np.argsort(sizes, kind="stable"), kind="stable")
    stratum = np.full(cluster.max() + 1, len(items.labels), dtype=np.int64)
    np.minimum.at(stratum, cluster, by_rarity[items.true])
    return Units(stratum, np.ones(len(stratum), dtype=np.int64)), cluster


def _spread(of_items: Statistic, cluster: NDArray[np.int64]) -> Statistic:
    return lambda w: of_items(w[:, cluster])


def _difference(parts: Sequence[Statistic]) -> Statistic:
    return parts[0] if len(parts) == 1 else lambda w: parts[0](w) - parts[1](w)


def _of_matrix(matrix: NDArray[np.integer], labels: Sequence[str], metric: Metric) -> NDArray[np.float64]:
    tp, true, called = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    return of_counts(metric, labels, *(counts[None, :].astype(np.float64) for counts in (tp, true, called)))


def _n(matrix: NDArray[np.integer], labels: Sequence[str], metric: Metric) -> int:
    if metric.label is None or metric.name == "roc_auc":
        return int(matrix.sum())
    c = place_of(metric, labels)
    called, support = int(matrix[:, c].sum()), int(matrix[c].sum())
    return {"precision": called, "recall": support, "f1": called + support - int(matrix[c, c])}[metric.name]


def _ece_interval(items: Items, metric: Metric, boot: Bootstrap, seed: int, level: float) -> Interval | None:
    if not boot.decides:
        return None
    below, above = (float(end) for end in np.quantile(boot.draws, [(1 - level) / 2, (1 + level) / 2]))
    might_be_calibrated = boot.value <= np.quantile(ece_if_calibrated(items, metric, seed), (1 + level) / 2)
    low = 0.0 if might_be_calibrated else min(max(2 * boot.value - above, 0.0), boot.value)
    return Interval(low, max(above, boot.value), level, "reflected and percentile bootstrap")
