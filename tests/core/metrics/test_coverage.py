"""How often intervals hold the truth, simulated with a fixed seed. The nominal level is 0.95."""

import numpy as np
import pytest

from refusal_core.metrics.compare import paired
from refusal_core.metrics.scores import Metric, score, score_matrix, value
from tests.core.metrics.cases import items_of

SIZES = np.array([60, 15, 10, 8, 7])


def confusion(recalls):
    wrong = np.full((5, 5), 0.5)
    wrong[:, 0] = 2
    np.fill_diagonal(wrong, 0)
    rates = wrong / wrong.sum(axis=1, keepdims=True) * (1 - np.array(recalls))[:, None]
    return rates + np.diag(recalls)


@pytest.mark.parametrize("metric", [Metric("f1", "macro"), Metric("mcc"), Metric("balanced_accuracy")])
@pytest.mark.parametrize("recalls", [(0.95, 0.85, 0.7, 0.8, 0.75), (0.98, 0.95, 0.9, 0.9, 0.9)])
def test_scores_of_a_hundred_items(metric, recalls):
    rng, rates = np.random.default_rng(0), confusion(recalls)
    million = np.round(rates * SIZES[:, None] * 10_000).astype(int)
    truth = score_matrix(million, "abcde", metric, resamples=2).value
    above = below = 0
    for _ in range(200):
        matrix = np.array([rng.multinomial(n, p) for n, p in zip(SIZES, rates, strict=True)])
        interval = score_matrix(matrix, "abcde", metric, resamples=400).interval
        if interval is not None:  # none where everything is right, which decides nothing
            above += interval.low > truth
            below += interval.high < truth
    assert above + below <= 0.12 * 200 and above <= 0.08 * 200


def test_a_paired_difference_and_its_tail():
    rng = np.random.default_rng(1)
    metric = Metric("f1", "macro")

    def pair(times):
        true = np.repeat(np.arange(5), SIZES * times)
        n = len(true)
        old = np.where(rng.random(n) < 0.8, true, rng.integers(0, 5, n))
        new = np.where(rng.random(n) < 0.85, old, np.where(rng.random(n) < 0.9, true, rng.integers(0, 5, n)))
        return items_of(true, new), items_of(true, old)

    new, old = pair(3_000)
    truth = value(new, metric) - value(old, metric)
    outside, small = 0, 0
    for _ in range(200):
        found = paired(*pair(1), metric, resamples=400)
        if found.interval is None:  # no flip
            continue
        outside += not found.interval.low <= truth <= found.interval.high
        small += found.p_at_margin(truth).above < 0.05  # the null, at its edge
    assert outside <= 0.10 * 200
    assert 0.01 * 200 <= small <= 0.10 * 200


def test_clusters_that_go_together():
    rng = np.random.default_rng(2)
    metric = Metric("accuracy")
    alone = outside = 0
    for _ in range(150):
        size = rng.integers(1, 7, 40)
        group = np.repeat(np.arange(40), size)
        true = np.repeat(rng.integers(0, 5, 40), size)
        right = rng.random(len(true)) < np.repeat(rng.beta(2, 0.5, 40), size)  # 0.8 on average
        answers = np.where(right, true, (true + 1) % 5)
        for groups in (group, None):
            interval = score(items_of(true, answers, groups=groups), metric, resamples=300).interval
            missed = not interval.low <= 0.8 <= interval.high
            outside, alone = (outside + missed, alone) if groups is not None else (outside, alone + missed)
    assert outside <= 0.12 * 150
    assert alone >= 1.5 * outside  # items taken as independent promise too much
