"""The arithmetic of verdicts: an interval against a bound, and nothing else. Every row goes through `against`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import ndtri

from refusal_core.metrics.intervals import Interval

Verdict = Literal["pass", "fail", "inconclusive", "error", "not run"]
VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "inconclusive", "error", "not run")
SYMBOL = {"pass": "✓", "fail": "✕", "inconclusive": "~", "error": "!", "not run": "–"}
_OPPOSITE: dict[Verdict, Verdict] = {"pass": "fail", "fail": "pass"}


@dataclass(frozen=True)
class Bound:
    """What a value must reach: at least `value`, or at most."""

    value: float
    at_least: bool = True

    def met(self, number: float) -> bool:
        return number >= self.value if self.at_least else number <= self.value

    @property
    def sign(self) -> str:
        return ">=" if self.at_least else "<="

    def __str__(self) -> str:
        return f"at {'least' if self.at_least else 'most'} {self.value:.4g}"


@dataclass(frozen=True)
class Judgement:
    """A verdict, and why it is no plain pass or fail ("" where it is)."""

    verdict: Verdict
    reason: str = ""


def against(
    value: float, interval: Interval | None, bound: Bound, *, n: int, min_support: int = 0, point: bool = False
) -> Judgement:
    """Pass when the whole interval meets `bound`, fail when none of it does, inconclusive between.

    Inconclusive too when `n` is below `min_support`, and without an interval. `point` compares `value` alone.
    """
    if n < min_support:
        return Judgement("inconclusive", f"n = {n:,} is below the support of {min_support:,}")
    if point:
        return Judgement("pass" if bound.met(value) else "fail")
    if interval is None:
        return Judgement("inconclusive", "there is no interval: these items show no spread, or are too few clusters")
    near, far = (interval.low, interval.high) if bound.at_least else (interval.high, interval.low)
    if bound.met(near):
        return Judgement("pass")
    if not bound.met(far):
        return Judgement("fail")
    return Judgement("inconclusive", f"the interval holds {bound.value:.4g}")


def all_of(judgements: Sequence[Judgement]) -> Judgement:
    """Several bounds at once: a failed one fails, an undecided one leaves it open."""
    for verdict in ("fail", "inconclusive"):
        for judgement in judgements:
            if judgement.verdict == verdict:
                return judgement
    return judgements[0]


def negated(judgement: Judgement) -> Judgement:
    """Pass and fail change places; what is undecided stays so."""
    return Judgement(_OPPOSITE.get(judgement.verdict, judgement.verdict), judgement.reason)


def more_needed(value: float, interval: Interval | None, bound: Bound, n: int, *, min_support: int = 0) -> int | None:
    """How many more items would decide, if the value stays where it is; None where no number would, or none is known.

    Wilson's interval leaves t out just when |p - t| > z sqrt(t (1 - t) / n); for others the width is taken to shrink
    as 1 / sqrt(n).
    """
    if interval is None or n <= 0:
        return max(min_support - n, 0) or None
    gap = abs(value - bound.value)
    if gap == 0:
        return None
    if interval.method == "wilson" and 0 < bound.value < 1:
        z = float(-ndtri((1 - interval.level) / 2))
        needed = z * z * bound.value * (1 - bound.value) / gap**2
    else:
        half = value - interval.low if value > bound.value else interval.high - value
        needed = n * (half / gap) ** 2
    if not math.isfinite(needed) or needed > 1e12:
        return None
    return max(math.floor(needed) + 1, min_support) - n if max(math.floor(needed) + 1, min_support) > n else None
