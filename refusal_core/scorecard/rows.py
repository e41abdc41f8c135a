"""From what was found of a cell to its row, with the message that every report prints."""

from __future__ import annotations

from dataclasses import replace

from refusal_core.errors import one_line
from refusal_core.metrics.intervals import Rate, digits_for, format_rate
from refusal_core.scorecard.assertions import EVERY
from refusal_core.scorecard.cell import Cell, Finding, shown_slice
from refusal_core.scorecard.result import UNTIL_SUPPORT, Row
from refusal_core.scorecard.unfold import Line
from refusal_core.scorecard.verdicts import Bound, Verdict, more_needed, negated

_WHOLE = ("support", "training")  # counts, not rates
_CASES = ("equals", "label-in", "is-refusal", "probability")  # a not- form is judged case by case


def finished_row(line: Line, cell: Cell, finding: Finding) -> Row:
    """The row of a cell that was computed."""
    turned = line.assertion.negated and line.assertion.kind not in _CASES
    judgement = negated(finding.judgement) if turned else finding.judgement
    evidence = finding.evidence
    if judgement.verdict == "inconclusive" and finding.bound is not None and finding.can_grow:
        more = more_needed(
            finding.value, finding.interval, finding.bound, finding.n or 0, min_support=finding.min_support
        )
        evidence = replace(evidence, more_needed=more, assumption=_assumption(finding, more))
    value = _shown_value(finding, line.assertion.kind)
    bound = finding.bound
    where = f" where {shown_slice(line.slice)}" if line.slice else ""
    message = f"{finding.subject}{where} {value}, {'must not be' if turned else 'needs'} {_needed(finding.bound)}"
    if judgement.reason:
        message += f": {judgement.reason}"
    return Row(
        **_common(line, cell),
        verdict=judgement.verdict,
        message=one_line(message),
        subject=finding.subject,
        value=finding.value,
        interval=finding.interval,
        n=finding.n,
        threshold=None if finding.against_baseline or bound is None else float(bound.value),
        margin=float(bound.value) if finding.against_baseline and bound is not None else None,
        comparison=bound.sign if bound is not None else None,
        reason=judgement.reason,
        evidence=evidence,
    )


def failed_row(line: Line, cell: Cell, verdict: Verdict, reason: str) -> Row:
    """The row of a cell that was not: an error, or not run."""
    reason = one_line(reason)
    return Row(**_common(line, cell), verdict=verdict, message=reason, reason=reason)


def _common(line: Line, cell: Cell) -> dict:
    severity = line.assertion.severity or cell.defaults.severity
    every = getattr(line.assertion, "label", None) == EVERY
    return {
        "test": line.test.id, "assertion": line.name, "type": line.assertion.type, "checkpoint": cell.column.spec.id,
        "severity": severity, "label": line.label if every else None, "slice": line.unfolded or None,
        "description": line.test.description,
    }  # fmt: skip


def _shown_value(finding: Finding, kind: str) -> str:
    if kind in _WHOLE:
        return f"{finding.value:,.0f}"
    if not finding.against_baseline:
        return format_rate(finding.rate, _digits(finding))
    interval = finding.interval
    digits = digits_for(interval.width) if interval else 3
    ends = f"{interval.low:+.{digits}f} to {interval.high:+.{digits}f}, " if interval else ""
    return f"{finding.value:+.{digits}f} ({ends}n = {finding.n:,})"


def _digits(finding: Finding) -> int | None:
    """Enough that a value beside its bound does not look as if it met it."""
    if finding.interval is None or finding.bound is None:
        return 3 if finding.interval is None else None
    return digits_for(finding.interval.width)


def _needed(bound: Bound | None) -> str:
    return str(bound) if bound is not None else "something else"


def _assumption(finding: Finding, more: int | None) -> str:
    rate = Rate(finding.value, finding.n or 0, finding.interval)
    if more is None:
        return "the value lies on the bound: no number of items would decide" if _on_bound(finding) else ""
    if finding.interval is None or (finding.n or 0) + more == finding.min_support:
        return UNTIL_SUPPORT
    return f"if the value stays at {rate.value:.3g} and further items are like these"


def _on_bound(finding: Finding) -> bool:
    return finding.bound is not None and finding.value == finding.bound.value


__all__ = ["failed_row", "finished_row"]
