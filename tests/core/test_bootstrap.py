import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from refusal_core.metrics.bootstrap import METHOD, bootstrap_means

WHOLE = st.lists(st.integers(-1000, 1000), min_size=2, max_size=30).filter(lambda v: len(set(v)) > 1)


def one(values, **options):
    return bootstrap_means(np.array(values, dtype=float)[:, None], resamples=500, **options)[0]


@given(WHOLE)
def test_the_mean_of_resamples_stays_within_the_data(values):
    interval = one(values)
    assert min(values) <= interval.low < interval.high <= max(values)
    assert (interval.level, interval.method) == (0.95, METHOD)


@given(WHOLE, st.integers(-50, 50), st.sampled_from([2, 4, 0.5]))
def test_it_moves_and_scales_with_the_data(values, shift, scale):
    plain, moved = one(values), one([scale * (v + shift) for v in values])
    assert moved.low == pytest.approx(scale * (plain.low + shift), abs=1e-9)
    assert moved.high == pytest.approx(scale * (plain.high + shift), abs=1e-9)


@given(WHOLE)
def test_a_higher_level_is_wider(values):
    narrow, wide = one(values, level=0.8), one(values, level=0.99)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


@given(WHOLE, WHOLE)
def test_columns_do_not_change_each_other_and_share_the_resamples(a, b):
    n = min(len(a), len(b))
    both = np.array([a[:n], b[:n], a[:n]], dtype=float).T
    found = bootstrap_means(both, resamples=200)
    assert found[0] == found[2] == bootstrap_means(both[:, :1], resamples=200)[0]
    assert found[1] == bootstrap_means(both[:, 1:2], resamples=200)[0]


def test_the_size_of_blocks_changes_nothing(monkeypatch):
    values = np.random.default_rng(0).integers(0, 100, (20, 3))
    whole = bootstrap_means(values, resamples=100)
    monkeypatch.setattr("refusal_core.metrics.bootstrap._CELLS", 20 * 7)
    assert bootstrap_means(values, resamples=100) == whole


@pytest.mark.parametrize("n", [2, 3, 8, 40])
def test_ends_are_the_expanded_quantiles_of_the_resampled_means(n):
    values = np.random.default_rng(n).integers(0, 1_000, n).astype(float)
    drawn = np.random.default_rng(5).integers(n, size=(700, n))
    tail = stats.norm.cdf(stats.t.ppf(0.05, n - 1) * np.sqrt(n / (n - 1)))
    expected = np.quantile(values[drawn].mean(axis=1), [tail, 1 - tail])
    interval = bootstrap_means(values[:, None], seed=5, resamples=700, level=0.9)[0]
    assert [interval.low, interval.high] == pytest.approx(expected)


def test_it_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    samples = rng.exponential(size=(15, 600))
    intervals = bootstrap_means(samples, resamples=1_000)
    covered = sum(i.low <= 1 <= i.high for i in intervals)
    plain_t = stats.t.interval(0.95, 14, samples.mean(axis=0), stats.sem(samples, axis=0))
    by_t = ((plain_t[0] <= 1) & (plain_t[1] >= 1)).sum()
    assert 0.88 * 600 < covered < 0.97 * 600
    assert covered > by_t - 20


def test_many_values_give_the_normal_interval():
    values = np.random.default_rng(2).normal(3, 2, 4_000)
    interval = bootstrap_means(values[:, None])[0]
    half = 1.96 * values.std(ddof=1) / 4_000**0.5
    assert interval.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_no_interval_where_there_is_no_spread():
    assert bootstrap_means(np.array([[5.0, 1.0]])) == [None, None]
    equal, different = bootstrap_means(np.array([[5.0, 1.0], [5.0, 2.0], [5.0, 3.0]]))
    assert equal is None
    assert different is not None


def test_the_same_seed_gives_the_same_interval_and_another_one_does_not():
    values = list(range(20))
    assert one(values, seed=3) == one(values, seed=3)
    assert one(values, seed=3) != one(values, seed=4)


@pytest.mark.parametrize("columns", [np.zeros(3), np.zeros((0, 2)), np.array([[np.nan], [1.0]]), np.zeros((2, 2, 2))])
def test_other_shapes_and_numbers_are_refused(columns):
    with pytest.raises(ValueError, match="finite numbers of shape"):
        bootstrap_means(columns)
