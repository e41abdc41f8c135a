"""What balanced accuracies look like when there is nothing to find: shuffled labels and random directions.

With labelings as rows of a matrix, all their class differences are one matrix product with the training rows, and all
scores one with the test rows; a row is called a refusal when (x - mean) . delta >= (n0 - n1) / (2n) |delta|^2, the
midpoint rule, so no training row is projected and nothing is normalised. The products are float32 on centred blocks,
thresholds and counts float64; rows within about 1e-6 of a threshold may be called otherwise than by float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refusal_core.direction.fit import Direction
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.rows import Centred32, Rows, blocks, power_of_two
from refusal_core.jobs import Job


@dataclass(frozen=True)
class Null:
    """Balanced accuracies under a null hypothesis. `scores` in the order drawn, `sd` with repeats - 1.

    `tail_fraction` is the share of scores at or above the observed one, `lower_tail_fraction` at or below. `p_value` is
    (b + 1) / (m + 1) for draws and b / m when all m labelings were listed, the true one among them; `smallest_p_value`
    is the least that it can be; `labelings` counts them, where that is known. `claim` says what a small p-value speaks
    against.
    """

    repeats: int
    scores: tuple[float, ...]
    mean: float
    sd: float | None
    tail_fraction: float
    lower_tail_fraction: float
    p_value: float
    smallest_p_value: float
    method: str
    labelings: float | None
    claim: str


@dataclass(frozen=True)
class RandomDirections:
    """Balanced accuracies of random directions, turned and cut by the training class means. A floor, not a null."""

    repeats: int
    scores: tuple[float, ...]
    mean: float
    sd: float | None


@dataclass(frozen=True, eq=False)
class DirectionSet:
    """Directions as rows [m, d], float32, in the scale `scale` of the training rows.

    `along` [m] is direction . (m1 - m0) of the classes that its threshold lies between, in the same scale; `shift` is
    (n0 - n1) / (2n): a row is a refusal when (x - mean) . direction >= shift * along.
    """

    vectors: np.ndarray
    along: np.ndarray
    shift: float
    scale: float


def null(scores: np.ndarray, observed: float, *, claim: str, labelings: float | None, listed: bool = False) -> Null:
    """The summary of balanced accuracies [m] against the `observed` one.

    p-values after Phipson and Smyth (2010), "Permutation p-values should never be zero".
    """
    m, above = len(scores), int(np.count_nonzero(scores >= observed))
    return Null(
        repeats=m,
        scores=tuple(scores.tolist()),
        mean=float(scores.mean()),
        sd=_sd(scores),
        tail_fraction=above / m,
        lower_tail_fraction=int(np.count_nonzero(scores <= observed)) / m,
        p_value=above / m if listed else (above + 1) / (m + 1),
        smallest_p_value=1 / m if listed else 1 / (m + 1),
        method="all labelings listed" if listed else "drawn",
        labelings=labelings,
        claim=claim,
    )


def summary(scores: np.ndarray) -> RandomDirections:
    return RandomDirections(len(scores), tuple(scores.tolist()), float(scores.mean()), _sd(scores))


def shuffled_labels(train: Rows, repeats: int, rng: np.random.Generator) -> np.ndarray:
    """bool [repeats, n], file order: the training labels permuted over all rows, drawn in the order of ids."""
    labels = np.empty((repeats, train.n), bool)
    labels[:, train.order] = rng.permuted(np.tile(train.labels[train.order] == 1, (repeats, 1)), axis=1)
    return labels


def within_categories(train: Rows, repeats: int, rng: np.random.Generator) -> np.ndarray | NotAvailable:
    """bool [repeats, n]: the training labels permuted inside each category; possible where one holds both labels."""
    if not mixed_categories(train):
        return NotAvailable(
            "every category of the training file holds one label, so a shuffle within categories changes nothing"
        )
    labels = np.tile(train.labels == 1, (repeats, 1))
    code = train.code[train.order]
    for k in np.flatnonzero((train.cells() > 0).all(1)):
        rows = train.order[code == k]
        labels[:, rows] = rng.permuted(labels[:, rows], axis=1)
    return labels


def mixed_categories(rows: Rows) -> int:
    """How many categories hold both labels."""
    return int((rows.cells() > 0).all(1).sum())


def labelings_within(rows: Rows) -> float | None:
    """How many labelings a shuffle within categories can give; None over 1e307."""
    logarithm = sum(math.lgamma(a + b + 1) - math.lgamma(a + 1) - math.lgamma(b + 1) for a, b in rows.cells().tolist())
    if logarithm > 706:
        return None
    return float(round(math.exp(logarithm))) if logarithm < 30 else math.exp(logarithm)


def fitted(train: Rows, direction: Direction, labels: np.ndarray, job: Job) -> DirectionSet:
    """The directions of labelings [m, n] with as many of each label as the true one: one matrix product."""
    n0, n1 = direction.counts
    n = n0 + n1
    centred = Centred32(train, direction.mean)
    sums = np.zeros((len(labels), train.d), np.float32)
    product = np.empty_like(sums)
    for where, values in blocks(train, job):
        np.matmul(labels[:, where].astype(np.float32), centred(values), out=product)
        sums += product
    # delta = S1 / n1 - S0 / n0; the two sums add to what float32 rounded off the centre, n times `rest`.
    sums *= np.float32(1 / n1 + 1 / n0)
    sums -= (centred.rest * (n / n0)).astype(np.float32)
    along = np.einsum("ij,ij->i", sums, sums, dtype=np.float64)
    return DirectionSet(sums, along, (n0 - n1) / (2 * n), centred.scale)


def random_directions(train: Rows, direction: Direction, repeats: int, rng: np.random.Generator) -> DirectionSet:
    """Gaussian directions, each turned to the side of the training file's class 1; test labels play no part."""
    n0, n1 = direction.counts
    vectors = rng.standard_normal((repeats, train.d), dtype=np.float32)
    scale = power_of_two(train.largest)
    along = vectors @ (direction.delta * scale).astype(np.float32)
    vectors[along < 0] *= -1
    return DirectionSet(vectors, np.abs(along).astype(np.float64), (n0 - n1) / (2 * (n0 + n1)), scale)


def scores_of(test: Rows, direction: Direction, sets: Sequence[DirectionSet], job: Job) -> list[np.ndarray]:
    """The balanced accuracies [m] of each set on the test rows, which hold both labels; one matrix product a set."""
    centred = Centred32(test, direction.mean)
    rest = centred.rest.astype(np.float32)
    cuts = [(s.shift * s.along * (centred.scale / s.scale) + s.vectors @ rest).astype(np.float32) for s in sets]
    called = [np.zeros((2, len(s.vectors)), np.int64) for s in sets]
    for where, values in blocks(test, job):
        block, labels = centred(values), test.labels[where]
        for s, cut, counts in zip(sets, cuts, called, strict=True):
            calls = block @ s.vectors.T >= cut
            for label in (0, 1):
                counts[label] += np.count_nonzero(calls[labels == label], axis=0)
    n0, n1 = test.label_counts
    return [(counts[1] / n1 + (n0 - counts[0]) / n0) / 2 for counts in called]


def _sd(scores: np.ndarray) -> float | None:
    return float(scores.std(ddof=1)) if len(scores) > 1 else None
