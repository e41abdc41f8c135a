"""Smoothing and thinning of one line, over arrays of a million values and more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def smoothed(values: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Exponential moving average of the finite values, without the pull towards 0 at its start; NaN where they are not.

    s_k = w s_(k-1) + (1 - w) v_k with s_0 = 0, divided by 1 - w^k. Raises ValueError unless 0 <= `weight` < 1.
    """
    if not 0 <= weight < 1:
        raise ValueError(f"a weight from 0 to below 1 is needed, not {weight!r}")
    from scipy.signal import lfilter

    found = np.full(len(values), np.nan)
    finite = np.isfinite(values)
    if finite.any():
        kept = values[finite]
        scale = max(float(np.abs(kept).max()), 1e-300)  # values near the largest float64 would overflow
        average = lfilter([1 - weight], [1, -weight], kept / scale)
        found[finite] = average / (1 - weight ** np.arange(1, len(kept) + 1)) * scale
    return found


def thin(values: Sequence[NDArray[np.float64]], room: int) -> NDArray[np.int64]:
    """Places to keep, ascending, about `room` of them: first, last, least and largest of each stretch, of every array.

    The arrays have one length; NaN is passed over. All places are kept where there are no more than `room`.
    """
    n = len(values[0])
    if n <= room:
        return np.arange(n)
    stretches = max(1, room // (2 + 2 * len(values)))
    edges = np.linspace(0, n, stretches + 1).astype(np.int64)
    starts = edges[:-1]
    kept = [starts, edges[1:] - 1]
    for array in values:
        finite = np.isfinite(array)
        for sign in (1.0, -1.0):
            kept.append(_largest(np.where(finite, sign * array, -np.inf), starts, n))
    return np.unique(np.concatenate(kept))


def _largest(array: NDArray[np.float64], starts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Place of the first largest value of each stretch."""
    most = np.maximum.reduceat(array, starts)
    lengths = np.diff(np.append(starts, n))
    is_most = np.flatnonzero(array == np.repeat(most, lengths))
    stretch = np.searchsorted(starts, is_most, side="right") - 1
    return is_most[np.unique(stretch, return_index=True)[1]]


def broken(
    at: NDArray, raw: NDArray, smooth: NDArray | None, drawable: NDArray[np.bool_], kept: NDArray[np.int64]
) -> tuple[NDArray, NDArray, NDArray | None, NDArray[np.int64]]:
    """The kept points with a NaN between two that have something undrawable between them; and which stand alone."""
    holes = np.cumsum(~drawable)[kept]
    breaks = np.flatnonzero(np.diff(holes) > 0) + 1
    x = np.insert(at[kept], breaks, at[kept][breaks]) if len(breaks) else at[kept]
    y = np.insert(raw[kept], breaks, np.nan)
    line_smooth = None if smooth is None else np.insert(smooth[kept], breaks, np.nan)
    edge = np.concatenate([[True], ~np.isfinite(y), [True]])
    alone = np.flatnonzero(np.isfinite(y) & edge[:-2] & edge[2:])
    return x, y, line_smooth, alone
