"""How sure a score is when categories, not rows, are the sample: all from sums and counts by category and label.

The balanced accuracy's interval is here, that of the AUROC in `auroc_interval`; they share variance, stop rules, draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, stdtrit

from refusal_core.direction.scores import balanced_accuracy
from refusal_core.metrics.intervals import LEVEL

BOOTSTRAP_DRAWS = 2_000
BOOTSTRAP_CATEGORIES = 5  # a class; below it a percentile interval covers 82% and less
DROPPED_SHARE = 0.05
# Squares of counts' residuals are at least 1e-20 for a million rows; below lies only rounding.
ROUNDING = 1e-24


@dataclass(frozen=True)
class NotAvailable:
    """Stands where a number cannot be given; `not_available` says why, in one clause."""

    not_available: str


@dataclass(frozen=True)
class Percentile:
    """The category bootstrap's percentile interval. `dropped` draws of `draws` lost a class and are not in it."""

    low: float
    high: float
    draws: int
    dropped: int


@dataclass(frozen=True)
class CategoryInterval:
    """A cluster t interval of a balanced accuracy or an AUROC on the logit scale; `low` and `high` in 0 to 1.

    `categories_per_class` counts the categories that hold each label, `effective_categories` weighs them by size:
    (sum n)^2 / sum n^2. Covers its level for about equal sizes; with very uneven sizes 0.89 to 0.94 at level 0.95.
    """

    method: str
    level: float
    low: float
    high: float
    degrees_of_freedom: float
    categories_per_class: dict[str, int]
    effective_categories: dict[str, float]
    percentile: Percentile | NotAvailable


@dataclass(frozen=True)
class WithoutCategory:
    """The balanced accuracy without one category's rows; None when a class is then missing."""

    category: str
    balanced_accuracy: float | None


@dataclass(frozen=True)
class LeaveOneOut:
    """How far one category carries the score: the range of the balanced accuracy without each, from the same fit."""

    low: float | None
    high: float | None
    without_for_low: str | None
    without_for_high: str | None
    by_category: tuple[WithoutCategory, ...]


