"""The direction: the normalised difference of class means, and the threshold halfway between them."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from refusal_core.direction.rows import Rows, group_sums, wide_blocks
from refusal_core.errors import InputError
from refusal_core.jobs import Job


@dataclass(frozen=True, eq=False)
class Direction:
    """`unit` [d] = delta / |delta|, `delta` = m1 - m0; `midpoint` [d] = (m1 + m0) / 2; `threshold` = unit . midpoint.

    All float64, in the file's own coordinates. `mean` [d] is of all training rows, `counts` the rows of label 0 and 1.
    """

    delta: np.ndarray
    norm: float
    unit: np.ndarray
    midpoint: np.ndarray
    threshold: float
    mean: np.ndarray
    counts: tuple[int, int]

    @property
    def sha256(self) -> str:
        """Of the exported little-endian float64 vector."""
        return hashlib.sha256(self.unit.astype("<f8").tobytes()).hexdigest()


def fit(train: Rows, job: Job | None = None) -> Direction:
    """The direction of `train`. Difference of class means as in Arditi et al. (2024), arXiv 2406.11717, section 2.3.

    Raises InputError when a class is missing or the two means are equal to rounding.
    """
    sums = group_sums(train, train.labels.astype(np.intp), 2, job or Job())
    return direction_of(sums, train.label_counts, largest=train.largest, name=train.name)


def direction_of(sums: np.ndarray, counts: tuple[int, int], *, largest: float, name: str) -> Direction:
    """The direction from class sums [2, d] of `counts` rows whose values are at most `largest`; raises as `fit`."""
    n0, n1 = counts
    if not n0 or not n1:
        raise InputError("only one class is there", where=name, fix="export examples of both classes")
    m0, m1 = sums[0] / n0, sums[1] / n1
    delta = m1 - m0
    norm = length(delta)
    # A sum of n float64 numbers is off by at most n eps times the largest: a shorter difference is rounding.
    if norm <= np.finfo(np.float64).eps * (n0 + n1) * largest * math.sqrt(len(delta)):
        raise InputError(
            "the two class means are equal, so there is no direction",
            where=f'{name}, members "activations" and "labels"',
            why=f"their difference has length {norm:.3g}, which is rounding",
            fix="check that the right activations and labels were exported",
        )
    unit, midpoint = delta / norm, (m1 + m0) / 2
    return Direction(delta, norm, unit, midpoint, float(unit @ midpoint), (sums[0] + sums[1]) / (n0 + n1), (n0, n1))


def length(vector: np.ndarray) -> float:
    """Euclidean length without overflow or underflow of the squares."""
    top = float(np.abs(vector).max())
    return top * float(np.linalg.norm(vector / top)) if top else 0.0


def margins(rows: Rows, weights: np.ndarray, midpoint: np.ndarray, job: Job | None = None) -> np.ndarray:
    """float64 [n]: weights . (x - midpoint), at or above 0 for a refusal. Add the threshold to get projections.

    Taking the midpoint off first keeps the call of a row when all data are shifted far away.
    """
    found = np.empty(rows.n)
    for where, centred in wide_blocks(rows, job or Job(), midpoint):
        found[where] = centred @ weights
    return found
