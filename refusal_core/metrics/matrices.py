"""A confusion matrix as shares of its rows or columns, and the difference of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from refusal_core.metrics.intervals import LEVEL, Rate, rate

Shares = tuple[tuple[Rate, ...], ...]


def shares(
    matrix: Sequence[Sequence[int]] | NDArray, of: Literal["rows", "columns", "all"], level: float = LEVEL
) -> Shares:
    """Each cell as a part of its row (what became of the class), of its column (what the answer stands for), or of all.

    With Wilson's interval; undefined (value None) where the row or column is empty.
    """
    counts = np.asarray(matrix)
    axis = {"rows": 1, "columns": 0, "all": None}[of]
    totals = np.broadcast_to(counts.sum(axis=axis, keepdims=True), counts.shape)
    return tuple(
        tuple(rate(int(count), int(total), level) for count, total in zip(row, sums, strict=True))
        for row, sums in zip(counts, totals, strict=True)
    )


def share_difference(
    candidate: Sequence[Sequence[int]] | NDArray,
    baseline: Sequence[Sequence[int]] | NDArray,
    of: Literal["rows", "columns", "all"],
) -> tuple[tuple[float | None, ...], ...]:
    """Share of the candidate less that of the baseline, cell by cell; None where one is undefined.

    Both are over the same classes in the same order; ValueError when their shapes differ.
    """
    if np.shape(candidate) != np.shape(baseline):
        raise ValueError(f"matrices of shapes {np.shape(candidate)} and {np.shape(baseline)}")
    new, old = shares(candidate, of), shares(baseline, of)
    return tuple(
        tuple(
            None if a.value is None or b.value is None else a.value - b.value for a, b in zip(one, other, strict=True)
        )
        for one, other in zip(new, old, strict=True)
    )
