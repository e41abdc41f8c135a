import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from sklearn.metrics import f1_score

from refusal_core.metrics.intervals import (
    Interval,
    Rate,
    digits_for,
    f1_interval,
    f1_rate,
    format_rate,
    rate,
    wilson,
)

LEVELS = st.floats(0.5, 0.999)


@st.composite
def successes_of(draw, most=100_000):
    n = draw(st.integers(1, most))
    return draw(st.integers(0, n)), n


@given(successes_of(), LEVELS)
def test_wilson_is_scipys(case, level):
    successes, n = case
    expected = binomtest(successes, n).proportion_ci(level, method="wilson")
    ours = wilson(successes, n, level)
    assert ours.low == pytest.approx(expected.low, abs=1e-12)
    assert ours.high == pytest.approx(expected.high, abs=1e-12)
    assert (ours.level, ours.method) == (level, "wilson")


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(26, 32, 0.647, 0.911), (19, 20, 0.764, 0.991), (180, 200, 0.851, 0.934), (1, 1, 0.207, 1.0)],
)
def test_wilson_published_values(successes, n, low, high):
    ours = wilson(successes, n)
    assert (round(ours.low, 3), round(ours.high, 3)) == (low, high)


@given(successes_of())
def test_wilson_holds_the_rate_and_mirrors(case):
    successes, n = case
    ours, mirrored = wilson(successes, n), wilson(n - successes, n)
    assert 0 <= ours.low <= successes / n <= ours.high <= 1
    assert (ours.low == 0) == (successes == 0)
    assert (ours.high == 1) == (successes == n)
    assert ours.low == pytest.approx(1 - mirrored.high, abs=1e-12)


@given(successes_of(), LEVELS, LEVELS)
def test_a_higher_level_is_wider(case, one, other):
    lower, higher = (wilson(*case, level) for level in sorted((one, other)))
    assert higher.low <= lower.low and lower.high <= higher.high


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 10_000), LEVELS)
def test_f1_interval_holds_f1_and_rises_with_tp(tp, fp, fn, level):
    if tp + fp + fn == 0:
        assert f1_interval(tp, fp, fn, level) is None
        return
    ours, better = f1_interval(tp, fp, fn, level), f1_interval(tp + 1, fp, fn, level)
    f1 = 2 * tp / (2 * tp + fp + fn)
    assert 0 <= ours.low <= f1 + 1e-15 and f1 - 1e-15 <= ours.high <= 1
    assert better.low > ours.low
    assert better.high > ours.high or ours.high == 1.0
    if fp:
        fewer = f1_interval(tp, fp - 1, fn, level)
        assert fewer is None or (fewer.low >= ours.low and fewer.high >= ours.high)
    assert f1_interval(tp, fn, fp, level) == ours


@pytest.mark.parametrize("m", [10, 40, 200])
def test_f1_interval_covers_f1_as_often_as_its_level_says(m):
    """Exact: TP is binomial (m, J) given m = TP + FP + FN. Wilson's coverage is right on average over J."""
    tp = np.arange(m + 1)
    intervals = [f1_interval(int(k), m - int(k), 0) for k in tp]
    low, high = (np.array([getattr(i, end) for i in intervals]) for end in ("low", "high"))
    covered = []
    for j in np.linspace(0.02, 0.98, 193):
        f1 = 2 * j / (1 + j)
        covered.append(binom.pmf(tp, m, j)[(low <= f1) & (f1 <= high)].sum())
    assert 0.945 < np.mean(covered) < 0.965
    assert min(covered) > 0.80


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_f1_rate_is_scikit_learns(pairs):
    true, predicted = zip(*pairs, strict=True)
    tp = sum(t and p for t, p in pairs)
    ours = f1_rate(tp, sum(predicted) - tp, sum(true) - tp)
    if ours.value is None:
        assert not any(true) and not any(predicted) and ours.n == 0 and ours.interval is None
    else:
        assert ours.value == pytest.approx(f1_score(true, predicted, zero_division=0))


def test_undefined_is_none_and_not_zero():
    assert wilson(0, 0) is None
    assert f1_interval(0, 0, 0) is None
    assert rate(0, 0) == Rate(None, 0, None)
    assert format_rate(rate(0, 0)) == "undefined (n = 0)"
    assert rate(0, 5).value == 0.0


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: wilson(3, 2), ValueError),
        (lambda: wilson(-1, 2), ValueError),
        (lambda: wilson(0, -1), ValueError),
        (lambda: wilson(1.0, 2), TypeError),
        (lambda: wilson("1", 2), TypeError),
        (lambda: wilson(1, 2, 0), ValueError),
        (lambda: wilson(1, 2, 1), ValueError),
        (lambda: wilson(1, 2, 95), ValueError),
        (lambda: wilson(1, 2, math.nan), ValueError),
        (lambda: wilson(0, 0, 2), ValueError),
        (lambda: f1_interval(1, -1, 0), ValueError),
        (lambda: f1_rate(1, 0.5, 0), TypeError),
        (lambda: Interval(0.5, 0.4, 0.95, "m"), ValueError),
        (lambda: Interval(math.nan, 0.4, 0.95, "m"), ValueError),
        (lambda: Interval(0.1, math.inf, 0.95, "m"), ValueError),
        (lambda: Interval("0.1", 0.4, 0.95, "m"), TypeError),
        (lambda: Interval(None, 0.4, 0.95, "m"), TypeError),
        (lambda: Interval(0.1, True, 0.95, "m"), TypeError),
        (lambda: Interval(0.1, 0.4, 1.0, "m"), ValueError),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    with pytest.raises(error):
        call()


def test_numpy_counts_are_taken_and_plain_numbers_come_back():
    ours = rate(np.int64(3), np.int32(4))
    assert ours == rate(3, 4)
    assert type(ours.value) is float and type(ours.n) is int and type(ours.interval.low) is float
    assert type(Interval(np.float32(0.5), 1, 0.95, "m").low) is float
    assert Interval(-1, 1, 0.95, "m").width == 2


def test_the_house_form():
    assert str(Rate(0.84, 480, Interval(0.79, 0.88, 0.95, "any"))) == "0.84 (0.79 to 0.88, n = 480)"
    assert format_rate(rate(26, 32)) == "0.81 (0.65 to 0.91, n = 32)"
    assert format_rate(rate(26, 32), digits=4) == "0.8125 (0.6469 to 0.9111, n = 32)"
    assert format_rate(rate(3, 1_000_000)) == "0.000003 (0.000001 to 0.000009, n = 1,000,000)"
    assert format_rate(Rate(0.5, 7, None)) == "0.50 (n = 7)"


@given(successes_of(most=1_000_000))
def test_shown_ends_stay_apart(case):
    ours = rate(*case)
    value, low, high = (float(x) for x in re.findall(r"[0-9]+\.[0-9]+", format_rate(ours)))
    assert low <= value <= high and low < high
    digits = digits_for(ours.interval.width)
    assert 2 <= digits <= 6
    assert abs(value - ours.value) <= 0.5000001 * 10**-digits
