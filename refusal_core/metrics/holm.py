"""Holm's correction: p values of a family of questions, so that the chance of any false answer stays at the level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjusted p values in the order given: the i-th smallest of m times m - i, made non-decreasing, at most 1.

    S. Holm (1979), "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 65-70. None (no
    test could be made) stays None and is not counted. Raises ValueError for what is not from 0 to 1.
    """
    there = [i for i, p in enumerate(p_values) if p is not None]
    p = np.array([p_values[i] for i in there], dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p values must be from 0 to 1, not {p.tolist()}")
    order = np.argsort(p, kind="stable")
    raised = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    adjusted: list[float | None] = [None] * len(p_values)
    for place, value in zip(order, raised, strict=True):
        adjusted[there[place]] = float(value)
    return tuple(adjusted)
