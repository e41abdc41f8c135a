"""A 95% verdict errs at most about one time in twenty: simulated where it is hardest, with the bound at the true value.

There every pass and every fail is an error (of a checkpoint a hair to the other side): only "inconclusive" is right.
"""

from __future__ import annotations

import numpy as np
import pytest

from refusal_core.metrics.compare import paired
from refusal_core.metrics.intervals import wilson
from refusal_core.metrics.items import Items
from refusal_core.metrics.metric import Metric
from refusal_core.metrics.scores import score
from refusal_core.scorecard.quality import no_flip_interval
from refusal_core.scorecard.verdicts import Bound, against

FIVE_PER_CENT = 0.05


def share_of_errors(verdicts: list[str]) -> float:
    return sum(verdict != "inconclusive" for verdict in verdicts) / len(verdicts)


def allowed(runs: int) -> float:
    """5% and what chance may add in so many runs (three standard errors)."""
    return FIVE_PER_CENT + 3 * (FIVE_PER_CENT * 0.95 / runs) ** 0.5


@pytest.mark.parametrize(("n", "p"), [(40, 0.8), (200, 0.95), (1_000, 0.5)])
def test_a_proportion(n, p):
    rng = np.random.default_rng(n)
    right = rng.binomial(n, p, size=4_000)
    intervals = {k: wilson(int(k), n) for k in np.unique(right)}
    verdicts = [against(k / n, intervals[k], Bound(p), n=n).verdict for k in right]
    assert 0.01 < share_of_errors(verdicts) < allowed(4_000) + 0.015  # Wilson's coverage wavers by about a point


def items(rng, sizes, matrix, n_labels=3) -> Items:
    true = np.repeat(np.arange(n_labels), sizes)
    predicted = np.concatenate([rng.choice(n_labels, size=size, p=matrix[k]) for k, size in enumerate(sizes)])
    return Items(tuple("abc"), tuple(map(str, range(len(true)))), true, predicted)


MATRIX = np.array([[0.85, 0.1, 0.05], [0.15, 0.75, 0.1], [0.05, 0.15, 0.8]])
SIZES = (120, 60, 40)


def macro_f1(counts) -> float:
    tp = np.diag(counts)
    return float(np.mean(2 * tp / (counts.sum(axis=0) + counts.sum(axis=1))))


def test_macro_f1():
    """The bootstrap: the truth is the F1 of the expected confusion."""
    truth = macro_f1(MATRIX * np.array(SIZES)[:, None])
    rng, metric, runs = np.random.default_rng(1), Metric("f1", average="macro"), 300
    verdicts = []
    for seed in range(runs):
        found = score(items(rng, SIZES, MATRIX), metric, seed=seed, resamples=400)
        verdicts.append(against(found.value, found.interval, Bound(truth), n=found.n).verdict)
    assert 0.01 < share_of_errors(verdicts) < allowed(runs)


@pytest.mark.parametrize(("margin", "flips"), [(-0.03, (0.05, 0.02)), (0.0, (0.04, 0.04))])
def test_no_regression(margin, flips):
    """Paired items, of which a share goes wrong and another right: the margin is the true difference."""
    rng, runs, n = np.random.default_rng(2), 300, 400
    worse, better = flips
    verdicts = []
    for seed in range(runs):
        kind = rng.choice(4, size=n, p=[worse, better, 0.8 - worse, 0.2 - better])
        sides = [np.isin(kind, right).astype(int) for right in ([1, 2], [0, 2])]  # candidate, baseline
        new, old = (Items(("wrong", "right"), tuple(map(str, range(n))), np.ones(n, int), side) for side in sides)
        found = paired(new, old, Metric("accuracy"), seed=seed, resamples=400)
        interval = found.interval or no_flip_interval(found, 0.95)
        verdicts.append(against(found.value, interval, Bound(margin), n=n).verdict)
    assert share_of_errors(verdicts) < allowed(runs)


def test_clusters_are_not_counted_as_items():
    """Whole conversations are right or wrong together; taken as items, one verdict in three would be an error."""
    rng, runs = np.random.default_rng(3), 200
    verdicts, naive = [], []
    for seed in range(runs):
        right = np.repeat(rng.random(60) < 0.8, 8).astype(int)
        groups = np.repeat(np.arange(60), 8)
        every = Items(("wrong", "right"), tuple(map(str, range(480))), np.ones(480, int), right, None, groups)
        found = score(every, Metric("accuracy"), seed=seed, resamples=400)
        verdicts.append(against(found.value, found.interval, Bound(0.8), n=480).verdict)
        plain = wilson(int(right.sum()), 480)
        naive.append(against(right.mean(), plain, Bound(0.8), n=480).verdict)
    assert share_of_errors(verdicts) < allowed(runs)
    assert share_of_errors(naive) > 0.3
