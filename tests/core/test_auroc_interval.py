"""The interval of the AUROC over categories: against plain loops, at its edges, for any data, and in simulation."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from refusal_core.direction import intervals
from refusal_core.direction.auroc_interval import auroc_interval, placements, resampled_aurocs
from refusal_core.direction.findings import auroc_short, auroc_words
from refusal_core.direction.intervals import CategoryInterval, NotAvailable
from refusal_core.direction.record import record_of, study_of
from refusal_core.direction.rows import Rows
from refusal_core.direction.scores import auroc
from refusal_core.direction.study import Settings, held_out, study
from tests.activation_files import pair

FEW = Settings(repeats=9, split_repeats=2)


def rows(labels: np.ndarray, code: np.ndarray) -> Rows:
    """Test rows without activations: the interval needs labels and categories only."""
    n, names = len(labels), tuple(f"c{k:04d}" for k in range(int(code.max()) + 1))
    ids = tuple(map(str, range(n)))
    return Rows("test", np.zeros((n, 1)), labels.astype(np.int8), names, code, ids, np.arange(n), 1.0)


def interval_of(values, labels, code, seed: int = 0) -> CategoryInterval | NotAvailable:
    return auroc_interval(rows(np.array(labels), np.array(code)), np.array(values, float), np.random.default_rng(seed))


def drawn(kind: str, seed: int, *, categories: int = 12, tied: bool = False) -> tuple[np.ndarray, Rows]:
    """Values of rows whose categories shift them, and the rows; categories hold one label, both, or some both."""
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(categories), rng.integers(3, 12, categories))
    labels = rng.integers(0, 2, len(code))
    if kind != "two labels":
        alone = code < (categories if kind == "one label" else categories // 2)
        labels = np.where(alone, code % 2, labels)
    values = rng.normal(0, 0.6, categories)[code] + labels + rng.standard_normal(len(code))
    return np.round(values) if tied else values, rows(labels, code)


def pairs_won(values: np.ndarray, labels: np.ndarray) -> float:
    """The AUROC pair by pair."""
    ones, zeros = values[labels == 1], values[labels == 0]
    return sum((a > b) + (a == b) / 2 for a in ones for b in zeros) / (len(ones) * len(zeros))


KINDS = ["one label", "two labels", "some both"]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bootstrap_is_that_of_a_plain_loop(kind, tied):
    """The same categories drawn, rows written out one by one, pairs counted one by one."""
    values, test = drawn(kind, 5, tied=tied)
    counts, k = test.cells(), len(test.categories)
    draws = intervals.drawn_categories(counts, np.random.default_rng(7), 120)
    found = resampled_aurocs(test, values, draws)
    again = np.random.default_rng(7)
    groups = [np.flatnonzero(counts[:, label]) for label in (0, 1)] if kind == "one label" else [np.arange(k)]
    weights = [again.multinomial(len(g), np.full(len(g), 1 / len(g)), size=120) for g in groups]
    plain, dropped = [], 0
    for draw in range(120):
        picked = [
            row
            for g, w in zip(groups, weights, strict=True)
            for category, times in zip(g, w[draw], strict=True)
            for _ in range(times)
            for row in np.flatnonzero(test.code == category)
        ]
        if len(set(test.labels[picked].tolist())) < 2:
            dropped += 1
            continue
        plain.append(pairs_won(values[picked], test.labels[picked]))
    assert found == pytest.approx(plain) and draws.dropped == dropped
    percentile = draws.percentile(found, 0.95)
    assert (percentile.low, percentile.high) == pytest.approx(tuple(np.quantile(plain, [0.025, 0.975])))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_is_that_of_the_formula_category_by_category(kind, tied):
    for seed in range(12):
        values, test = drawn(kind, seed, tied=tied)
        labels = test.labels
        value = pairs_won(values, labels)
        share = [
            np.mean([(v > u) + (v == u) / 2 if label else (u > v) + (u == v) / 2 for u in values[labels != label]])
            for v, label in zip(values, labels, strict=True)
        ]
        assert placements(values, labels) == pytest.approx(share)
        held = [len(set(test.code[labels == label].tolist())) for label in (0, 1)]
        size = [int((labels == label).sum()) for label in (0, 1)]
        variance, parts = 0.0, [0.0, 0.0]
        for k in range(len(test.categories)):
            each = [0.0, 0.0]
            for row in np.flatnonzero(test.code == k):
                label = int(labels[row])
                each[label] += math.sqrt(held[label] / (held[label] - 1)) * (share[row] - value) / size[label]
            variance += sum(each) ** 2
            parts = [parts[label] + each[label] ** 2 for label in (0, 1)]
        both = [len(set(labels[test.code == k].tolist())) == 2 for k in range(len(test.categories))]
        freedom = len(both) - 1 if all(both) else min(held) - 1
        if not any(both):
            freedom = min(sum(parts) ** 2 / sum(parts[i] ** 2 / (held[i] - 1) for i in (0, 1)), sum(held) - 2)
        half = student.ppf(0.975, freedom) * math.sqrt(variance) / (value * (1 - value))
        odds = math.log(value / (1 - value))
        found = auroc_interval(test, values, np.random.default_rng(0))
        assert found.degrees_of_freedom == pytest.approx(freedom)
        assert (found.low, found.high) == pytest.approx(
            (1 / (1 + math.exp(half - odds)), 1 / (1 + math.exp(-half - odds)))
        )
        assert found.categories_per_class == {"0": held[0], "1": held[1]}


def test_one_row_a_category_is_the_variance_of_delong():
    """Without categories to speak of it is DeLong's variance of an AUROC, from the two samples of placements."""
    rng = np.random.default_rng(2)
    labels = np.arange(60) % 2
    values = labels + rng.standard_normal(60)
    found = auroc_interval(rows(labels, np.arange(60)), values, np.random.default_rng(0))
    share = placements(values, labels)
    error = math.sqrt(sum(share[labels == label].var(ddof=1) / 30 for label in (0, 1)))
    value = auroc(values, labels)
    half = student.ppf(0.975, found.degrees_of_freedom) * error / (value * (1 - value))
    assert math.log(found.high / (1 - found.high)) - math.log(value / (1 - value)) == pytest.approx(half)


