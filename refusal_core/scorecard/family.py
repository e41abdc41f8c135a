"""Holm's correction over the no-regression rows of one checkpoint: passes and failures are two families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from refusal_core.metrics.holm import holm
from refusal_core.scorecard.cell import Finding
from refusal_core.scorecard.result import Row
from refusal_core.scorecard.verdicts import Judgement


def correct_family(results: Sequence[Row | Finding], confidence: float) -> list[Row | Finding]:
    """`results` with the verdicts of paired differences by adjusted one-sided p at their margins.

    A pass needs the adjusted p of "above the margin" at (1 - confidence) / 2 or less, a failure that of "below". The
    interval stays the plain one, and a note marks it so. Rows without an interval of their own stay undecided.
    """
    level = (1 - confidence) / 2
    members = [i for i, r in enumerate(results) if isinstance(r, Finding) and r.test_at is not None]
    tails = [results[i].test_at.p_at_margin(results[i].bound.value) for i in members]
    above = holm([None if t is None else t.above for t in tails])
    below = holm([None if t is None else t.below for t in tails])
    corrected = list(results)
    for i, p_pass, p_fail in zip(members, above, below, strict=True):
        corrected[i] = _judged(results[i], p_pass, p_fail, level, sum(t is not None for t in tails))
    return corrected


def _judged(finding: Finding, p_pass: float | None, p_fail: float | None, level: float, size: int) -> Finding:
    if p_pass is None or (finding.n or 0) < finding.min_support:
        return finding
    if p_pass <= level:
        judgement = Judgement("pass")
    elif p_fail <= level:
        judgement = Judgement("fail")
    else:
        judgement = Judgement("inconclusive", f"after Holm over {size} rows neither p reaches {level:g}")
    note = f"interval before Holm; adjusted p {p_pass:.3g} of no regression, {p_fail:.3g} of one, against {level:g}"
    return replace(finding, judgement=judgement).noting(note)
