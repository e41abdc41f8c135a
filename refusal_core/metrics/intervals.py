"""Rates with their n and interval: Wilson's interval for a proportion, and the one for F1 that follows from it."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass

from scipy.special import ndtri

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A confidence interval. `low` <= `high`, in the unit of the value it belongs to; `level` is between 0 and 1.

    Raises TypeError for anything but real numbers, and ValueError for NaN, infinity, or ends in the wrong order.
    """

    low: float
    high: float
    level: float
    method: str

    def __post_init__(self) -> None:
        for name in ("low", "high", "level"):
            number = getattr(self, name)
            if isinstance(number, (str, bytes, bool)):
                raise TypeError(f"{name} must be a number, not {number!r}")
            if not math.isfinite(number):
                raise ValueError(f"{name} must be finite, not {number!r}")
            object.__setattr__(self, name, float(number))  # numpy scalars become plain floats
        if self.low > self.high:
            raise ValueError(f"low {self.low!r} is above high {self.high!r}")
        _check_level(self.level)

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True)
class Rate:
    """A value with its n and interval. `value` and `interval` are None where it is undefined.

    `n` is the number of items that the value is over; for F1 it is TP + FP + FN.
    """

    value: float | None
    n: int
    interval: Interval | None

    def __str__(self) -> str:
        return format_rate(self)


def wilson(successes: int, n: int, level: float = LEVEL) -> Interval | None:
    """Wilson's score interval for a proportion, without continuity correction; None when `n` is 0.

    E. B. Wilson (1927), "Probable inference, the law of succession, and statistical inference", JASA 22, 209-212:
    (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n). Both ends lie in 0 to 1. Raises TypeError for counts that
    are not whole numbers, and ValueError unless 0 <= successes <= n and 0 < level < 1.
    """
    successes, n = _counts(successes=successes, n=n)
    _check_level(level)
    if successes > n:
        raise ValueError(f"successes ({successes}) is more than n ({n})")
    if n == 0:
        return None
    z = float(-ndtri((1 - level) / 2))
    p = successes / n
    scale = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    # The formula gives exactly 0 and 1 at the two ends, and never leaves p out; rounding alone might.
    low = 0.0 if successes == 0 else min(max(centre - half, 0.0), p)
    high = 1.0 if successes == n else max(min(centre + half, 1.0), p)
    return Interval(low, high, level, "wilson")


def f1_interval(tp: int, fp: int, fn: int, level: float = LEVEL) -> Interval | None:
    """Interval of F1 = 2TP / (2TP + FP + FN); None when TP + FP + FN is 0.

    J = TP / (TP + FP + FN) is a proportion of the items that are of the class or called so; dividing F1 above and below
    by that sum gives F1 = 2J / (1 + J), which rises with J, so Wilson's two ends for J map to the two ends for F1. Lam,
    Gopal and Qian (2023, arXiv 2309.14621) compare it with other intervals. Conditional on TP + FP + FN.
    """
    tp, fp, fn = _counts(tp=tp, fp=fp, fn=fn)
    of_j = wilson(tp, tp + fp + fn, level)
    if of_j is None:
        return None
    return Interval(2 * of_j.low / (1 + of_j.low), 2 * of_j.high / (1 + of_j.high), level, "wilson on TP/(TP+FP+FN)")


def rate(successes: int, n: int, level: float = LEVEL) -> Rate:
    """`successes` of `n` with Wilson's interval; undefined (value None) when `n` is 0. Raises as `wilson` does."""
    interval = wilson(successes, n, level)
    successes, n = _counts(successes=successes, n=n)
    return Rate(successes / n if n else None, n, interval)


def f1_rate(tp: int, fp: int, fn: int, level: float = LEVEL) -> Rate:
    """F1 with its interval; undefined when TP + FP + FN is 0, which is Rate.n."""
    interval = f1_interval(tp, fp, fn, level)
    tp, fp, fn = _counts(tp=tp, fp=fp, fn=fn)
    n = tp + fp + fn
    return Rate(2 * tp / (2 * tp + fp + fn) if n else None, n, interval)


def digits_for(width: float) -> int:
    """Decimals that an interval of this width deserves: the fewest, from 2 to 6, that make it 4 last digits wide.

    A width of 0.09 gets 2 and one of 0.03 gets 3: fewer would show value and end as one number, more would show noise.
    """
    return next((digits for digits in range(2, 6) if width * 10**digits >= 4), 6)


def format_rate(rate: Rate, digits: int | None = None) -> str:
    """The house form "0.84 (0.79 to 0.88, n = 480)"; "undefined (n = 0)"; decimals by `digits_for` when not given."""
    if rate.value is None:
        return f"undefined (n = {rate.n:,})"
    if rate.interval is None:
        return f"{rate.value:.{2 if digits is None else digits}f} (n = {rate.n:,})"
    if digits is None:
        digits = digits_for(rate.interval.width)
    low, high = (f"{end:.{digits}f}" for end in (rate.interval.low, rate.interval.high))
    return f"{rate.value:.{digits}f} ({low} to {high}, n = {rate.n:,})"


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level!r}")


def _counts(**counts: int) -> tuple[int, ...]:
    """The counts as plain ints; TypeError for a float or a string, ValueError below zero."""
    numbers = tuple(operator.index(count) for count in counts.values())
    for name, number in zip(counts, numbers, strict=True):
        if number < 0:
            raise ValueError(f"{name} must not be negative, not {number}")
    return numbers
