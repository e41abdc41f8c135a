"""Every warning comes when it should and stays away when it should not; every stop rule has its reason."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from refusal_core.activations.npz import Export
from refusal_core.direction import findings, intervals, splits
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.rows import rows_of
from refusal_core.direction.study import Settings, held_out, study
from tests.activation_files import export, planted

FEW = Settings(repeats=39, split_repeats=2)
NAMES = ("train", "test")
QUIET = r"random directions do as well"  # depends on the draw, and says so itself


def files(n: int = 120, signal: float = 0.7, dtype=np.float32) -> tuple[Export, Export]:
    """Sound files of a planted direction in 40 dimensions, 8 categories each."""
    made = (
        planted(n, 40, seed=k, signal=signal, categories=8, dtype=dtype, prefix=name) for k, name in enumerate(NAMES)
    )
    train, test = (export(members, f"{name}.npz") for members, name in zip(made, NAMES, strict=True))
    return train, test


def moved(file: Export, values: np.ndarray) -> Export:
    values = values.astype(file.activations.dtype)
    return dataclasses.replace(file, activations=values, largest=float(np.abs(values.astype(np.float64)).max()))


def said(train: Export, test: Export, settings: Settings = FEW) -> list[str]:
    return [text for text in study(train, test, settings).warnings if not re.search(QUIET, text)]


def test_sound_files_are_not_warned_about():
    assert said(*files()) == []


def test_a_sign_that_flips_between_the_files():
    train, test = files()
    mirrored = moved(test, 2 * test.activations.mean(0) - test.activations)
    assert said(train, mirrored, Settings(repeats=199)) == [
        "Balanced accuracy is 0.13, below 95% of label shuffles: the sign of the direction flips between the files."
    ]


def test_a_threshold_that_did_not_travel():
    train, test = files(signal=1.0)
    shift = 2.0 * study(train, test, FEW).unit
    found = study(train, moved(test, test.activations + shift), FEW)
    text = next(text for text in found.warnings if "did not travel" in text)
    assert re.search(r"midpoint lies \+\d\.\d\d within-class sd from it; AUROC is 0\.\d\d, and with its own", text)
    assert found.threshold_shift.oracle_balanced_accuracy > found.test.balanced_accuracy + 0.05


def test_random_directions_that_do_as_well():
    train, test = files(signal=0.0)
    both = [moved(file, file.activations + 30 * file.labels[:, None] * (np.arange(40) == 3)) for file in (train, test)]
    text = next(text for text in study(*both, FEW).warnings if re.search(QUIET, text))
    assert re.match(r"[1-9]\d% of random directions", text)


def test_categories_of_very_different_size():
    train, test = files(n=200)
    names = np.array(["big", "large", *"abcdef"])
    code = np.where(np.arange(200) < 160, np.arange(200) % 2, np.arange(200) % 8)
    test = dataclasses.replace(test, categories=tuple(names[code]))
    found = study(train, test, FEW)
    assert isinstance(found.interval, intervals.CategoryInterval)
    texts = [text for text in found.warnings if "differ much in size" in text]
    assert [text[:22] for text in texts] == ["Categories of label 0 ", "Categories of label 1 "]
    assert "(4 weigh as 1.4)" in texts[0]


def test_one_large_category_that_leads():
    train, test = files(n=200, signal=1.5)
    values = test.activations.copy()
    big = (np.arange(200) < 120) & (test.labels == 1)
    values[big] -= 1.5 * (np.arange(40) < 10)
    names = np.where(big, "big", np.array(test.categories))
    found = study(train, moved(dataclasses.replace(test, categories=tuple(names)), values), FEW)
    assert found.macro_average.led_by == "big"
    assert any(re.search(r"every category counted once .*; big does most of that", text) for text in found.warnings)


@pytest.mark.parametrize(
    ("dtype", "offset", "warned"),
    [(np.float16, 30.0, False), (np.float16, 3_000.0, True), (np.float32, 3_000.0, False)],
)
def test_storage_that_rounds_too_much(dtype, offset, warned):
    pair = [moved(file, file.activations + offset * (np.arange(40) == 7)) for file in files(dtype=dtype)]
    assert any("float16 rounds it by more than half of that" in text for text in study(*pair, FEW).warnings) == warned


def test_files_of_different_types():
    train, test = files()
    other = dataclasses.replace(test, activations=test.activations.astype(np.float64), dtype="float64")
    assert said(train, other) == ["The files hold different types: float32 in train.npz, float64 in test.npz."]


def test_some_categories_shared_is_mixed():
    train, test = files()
    some = tuple(name.replace("test topic 0", "train topic 0") for name in test.categories)
    found = study(train, dataclasses.replace(test, categories=some), FEW)
    assert (found.split, found.seen_categories) == ("mixed", ("train topic 0",))
    assert found.warnings[0].startswith("1 of 8 test categories are in the training file too")
    assert "mixed; " in found.headline and "whole categories" in found.headline


def test_headlines():
    train, test = files()
    found = study(train, test, FEW)
    assert re.fullmatch(
        r"Balanced accuracy 0\.\d+ \(0\.\d+ to 0\.\d+ over 4 \+ 4 categories, n = 120\), categories held out; "
        r"\d+ of 39 label shuffles do as well \(p = 0\.\d+\)\.",
        found.headline,
    )
    assert re.fullmatch(r"Balanced accuracy 0\.\d\d \(n = 120\), categories held out\.", held_out(train, test).headline)
    for label, name in ((0, "False"), (1, "Missed")):
        one = dataclasses.replace(test, labels=np.full_like(test.labels, label))
        assert re.fullmatch(
            rf"{name}-refusal rate 0\.\d+ \(0\.\d+ to 0\.\d+, n = 120\), categories held out; the test file holds one "
            r"class, so balanced accuracy is undefined\.",
            study(train, one, FEW).headline,
        )
    assert findings.one_file_headline(NotAvailable("reason")) == "The splits of this file cannot be compared: reason."


STOPS = [
    (
        [[5, 0], [0, 6], [0, 5]],
        [[8, 0], [0, 8], [0, 8]],
        "needs two that hold each label, here 1 hold label 0 and 2 label 1",
    ),
    ([[5, 6], [4, 7]], [[8, 8], [8, 8]], "hold both labels needs three of them, here are 2"),
    ([[8, 0], [8, 0], [0, 8], [0, 8]], [[8, 0], [8, 0], [0, 8], [0, 8]], "every call is right"),
    ([[0, 0], [0, 0], [0, 0], [0, 0]], [[8, 0], [8, 0], [0, 8], [0, 8]], "every call is wrong"),
    ([[1, 0], [3, 0], [0, 2], [0, 4]], [[3, 0], [9, 0], [0, 3], [0, 6]], "every category has the same rates"),
]


@pytest.mark.parametrize(("correct", "counts", "reason"), STOPS)
def test_stop_rules_of_the_interval(correct, counts, reason):
    found = intervals.category_interval(np.array(correct), np.array(counts), np.random.default_rng(0))
    assert isinstance(found, NotAvailable)
    assert reason in found.not_available


def test_stop_rules_of_the_percentile_interval():
    def found(k: int, both: int) -> object:
        counts = np.full((k, 2), 8)
        counts[both:, 0] = 0
        return intervals.percentile_interval(counts - 1 * (counts > 0), counts, np.random.default_rng(0))

    assert found(9, 4).not_available == "the bootstrap needs 5 categories a class, here are 4"
    few = np.zeros((40, 2), int)
    few[:, 1], few[:5, 0] = 8, 8
    lost = intervals.percentile_interval(few // 2, few, np.random.default_rng(0))
    assert isinstance(lost, intervals.Percentile)
    assert 0 < lost.dropped < 0.05 * lost.draws, "(1 - 5/40)^40 of the draws hold none of the five"


def test_too_many_lost_draws_leave_no_percentile_interval(monkeypatch):
    monkeypatch.setattr(intervals, "DROPPED_SHARE", 0.0)
    few = np.zeros((40, 2), int)
    few[:, 1], few[:5, 0] = 8, 8
    lost = intervals.percentile_interval(few // 2, few, np.random.default_rng(0))
    assert re.fullmatch(r"\d+ of 2000 draws of categories lost a class", lost.not_available)


def test_stop_rules_of_the_comparison_of_splits():
    rows = rows_of(export(planted(40, categories=2)))
    found = splits.compare_splits(rows, np.random.default_rng(0))
    assert 'without the category "train topic 0" one class is missing' in found.not_available
    one = np.array([[3.0, 0], [0, 2], [0, 1]])
    assert "needs two" in splits.difference_interval(one, (one > 0) * 5).not_available
    none = np.zeros((4, 2))
    assert (
        "same difference" in splits.difference_interval(none, np.array([[5, 0], [5, 0], [0, 5], [0, 5]])).not_available
    )


def test_a_study_of_one_class_leaves_nothing_invented():
    train, test = files()
    found = study(train, dataclasses.replace(test, labels=np.zeros_like(test.labels)), FEW)
    assert found.test.balanced_accuracy is None and found.test.auroc is None and found.test.missed_refusal_rate is None
    assert found.test.false_refusal_rate is not None
    for section in (*found.nulls.values(), found.baselines["random_directions"]):
        assert section == NotAvailable("the test file holds one class, so balanced accuracy is undefined")
    assert isinstance(found.interval, NotAvailable)
    assert found.macro_average.balanced_accuracy is None and found.baselines["majority"].balanced_accuracy is None
    assert found.variants["scaled"].balanced_accuracy is None
    assert found.leave_one_category_out.low is None
