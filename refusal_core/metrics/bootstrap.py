"""Intervals of means by resampling the items that they are over."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, stdtrit

from refusal_core.metrics.intervals import LEVEL, Interval

METHOD = "expanded percentile bootstrap"
_CELLS = 5_000_000  # of one block of resamples


def bootstrap_means(
    columns: np.ndarray, *, seed: int = 0, resamples: int = 4_000, level: float = LEVEL
) -> list[Interval | None]:
    """The interval of the mean of each column of `columns`, shape [n, k]: the rows are resampled, all columns together.

    Percentile bootstrap, expanded for small n (T. Hesterberg 2015, "What teachers should know about the bootstrap", The
    American Statistician 69, 371-386): the ends are the quantiles of the resampled means at
    Phi(-+ t sqrt(n / (n - 1))), t being Student's quantile with n - 1 degrees of freedom. None for a column of n < 2 or
    of equal values, which say nothing about the spread. With whole numbers below 2**53 / n the sums are exact, so that
    neither their order nor the number of threads changes a byte. Raises ValueError unless there is a row and all is
    finite.
    """
    columns = np.asarray(columns, dtype=np.float64)
    if columns.ndim != 2 or not len(columns) or not np.isfinite(columns).all():
        raise ValueError(f"finite numbers of shape [n, k] are needed, n from 1, not shape {columns.shape}")
    n = len(columns)
    if n < 2:
        return [None] * columns.shape[1]
    rng = np.random.default_rng(seed)
    block = max(1, _CELLS // n)
    means = np.concatenate(
        [_counts(rng, min(block, resamples - done), n) @ columns / n for done in range(0, resamples, block)]
    )
    tail = ndtr(-stdtrit(n - 1, (1 + level) / 2) * np.sqrt(n / (n - 1)))
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    spread = np.ptp(columns, axis=0) > 0
    return [Interval(low[k], high[k], level, METHOD) if spread[k] else None for k in range(columns.shape[1])]


def _counts(rng: np.random.Generator, resamples: int, n: int) -> np.ndarray:
    """How often each of n rows is in each resample, float64 [resamples, n]."""
    drawn = rng.integers(n, size=(resamples, n)) + np.arange(resamples)[:, None] * n
    return np.bincount(drawn.ravel(), minlength=resamples * n).reshape(resamples, n).astype(np.float64)
