"""Two answers to each item, right or wrong: McNemar's exact test, and Tango's interval of the difference."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from refusal_core.metrics.intervals import LEVEL, Interval

FEWEST_FLIPS = 6  # fewer can never reach 0.05 in the exact two-sided test


def mcnemar(worse: int, better: int) -> float:
    """Exact two-sided p of McNemar's test: the chance of a split at least as uneven, were both ways as likely."""
    n = worse + better
    return min(1.0, 2 * float(binom.cdf(min(worse, better), n, 0.5))) if n else 1.0


def tango(worse: int, better: int, n: int, level: float = LEVEL) -> Interval | None:
    """Score interval of (better - worse) / n over n paired items; None when n is 0.

    T. Tango (1998), "Equivalence test and confidence interval for the difference in proportions for the paired-sample
    design", Statistics in Medicine 17, 891-908. It holds its level where flips are few, as a bootstrap of them does not
    (three flips of a hundred: 0.3 instead of 0.95), and has width where there are none.
    """
    if not n:
        return None
    z, value = float(-ndtri((1 - level) / 2)), (better - worse) / n
    low, high = -1.0, 1.0
    if worse < n:
        low = brentq(lambda d: _score(worse, better, n, d) - z, -1 + 1e-12, value) if value > -1 else -1.0
    if better < n:
        high = brentq(lambda d: _score(worse, better, n, d) + z, value, 1 - 1e-12) if value < 1 else 1.0
    return Interval(min(low, value), max(high, value), level, "Tango's score interval")


def tango_tail(worse: int, better: int, n: int, margin: float) -> float:
    """One-sided p of "the true difference is at most `margin`"; agrees with `tango` at every level."""
    if abs(margin) >= 1:
        return 0.0 if margin <= -1 else 1.0
    return float(ndtr(-_score(worse, better, n, margin)))


def _score(worse: int, better: int, n: int, d: float) -> float:
    """How many standard errors the observed difference is above `d`, the errors being those under `d`."""
    b = -better - worse + (2 * n - better + worse) * d
    flip = (math.sqrt(max(b * b + 8 * n * worse * d * (1 - d), 0.0)) - b) / (4 * n)  # right to wrong, under d
    variance = n * (2 * flip + d * (1 - d))
    above = better - worse - n * d
    if variance <= 1e-15:
        return 0.0 if abs(above) < 1e-12 else math.copysign(math.inf, above)
    return above / math.sqrt(variance)
