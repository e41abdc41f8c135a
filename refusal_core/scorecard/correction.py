"""Rates of classes corrected for the classifier's own errors.

The classifier answers class p for a true t with probability M[t, p], known from labelled validation rows. The shares q
that it answers are then M' pi of the true shares pi. We look for the pi on the simplex that comes closest to q in least
squares, and fold only then. Assumed is that the errors on these responses are those on the validation rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from refusal_core.metrics.intervals import Interval, Rate

VALIDATION_ROWS = 30  # of each class, at least
METHOD = "percentile bootstrap of responses and validation rows"
ASSUMPTION = "the classifier errs on these responses as it did on its validation rows"
_MOST_CLASSES = 10  # 2^k - 1 supports are tried


@dataclass(frozen=True, eq=False)
class Validation:
    """How a classifier errs: counts [k, k] over `labels`, rows true, columns answered."""

    labels: tuple[str, ...]
    counts: NDArray[np.int64]

    @property
    def withheld(self) -> str:
        """Why no corrected rate can be given, "" where one can."""
        rows = self.counts.sum(axis=1)
        few = [f"{label} {n}" for label, n in zip(self.labels, rows.tolist(), strict=True) if n < VALIDATION_ROWS]
        if few:
            return f"fewer than {VALIDATION_ROWS} validation rows of {', '.join(few)}"
        if len(self.labels) > _MOST_CLASSES:
            return f"more than {_MOST_CLASSES} classes"
        if np.linalg.matrix_rank(self.matrix, tol=1e-3) < len(self.labels):
            return "the classifier cannot tell some classes apart at all"
        return ""

    @property
    def matrix(self) -> NDArray[np.float64]:
        """M, each row summing to 1."""
        return self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)

    def resampled(self, rng: np.random.Generator, resamples: int) -> NDArray[np.float64]:
        """M [r, k, k] with each row drawn anew from its own counts."""
        sizes = self.counts.sum(axis=1)
        drawn = np.stack(
            [rng.multinomial(n, row / n, size=resamples) for n, row in zip(sizes, self.counts, strict=True)]
        )
        return np.swapaxes(drawn, 0, 1) / sizes[None, :, None]


def true_shares(matrix: NDArray[np.float64], answered: NDArray[np.float64]) -> NDArray[np.float64]:
    """pi [r, k] on the simplex with the least |M' pi - q|^2, for each M [r, k, k] and q [r, k].

    Every support is tried: the best point of its hyperplane, kept where it lies in the simplex. The optimum is among
    them, so this is exact.
    """
    r, k = answered.shape
    best, least = np.zeros((r, k)), np.full(r, np.inf)
    for size in range(1, k + 1):
        for support in combinations(range(k), size):
            at = list(support)
            rows = matrix[:, at, :]  # [r, s, k]
            system = np.ones((r, size + 1, size + 1))
            system[:, :size, :size] = rows @ np.swapaxes(rows, 1, 2) + 1e-12 * np.eye(size)
            system[:, size, size] = 0.0
            right = np.ones((r, size + 1, 1))
            right[:, :size, :] = rows @ answered[:, :, None]
            shares = np.linalg.solve(system, right)[:, :size, 0]
            distance = ((np.einsum("rs,rsk->rk", shares, rows) - answered) ** 2).sum(axis=1)
            better = (shares >= -1e-9).all(axis=1) & (distance < least - 1e-14)
            least[better] = distance[better]
            found = np.zeros((int(better.sum()), k))
            found[:, at] = np.maximum(shares[better], 0.0)
            best[better] = found
    return best / best.sum(axis=1, keepdims=True)


def corrected_rate(
    validation: Validation,
    answered: NDArray[np.int64],
    chosen: Sequence[int],
    *,
    groups: NDArray[np.int64] | None = None,
    seed: int = 0,
    resamples: int = 2_000,
    level: float = 0.95,
) -> Rate:
    """The corrected rate of the classes `chosen` (places) among the responses `answered` (places, length n)."""
    k, rng = len(validation.labels), np.random.default_rng(seed)
    units = _units(answered, k, groups)
    value = true_shares(validation.matrix[None], _share(units.sum(axis=0))[None])[0][list(chosen)].sum()
    matrices = validation.resampled(rng, resamples)
    draws = true_shares(matrices, _share(_drawn(rng, units, resamples)))[:, list(chosen)].sum(axis=1)
    return Rate(float(value), len(answered), _interval(draws, float(value), level))


def corrected_difference(
    candidate: tuple[Validation, NDArray[np.int64]],
    baseline: tuple[Validation, NDArray[np.int64]],
    chosen: Sequence[int],
    *,
    same_classifier: bool,
    groups: NDArray[np.int64] | None = None,
    seed: int = 0,
    resamples: int = 2_000,
    level: float = 0.95,
) -> tuple[float, Interval]:
    """Corrected rate of the candidate less the baseline's, over the same prompts in the same order.

    Prompts are resampled as pairs; with the `same_classifier` both sides see the same resampled errors.
    """
    (of_new, new), (of_old, old) = candidate, baseline
    k, rng = len(of_new.labels), np.random.default_rng(seed)
    units = _units(new * k + old, k * k, groups)

    def sides(counts: NDArray) -> tuple[NDArray, NDArray]:
        table = counts.reshape(-1, k, k)
        return _share(table.sum(axis=2)), _share(table.sum(axis=1))

    def rate_of(matrix: NDArray, shares: NDArray) -> NDArray:
        return true_shares(matrix, shares)[:, list(chosen)].sum(axis=1)

    q_new, q_old = sides(units.sum(axis=0)[None])
    value = float((rate_of(of_new.matrix[None], q_new) - rate_of(of_old.matrix[None], q_old))[0])
    m_new = of_new.resampled(rng, resamples)
    m_old = m_new if same_classifier else of_old.resampled(rng, resamples)
    q_new, q_old = sides(_drawn(rng, units, resamples))
    return value, _interval(rate_of(m_new, q_new) - rate_of(m_old, q_old), value, level)


def _units(cells: NDArray[np.int64], size: int, groups: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Counts of each cell by cluster [m, size], or one row where every item stands alone."""
    if groups is None:
        return np.bincount(cells, minlength=size)[None, :]
    _, cluster = np.unique(groups, return_inverse=True)
    m = int(cluster.max()) + 1
    return np.bincount(cluster * size + cells, minlength=m * size).reshape(m, size)


def _drawn(rng: np.random.Generator, units: NDArray[np.int64], resamples: int) -> NDArray[np.float64]:
    """Resampled counts [r, size]: items, or whole clusters."""
    if len(units) == 1:
        n = int(units.sum())
        return rng.multinomial(n, units[0] / n, size=resamples).astype(np.float64)
    weights = rng.multinomial(len(units), np.full(len(units), 1 / len(units)), size=resamples)
    return (weights @ units).astype(np.float64)


def _share(counts: NDArray) -> NDArray[np.float64]:
    return counts / counts.sum(axis=-1, keepdims=True)


def _interval(draws: NDArray[np.float64], value: float, level: float) -> Interval:
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(min(float(low), value), max(float(high), value), level, METHOD)
