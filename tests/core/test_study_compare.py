"""Two studies of the same examples, and the cosine of two directions between its ceiling and its floor."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusal_core import cli
from refusal_core.direction.compare import compare, sign_flip
from refusal_core.direction.cosine import cosine
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.result import Settings
from refusal_core.direction.study import held_out
from refusal_core.errors import InputError
from tests.activation_files import export, npz_bytes, pair, planted, write

FEW = Settings(repeats=99)


def studied(seed: int = 0, signal: float = 0.6, test_seed: int = 0, test_signal: float = 0.6):
    """A study and its test export; the same `test_seed` gives the same test examples."""
    train, _ = pair(n=96, d=16, categories=8, signal=signal, seed=seed)
    _, test = pair(n=96, d=16, categories=8, signal=test_signal, seed=test_seed)
    return held_out(train, test), test


def test_a_study_against_itself_differs_in_nothing():
    study, test = studied()
    found = compare(study, study, test, test)
    assert found.difference == 0 and found.only_a == found.only_b == ()
    assert isinstance(found.interval, NotAvailable) and found.sign_flip.p_value == 1
    assert found.cosine == pytest.approx(1)
    assert json.loads(found.to_json())["schema"] == "refusal-study-comparison/1"


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 10**5))
def test_the_difference_is_that_of_the_two_scores_and_turns_with_them(seed):
    (a, test), (b, _) = studied(0), studied(seed)
    order = np.random.default_rng(seed).permutation(test.n)
    shuffled = dataclasses.replace(
        test,
        activations=test.activations[order],
        labels=test.labels[order],
        ids=tuple(test.ids[k] for k in order),
        categories=tuple(test.categories[k] for k in order),
    )
    b_shuffled = dataclasses.replace(b, projections=b.projections[order], margins=b.margins[order])
    one, other = compare(a, b, test, test), compare(b_shuffled, a, shuffled, test)
    assert one.difference == pytest.approx(a.test.balanced_accuracy - b.test.balanced_accuracy)
    assert other.difference == pytest.approx(-one.difference)
    assert (one.only_a, one.only_b) == (other.only_b, other.only_a)
    assert other.sign_flip == one.sign_flip
    if not isinstance(one.interval, NotAvailable):
        assert (other.interval.low, other.interval.high) == pytest.approx((-one.interval.high, -one.interval.low))
    for category in one.by_category:
        assert category.both + category.only_a + category.only_b + category.neither == category.n
        assert category.difference == pytest.approx((category.only_a - category.only_b) / category.n)


def test_a_better_direction_is_seen_and_an_equal_one_is_not():
    (good, test), (blind, _), (equal, _) = (
        studied(seed, signal, test_signal=1.2) for seed, signal in ((3, 1.2), (3, 0.0), (9, 1.2))
    )
    found = compare(good, blind, test, test, names=("layer 20", "layer 5"))
    assert found.interval.low > 0 and found.sign_flip.p_value <= 0.05
    assert "(layer 20) against" in found.headline
    assert compare(good, equal, test, test).sign_flip.p_value > 0.05


def test_swapping_whole_categories_lists_all_patterns_or_draws():
    counts = np.full((4, 2), 5)
    sums = np.array([[1, 1], [2, 0], [1, 0], [3, 1]])
    found = sign_flip(sums, counts, np.random.default_rng(0))
    assert (found.p_value, found.patterns, found.smallest_p_value) == (2 / 16, 16, 2 / 16)
    many = sign_flip(np.ones((20, 2)), np.full((20, 2), 5), np.random.default_rng(0))
    assert many.method == "drawn" and 0 < many.p_value < 0.001


def test_other_examples_are_refused_with_counts():
    study, test = studied()
    other_study, other_test = studied(test_seed=7)
    fewer = dataclasses.replace(other_test, ids=tuple(f"new-{k}" for k in range(10)) + other_test.ids[10:])
    with pytest.raises(InputError, match=r"86 ids are in both test.npz \(96\) and this file \(96\)"):
        compare(study, other_study, test, fewer)
    flipped = dataclasses.replace(other_test, labels=np.where(np.arange(96) < 5, 1 - test.labels, test.labels))
    with pytest.raises(InputError, match="5 of 96 examples differ"):
        compare(study, other_study, test, flipped)
    with pytest.raises(InputError, match="not of this test file"):
        compare(study, study, other_test, test)


def test_one_class_has_no_difference():
    train, test = pair(n=96, d=16, categories=8)
    ones = planted(24, 16, categories=1, prefix="test")
    one_class = export({**ones, "labels": np.zeros(24, int)}, "test.npz")
    study = held_out(train, one_class)
    found = compare(study, study, one_class, one_class)
    assert found.difference is None and "one class" in found.headline


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**5))
def test_equal_directions_reach_the_ceiling_and_unrelated_ones_the_floor(seed):
    options = {"n": 400, "d": 32, "categories": 8, "signal": 0.5}
    a, b = (export(planted(seed=2 * seed + k, prefix=f"set{k}", **options), f"{k}.npz") for k in (0, 1))
    same = cosine(a, b, FEW)
    assert same.cosine == pytest.approx(same.ceiling.value, abs=0.2) and same.ceiling.value > 0.7
    turned = planted(seed=2 * seed + 1, prefix="set2", **options)
    turned["activations"] = np.ascontiguousarray(turned["activations"][:, ::-1])
    other = cosine(a, export(turned, "turned.npz"), FEW)
    assert abs(other.cosine) < other.ceiling.value - 0.3
    assert other.floor.p_value > same.floor.p_value
    assert all(-1.000001 <= score <= 1.000001 for score in same.floor.scores)
    assert same.random_sd == pytest.approx(32**-0.5) and same.shared_ids == 0


def test_a_cosine_is_symmetric_and_repeats():
    a, b = (export(planted(96, 16, seed=k, prefix=f"set{k}", categories=6), f"{k}.npz") for k in (0, 1))
    one, other = cosine(a, b, FEW), cosine(b, a, FEW)
    assert one.cosine == pytest.approx(other.cosine) and one.score_correlation == pytest.approx(other.score_correlation)
    assert one.to_json() == cosine(a, b, FEW).to_json()
    itself = cosine(a, a, FEW)
    assert itself.cosine == pytest.approx(1) and set(np.round(itself.floor.scores, 6)) == {1.0}
    assert any("same file" in warning for warning in itself.warnings)


def test_few_categories_are_split_by_rows_and_said():
    a, b = (export(planted(96, 16, seed=k, prefix=f"set{k}", categories=2), f"{k}.npz") for k in (0, 1))
    found = cosine(a, b, FEW)
    assert found.ceiling.a.by == "rows" and found.floor.method.startswith("rows")
    assert any("too few categories" in warning for warning in found.warnings)
    with pytest.raises(InputError, match="8 dimensions"):
        cosine(a, export(planted(96, 8), "b.npz"), FEW)


def test_the_commands(tmp_path, capsys):
    members = [planted(96, 16, seed=k, prefix=p, categories=8) for k, p in enumerate(("train", "test", "train"))]
    for each in members:
        each["activations"] = np.stack([each["activations"], each["activations"] + 0.1], 1)
    train, test, other = (str(write(tmp_path, f"{k}.npz", npz_bytes(m))) for k, m in enumerate(members))
    assert cli.main(["compare-studies", train, test, "--layer-index", "0", "--other-layer-index", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["difference"] == 0 and found["a"]["extraction"]["layer"] == "not stated"
    assert cli.main(["compare-studies", train, test, "--layer-index", "0", "--other-layer-index", "0"]) == 2
    assert cli.main(["compare-studies", train, test, other, "--layer-index", "0"]) == 2
    capsys.readouterr()
    assert cli.main(["compare-studies", train, test, "--layer-index", "1"]) == 2
    assert "both studies are the same" in capsys.readouterr().err
    flat = str(write(tmp_path, "flat.npz", npz_bytes({**members[2], "activations": members[2]["activations"][:, 0]})))
    found = []
    for second in ([other, "--other-layer-index", "0"], [other], [flat]):
        assert cli.main(["cosine", train, *second, "--layer-index", "0", "--repeats", "50"]) == 0
        out, err = capsys.readouterr()
        assert json.loads(out)["headline"] in err
        found.append(json.loads(out)["cosine"])
    assert len(set(found)) == 1
