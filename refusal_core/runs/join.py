"""Attempts of one training as one history: the latest attempt counts, what it replaced is kept and marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from refusal_core.runs.agree import Name, at_common_steps, by_name
from refusal_core.runs.columns import superseded
from refusal_core.runs.model import Curve

_ARRAYS = ("steps", "values", "epochs", "times", "attempt", "superseded")


def split_attempts(curve: Curve) -> Curve:
    """The same rows, with a new attempt wherever steps fall, and what a later attempt passed again marked."""
    known = np.isfinite(curve.steps)
    falling = curve.steps[known][1:] < curve.steps[known][:-1]
    if not falling.any():
        return curve
    steps = np.where(known, curve.steps, -np.inf)
    falls = np.zeros(len(curve), dtype=np.int64)
    falls[np.flatnonzero(known)[1:]] = falling
    return marked(replace(curve, attempt=curve.attempt + np.cumsum(falls)), steps)


def marked(curve: Curve, steps: NDArray[np.float64] | None = None) -> Curve:
    """`curve` with the rows superseded that a later row, or the start of a later attempt, stands for."""
    steps = curve.steps if steps is None else steps
    old = superseded(curve.steps) | curve.superseded
    for attempt in np.unique(curve.attempt)[1:]:
        start = steps[curve.attempt == attempt].min()
        old |= (curve.attempt < attempt) & (steps >= start)
    return _frozen(replace(curve, superseded=old))


def chained(histories: Sequence[Sequence[Curve]]) -> tuple[Curve, ...]:
    """Histories that follow one another, the earliest first, as one: each is an attempt after those before it.

    A history that goes over steps again stands for the earlier ones from its first step on, in every curve.
    """
    pieces: dict[Name, list[Curve]] = {}
    attempts = 0
    for curves in histories:
        own = [split_attempts(curve) for curve in curves]
        starts = [curve.steps[np.isfinite(curve.steps)].min() for curve in own if np.isfinite(curve.steps).any()]
        start = min(starts, default=np.inf)
        for name, parts in pieces.items():
            pieces[name] = [_frozen(replace(p, superseded=p.superseded | (p.steps >= start))) for p in parts]
        for curve in own:
            pieces.setdefault(curve.name, []).append(replace(curve, attempt=curve.attempt + attempts))
        attempts += 1 + max((int(curve.attempt.max()) for curve in own if len(curve)), default=0)
    return tuple(_concatenated(parts) for parts in pieces.values())


def with_old_tails(current: Iterable[Curve], older: Iterable[Curve], shared: float) -> tuple[Curve, ...]:
    """`current`, a resumed history, with the rows that another attempt wrote after the step they `shared`.

    They stand where they were written: after what both share, before what the later attempt wrote.
    """
    tails = {name: c.take(c.steps > shared) for name, c in by_name(older).items()}
    joined = []
    for curve in current:
        later = curve.steps > shared
        curve = _frozen(replace(curve, attempt=curve.attempt + later))
        tail = tails.get(curve.name)
        if tail is not None and len(tail):
            old = replace(tail, superseded=np.ones(len(tail), dtype=np.bool_))
            curve = _concatenated([curve.take(~later), old, curve.take(later)])
        joined.append(curve)
    return tuple(joined)


def with_times(curves: Iterable[Curve], others: Iterable[Curve]) -> tuple[Curve, ...]:
    """`curves` with the times that a history of the same training has for their steps."""
    timed = by_name(others)
    found = []
    for curve in curves:
        other = timed.get(curve.name)
        if other is not None and len(curve) and np.isnan(curve.times).all() and np.isfinite(other.times).any():
            steps, _, times = at_common_steps(curve, replace(other.current(), values=other.current().times))
            place = np.searchsorted(steps, curve.steps)
            place[place >= len(steps)] = 0
            known = np.isin(curve.steps, steps)
            curve = _frozen(replace(curve, times=np.where(known, times[place] if len(steps) else np.nan, np.nan)))
        found.append(curve)
    return tuple(found)


def resumed_at(curves: Iterable[Curve]) -> tuple[float, ...]:
    """The last step that counts before each resume, over all curves; as many as there are later attempts."""
    rows = [(c.attempt, c.steps) for c in curves if c.attempt.any()]
    if not rows:
        return ()
    attempts, steps = (np.concatenate(column) for column in zip(*rows, strict=True))
    found = []
    for attempt in np.unique(attempts[attempts > 0]):
        of_it = steps[(attempts == attempt) & np.isfinite(steps)]
        before = steps[(attempts < attempt) & np.isfinite(steps)]
        kept = before[before < of_it.min()] if len(of_it) else before
        found.append(float(kept.max()) if len(kept) else 0.0)
    return tuple(found)


def _concatenated(parts: Sequence[Curve]) -> Curve:
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS}
    return _frozen(replace(parts[-1], **arrays))


def _frozen(curve: Curve) -> Curve:
    for name in _ARRAYS:
        getattr(curve, name).setflags(write=False)
    return curve
