"""Test rows that the training file holds too, or nearly: what the score is without them.

Equal files and ids in both are refused before any analysis (`activations.npz.check_pair`); here are equal rows under
other ids, and rows nearer to a training row than training rows are to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from refusal_core.direction.rows import Centred32, Rows, block_rows, blocks, group_sums, wide_blocks
from refusal_core.direction.scores import balanced_accuracy, correct_cells
from refusal_core.jobs import Job

SAMPLE = 2_000  # rows of each file whose neighbours are looked for
QUANTILE = 0.001
CHUNK = 1_024
_SHOWN = 20


@dataclass(frozen=True)
class Match:
    """A test row and the training row that it repeats. `distance` is 1 - cosine, 0 for an equal row."""

    test_id: str
    train_id: str
    distance: float


@dataclass(frozen=True)
class Leakage:
    """What was found. `equal_rows` have the same numbers as a training row; `near_rows` lie under `near_distance` from
    one: less than half as far as the closest 0.1% of training rows lie from each other. `nearest_distance` is the least
    of any test row. `checked_rows` test rows were compared. The scores are those of the test rows that are left.
    """

    equal_rows: int
    near_rows: int
    near_distance: float | None
    nearest_distance: float | None
    checked_rows: int
    matches: tuple[Match, ...]
    rows_left: int
    accuracy_without: float | None
    balanced_accuracy_without: float | None


def leakage(train: Rows, test: Rows, margin: np.ndarray, rng: np.random.Generator, job: Job | None = None) -> Leakage:
    """Equal and near rows of the two files, and the scores without them; `margin` [n] of the test rows.

    Nearest rows by cosine after centring and scaling each dimension by the training rows: plain cosine is near 1 for
    every pair in an anisotropic space. At most 2,000 rows of each file, drawn in the order of ids, are looked up. The
    kinds of leakage are those of Kapoor and Narayanan (2023), "Leakage and the reproducibility crisis in
    machine-learning-based science".
    """
    job = job or Job()
    equal = _equal_rows(train, test, job)
    near, bound, nearest, checked = _near_rows(train, test, rng, job)
    near = {row: match for row, match in near.items() if row not in equal}
    keep = np.ones(test.n, bool)
    keep[[*equal, *near]] = False
    correct, counts = correct_cells(test, margin >= 0), test.cells()
    if not keep.all():
        kept = 2 * test.code[keep] + test.labels[keep]
        right = (margin[keep] >= 0) == (test.labels[keep] == 1)
        size = 2 * len(test.categories)
        counts = np.bincount(kept, minlength=size).reshape(-1, 2)
        correct = np.bincount(kept, right, minlength=size).reshape(-1, 2)
    left = int(counts.sum())
    matches = [Match(test.ids[row], train.ids[other], 0.0) for row, other in sorted(equal.items())]
    matches += [Match(test.ids[row], train.ids[other], gap) for row, (other, gap) in sorted(near.items())]
    return Leakage(
        equal_rows=len(equal),
        near_rows=len(near),
        near_distance=bound,
        nearest_distance=nearest,
        checked_rows=checked,
        matches=tuple(matches[:_SHOWN]),
        rows_left=left,
        accuracy_without=float(correct.sum() / left) if left else None,
        balanced_accuracy_without=balanced_accuracy(correct.sum(0), counts.sum(0)),
    )


def _equal_rows(train: Rows, test: Rows, job: Job) -> dict[int, int]:
    """Test row to the first training row with the same numbers."""
    wide = max(train.values.dtype.itemsize, test.values.dtype.itemsize) > 4
    first: dict[bytes, int] = {}
    for row, key in _row_keys(train, wide, job):
        first.setdefault(key, row)
    return {row: first[key] for row, key in _row_keys(test, wide, job) if key in first}


def _row_keys(rows: Rows, wide: bool, job: Job) -> Iterator[tuple[int, bytes]]:
    """A digest of each row's numbers, as float64 or, where no file needs that, as float32."""
    for where, values in blocks(rows, job):
        plain = np.ascontiguousarray(values, dtype=np.float64 if wide else np.float32) + 0  # -0 becomes 0
        for row, line in enumerate(plain, start=where.start):
            yield row, blake2b(line, digest_size=16).digest()


def _near_rows(
    train: Rows, test: Rows, rng: np.random.Generator, job: Job
) -> tuple[dict[int, tuple[int, float]], float | None, float | None, int]:
    """Near test rows to (training row, distance); the distance that makes one near; the least; rows compared."""
    if train.n < 3:
        return {}, None, None, 0
    mean, scale = _standard(train, job)
    _, distance = _nearest(train, train, _sample(train, rng), mean, scale, job)
    # 1 - cosine grows with the square of the distance, so a quarter of it is half as far.
    bound = float(np.quantile(distance, QUANTILE, method="lower")) / 4
    looked = _sample(test, rng)
    nearest, distance = _nearest(train, test, looked, mean, scale, job)
    near = {int(looked[p]): (int(nearest[p]), float(distance[p])) for p in np.flatnonzero(distance < bound)}
    return near, bound, float(distance.min()), len(looked)


def _standard(train: Rows, job: Job) -> tuple[np.ndarray, np.ndarray]:
    """Mean [d], and 1 / sd [d] with 0 where the training rows do not vary."""
    mean = group_sums(train, np.zeros(train.n, np.intp), 1, job)[0] / train.n
    squares = np.zeros(train.d)
    for _, centred in wide_blocks(train, job, mean):
        centred /= train.largest
        squares += np.einsum("ij,ij->j", centred, centred)
    sd = np.sqrt(squares / train.n) * train.largest
    return mean, np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > train.largest * 1e-12)


def _sample(rows: Rows, rng: np.random.Generator) -> np.ndarray:
    if rows.n <= SAMPLE:
        return np.arange(rows.n)
    return np.sort(rows.order[rng.choice(rows.n, SAMPLE, replace=False)])


def _nearest(
    train: Rows, other: Rows, looked: np.ndarray, mean: np.ndarray, scale: np.ndarray, job: Job
) -> tuple[np.ndarray, np.ndarray]:
    """Of each row of `other` looked up: its most similar training row (not itself), and 1 - their cosine."""
    nearest, similar = np.zeros(len(looked), np.intp), np.full(len(looked), -np.inf, np.float32)
    of_train = Centred32(train, mean)
    for start in range(0, len(looked), CHUNK):
        piece = looked[start : start + CHUNK]
        units = np.empty((len(piece), train.d), np.float32)
        of_other = Centred32(other, mean)
        step = block_rows(train.d)
        for first in range(0, len(piece), step):
            units[first : first + step] = _units(of_other(other.values[piece[first : first + step]]), of_other, scale)
        for where, values in blocks(train, job):
            cosines = units @ _units(of_train(values), of_train, scale).T
            if other is train:
                inside = np.flatnonzero((piece >= where.start) & (piece < where.stop))
                cosines[inside, piece[inside] - where.start] = -np.inf
            place = cosines.argmax(1)
            best = cosines[np.arange(len(piece)), place]
            better = best > similar[start : start + len(piece)]
            nearest[start : start + len(piece)][better] = place[better] + where.start
            similar[start : start + len(piece)][better] = best[better]
    return nearest, np.maximum(1 - similar.astype(np.float64), 0)


def _units(block: np.ndarray, centred: Centred32, scale: np.ndarray) -> np.ndarray:
    """The centred block, scaled by dimension and to length 1, in place; a row at the mean stays 0."""
    block -= centred.rest.astype(np.float32)
    block *= (scale / centred.scale).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
    block /= np.where(lengths > 0, lengths, 1)[:, None]
    return block
