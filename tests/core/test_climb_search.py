import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.climb_speed import improvements_of, plain_climb
from refusal_core.climb import streams
from refusal_core.climb.policy import UNIT, Policy, make_policy
from refusal_core.climb.search import METHODS, search
from tests.core.climb_cases import (
    ANY,
    BUDGETS,
    FANOUTS,
    NOISES,
    SEEDS,
    TIED,
    all_neighbours,
    everything,
    negated,
    policies,
)

OBJECTIVES = st.sampled_from(["raise", "lower"])


# The search at once is the search as it is told


@given(ANY, SEEDS, BUDGETS, FANOUTS, NOISES)
def test_climb_is_the_plain_loop(policy, seeds, budget, fanout, noise):
    runs = search(policy, "climb", seeds, budget, fanout=fanout, noise=noise)
    for place, seed in enumerate(seeds):
        for whole in (True, False):
            expected = plain_climb(policy, int(seed), budget, fanout, noise, whole=whole)
            found = improvements_of(runs, place), int(runs.evaluations[place]), int(runs.restarts[place])
            assert found == expected


class Plain:
    """Scores one sequence after the other, as long as there is budget, and keeps what rose."""

    def __init__(self, policy, seed, budget, noise, starts):
        one = np.array([seed])
        self.policy, self.budget, self.used, self.restart = policy, budget, 0, 0
        self.errors = streams.noise(one, budget, noise)[0].tolist() if noise else [0] * budget
        self.starts = streams.courses(one, starts, policy.length, policy.vocabulary).starts[0].tolist()
        self.found = []

    def __call__(self, sequence):
        value = int(self.policy.logits(np.array(sequence)))
        score = value + self.errors[self.used]
        self.used += 1
        if not self.found or score > self.found[-1][1]:
            self.found.append((self.used, score, value, self.restart, tuple(sequence)))
        return score

    @property
    def left(self):
        return self.budget - self.used


def plain_random(policy, seed, budget, noise):
    evaluate = Plain(policy, seed, budget, noise, budget)
    for restart, sequence in enumerate(evaluate.starts):
        evaluate.restart = restart
        evaluate(sequence)
    return evaluate


def plain_greedy(policy, seed, budget, noise):
    evaluate, place = Plain(policy, seed, budget, noise, budget), 0
    while evaluate.left:
        current = evaluate.starts[evaluate.restart]
        score, unchanged = evaluate(current), 0
        while evaluate.left and unchanged < policy.length:
            tried = []
            for step in range(1, policy.vocabulary):
                if evaluate.left:
                    changed = list(current)
                    changed[place] = (current[place] + step) % policy.vocabulary
                    tried.append((evaluate(changed), changed))
            top = max(tried, key=lambda pair: pair[0])
            unchanged += 1
            if top[0] > score:
                (score, current), unchanged = top, 0
            place = (place + 1) % policy.length
        if evaluate.left:
            evaluate.restart += 1
    return evaluate


def plain_annealing(policy, seed, budget, noise):
    evaluate = Plain(policy, seed, budget, noise, 1)
    current = evaluate.starts[0]
    score = evaluate(current)
    proposed, chances = streams.proposals(np.array([seed]), budget, policy.neighbours)
    for turn in range(1, budget):
        temperature = 0.05 ** (turn / (budget - 1)) / math.sqrt(policy.length)
        place, step = divmod(int(proposed[0, turn]), policy.vocabulary - 1)
        changed = list(current)
        changed[place] = (current[place] + step + 1) % policy.vocabulary
        new = evaluate(changed)
        if new > score or math.exp((new - score) / UNIT / temperature) >= chances[0, turn]:
            current, score = changed, new
    return evaluate


