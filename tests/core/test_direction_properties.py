"""What must hold for any data: what the test labels may touch, what scale and order may change, what bits repeat."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusal_core.direction import nulls
from refusal_core.direction.fit import fit, margins
from refusal_core.direction.rows import BLOCK_NUMBERS, Rows, block_rows, group_sums, rows_of
from refusal_core.direction.splits import Stacked
from refusal_core.direction.study import Settings, held_out, study
from refusal_core.errors import InputError
from refusal_core.jobs import Job
from tests.activation_files import export, pair, planted

FEW = Settings(repeats=19, split_repeats=2)


def changed(rows: Rows, **values) -> Rows:
    return dataclasses.replace(rows, **values)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([np.float16, np.float32, np.float64]))
def test_test_labels_touch_no_direction_threshold_or_orientation(seed, dtype):
    train, test = pair(seed=seed, signal=0.5, dtype=dtype)
    flipped = dataclasses.replace(test, labels=1 - test.labels)
    ours, mirrored = (study(train, t, FEW) for t in (test, flipped))
    assert ours.unit.tobytes() == mirrored.unit.tobytes()
    assert ours.direction == mirrored.direction
    assert ours.projections.tobytes() == mirrored.projections.tobytes()
    assert mirrored.test.balanced_accuracy == pytest.approx(1 - ours.test.balanced_accuracy)
    assert mirrored.test.auroc == pytest.approx(1 - ours.test.auroc)
    assert mirrored.test.confusion.tp == ours.test.confusion.fp and mirrored.test.confusion.fn == ours.test.confusion.tn
    # The scores of shuffled and random directions mirror too: neither was turned by test labels.
    for one, other in (
        (ours.nulls["shuffled_labels"], mirrored.nulls["shuffled_labels"]),
        (ours.baselines["random_directions"], mirrored.baselines["random_directions"]),
    ):
        assert other.scores == pytest.approx([1 - score for score in one.scores])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(-8, 8), st.floats(-1e3, 1e3))
def test_scaling_and_shifting_change_no_call(seed, exponent, shift):
    train, test = pair(seed=seed, signal=1.0, dtype=np.float64)
    factor = 10.0**exponent
    moved = [
        dataclasses.replace(
            e,
            activations=(e.activations + shift) * factor,
            largest=float(np.abs((e.activations + shift) * factor).max()),
        )
        for e in (train, test)
    ]
    ours, theirs = study(train, test, FEW), study(*moved, FEW)
    assert ours.test.confusion == theirs.test.confusion
    assert ours.test.by_category == theirs.test.by_category
    assert ours.nulls["shuffled_categories"].scores == theirs.nulls["shuffled_categories"].scores
    assert theirs.direction["norm"] == pytest.approx(ours.direction["norm"] * factor)
    np.testing.assert_allclose(theirs.unit, ours.unit, atol=1e-9)


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_float32_near_its_ends_is_scored_as_in_the_middle(factor):
    train, test = pair(signal=1.0)
    ours = study(train, test, FEW)
    moved = [
        dataclasses.replace(e, activations=e.activations * np.float32(factor), largest=e.largest * factor)
        for e in (train, test)
    ]
    theirs = study(*moved, FEW)
    assert ours.test.confusion == theirs.test.confusion
    assert ours.nulls["shuffled_labels"].scores == theirs.nulls["shuffled_labels"].scores
    assert (
        ours.variants["shrunk_covariance"].balanced_accuracy == theirs.variants["shrunk_covariance"].balanced_accuracy
    )


@pytest.mark.parametrize("factor", [0.0, 1e-60, 1e60])
def test_a_test_file_of_quite_another_scale_is_scored_without_overflow(factor):
    """All its rows lie on one side of every threshold, or at the origin: float32 says of them what float64 says."""
    train, test = pair(signal=1.0, dtype=np.float64)
    values = test.activations * factor
    moved = dataclasses.replace(test, activations=values, largest=float(np.abs(values).max()))
    rows, other = rows_of(train), rows_of(moved)
    direction = fit(rows)
    labels = nulls.shuffled_labels(rows, 19, np.random.default_rng(0))
    with np.errstate(all="raise", under="ignore"):
        ours = nulls.scores_of(other, direction, [nulls.fitted(rows, direction, labels, Job())], Job())[0]
    x = rows.values
    for found, own in zip(ours, labels, strict=True):
        m1, m0 = x[own].mean(0), x[~own].mean(0)
        calls = values @ (m1 - m0) >= (m1 - m0) @ (m1 + m0) / 2
        assert found == (calls[test.labels == 1].mean() + (~calls[test.labels == 0]).mean()) / 2


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_rounding_only(seed, random):
    train, test = planted(40, seed=seed, signal=1.0), planted(40, seed=seed + 1, signal=1.0, prefix="test")
    shuffled = []
    for members in (train, test):
        order = list(range(40))
        random.shuffle(order)
        shuffled.append({key: value[order] for key, value in members.items()})
    ours = study(export(train), export(test, "b"), FEW)
    theirs = study(export(shuffled[0]), export(shuffled[1], "b"), FEW)
    np.testing.assert_allclose(theirs.unit, ours.unit, atol=1e-14)
    assert theirs.direction["threshold"] == pytest.approx(ours.direction["threshold"], abs=1e-12)
    assert theirs.test.by_category == ours.test.by_category
    assert theirs.nulls == ours.nulls, "draws follow the ids"
    assert theirs.baselines == ours.baselines and theirs.interval == ours.interval


@pytest.mark.parametrize("run", [study, held_out])
def test_seeds_repeat_to_the_byte(run):
    train, test = pair(signal=0.6)
    assert run(train, test, FEW).to_json() == run(*pair(signal=0.6), FEW).to_json()
    if run is study:
        other = study(train, test, dataclasses.replace(FEW, seed=1))
        assert other.nulls["shuffled_labels"].scores != study(train, test, FEW).nulls["shuffled_labels"].scores
        assert other.direction == study(train, test, FEW).direction


def test_no_section_depends_on_which_others_were_drawn():
    train, test = pair(signal=0.6)
    more = study(train, test, dataclasses.replace(FEW, repeats=38))
    few = study(train, test, FEW)
    assert more.interval == few.interval and more.leakage == few.leakage and more.variants == few.variants
    assert held_out(train, test).leakage == few.leakage


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_planted_direction_is_found(dtype):
    train, test = (
        export(planted(400, 64, seed=k, signal=0.7, categories=20, prefix=f"f{k}", dtype=dtype), f"{k}") for k in (0, 1)
    )
    found = study(train, test, Settings(repeats=199))
    truth = np.zeros(64)
    truth[:16] = 0.25
    assert found.unit @ truth > 0.9
    assert found.test.balanced_accuracy > 0.85 and found.test.auroc > 0.95
    assert found.nulls["shuffled_labels"].p_value == 1 / 200
    assert found.nulls["shuffled_categories"].p_value <= 0.02  # splits along it are among those of whole categories


def test_float16_agrees_with_float64():
    """On the same half-precision numbers the fit is the same to float64's rounding, and the float32 products call every
    row of every shuffled direction alike but those within 1e-5 of a threshold: here none of 40,000.
    """
    half = [export(planted(200, 96, seed=k, signal=0.5, prefix=f"f{k}", dtype=np.float16), f"{k}") for k in (0, 1)]
    wide = [
        export(
            {**planted(200, 96, seed=k, signal=0.5, prefix=f"f{k}"), "activations": h.activations.astype(np.float64)},
            f"{k}",
        )
        for k, h in enumerate(half)
    ]
    ours, theirs = study(*half, Settings(repeats=200)), study(*wide, Settings(repeats=200))
    np.testing.assert_allclose(ours.unit, theirs.unit, atol=1e-15)
    assert ours.projections == pytest.approx(theirs.projections, abs=1e-12)
    assert ours.nulls["shuffled_labels"].scores == theirs.nulls["shuffled_labels"].scores
    assert ours.baselines["random_directions"].scores == theirs.baselines["random_directions"].scores


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_float32_products_stay_near_float64_under_a_massive_offset(dtype):
    """One dimension at 1,000 with spread 10 beside ordinary ones: margins are right to 2e-5 of their spread."""
    rng = np.random.default_rng(0)
    members = planted(300, 50, seed=5, signal=0.5)
    members["activations"][:, 7] = 1_000 + 10 * rng.standard_normal(300)
    members["activations"] = members["activations"].astype(dtype)
    train = rows_of(export(members))
    direction = fit(train)
    labels = nulls.shuffled_labels(train, 30, rng)
    found = nulls.fitted(train, direction, labels, Job())
    x = train.values.astype(np.float64)
    for vector, own in zip(found.vectors, labels, strict=True):
        delta = x[own].mean(0) - x[~own].mean(0)
        spread = (x @ delta).std()
        assert np.abs((x - x.mean(0)) @ (vector / found.scale - delta)).max() < 2e-5 * spread


def test_streamed_blocks_equal_the_whole():
    members = planted(900, 3_000, signal=0.5)
    rows = rows_of(export(members))
    assert rows.n > 2 * block_rows(rows.d) and block_rows(rows.d) * rows.d <= BLOCK_NUMBERS
    sums = group_sums(rows, rows.labels.astype(np.intp), 2, Job())
    x = members["activations"].astype(np.float64)
    for label in (0, 1):
        np.testing.assert_allclose(sums[label], x[members["labels"] == label].sum(0), rtol=1e-12, atol=1e-9)
    direction = fit(rows)
    np.testing.assert_allclose(
        margins(rows, direction.unit, direction.midpoint), (x - direction.midpoint) @ direction.unit, atol=1e-9
    )


def test_every_layout_of_one_file_gives_one_study():
    members = planted(60, signal=1.0)
    test = export(planted(60, seed=1, signal=1.0, prefix="test"), "b")
    studies = []
    for values in (
        members["activations"],
        np.asfortranarray(members["activations"]),
        members["activations"].astype(">f4"),
    ):
        found = study(export({**members, "activations": values}), test, FEW)
        studies.append((found.unit.tobytes(), found.test, found.nulls, found.baselines))
    assert studies[0] == studies[1] == studies[2]


def test_rows_exactly_at_the_threshold_are_refusals_and_counted():
    train = {
        "activations": np.array([[1.0, 0.0], [-1.0, 0.0]]),
        "labels": [1, 0],
        "ids": ["a", "b"],
        "categories": ["x", "y"],
    }
    test = {
        "activations": np.array([[0.0, 5.0], [0.0, -3.0], [2.0, 0.0]]),
        "labels": [1, 0, 1],
        "ids": ["c", "d", "e"],
        "categories": ["z", "z", "z"],
    }
    found = study(export(train), export(test, "test.npz"), FEW)
    assert (found.test.ties, found.test.confusion.tp, found.test.confusion.fp) == (2, 2, 1)
    assert any("2 test rows lie exactly at the threshold" in w for w in found.warnings)


def test_a_stack_of_two_arrays_is_their_concatenation():
    first, second = np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(4, 2).astype(np.float16)
    both, stacked = np.concatenate([first, second]), Stacked(first, second)
    assert stacked.shape == both.shape
    for start in range(7):
        for stop in range(start + 1, 8):
            np.testing.assert_array_equal(stacked[start:stop], both[start:stop])


@given(st.integers(-5, 200_000), st.integers(-5, 5))
def test_settings_are_checked(repeats, seed):
    if 1 <= repeats <= 100_000 and seed >= 0:
        assert Settings(repeats=repeats, seed=seed).repeats == repeats
        return
    with pytest.raises(InputError, match=r"--repeats|--seed"):
        Settings(repeats=repeats, seed=seed)


def test_json_is_strict_whatever_is_undefined():
    train, test = pair()
    one_class = dataclasses.replace(test, labels=np.zeros_like(test.labels))
    for found in (study(train, one_class, FEW), study(train, None, FEW), held_out(train, one_class, FEW)):
        json.loads(found.to_json(), parse_constant=lambda name: pytest.fail(f"{name} was written"))


def test_many_repeats_are_drawn_in_parts_that_change_nothing(monkeypatch):
    """But for shuffles within categories, whose draws go category by category: the parts need only be whole."""
    train, test = pair(n=60, signal=0.6)
    mixed = dataclasses.replace(train, labels=np.random.default_rng(0).permutation(train.labels))
    whole = study(mixed, test, FEW)
    monkeypatch.setattr("refusal_core.direction.plan.TOGETHER", 5)
    parted = study(mixed, test, FEW)
    assert parted.nulls["shuffled_labels"] == whole.nulls["shuffled_labels"]
    assert parted.baselines == whole.baselines
    within = parted.nulls["within_categories"]
    assert within.repeats == 19
    assert min(within.scores) > 0 and abs(within.mean - whole.nulls["within_categories"].mean) < 0.1
