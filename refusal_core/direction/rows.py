"""The rows of an export as the study uses them, and passes over them in fixed blocks.

A block holds about a million numbers, whatever the machine: sums are float64, in file order within a block and over
blocks, so that the same file gives the same bits. Only a block is ever cast or centred, never a whole file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from refusal_core.activations.npz import Export
from refusal_core.jobs import Job

BLOCK_NUMBERS = 1 << 20


@dataclass(frozen=True, eq=False)
class Rows:
    """`values` [n, d] of any float type; `labels` int8 [n] of 0 and 1; `categories` sorted names; `code` [n] their
    index of each row; `order` [n] file rows in the order of their ids, in which every draw is made; `largest` is
    max |value|.
    """

    name: str
    values: np.ndarray
    labels: np.ndarray
    categories: tuple[str, ...]
    code: np.ndarray
    ids: tuple[str, ...]
    order: np.ndarray
    largest: float

    @property
    def n(self) -> int:
        return self.values.shape[0]

    @property
    def d(self) -> int:
        return self.values.shape[1]

    @property
    def label_counts(self) -> tuple[int, int]:
        ones = int(np.count_nonzero(self.labels))
        return self.n - ones, ones

    def cells(self, weights: np.ndarray | None = None) -> np.ndarray:
        """[K, 2]: rows of each category and label, or the sums of `weights` [n] over them."""
        flat = np.bincount(2 * self.code + self.labels, weights, minlength=2 * len(self.categories))
        return flat.reshape(-1, 2)


def rows_of(export: Export) -> Rows:
    """The rows of one checked export."""
    names = sorted(set(export.categories))
    place = {name: code for code, name in enumerate(names)}
    return Rows(
        name=export.name,
        values=export.activations,
        labels=export.labels,
        categories=tuple(names),
        code=np.array([place[name] for name in export.categories], dtype=np.intp),
        ids=export.ids,
        order=np.array(sorted(range(export.n), key=export.ids.__getitem__), dtype=np.intp),
        largest=export.largest,
    )


def block_rows(d: int) -> int:
    """Rows of one block of `d` dimensions."""
    return min(max(BLOCK_NUMBERS // d, 16), 4096)


def block_count(n: int, d: int) -> int:
    return math.ceil(n / block_rows(d))


def blocks(rows: Rows, job: Job) -> Iterator[tuple[slice, np.ndarray]]:
    """Each block in file order: (where, values). Counts every block in `job`; Cancelled comes from there."""
    step = block_rows(rows.d)
    for start in range(0, rows.n, step):
        where = slice(start, min(start + step, rows.n))
        yield where, rows.values[where]
        job.advance()


def wide_blocks(rows: Rows, job: Job, centre: np.ndarray | None = None) -> Iterator[tuple[slice, np.ndarray]]:
    """`blocks` as float64, less `centre` [d]. One buffer serves all: fresh memory costs as much as the work."""
    buffer = np.empty((min(block_rows(rows.d), rows.n), rows.d))
    for where, values in blocks(rows, job):
        wide = buffer[: len(values)]
        wide[...] = values
        if centre is not None:
            wide -= centre
        yield where, wide


def group_sums(rows: Rows, group: np.ndarray, groups: int, job: Job) -> np.ndarray:
    """float64 [groups, d]: sums of the rows of each group; `group` [n] holds the index of each row's group."""
    totals = np.zeros((groups, rows.d))
    for where, values in wide_blocks(rows, job):
        present, index = np.unique(group[where], return_inverse=True)
        count = len(index)
        # A sparse product adds row after row in file order, whatever the BLAS and its threads.
        indicator = csr_array((np.ones(count), (index, np.arange(count))), shape=(len(present), count))
        totals[present] += indicator @ values
    return totals


def power_of_two(largest: float) -> float:
    """The power of two that brings `largest` to 0.5 to 1, so that float32 neither overflows nor vanishes; 1 for 0."""
    return math.ldexp(1.0, -math.frexp(largest)[1]) if largest else 1.0


class Centred32:
    """Blocks as float32, scaled by a power of two and with `centre` [d] taken off: what the matrix products read.

    A float64 block is centred before it is rounded. What float32 rounds off the scaled centre is in `rest` [d]:
    scale * (x - centre) = block - rest.
    """

    def __init__(self, rows: Rows, centre: np.ndarray) -> None:
        self.scale = power_of_two(max(rows.largest, float(np.abs(centre).max())))
        self._wide = rows.values.dtype.itemsize == 8
        self._centre = centre if self._wide else (centre * self.scale).astype(np.float32)
        exact = centre * self.scale
        self.rest = np.zeros_like(exact) if self._wide else exact - self._centre
        self.rows = min(block_rows(rows.d), rows.n)  # that one call takes at most
        self._out = np.empty((self.rows, rows.d), np.float32)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """The block; it is overwritten by the next call."""
        out = self._out[: len(values)]
        if self._wide:
            np.multiply(values - self._centre, self.scale, out=out, casting="same_kind")
        else:
            np.multiply(values, np.float32(self.scale), out=out, dtype=np.float32, casting="same_kind")
            out -= self._centre
        return out