@given(ANY, st.integers(0, 10_000), BUDGETS, NOISES)
@pytest.mark.parametrize(
    ("method", "plain"), [("random", plain_random), ("greedy", plain_greedy), ("annealing", plain_annealing)]
)
def test_baselines_are_their_plain_loops(method, plain, policy, seed, budget, noise):
    runs = search(policy, method, np.array([seed]), budget, noise=noise)
    expected = plain(policy, seed, budget, noise)
    assert improvements_of(runs, 0) == expected.found
    assert runs.evaluations[0] == expected.used


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize(
    ("method", "plain"), [("random", plain_random), ("greedy", plain_greedy), ("annealing", plain_annealing)]
)
def test_baselines_are_their_plain_loops_at_the_default_size(method, plain, noise):
    policy, seeds = make_policy(0, 8, 12), np.arange(15)
    runs = search(policy, method, seeds, 400, noise=noise)
    for place, seed in enumerate(seeds):
        assert improvements_of(runs, place) == plain(policy, seed, 400, noise).found


# Budget and bookkeeping


@given(ANY, SEEDS, BUDGETS, FANOUTS, NOISES, OBJECTIVES)
@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_spent_and_never_overdrawn(method, policy, seeds, budget, fanout, noise, objective):
    runs = search(policy, method, seeds, budget, fanout=fanout, noise=noise, objective=objective)
    side = 1 if objective == "raise" else -1
    assert (runs.evaluations == budget).all()
    for place in range(len(seeds)):
        rows = runs.rows(place)
        assert runs.at[rows[0]] == 1
        assert (np.diff(runs.at[rows.start : rows.stop]) > 0).all()
        assert (side * np.diff(runs.score[rows.start : rows.stop]) > 0).all()
        assert runs.at[rows[-1]] <= budget
        assert runs.restart[rows[-1]] <= runs.restarts[place] < budget
    assert (runs.value == policy.logits(runs.sequence)).all()
    assert (side * (policy.optimum(objective).value - runs.best) >= 0).all()
    if not noise:
        assert (runs.score == runs.value).all()
        assert (runs.fresh == runs.best).all()


@given(ANY, SEEDS, st.integers(1, 60), FANOUTS, NOISES)
@pytest.mark.parametrize("method", METHODS)
def test_lowering_is_raising_the_negated_policy(method, policy, seeds, budget, fanout, noise):
    low = search(policy, method, seeds, budget, fanout=fanout, noise=noise, objective="lower")
    high = search(negated(policy), method, seeds, budget, fanout=fanout, noise=noise)
    assert (low.score == -high.score).all()
    assert (low.value == -high.value).all()
    assert (low.sequence == high.sequence).all()
    assert (low.at == high.at).all()


# What the climb finds


@given(st.integers(0, 500), st.integers(1, 6), st.integers(2, 6), SEEDS, OBJECTIVES)
def test_greedy_reaches_the_optimum_without_interactions(policy_seed, length, vocabulary, seeds, objective):
    policy = make_policy(policy_seed, length, vocabulary, 0.0)
    runs = search(policy, "greedy", seeds, length * (vocabulary - 1) + 1, objective=objective)
    assert (runs.best == policy.optimum(objective).value).all()


def test_greedy_can_miss_the_optimum_with_one_evaluation_less():
    policy, seeds = make_policy(2, 6, 5, 0.0), np.arange(300)
    missed = search(policy, "greedy", seeds, 6 * 4).best < policy.optimum().value
    assert missed.any()


@given(policies(), SEEDS, FANOUTS)
def test_the_climb_restarts_only_when_no_neighbour_is_better(policy, seeds, fanout):
    runs = search(policy, "climb", seeds, 150, fanout=fanout)
    for place in np.flatnonzero(runs.restarts):
        last = [r for r in runs.rows(place) if runs.restart[r] == 0][-1]
        around = policy.logits(all_neighbours(policy, runs.sequence[last]))
        assert around.max() <= runs.value[last]


@given(st.integers(0, 500), SEEDS, FANOUTS)
def test_without_interactions_the_first_climb_ends_at_the_optimum(policy_seed, seeds, fanout):
    policy = make_policy(policy_seed, 4, 4, 0.0)
    runs = search(policy, "climb", seeds, 200, fanout=fanout)
    assert (runs.restarts > 0).all()
    assert (runs.best == policy.optimum().value).all()


