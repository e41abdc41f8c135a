"""A run depends on its own seed only, and the random draws are what they claim to be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.climb_speed import improvements_of
from refusal_core.climb import search as module
from refusal_core.climb import streams
from refusal_core.climb.policy import UNIT, make_policy
from refusal_core.climb.search import METHODS, search
from refusal_core.jobs import Job
from tests.core.climb_cases import ANY, BUDGETS, FANOUTS, NOISES, SEEDS, everything


@given(ANY, SEEDS, BUDGETS, NOISES)
@pytest.mark.parametrize("method", METHODS)
def test_a_seed_does_not_depend_on_its_company(method, policy, seeds, budget, noise):
    together = everything(search(policy, method, seeds, budget, noise=noise))
    for seed in seeds:
        assert everything(search(policy, method, np.array([seed]), budget, noise=noise)) == {seed: together[seed]}
    reversed_order = everything(search(policy, method, seeds[::-1], budget, noise=noise))
    assert reversed_order == together


@pytest.mark.parametrize("method", METHODS)
def test_the_size_of_blocks_changes_nothing(method, monkeypatch):
    policy, seeds = make_policy(0, 6, 5), np.arange(40)
    whole = everything(search(policy, method, seeds, 300, noise=0.3))
    monkeypatch.setattr(module, "_BLOCK_BYTES", 1)
    done = []
    job = Job(show=lambda now: done.append(now.done), every=0)
    job.start(40 * 300, "evaluations")
    assert everything(search(policy, method, seeds, 300, noise=0.3, job=job)) == whole
    assert done == [300 * k for k in range(41)]


@given(ANY, SEEDS, st.integers(1, 80), st.integers(1, 80), FANOUTS, NOISES)
@pytest.mark.parametrize("method", ["climb", "random", "greedy"])
def test_a_larger_budget_begins_with_the_run_of_a_smaller_one(method, policy, seeds, small, more, fanout, noise):
    short = search(policy, method, seeds, small, fanout=fanout, noise=noise)
    long = search(policy, method, seeds, small + more, fanout=fanout, noise=noise)
    for place in range(len(seeds)):
        assert improvements_of(short, place) == [i for i in improvements_of(long, place) if i[0] <= small]
    standing = long.standing(np.array([small]))[:, 0]
    assert (long.value[standing] == short.best).all()


def test_all_methods_of_a_seed_begin_with_the_same_sequence():
    policy, seeds = make_policy(0, 8, 12), np.arange(30)
    firsts = [search(policy, method, seeds, 50, noise=0.5) for method in METHODS]
    for runs in firsts[1:]:
        first = runs.offsets[:-1], firsts[0].offsets[:-1]
        assert (runs.sequence[first[0]] == firsts[0].sequence[first[1]]).all()
        assert (runs.score[first[0]] == firsts[0].score[first[1]]).all()


def test_streams_are_those_that_the_module_describes():
    """What is written there lets a reader draw the same numbers, and keeps the streams apart."""
    for seed in (0, 7, 9_999):
        one = np.array([seed])
        rng = np.random.default_rng([seed, 0])
        course = streams.courses(one, 3, 4, 5)
        assert (course.orders[0] == rng.permutation(16)).all()
        assert course.fresh[0] == rng.standard_normal()
        assert (course.starts[0].ravel() == rng.integers(5, size=12, dtype=np.uint8)).all()
        errors = np.random.default_rng([seed, 1]).standard_normal(6)
        assert (streams.noise(one, 6, 2.0)[0] == np.rint(errors * 2.0 * UNIT)).all()
        both = np.random.default_rng([seed, 2]).random((6, 2))
        numbers, chances = streams.proposals(one, 6, 16)
        assert (numbers[0] == np.floor(both[:, 0] * 16)).all()
        assert (chances[0] == 1 - both[:, 1]).all()


def test_seeds_differ():
    runs = search(make_policy(0, 8, 12), "climb", np.arange(100), 60)
    assert len({tuple(s) for s in runs.sequence[runs.offsets[:-1]]}) == 100


def test_draws_have_the_distribution_that_they_claim():
    seeds = np.arange(2_000)
    courses = streams.courses(seeds, 3, 4, 5)
    assert (np.sort(courses.orders, axis=1) == np.arange(16)).all()
    counts = np.bincount(courses.orders[:, 0], minlength=16)
    assert abs(counts - 125).max() < 4.5 * 125**0.5
    counts = np.bincount(courses.starts.ravel(), minlength=5)
    assert abs(counts - 4_800).max() < 4.5 * 4_800**0.5
    errors = streams.noise(seeds, 50, 0.25) / UNIT
    assert errors.std() == pytest.approx(0.25, rel=0.02)
    assert abs(errors.mean()) < 0.004
    assert abs(np.corrcoef(errors[:-1].ravel(), errors[1:].ravel())[0, 1]) < 0.02
    numbers, chances = streams.proposals(seeds, 50, 16)
    assert (numbers.min(), numbers.max()) == (0, 15)
    assert 0 < chances.min() < chances.max() <= 1