STOPS = [
    ([0, 0, 0, 0], [0, 0, 1, 1], "needs two that hold each label, here 2 hold label 0 and 0 label 1"),
    ([0, 1, 0, 1], [0, 0, 0, 0], "needs two that hold each label, here 1 hold label 0 and 1 label 1"),
    ([0, 1, 0, 1], [0, 0, 1, 1], "hold both labels needs three of them, here are 2"),
    ([0, 0, 1, 1], [0, 1, 2, 3], "every row of label 1 lies above every row of label 0"),
    ([1, 1, 0, 0], [0, 1, 2, 3], "every row of label 1 lies below every row of label 0"),
]


@pytest.mark.parametrize(("labels", "code", "reason"), STOPS)
def test_stop_rules(labels, code, reason):
    found = interval_of(range(len(labels)), labels, code)
    assert isinstance(found, NotAvailable) and reason in found.not_available


def test_no_spread_is_no_interval():
    found = interval_of([5, 5, 5, 5, 5], [0, 0, 1, 1, 1], [0, 1, 2, 3, 3])
    assert found == NotAvailable("every category ranks alike, so categories show no spread")


def test_too_few_categories_give_both_intervals_the_same_reason():
    counts = np.array([[8, 0], [0, 8], [0, 8]])
    other = intervals.category_interval(counts - 1 * (counts > 0), counts, np.random.default_rng(0))
    code = np.repeat([0, 1, 2], 8)
    assert interval_of(np.arange(24) % 5, code > 0, code) == other


def test_few_categories_leave_the_interval_without_a_bootstrap():
    values, test = drawn("one label", 1, categories=8)
    found = auroc_interval(test, values, np.random.default_rng(0))
    assert found.percentile == NotAvailable("the bootstrap needs 5 categories a class, here are 4")


ROW = st.tuples(st.integers(-6, 6), st.integers(0, 1), st.integers(0, 11))
RISING = [lambda x: x**3 + 2 * x, lambda x: np.exp(x), lambda x: 1e-3 * x - 1e6, lambda x: np.arctan(x)]