def cluster_variance(sums: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Variance of (R1 + R0) / 2 over categories, and its degrees of freedom. `sums` and `counts` are [K, 2] by label.

    R_l = sum of `sums` over the categories / sum of `counts`. Both labels of one category move together, so its two
    residuals are added before they are squared: V = sum (a_k + b_k)^2 / 4, a_k = sqrt(K1/(K1-1)) (s1_k - R1 n1_k) / N1
    and b_k likewise. Cluster-robust variance of a ratio as in Cameron and Miller (2015), "A practitioner's guide to
    cluster-robust inference"; Satterthwaite (1946) when no category holds both labels. Needs K1, K0 >= 2.
    """
    held = counts > 0
    k = held.sum(0)
    totals = counts.sum(0)
    # As one fraction, so that equal rates leave exactly 0 when the sums are whole numbers.
    residuals = (sums * totals - sums.sum(0) * counts) / totals.astype(np.float64) ** 2
    parts = np.where(held, np.sqrt(k / (k - 1.0)) * residuals, 0.0)
    variance = float((parts.sum(1) ** 2).sum()) / 4
    if held.all():
        return variance, float(len(counts) - 1)
    if held.all(1).any():
        return variance, float(k.min() - 1)
    v0, v1 = (parts**2).sum(0)
    spread = v0**2 / (k[0] - 1) + v1**2 / (k[1] - 1)
    freedom = float((v0 + v1) ** 2 / spread) if spread > 0 else float(k.sum() - 2)
    return variance, min(freedom, float(k.sum() - 2))


def too_few_categories(counts: np.ndarray) -> str | None:
    """Why no interval over categories can be given, from counts [K, 2]; None when it can."""
    held = counts > 0
    k0, k1 = held.sum(0)
    if min(k0, k1) < 2:
        return f"an interval over categories needs two that hold each label, here {k0} hold label 0 and {k1} label 1"
    if held.all() and len(counts) < 3:
        return "an interval over categories that hold both labels needs three of them, here are 2"
    return None


def category_interval(
    correct: np.ndarray, counts: np.ndarray, rng: np.random.Generator, level: float = LEVEL
) -> CategoryInterval | NotAvailable:
    """The interval from correct calls and counts [K, 2], with its stop rules; the percentile bootstrap beside it."""
    if reason := too_few_categories(counts):
        return NotAvailable(reason)
    value = balanced_accuracy(correct.sum(0), counts.sum(0))
    if value in (0.0, 1.0):
        return NotAvailable(f"every call is {'right' if value else 'wrong'}, so categories show no spread")
    variance, freedom = cluster_variance(correct, counts)
    if variance <= ROUNDING:
        return NotAvailable("every category has the same rates, so categories show no spread")
    return cluster_t(value, variance, freedom, counts, percentile_interval(correct, counts, rng, level), level)


def cluster_t(
    value: float,
    variance: float,
    freedom: float,
    counts: np.ndarray,
    percentile: Percentile | NotAvailable,
    level: float,
) -> CategoryInterval:
    """The interval of `value`, strictly between 0 and 1, from its `variance` over the categories of `counts` [K, 2]."""
    half = float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(variance) / (value * (1 - value))
    held = counts > 0
    return CategoryInterval(
        method="cluster t over categories, logit scale",
        level=level,
        low=float(expit(logit(value) - half)),
        high=float(expit(logit(value) + half)),
        degrees_of_freedom=freedom,
        categories_per_class={str(label): int(held[:, label].sum()) for label in (0, 1)},
        effective_categories={str(label): effective_number(counts[:, label]) for label in (0, 1)},
        percentile=percentile,
    )


@dataclass(frozen=True, eq=False)
class CategoryDraws:
    """Draws of whole categories that left both classes rows. `weights` holds for label 0 and for label 1 how often
    each category was drawn, int64 [m, K]; `dropped` of `draws` lost a class and are not among the m.
    """

    weights: tuple[np.ndarray, np.ndarray]
    draws: int
    dropped: int

    def percentile(self, values: np.ndarray, level: float) -> Percentile:
        """The middle `level` of `values` [m], the score of each draw."""
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return Percentile(float(low), float(high), self.draws, self.dropped)


def drawn_categories(
    counts: np.ndarray, rng: np.random.Generator, draws: int = BOOTSTRAP_DRAWS
) -> CategoryDraws | NotAvailable:
    """Whole categories of `counts` [K, 2] drawn with replacement (Davison and Hinkley 1997, section 3.8).

    Categories of one label each are drawn class by class, so no draw can lose one; mixed ones together, and draws that
    lose a class are dropped and counted. Not available under five categories a class, or when over 5% were dropped.
    """
    held = counts > 0
    fewest = int(held.sum(0).min())
    if fewest < BOOTSTRAP_CATEGORIES:
        return NotAvailable(f"the bootstrap needs {BOOTSTRAP_CATEGORIES} categories a class, here are {fewest}")
    if not held.all(1).any():
        by_label = tuple(np.zeros((draws, len(counts)), np.int64) for _ in (0, 1))
        for label, weights in enumerate(by_label):
            own = held[:, label]
            weights[:, own] = _draws(int(own.sum()), rng, draws)
        return CategoryDraws(by_label, draws, 0)
    weights = _draws(len(counts), rng, draws)
    kept = (weights @ counts > 0).all(1)
    dropped = int(draws - kept.sum())
    if dropped > DROPPED_SHARE * draws:
        return NotAvailable(f"{dropped} of {draws} draws of categories lost a class")
    return CategoryDraws((weights[kept],) * 2, draws, dropped)


def percentile_interval(
    correct: np.ndarray,
    counts: np.ndarray,
    rng: np.random.Generator,
    level: float = LEVEL,
    draws: int = BOOTSTRAP_DRAWS,
) -> Percentile | NotAvailable:
    """The percentile interval of the balanced accuracy over `drawn_categories`, or why there are none."""
    drawn = drawn_categories(counts, rng, draws)
    if isinstance(drawn, NotAvailable):
        return drawn
    rates = [
        (weights @ correct[:, label]) / (weights @ counts[:, label]) for label, weights in enumerate(drawn.weights)
    ]
    return drawn.percentile(np.stack(rates, 1).mean(1), level)


def effective_number(sizes: np.ndarray) -> float:
    """(sum n)^2 / sum n^2: how many equal categories would weigh the same."""
    return float(sizes.sum()) ** 2 / float((sizes.astype(np.float64) ** 2).sum())


def leave_one_category_out(names: tuple[str, ...], correct: np.ndarray, counts: np.ndarray) -> LeaveOneOut:
    """Balanced accuracy without each category's rows, from correct calls and counts [K, 2]."""
    c, n = correct.sum(0), counts.sum(0)
    values = [balanced_accuracy(c - correct[k], n - counts[k]) for k in range(len(names))]
    each = tuple(WithoutCategory(name, value) for name, value in zip(names, values, strict=True))
    ranked = sorted((value, name) for name, value in zip(names, values, strict=True) if value is not None)
    if not ranked:
        return LeaveOneOut(None, None, None, None, each)
    return LeaveOneOut(ranked[0][0], ranked[-1][0], ranked[0][1], ranked[-1][1], each)


def _draws(k: int, rng: np.random.Generator, draws: int) -> np.ndarray:
    return rng.multinomial(k, np.full(k, 1 / k), size=draws)
