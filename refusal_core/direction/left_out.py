"""Leave-one-category-out scores of one file under many labelings at once: what a pooled file is tested against."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refusal_core.direction.fit import Direction
from refusal_core.direction.rows import Centred32, Rows
from refusal_core.jobs import Job


def left_out_scores(rows: Rows, direction: Direction, labels: np.ndarray, job: Job) -> np.ndarray:
    """float64 [m]: balanced accuracy on categories left out one by one, for each of m labelings (bool [m, n]).

    The labels move in fit and score alike. Sums of all rows less those of a category give the fit without it, so fit
    and score are two matrix products, float32 as in `nulls`. Where a labeling leaves a label no row outside a category,
    that category's calls mean nothing.
    """
    centred = Centred32(rows, direction.mean)
    places = [np.flatnonzero(rows.code == k) for k in range(len(rows.categories))]
    whole, total = _sums(rows, centred, labels, np.arange(rows.n), job)
    n1 = labels.sum(1)
    right = np.zeros((len(labels), 2), np.int64)
    for where in places:
        ones, both = _sums(rows, centred, labels, where, job)
        own = labels[:, where]
        rest_n1 = n1 - own.sum(1)
        rest_n0 = rows.n - len(where) - rest_n1
        ones = whole - ones
        m0 = ((total - both).astype(np.float32) - ones) / np.maximum(rest_n0, 1)[:, None].astype(np.float32)
        ones /= np.maximum(rest_n1, 1)[:, None].astype(np.float32)
        delta = ones - m0
        ones += m0
        cut = (np.einsum("ij,ij->i", ones, delta, dtype=np.float64) / 2).astype(np.float32)
        for piece, block in _pieces(rows, centred, where, job):
            calls = delta @ block.T >= cut[:, None]
            true = labels[:, piece]
            right[:, 1] += (calls & true).sum(1)
            right[:, 0] += (~calls & ~true).sum(1)
    return (right[:, 1] / n1 + right[:, 0] / (rows.n - n1)) / 2


def _sums(
    rows: Rows, centred: Centred32, labels: np.ndarray, where: np.ndarray, job: Job
) -> tuple[np.ndarray, np.ndarray]:
    """float32 [m, d], the sums of the rows that each labeling calls 1, and float64 [d], the sum of all."""
    ones, total = np.zeros((len(labels), rows.d), np.float32), np.zeros(rows.d)
    for piece, block in _pieces(rows, centred, where, job):
        ones += labels[:, piece].astype(np.float32) @ block
        total += block.sum(0, dtype=np.float64)
    return ones, total


def _pieces(rows: Rows, centred: Centred32, where: np.ndarray, job: Job) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows at `where` in pieces that the buffer of `centred` holds: (places, float32 block)."""
    for start in range(0, len(where), centred.rows):
        piece = where[start : start + centred.rows]
        yield piece, centred(rows.values[piece])
        job.check()