@settings(max_examples=150, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=60), st.sampled_from(RISING), st.integers(0, 3))
def test_it_lies_in_0_to_1_and_ranks_alone_count(made, rising, seed):
    values, labels, code = (np.array(column) for column in zip(*made, strict=True))
    code = np.unique(code, return_inverse=True)[1]
    found = interval_of(values, labels, code, seed)
    assert interval_of(rising(values.astype(float)), labels, code, seed) == found
    if isinstance(found, NotAvailable):
        assert found.not_available
        return
    assert 0 <= found.low <= auroc(values.astype(float), labels) <= found.high <= 1
    if not isinstance(found.percentile, NotAvailable):
        assert 0 <= found.percentile.low <= found.percentile.high <= 1
    # Turned round, it is the mirror image.
    mirrored = interval_of(-values, labels, code, seed)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low))


def covered(kind: str, k: int, runs: int, seed: int) -> float:
    """How often the interval holds the true AUROC; categories shift their rows, 30 a category and label.

    Of a row that is normal with a category effect of sd 0.5 and mean `shift` by label, the AUROC over new categories is
    Phi(shift / sqrt(2 (1 + 0.25))). A category's two labels are shifted apart from each other.
    """
    rng, effect, shift, hits = np.random.default_rng(seed), 0.5, 1.2, 0
    true = norm.cdf(shift / math.sqrt(2 * (1 + effect**2)))
    code = np.repeat(np.arange(2 * k if kind == "one label" else k), 30 if kind == "one label" else 60)
    labels = code % 2 if kind == "one label" else np.arange(len(code)) % 2
    counts = rows(labels, code).cells()
    test = rows(labels, code)
    for _ in range(runs):
        effects = rng.normal(0, effect, (int(code.max()) + 1, 2))
        values = effects[code, labels] + shift * labels + rng.standard_normal(len(code))
        value = auroc(values, labels)
        variance, freedom = intervals.cluster_variance(test.cells(placements(values, labels)), counts)
        found = intervals.cluster_t(value, 4 * variance, freedom, counts, NotAvailable("not drawn"), 0.95)
        hits += found.low <= true <= found.high
    return hits / runs


@pytest.mark.parametrize("kind", ["one label", "two labels"])
@pytest.mark.parametrize("k", [4, 8, 20])
def test_it_covers_its_level_from_four_categories_a_class(kind, k):
    """300 runs: a standard error of 0.013."""
    assert 0.91 <= covered(kind, k, 300, seed=31) <= 0.99


def test_the_other_draws_do_not_move(monkeypatch):
    """The bootstrap of the AUROC has a stream of its own: every other number is what it was without it."""
    train, test = pair(n=60, categories=12, signal=0.5)
    whole = json.loads(study(train, test, FEW).to_json())
    monkeypatch.setattr("refusal_core.direction.study.auroc_interval", lambda *args: NotAvailable("left out"))
    without = json.loads(study(train, test, FEW).to_json())
    assert "low" in whole.pop("auroc_interval")["percentile"]
    assert without.pop("auroc_interval") == {"not_available": "left out"} and whole == without


def test_the_words():
    train, test = pair(n=60, categories=8, signal=0.3)
    found = study(train, test, FEW)
    interval, n = found.auroc_interval, test.n
    short = auroc_short(found.test.auroc, interval)
    assert auroc_words(vars(found)) == f"{short[:-1]} over 4 + 4 categories, n = {n})"
    without = f"{found.test.auroc:.2f} (n = {n}; no interval: the held-out analysis does not draw)"
    assert auroc_words(vars(held_out(train, test))) == without
    one = dataclasses.replace(test, labels=np.zeros_like(test.labels))
    assert auroc_words(vars(study(train, one, FEW))) == (
        f"undefined (n = {n}; no interval: an interval over categories needs two that hold each label, here 8 hold "
        "label 0 and 0 label 1)"
    )


def test_a_study_stored_before_there_was_one_still_opens():
    train, test = pair(n=60, categories=8, signal=0.3)
    result = study(train, test, FEW)
    sections = json.loads(record_of(result, None, command="c", title="t").text)
    del sections["auroc_interval"]
    again = study_of(sections, unit=result.unit, margins=result.margins)
    assert again.interval == result.interval and again.test == result.test
    assert again.auroc_interval == NotAvailable("the study was stored before there was one")
