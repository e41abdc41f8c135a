"""What a cosine stands between: the ceiling of split halves, and the floor of shuffled labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from refusal_core.direction.category_nulls import movable
from refusal_core.direction.fit import Direction
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.nulls import fitted, shuffled_labels
from refusal_core.direction.plan import parts
from refusal_core.direction.result import Settings
from refusal_core.direction.rows import Rows, group_sums
from refusal_core.jobs import Job

SPLITS = 100
_TRIES = 100  # a split
_BLOCKS = 20  # of rows, where categories cannot be split
_LEAST_LABELINGS = 20  # of whole categories: with fewer they say too little


@dataclass(frozen=True)
class SplitHalves:
    """Cosines of the directions of two halves of one file, over `splits` random splits: mean, 5% and 95% points.

    `whole` is what the mean says of two files as large as this one, by 2r / (1 + r), None where the mean is not
    above 0. `by` says what was split.
    """

    by: str
    splits: int
    mean: float
    low: float
    high: float
    whole: float | None


@dataclass(frozen=True)
class Ceiling:
    """`value` is the cosine that two files of one direction would show, given the noise of each: the geometric mean of
    `a.whole` and `b.whole`.
    """

    value: float | None
    a: SplitHalves | NotAvailable
    b: SplitHalves | NotAvailable


@dataclass(frozen=True)
class Floor:
    """Cosines of directions of shuffled labels. `high` is the 95% point of their size |cosine|; the p-value is
    two-sided, with one added. `method` says what was shuffled, and whether both files got the same shuffles.
    """

    method: str
    repeats: int
    scores: tuple[float, ...]
    mean: float
    high: float
    p_value: float


def ceiling_of(a: SplitHalves | NotAvailable, b: SplitHalves | NotAvailable) -> Ceiling:
    """The ceiling of two files' split halves: with the noise of both, cosines shrink by its geometric mean.

    The correction for attenuation of Spearman (1904), "The proof and measurement of association between two things".
    """
    wholes = [half.whole for half in (a, b) if isinstance(half, SplitHalves)]
    value = None if len(wholes) < 2 or None in wholes else math.sqrt(wholes[0] * wholes[1])
    return Ceiling(value, a, b)


def split_halves(rows: Rows, rng: np.random.Generator, job: Job | None = None) -> SplitHalves | NotAvailable:
    """Directions of two random halves of the categories, or of the rows where a half of them would lose a class.

    The mean r over splits becomes that of whole files by Spearman and Brown (1910), 2r / (1 + r): the noise of a mean
    falls with its rows.
    """
    sizes = rows.cells() > 0
    by_category = min(sizes.sum(0)) >= 2 and len(rows.categories) >= 4
    code, count = (rows.code, len(rows.categories)) if by_category else _blocks_of_rows(rows, rng)
    sums = group_sums(rows, 2 * code + rows.labels, 2 * count, job or Job()).reshape(count, 2, rows.d)
    counts = np.bincount(2 * code + rows.labels, minlength=2 * count).reshape(count, 2)
    mean = sums.sum((0, 1)) / rows.n
    sums -= counts[:, :, None] * mean
    found = [c for c in (_one_split(sums, counts, rng) for _ in range(SPLITS)) if c is not None]
    if len(found) < SPLITS:
        return NotAvailable("halves of the file keep losing a class")
    r = float(np.mean(found))
    low, high = np.quantile(found, [0.05, 0.95])
    return SplitHalves(
        by="categories" if by_category else "rows",
        splits=SPLITS,
        mean=r,
        low=float(low),
        high=float(high),
        whole=2 * r / (1 + r) if r > 0 else None,
    )


def _one_split(sums: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> float | None:
    """The cosine of two halves of the groups; None when no split leaves both classes in both."""
    k = len(sums)
    for _ in range(_TRIES):
        half = np.zeros(k, bool)
        half[rng.permutation(k)[: k // 2]] = True
        n = np.stack([counts[half].sum(0), counts[~half].sum(0)])
        if n.all():
            first, second = (own.sum(0) / m[:, None] for own, m in zip((sums[half], sums[~half]), n, strict=True))
            return _angle(first[1] - first[0], second[1] - second[0])
    return None


def _blocks_of_rows(rows: Rows, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Random blocks of rows, each class spread over all of them as far as it goes."""
    code = np.empty(rows.n, np.intp)
    for label in (0, 1):
        own = rows.order[rows.labels[rows.order] == label]
        code[own] = rng.permutation(np.arange(len(own)) % _BLOCKS)
    return code, _BLOCKS


