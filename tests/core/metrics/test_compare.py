import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
from statsmodels.stats.multitest import multipletests

from refusal_core.errors import InputError
from refusal_core.metrics.compare import paired, unpaired
from refusal_core.metrics.flips import mcnemar, tango, tango_tail
from refusal_core.metrics.holm import holm
from refusal_core.metrics.scores import NAMES, Metric, score, value
from tests.core.metrics.cases import any_items, items_of, noisy_items

F1 = Metric("f1", "macro")


def two(n=600, seed=0, groups=None):
    """A candidate that is right a little more often, over the same items."""
    old, new = noisy_items(n, 0.25, seed), noisy_items(n, 0.2, seed)
    return (items_of(s.true, s.predicted, probabilities=s.probabilities, groups=groups) for s in (new, old))


@given(st.integers(0, 200), st.integers(0, 200))
def test_mcnemar_is_statsmodels(worse, better):
    expected = their_mcnemar([[5, worse], [better, 7]], exact=True).pvalue if worse + better else 1.0
    assert mcnemar(worse, better) == pytest.approx(expected, abs=1e-12)


def test_mcnemar_worked_values():
    assert mcnemar(0, 5) == 0.0625 and mcnemar(0, 6) == 0.03125
    assert round(mcnemar(1, 6), 3) == 0.125
    assert round(mcnemar(3, 12), 3) == 0.035
    assert round(mcnemar(12, 9), 2) == 0.66


@settings(max_examples=12)
@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12))
def test_holm_is_statsmodels(p_values):
    there = [p for p in p_values if p is not None]
    expected = iter(multipletests(there, method="holm")[1] if there else [])
    for given_p, adjusted in zip(p_values, holm(p_values), strict=True):
        assert (adjusted is None) == (given_p is None)
        assert adjusted is None or adjusted == pytest.approx(next(expected))


@pytest.mark.parametrize(
    ("worse", "better", "n"), [(0, 0, 40), (1, 6, 60), (3, 12, 400), (0, 9, 9), (9, 0, 9), (25, 20, 50)]
)
def test_tango_is_the_margins_that_are_not_refused(worse, better, n):
    interval = tango(worse, better, n)
    assert -1 <= interval.low <= (better - worse) / n <= interval.high <= 1
    mirrored = tango(better, worse, n)
    assert (mirrored.low, mirrored.high) == pytest.approx((-interval.high, -interval.low), abs=1e-9)
    if interval.low > -1:
        assert tango_tail(worse, better, n, interval.low) == pytest.approx(0.025, abs=1e-6)
    if interval.high < 1:
        assert tango_tail(worse, better, n, interval.high) == pytest.approx(0.975, abs=1e-6)


def test_tango_worked_values():
    # No flip among n: z^2 / (n + z^2) on both sides.
    none = tango(0, 0, 40)
    assert (none.low, none.high) == pytest.approx((-3.8415 / 43.8415, 3.8415 / 43.8415), abs=1e-4)
    assert tango(0, 0, 0) is None


def test_tango_holds_its_level_where_flips_are_few():
    rng = np.random.default_rng(0)
    for worse, better, n in ((0.01, 0.03, 60), (0.02, 0.02, 200), (0.1, 0.2, 40)):
        flips = rng.multinomial(n, [worse, better, 1 - worse - better], size=400)[:, :2]
        intervals = [tango(int(w), int(b), n) for w, b in flips]
        assert np.mean([i.low <= better - worse <= i.high for i in intervals]) >= 0.92


def test_holm_refuses_what_is_no_p():
    for wrong in ([1.1], [-0.1], [float("nan")]):
        with pytest.raises(ValueError):
            holm(wrong)


@given(any_items(), st.data())
def test_flips_and_difference_are_those_of_the_items(baseline, data):
    k, n = len(baseline.labels), len(baseline)
    answers = data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    candidate = items_of(baseline.true, answers, baseline.labels)
    found = paired(candidate, baseline, Metric("accuracy"), resamples=50)
    was, now = baseline.true == baseline.predicted, candidate.true == candidate.predicted
    assert found.worse == tuple(i for i, a, b in zip(baseline.ids, was, now, strict=True) if a and not b)
    assert found.better == tuple(i for i, a, b in zip(baseline.ids, was, now, strict=True) if b and not a)
    assert found.value == pytest.approx((len(found.better) - len(found.worse)) / n)
    assert found.mcnemar_p == mcnemar(len(found.worse), len(found.better))
    assert found.too_few_flips == (len(found.worse) + len(found.better) < 6)
    assert found.interval.low <= found.value <= found.interval.high
    if found.worse == found.better == ():
        assert paired(candidate, baseline, F1).p_at_margin(-0.1) is None or (answers != baseline.predicted).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clustered", [False, True])
