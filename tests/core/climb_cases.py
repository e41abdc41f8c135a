"""Policies for the tests of the search demonstration, and a baseline written as one would tell it."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from benchmarks.climb_speed import improvements_of
from refusal_core.climb.policy import Policy

BUDGETS, FANOUTS = st.integers(1, 120), st.integers(1, 12)
NOISES = st.sampled_from([0.0, 1e-6, 0.7])
SEEDS = st.lists(st.integers(0, 10_000), min_size=1, max_size=4, unique=True).map(np.array)


@st.composite
def policies(draw, most_length=5, most_vocabulary=4, most=10**7):
    """Small policies; small `most` gives many ties."""
    length, vocabulary = draw(st.integers(1, most_length)), draw(st.integers(2, most_vocabulary))

    def table(rows):
        row = st.lists(st.integers(-most, most), min_size=vocabulary, max_size=vocabulary)
        return np.array(draw(st.lists(row, min_size=rows, max_size=rows)), dtype=np.int64)

    return Policy(draw(st.integers(-most, most)), table(length), table(vocabulary))


TIED = policies(most=2)
ANY = st.one_of(policies(), TIED)


def negated(policy: Policy) -> Policy:
    return Policy(-policy.bias, -policy.weights, -policy.interactions)


def every_sequence(policy: Policy) -> np.ndarray:
    return np.indices((policy.vocabulary,) * policy.length).reshape(policy.length, -1).T


def all_neighbours(policy: Policy, sequence: np.ndarray) -> np.ndarray:
    """Every sequence that differs from `sequence` in one place."""
    found = [
        [*sequence[:place], token, *sequence[place + 1 :]]
        for place in range(policy.length)
        for token in range(policy.vocabulary)
        if token != sequence[place]
    ]
    return np.array(found)


def everything(runs):
    """All columns of `runs` by seed, as plain values."""
    return {
        int(seed): (
            improvements_of(runs, place),
            int(runs.evaluations[place]),
            int(runs.restarts[place]),
            int(runs.fresh[place]),
        )
        for place, seed in enumerate(runs.seeds)
    }