def shuffled_floor(
    files: tuple[Rows, Rows],
    directions: tuple[Direction, Direction],
    value: float,
    same: bool,
    settings: Settings,
    job: Job,
) -> Floor:
    """Shuffled labels of both files; the same ids are shuffled alike, since their rows are alike too."""
    by_category = all(_can_move(rows) for rows in files)
    streams = [np.random.default_rng((settings.seed, 2 if same else 2 + k)) for k in (0, 1)]
    scores = np.empty(settings.repeats)
    if by_category:
        moved = [_moved_labels(rows, settings.repeats, rng) for rows, rng in zip(files, streams, strict=True)]
    for part in parts(settings.repeats):
        vectors = []
        for k, (rows, direction) in enumerate(zip(files, directions, strict=True)):
            if by_category:
                vectors.append(_directions_of(rows, direction, moved[k][part], job))
            else:
                labels = shuffled_labels(rows, part.stop - part.start, streams[k])
                vectors.append(fitted(rows, direction, labels, job).vectors)
        scores[part] = _angles(*vectors)
    size = np.abs(scores)
    return Floor(
        method=f"{'whole categories' if by_category else 'rows'}, {'the same for both' if same else 'each by itself'}",
        repeats=settings.repeats,
        scores=tuple(scores.tolist()),
        mean=float(scores.mean()),
        high=float(np.quantile(size, 0.95)),
        p_value=(int(np.count_nonzero(size >= abs(value))) + 1) / (settings.repeats + 1),
    )


def _can_move(rows: Rows) -> bool:
    moves = movable(rows, rows)
    return (
        not isinstance(moves, NotAvailable) and math.comb(len(moves.label), int(moves.label.sum())) >= _LEAST_LABELINGS
    )


def _moved_labels(rows: Rows, repeats: int, rng: np.random.Generator) -> np.ndarray:
    """bool [repeats, K]: labels of whole categories, drawn in the order of their names."""
    label = movable(rows, rows).label
    return rng.permuted(np.tile(label, (repeats, 1)), axis=1)


def _directions_of(rows: Rows, direction: Direction, labels: np.ndarray, job: Job) -> np.ndarray:
    """float64 [m, d]: class differences of labelings of whole categories (bool [m, K])."""
    sizes = np.bincount(rows.code, minlength=len(rows.categories))
    sums = group_sums(rows, rows.code, len(rows.categories), job) - sizes[:, None] * direction.mean
    n1 = (labels @ sizes)[:, None]
    # The centred sums add to 0, so S1 / n1 - S0 / n0 = S1 (1 / n1 + 1 / n0).
    return (labels.astype(np.float64) @ sums) * (1 / n1 + 1 / (rows.n - n1))


def _angle(a: np.ndarray, b: np.ndarray) -> float:
    size = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(a @ b) / size if size > 0 else 0.0


def _angles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64 [m]: cosines of rows; 0 where a vector has length 0."""
    dot = np.einsum("ij,ij->i", a, b, dtype=np.float64)
    size = np.sqrt(np.einsum("ij,ij->i", a, a, dtype=np.float64) * np.einsum("ij,ij->i", b, b, dtype=np.float64))
    return np.divide(dot, size, out=np.zeros_like(dot), where=size > 0)
