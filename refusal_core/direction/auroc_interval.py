"""How sure an AUROC is when categories, not rows, are the sample: the scheme of the balanced accuracy, on ranks."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from refusal_core.direction.intervals import (
    ROUNDING,
    CategoryDraws,
    CategoryInterval,
    NotAvailable,
    cluster_t,
    cluster_variance,
    drawn_categories,
    too_few_categories,
)
from refusal_core.direction.rows import Rows
from refusal_core.direction.scores import auroc
from refusal_core.metrics.intervals import LEVEL

_CHUNK_NUMBERS = 1 << 17  # of one chunk of draws: larger ones leave the cache, and take twice as long


def auroc_interval(
    test: Rows, values: np.ndarray, rng: np.random.Generator, level: float = LEVEL
) -> CategoryInterval | NotAvailable:
    """The interval of the AUROC of `values` float64 [n], over the categories of `test`; the bootstrap beside it.

    An AUROC is the mean placement of either label's rows, and scatters as the sum of the two means (DeLong, DeLong and
    Clarke-Pearson 1988). Whole categories as in Obuchowski (1997), "Nonparametric analysis of clustered ROC curve
    data": a category's two residuals are added before they are squared. So its variance is four times that of half the
    sum, which `cluster_variance` gives, with the degrees of freedom and stop rules of the balanced accuracy.
    """
    counts = test.cells()
    if reason := too_few_categories(counts):
        return NotAvailable(reason)
    value = auroc(values, test.labels)
    if value in (0.0, 1.0):
        side = "above" if value else "below"
        return NotAvailable(f"every row of label 1 lies {side} every row of label 0, so categories show no spread")
    variance, freedom = cluster_variance(test.cells(placements(values, test.labels)), counts)
    if variance <= ROUNDING:
        return NotAvailable("every category ranks alike, so categories show no spread")
    drawn = drawn_categories(counts, rng)
    if not isinstance(drawn, NotAvailable):
        drawn = drawn.percentile(resampled_aurocs(test, values, drawn), level)
    return cluster_t(value, 4 * variance, freedom, counts, drawn, level)


def placements(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """float64 [n], 0 to 1: of the rows of the other label, the share that a row lies on the right side of, ties at
    half. From ranks among all rows less ranks among those of its label: Sun and Xu (2014), "Fast implementation of
    DeLong's algorithm". Needs both labels.
    """
    from scipy.stats import rankdata  # brings 50 MB, which other pages need not pay

    found = rankdata(values)
    for label in (0, 1):
        own = labels == label
        found[own] = (found[own] - rankdata(values[own])) / np.count_nonzero(~own)
    return np.where(labels == 1, found, 1 - found)


def resampled_aurocs(test: Rows, values: np.ndarray, drawn: CategoryDraws) -> np.ndarray:
    """float64 [m]: the AUROC of each draw, every row counted as often as its category was drawn.

    The sum over pairs is one running sum up the values, for a chunk of draws at once; the counts in it are whole.
    """
    steps, place = np.unique(values, return_inverse=True)
    shape = len(steps), len(test.categories)
    by_label = []
    for label in (0, 1):
        own = test.labels == label
        by_label.append(csr_array((np.ones(int(own.sum())), (place[own], test.code[own])), shape=shape))
    found = np.empty(len(drawn.weights[0]))
    size = max(1, _CHUNK_NUMBERS // len(steps))
    for start in range(0, len(found), size):
        part = slice(start, start + size)
        zeros, ones = (
            cells @ np.ascontiguousarray(weights[part].T, np.float64)  # [values, draws]: rows of the label there
            for cells, weights in zip(by_label, drawn.weights, strict=True)
        )
        below = np.cumsum(zeros, axis=0)
        total = below[-1] * ones.sum(0)
        zeros /= 2  # rows of label 0 at the same value count half
        below -= zeros
        below *= ones
        found[part] = below.sum(0) / total
    return found