def test_positive_is_better_and_swapping_mirrors(name, clustered):
    new, old = two(groups=np.arange(600) // 2 if clustered else None)
    metric = Metric(name, "macro" if name in ("precision", "recall", "f1") else None)
    found, back = paired(new, old, metric, resamples=400), paired(old, new, metric, resamples=400)
    sign = 1 if metric.greater_is_better else -1
    assert found.value == pytest.approx(sign * (value(new, metric) - value(old, metric)))
    assert back.value == pytest.approx(-found.value) and back.worse == found.better
    assert found.interval.low <= found.value <= found.interval.high or name == "ece"
    assert back.interval.high == pytest.approx(-found.interval.low, abs=found.interval.width / 4)
    assert found.candidate == score(new, metric, resamples=400)
    assert (found.mcnemar_p is None) == (name != "accuracy" or clustered)
    for margin, above in ((found.interval.low - 1e-9, True), (found.interval.low + 1e-3, False)):
        assert (found.p_at_margin(margin).above <= 0.025 + 1e-9) == above
    assert found.p_at_margin(found.interval.high + 1e-9).below <= 0.025 + 1e-9


def test_pairing_is_narrower_than_two_samples():
    old = noisy_items(600, 0.2)
    rng = np.random.default_rng(3)
    changed = np.where(rng.random(600) < 0.05, rng.integers(0, 5, 600), old.predicted)
    new = items_of(old.true, changed)
    together, apart = paired(new, old, F1), unpaired(new.matrix, old.matrix, old.labels, F1)
    assert apart.value == pytest.approx(together.value) and not apart.paired and together.paired
    assert apart.interval.width > 1.5 * together.interval.width
    assert apart.worse == () and apart.mcnemar_p is None and apart.p_at_margin(0) is not None


def test_items_are_matched_by_id_and_labels_by_name():
    old = items_of([0, 1, 1, 0], [0, 1, 0, 0], "ab", ids=["w", "x", "y", "z"])
    new = items_of([1, 0, 0, 2], [1, 0, 1, 2], "bac"[1] + "b" + "c", ids=["y", "w", "z", "only here"])
    found = paired(new, old, Metric("accuracy"))
    assert (found.n, found.left_out) == (3, 2)
    assert (found.worse, found.better) == (("z",), ("y",))
    mirrored = items_of([0, 1, 1], [0, 1, 0], "ba", ids=["y", "w", "z"])  # the same in another order of labels
    assert paired(mirrored, old, Metric("accuracy")).worse == ("z",)
    of_class = paired(new, old, Metric("recall", label="b"))
    assert (of_class.n, of_class.better, of_class.worse) == (1, ("y",), ())
    with pytest.raises(InputError, match="another true class"):
        paired(items_of([1], [0], "ab", ids=["w"]), old, F1)
    with pytest.raises(InputError, match="different groups"):
        paired(items_of([0, 0], [0, 0], groups=[1, 1]), items_of([0, 0], [0, 0], groups=[1, 2]), F1)
    nothing = paired(items_of([0], [0], ids=["q"]), old, F1)
    assert (nothing.n, nothing.value, nothing.interval, nothing.left_out) == (0, None, None, 5)


def test_few_items_cost_no_more_than_their_cells(monkeypatch):
    """What the confusion cells tell is drawn as counts: no item is ever listed, however many there are."""
    from refusal_core.metrics.resample import Units

    drawn = []
    monkeypatch.setattr(Units, "_draw_units", lambda *a: pytest.fail("items were drawn one by one"))
    plain = Units._draw_cells
    monkeypatch.setattr(Units, "_draw_cells", lambda u, *a: drawn.append(len(u.count)) or plain(u, *a))
    new, old = two(20_000)
    paired(new, old, F1, resamples=50)
    assert max(drawn) <= 5**3