@given(SEEDS, BUDGETS, FANOUTS, st.integers(1, 4), st.integers(2, 4))
def test_on_a_plateau_nothing_moves_and_the_first_sequence_stays(seeds, budget, fanout, length, vocabulary):
    flat = Policy(5, np.zeros((length, vocabulary), np.int64), np.zeros((vocabulary, vocabulary), np.int64))
    runs = search(flat, "climb", seeds, budget, fanout=fanout)
    assert (runs.at == 1).all()
    assert (runs.best == 5).all()
    assert (runs.restarts == (budget - 1) // (1 + flat.neighbours)).all()


@given(ANY, SEEDS, st.integers(1, 10), NOISES)
def test_a_budget_below_the_fanout_is_a_short_step(policy, seeds, budget, noise):
    huge = search(policy, "climb", seeds, budget, fanout=1_000, noise=noise)
    whole = search(policy, "climb", seeds, budget, fanout=policy.neighbours, noise=noise)
    assert (huge.evaluations == budget).all()
    assert everything(huge) == everything(whole)


def test_length_one_is_a_search_over_single_tokens():
    policy = make_policy(0, 1, 7)
    runs = search(policy, "climb", np.arange(20), 7, fanout=6)
    assert (runs.best == policy.optimum().value).all()
    assert (runs.restarts == 0).all()
    assert (search(policy, "climb", np.arange(20), 20).evaluations == 20).all()


def test_one_evaluation_is_the_start():
    policy = make_policy(0, 5, 4)
    results = [everything(search(policy, method, np.arange(9), 1, noise=0.2)) for method in METHODS]
    assert all(result == results[0] for result in results)


@given(TIED, SEEDS, BUDGETS)
def test_of_equal_scores_in_a_step_the_first_one_is_taken(policy, seeds, budget):
    """With the whole neighbourhood in a step, the move is to the first best of the drawn order."""
    runs = search(policy, "climb", seeds, budget, fanout=policy.neighbours)
    courses = streams.courses(seeds, 1, policy.length, policy.vocabulary)
    for place in range(len(seeds)):
        start = courses.starts[place, 0].astype(int)
        places, steps = np.divmod(courses.orders[place], policy.vocabulary - 1)
        around = np.tile(start, (policy.neighbours, 1))
        around[np.arange(policy.neighbours), places] = (start[places] + steps + 1) % policy.vocabulary
        scores = policy.logits(around[: budget - 1])
        if len(scores) and scores.max() > policy.logits(start):
            first = int(np.argmax(scores))
            improvement = next(i for i in improvements_of(runs, place) if i[0] == first + 2)
            assert improvement[4] == tuple(map(int, around[first]))


# Noise


def test_noise_flatters_the_reported_score():
    policy, seeds = make_policy(0, 8, 12), np.arange(400)
    for method in METHODS:
        runs = search(policy, method, seeds, 200, noise=0.5)
        flattery = (runs.reported - runs.fresh) / UNIT
        assert flattery.mean() > 5 * flattery.std() / 20, method


def test_the_fresh_evaluation_is_unbiased():
    runs = search(make_policy(0, 8, 12), "climb", np.arange(4_000), 30, noise=0.5)
    errors = (runs.fresh - runs.best) / UNIT
    assert errors.std() == pytest.approx(0.5, rel=0.05)
    assert abs(errors.mean()) < 4 * 0.5 / 4_000**0.5


def test_other_methods_and_objectives_are_refused():
    policy = make_policy(0, 2, 2)
    with pytest.raises(ValueError, match="climb, random, greedy, annealing"):
        search(policy, "climbing", np.arange(2), 5)
    with pytest.raises(ValueError, match="raise, lower"):
        search(policy, "climb", np.arange(2), 5, objective="up")
