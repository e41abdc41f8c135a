"""Signs of a diverged training, those too that the Trainer's filter hides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from refusal_core.runs.model import Curve
from refusal_core.runs.own_evaluation import EVALUATED

_HIDDEN = "logging_nan_inf_filter writes 0 for a loss that is NaN"


class Sign(NamedTuple):
    """What is wrong, first at which step."""

    curve: Curve
    step: float
    what: str


def signs_of(curves: Sequence[Curve]) -> list[Sign]:
    """A loss that is not finite; or one of exactly 0 where the gradient or the evaluation's loss is not finite."""
    signs = []
    norms = [c.current() for c in curves if (c.metric, c.split) == ("grad_norm", "train")]
    evaluations = [c.current() for c in curves if c.metric == "loss" and c.split in EVALUATED]
    for loss in (c.current() for c in curves if (c.metric, c.split) == ("loss", "train")):
        if len(odd := loss.take(~np.isfinite(loss.values))):
            signs.append(Sign(loss, first_step(odd), f"{loss.key} is {word(odd.values[0])}"))
        zero = loss.take(loss.values == 0)
        if not len(zero):
            continue
        for norm in norms:
            bad = norm.take(np.isin(norm.steps, zero.steps) & ~np.isfinite(norm.values))
            if len(bad):
                what = f"{loss.key} is exactly 0 and {norm.key} {word(bad.values[0])}; {_HIDDEN}"
                signs.append(Sign(norm, first_step(bad), what))
        for evaluation in evaluations:
            odd = evaluation.take(~np.isfinite(evaluation.values))
            if len(odd) and first_step(zero) <= odd.steps[-1]:
                what = f"{loss.key} is exactly 0 while {evaluation.key} is {word(odd.values[0])}; {_HIDDEN}"
                signs.append(Sign(loss, min(first_step(zero), first_step(odd)), what))
    for evaluation in evaluations:
        if len(odd := evaluation.take(~np.isfinite(evaluation.values))):
            signs.append(Sign(evaluation, first_step(odd), f"{evaluation.key} is {word(odd.values[0])}"))
    return sorted(signs, key=lambda sign: sign.step)


def diverged_at(curves: Sequence[Curve]) -> float | None:
    """The first step by which the training had diverged; None when nothing says so."""
    signs = signs_of(curves)
    return signs[0].step if signs else None


def first_step(curve: Curve) -> float:
    """The lowest step that is stated; infinity where none is."""
    known = curve.steps[np.isfinite(curve.steps)]
    return float(known.min()) if len(known) else float("inf")


def word(value: float) -> str:
    """The word for a number that is not finite."""
    return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
