"""The cosine of two directions, with what noise allows at most and what there is without any label.

A cosine alone says little: a few large dimensions make any two directions of one model alike, and noise keeps two
directions of one thing apart. So it stands between a ceiling, from directions of split halves of the same data, and a
floor, from directions of shuffled labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from refusal_core.activations.npz import Export, check_train
from refusal_core.direction.cosine_bounds import Ceiling, Floor, SplitHalves, ceiling_of, shuffled_floor, split_halves
from refusal_core.direction.describe import describe_input
from refusal_core.direction.fit import Direction, fit, margins
from refusal_core.direction.result import Settings, with_versions
from refusal_core.direction.rows import Rows, rows_of
from refusal_core.direction.study import limited
from refusal_core.errors import InputError
from refusal_core.jobs import Job

SCHEMA = "refusal-direction-cosine/1"


@dataclass(frozen=True)
class WithoutTop:
    """The cosine without the one dimension that gives most to both directions."""

    dimension: int
    cosine: float


@dataclass(frozen=True)
class DirectionCosine:
    """`cosine` of the two directions, -1 to 1. `score_correlation` is of what they call the rows of both files, within
    classes: a' S b over its lengths, S the pooled within-class covariance. `random_sd` = 1 / sqrt(d) is the spread of
    random vectors, a bar that is far too easy.
    """

    headline: str
    inputs: dict
    cosine: float
    ceiling: Ceiling
    floor: Floor
    without_top: WithoutTop
    score_correlation: float | None
    random_sd: float
    shared_ids: int
    seed: int
    repeats: int
    warnings: tuple[str, ...]

    def to_json(self) -> str:
        """Strict JSON with a line break at its end."""
        return with_versions(SCHEMA, self)


def cosine(a: Export, b: Export, settings: Settings | None = None, job: Job | None = None) -> DirectionCosine:
    """The cosine of the directions of two training files, of one number of dimensions.

    Raises InputError when the dimensions differ, a class is missing or a direction has length 0; Cancelled when the job
    is.
    """
    settings, job = settings or Settings(), job or Job()
    check_train(a)
    check_train(b)
    if a.d != b.d:
        raise InputError(
            f"it has {b.d:,} dimensions, {a.name} has {a.d:,}",
            where=f'{b.name}, member "activations"',
            why="a cosine needs one space",
            fix="export both from the same model",
        )
    with limited(settings.threads):
        return _cosine(a, b, settings, job)


def _cosine(a: Export, b: Export, settings: Settings, job: Job) -> DirectionCosine:
    files = rows_of(a), rows_of(b)
    directions = fit(files[0], job), fit(files[1], job)
    value = float(directions[0].unit @ directions[1].unit)
    shared = len(set(a.ids) & set(b.ids))
    same = shared == a.n == b.n
    halves = tuple(split_halves(rows, np.random.default_rng((settings.seed, 1)), job) for rows in files)
    ceiling = ceiling_of(*halves)
    floor = shuffled_floor(files, directions, value, same, settings, job)
    top = int(np.argmax(np.abs(directions[0].unit * directions[1].unit)))
    rest = [np.delete(direction.unit, top) for direction in directions]
    lengths = [float(np.linalg.norm(vector)) for vector in rest]
    without = float(rest[0] @ rest[1]) / (lengths[0] * lengths[1]) if min(lengths) > 0 else 0.0
    return DirectionCosine(
        headline=_headline(value, ceiling, floor),
        inputs={"a": describe_input(a, files[0]), "b": describe_input(b, files[1])},
        cosine=value,
        ceiling=ceiling,
        floor=floor,
        without_top=WithoutTop(top, without),
        score_correlation=_score_correlation(files, directions, job),
        random_sd=1 / math.sqrt(a.d),
        shared_ids=shared,
        seed=settings.seed,
        repeats=settings.repeats,
        warnings=tuple(_warnings(a, b, shared, value, ceiling)),
    )


def _score_correlation(files: tuple[Rows, Rows], directions: tuple[Direction, Direction], job: Job) -> float | None:
    """a' S b / sqrt(a' S a b' S b) over the rows of both files, each less its class mean."""
    products = np.zeros((2, 2))
    for rows, own in zip(files, directions, strict=True):
        scores = np.stack([margins(rows, direction.unit, own.midpoint, job) for direction in directions])
        for label in (0, 1):
            scores[:, rows.labels == label] -= scores[:, rows.labels == label].mean(1, keepdims=True)
        products += scores @ scores.T
    size = math.sqrt(products[0, 0] * products[1, 1])
    return float(products[0, 1] / size) if size > 0 else None


def _headline(value: float, ceiling: Ceiling, floor: Floor) -> str:
    top = "the ceiling is undefined" if ceiling.value is None else f"noise allows up to about {ceiling.value:.2f}"
    return (
        f"Cosine {value:.2f}; {top} (split halves), and shuffled labels stay under {floor.high:.2f} in 95% of "
        f"{floor.repeats:,} draws (p = {floor.p_value:.2g})."
    )


def _warnings(a: Export, b: Export, shared: int, value: float, ceiling: Ceiling) -> list[str]:
    found = []
    if a.sha256 == b.sha256 and a.layer_index == b.layer_index:
        found.append("Both are the same file, so the cosine is 1 whatever the data.")
    elif shared:
        found.append(
            f"{shared:,} ids are in both files: their noise is common, so the cosine may lie above the ceiling, which "
            "is that of different examples."
        )
    for key in ("model", "layer"):
        if a.metadata.get(key) != b.metadata.get(key):
            stated = [export.metadata.get(key, "not stated") for export in (a, b)]
            found.append(
                f"The files state different values of {key} ({stated[0]}; {stated[1]}): the dimensions of two models, "
                "or of far layers, need not mean the same."
            )
    if ceiling.value is not None and ceiling.value < 0.5:
        found.append(
            f"The ceiling is {ceiling.value:.2f}: the directions are so noisy that a low cosine does not mean "
            "that they differ."
        )
    for name, half in (("first", ceiling.a), ("second", ceiling.b)):
        if isinstance(half, SplitHalves) and half.by == "rows":
            found.append(
                f"The {name} file has too few categories to split, so its rows were: that ceiling is too high."
            )
    return found
