import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.climb.policy import TOKENS, UNIT, Policy, in_logits, make_policy, sign, units
from tests.core.climb_cases import ANY, every_sequence, negated


@given(ANY, st.sampled_from(["raise", "lower"]))
def test_optimum_is_that_of_brute_force(policy, objective):
    logits = policy.logits(every_sequence(policy))
    best = policy.optimum(objective)
    assert best.value == (logits.max() if objective == "raise" else logits.min())
    assert policy.logits(np.array(best.sequence)) == best.value


@given(ANY)
def test_among_equal_optima_the_lowest_from_the_end_is_given(policy):
    sequences = every_sequence(policy)
    best = sequences[policy.logits(sequences) == policy.optimum().value]
    assert policy.optimum().sequence == min((tuple(map(int, s)) for s in best), key=lambda s: s[::-1])


@given(ANY)
def test_lowering_is_raising_the_negated_policy(policy):
    low, high = policy.optimum("lower"), negated(policy).optimum("raise")
    assert (low.value, low.sequence) == (-high.value, high.sequence)


def test_logit_is_bias_weights_and_interactions():
    policy = Policy(7, np.array([[1, 2], [10, 20], [100, 200]]), np.array([[1_000, 2_000], [3_000, 4_000]]))
    assert policy.logits(np.array([0, 1, 0])) == 7 + 1 + 20 + 100 + 2_000 + 3_000
    assert policy.logits(np.array([[1, 1, 1], [0, 0, 0]])).tolist() == [7 + 222 + 8_000, 7 + 111 + 2_000]
    assert policy.words(np.array([0, 1, 0])) == f"{TOKENS[0]} {TOKENS[1]} {TOKENS[0]}"
    assert policy.neighbours == 3


def test_order_of_interactions_is_first_then_second():
    policy = Policy(0, np.zeros((2, 2), dtype=np.int64), np.array([[0, 5], [0, 0]]))
    assert policy.logits(np.array([0, 1])) == 5
    assert policy.logits(np.array([1, 0])) == 0


def test_the_same_seed_makes_the_same_policy():
    assert make_policy(3, 8, 12).sha256 == make_policy(3, 8, 12).sha256
    others = [make_policy(4, 8, 12), make_policy(3, 8, 11), make_policy(3, 7, 12), make_policy(3, 8, 12, 0.5)]
    assert make_policy(3, 8, 12).sha256 not in {other.sha256 for other in others}


def test_made_policies_have_the_spread_that_they_promise():
    for length, interactions in ((4, 0.0), (16, 1.0), (64, 2.0)):
        policies = [make_policy(seed, length, 64, interactions) for seed in range(30)]
        spread = np.std([in_logits(p.weights) for p in policies]) * length**0.5
        assert spread == pytest.approx(1, abs=0.02)
        pairs = np.std([in_logits(p.interactions) for p in policies]) * length**0.5
        assert pairs == pytest.approx(interactions, rel=0.02)


def test_without_interactions_the_table_is_empty_and_the_weights_are_the_same():
    plain, coupled = make_policy(0, 5, 6, 0.0), make_policy(0, 5, 6, 1.0)
    assert not plain.interactions.any()
    assert coupled.interactions.all()
    assert (plain.weights == coupled.weights).all()


def test_tables_cannot_be_changed():
    table = np.zeros((2, 2), dtype=np.int64)
    policy = Policy(0, table, table)
    table[0, 0] = 1
    assert policy.weights[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        policy.weights[0, 0] = 1


@pytest.mark.parametrize(
    ("weights", "interactions"),
    [
        (np.zeros((2, 3)), np.zeros((3, 3), dtype=np.int64)),
        (np.zeros(3, dtype=np.int64), np.zeros((3, 3), dtype=np.int64)),
        (np.zeros((2, 3), dtype=np.int64), np.zeros((2, 2), dtype=np.int64)),
        (np.zeros((2, 1), dtype=np.int64), np.zeros((1, 1), dtype=np.int64)),
        (np.zeros((65, 2), dtype=np.int64), np.zeros((2, 2), dtype=np.int64)),
        (np.zeros((2, 65), dtype=np.int64), np.zeros((65, 65), dtype=np.int64)),
    ],
)
def test_tables_of_other_shapes_or_types_are_refused(weights, interactions):
    with pytest.raises(ValueError, match=r"must be|out of range"):
        Policy(0, weights, interactions)


def test_the_longest_policy_and_all_tokens_work():
    policy = make_policy(1, 64, 64)
    assert len(set(policy.tokens)) == 64
    assert policy.logits(np.array(policy.optimum().sequence)) == policy.optimum().value


def test_tokens_are_short_lower_case_words():
    assert all(token.isascii() and token.islower() and 4 <= len(token) <= 5 for token in TOKENS)


@given(st.integers(-(10**12), 10**12))
def test_millionths_and_logits_are_one_to_one(number):
    assert units(in_logits(np.array(number))) == number
    assert units(number / UNIT) == number


def test_other_objectives_are_refused():
    assert (sign("raise"), sign("lower")) == (1, -1)
    with pytest.raises(ValueError, match="raise, lower"):
        sign("up")
