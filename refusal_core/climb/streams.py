"""Random draws of the searches: each seed has its own streams, so that its run does not depend on its company.

Stream k of seed s is numpy's PCG64 seeded with [s, k]. Each stream is read from its start in one order, so that a run
with a larger budget begins with the draws of a smaller one, and all methods of one seed begin with the same sequence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refusal_core.climb.policy import units

_COURSE, _NOISE, _PROPOSALS = range(3)


@dataclass(frozen=True, eq=False)
class Courses:
    """`orders` int64 [seeds, neighbours], a random order of the neighbours; `fresh` float64 [seeds], a standard normal
    number for the evaluation after the search; `starts` uint8 [seeds, rows, length], the random start and restarts."""

    orders: np.ndarray
    fresh: np.ndarray
    starts: np.ndarray


def courses(seeds: np.ndarray, rows: int, length: int, vocabulary: int) -> Courses:
    """What each seed draws for its search, with `rows` starts."""
    neighbours = length * (vocabulary - 1)
    orders = np.empty((len(seeds), neighbours), dtype=np.int64)
    fresh = np.empty(len(seeds))
    starts = np.empty((len(seeds), rows * length), dtype=np.uint8)
    for place, seed in enumerate(seeds):
        rng = _stream(seed, _COURSE)
        orders[place] = rng.permutation(neighbours)
        fresh[place] = rng.standard_normal()
        starts[place] = rng.integers(vocabulary, size=rows * length, dtype=np.uint8)
    return Courses(orders, fresh, starts.reshape(len(seeds), rows, length))


def noise(seeds: np.ndarray, budget: int, sd: float) -> np.ndarray:
    """Errors of the evaluations in millionths of a logit, int64 [seeds, budget], normal with `sd` in logits."""
    errors = np.empty((len(seeds), budget))
    for row, seed in zip(errors, seeds, strict=True):
        _stream(seed, _NOISE).standard_normal(out=row)
    errors *= sd
    return units(errors)


def proposals(seeds: np.ndarray, budget: int, neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """For annealing: neighbours int64 [seeds, budget], and float64 numbers above 0 up to 1 to accept them by."""
    both = np.empty((len(seeds), budget, 2))
    for row, seed in zip(both, seeds, strict=True):
        _stream(seed, _PROPOSALS).random(out=row)
    return (both[..., 0] * neighbours).astype(np.int64), 1 - both[..., 1]


def _stream(seed: int, number: int) -> np.random.Generator:
    return np.random.default_rng([int(seed), number])
