"""Whether a few massive dimensions carry the direction, and how it does without the largest one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refusal_core.direction.fit import Direction
from refusal_core.direction.rows import Rows, wide_blocks
from refusal_core.direction.scores import auroc, balanced_accuracy, correct_cells
from refusal_core.jobs import Job

TOPS = (1, 5, 10)


@dataclass(frozen=True, eq=False)
class Spread:
    """Per-dimension variances of the training rows, float64 [d]: `total` over n - 1, `within` classes over n - 2."""

    total: np.ndarray
    within: np.ndarray


@dataclass(frozen=True)
class WithoutDimension:
    """Scores of the direction without one dimension: the same as setting it to its training mean and refitting."""

    dimension: int
    share_of_direction: float
    share_of_variance: float
    accuracy: float
    balanced_accuracy: float | None
    auroc: float | None


@dataclass(frozen=True)
class Geometry:
    """`participation_ratio` (sum v)^2 / sum v^2 of the dimensions' variances v, from 1 (one dimension) to d.

    The shares are of |m1 - m0|^2, and of the projections' variance as far as it comes from single dimensions
    (unit_j^2 v_j), in their top 1, 5 and 10 dimensions. `largest_ratio` is max |x| over the median standard deviation:
    where it is large, storage in 16 bits costs accuracy.
    """

    participation_ratio: float
    share_of_direction: dict[str, float]
    share_of_score_variance: dict[str, float]
    largest_ratio: float | None
    without_top_of_direction: WithoutDimension
    without_top_of_variance: WithoutDimension


def spread(train: Rows, direction: Direction, job: Job | None = None) -> Spread:
    """Variances in one pass, centred on the class means, so that an offset costs no digits."""
    means = np.stack([direction.midpoint - direction.delta / 2, direction.midpoint + direction.delta / 2])
    squares = np.zeros(train.d)
    for where, centred in wide_blocks(train, job or Job()):
        for label in (0, 1):
            np.subtract(centred, means[label], out=centred, where=train.labels[where, None] == label)
        centred /= train.largest
        squares += np.einsum("ij,ij->j", centred, centred)
    n0, n1 = direction.counts
    n = n0 + n1
    between = n0 * n1 / n * (direction.delta / train.largest) ** 2
    scale = train.largest**2
    return Spread((squares + between) / (n - 1) * scale, squares / max(n - 2, 1) * scale)


def geometry(train: Rows, test: Rows, direction: Direction, margin: np.ndarray, spread: Spread) -> Geometry:
    """The geometry of the training rows and the test scores without the top dimensions; `margin` [n] of the test rows.

    Massive dimensions as in Timkey and van Schijndel (2021), "All bark and no bite", and Sun et al. (2024), "Massive
    activations in large language models".
    """
    variance = spread.total / spread.total.max() if spread.total.max() > 0 else spread.total
    of_direction = direction.unit**2
    of_score = of_direction * variance
    median = float(np.median(np.sqrt(spread.total)))

    def without(dimension: int) -> WithoutDimension:
        column = test.values[:, dimension].astype(np.float64) - direction.midpoint[dimension]
        left = margin - direction.unit[dimension] * column
        correct, counts = correct_cells(test, left >= 0).sum(0), test.cells().sum(0)
        return WithoutDimension(
            dimension=dimension,
            share_of_direction=float(of_direction[dimension] / of_direction.sum()),
            share_of_variance=float(variance[dimension] / variance.sum()),
            accuracy=float(correct.sum() / test.n),
            balanced_accuracy=balanced_accuracy(correct, counts),
            auroc=auroc(left, test.labels),
        )

    return Geometry(
        participation_ratio=float(variance.sum() ** 2 / (variance**2).sum()),
        share_of_direction=_top_shares(of_direction),
        share_of_score_variance=_top_shares(of_score),
        largest_ratio=train.largest / median if median > 0 else None,
        without_top_of_direction=without(int(np.argmax(of_direction))),
        without_top_of_variance=without(int(np.argmax(variance))),
    )


def _top_shares(parts: np.ndarray) -> dict[str, float]:
    ranked, total = np.sort(parts)[::-1], parts.sum()
    return {str(top): float(ranked[:top].sum() / total) if total > 0 else 0.0 for top in TOPS}
