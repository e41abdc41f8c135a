"""Whether two sets of curves are of one training: what they say at the steps that both have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from refusal_core.runs.model import Curve

# Event files keep float32, printed logs four digits.
_RELATIVE, _ABSOLUTE = 1e-4, 5.1e-5
_TELLING = ("loss", "grad_norm", "accuracy", "f1", "macro_f1", "weighted_f1", "precision", "recall")
"""Metrics that two trainings do not share by chance; learning rates, epochs and timings say nothing."""

Name = tuple[str, str, str, str | None]


@dataclass(frozen=True)
class Agreement:
    """What two sets of curves say at common steps. `first` is the first place where they differ."""

    common: int
    equal: int
    first: tuple[float, str, float, float] | None = None
    """Step, key, and the two values."""

    @property
    def word(self) -> Literal["agree", "differ", "unknown"]:
        if not self.common:
            return "unknown"
        return "agree" if self.equal >= 0.9 * self.common else "differ"


def compare(one: Iterable[Curve], other: Iterable[Curve]) -> Agreement:
    """The agreement of two sets of curves over their telling metrics."""
    others = by_name(other)
    common = equal = 0
    first = None
    for curve in one:
        partner = others.get(curve.name)
        if partner is None or curve.metric not in _TELLING:
            continue
        steps, a, b = at_common_steps(curve.current(), partner.current())
        same = close(a, b)
        common, equal = common + len(steps), equal + int(same.sum())
        if not same.all():
            at = int(np.argmin(same))
            place = (float(steps[at]), curve.key, float(a[at]), float(b[at]))
            first = place if first is None or place[0] < first[0] else first
    return Agreement(common, equal, first)


def is_prefix(shorter: Iterable[Curve], longer: Iterable[Curve]) -> bool:
    """Whether the rows of one history are where another one begins, in every curve of it."""
    others = by_name(longer)
    for curve in shorter:
        partner = others.get(curve.name)
        if partner is None or len(partner) < len(curve):
            return False
        n = len(curve)
        same_steps = np.array_equal(curve.steps, partner.steps[:n], equal_nan=True)
        if not same_steps or not np.array_equal(curve.values, partner.values[:n], equal_nan=True):
            return False
    return True


def shared_until(one: Iterable[Curve], other: Iterable[Curve]) -> float | None:
    """The last step up to which two histories say the same; None when they share no beginning."""
    others = by_name(other)
    agreed, parted = [], np.inf
    for curve in one:
        if (partner := others.get(curve.name)) is None:
            continue
        steps, a, b = at_common_steps(curve.current(), partner.current())
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if not same.all():
            parted = min(parted, float(steps[np.argmin(same)]))
        if curve.metric in _TELLING:
            agreed += [float(step) for step in steps[same]]
    before = [step for step in agreed if step < parted]
    return max(before, default=None)


def by_name(curves: Iterable[Curve]) -> dict[Name, Curve]:
    """The first curve of each name."""
    found: dict[Name, Curve] = {}
    for curve in curves:
        found.setdefault(curve.name, curve)
    return found


def at_common_steps(a: Curve, b: Curve) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The steps that both have, rising, and the two values there; the last row of a step counts."""
    places = []
    for curve in (a, b):
        known = np.flatnonzero(np.isfinite(curve.steps))
        steps, last = np.unique(curve.steps[known][::-1], return_index=True)
        places.append((steps, known[::-1][last]))
    steps, at_a, at_b = np.intersect1d(places[0][0], places[1][0], assume_unique=True, return_indices=True)
    return steps, a.values[places[0][1][at_a]], b.values[places[1][1][at_b]]


def close(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Equal within what float32 and four printed digits keep; NaN equals NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(a - b) <= np.maximum(_ABSOLUTE, _RELATIVE * np.abs(b))
    return near | (a == b) | (np.isnan(a) & np.isnan(b))
