"""Runs that are suspiciously equal: a file twice, or the same curve, predictions or matrix in two trainings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from refusal_core.runs.agree import at_common_steps, by_name
from refusal_core.runs.model import Curve, Finding, Run
from refusal_core.runs.predictions import Predictions
from refusal_core.runs.tables import MatrixTable, ReportTable, Table

_FEWEST = 3  # values that two trainings do not share by chance
_TELLING = ("loss", "grad_norm", "accuracy", "macro_f1", "weighted_f1", "f1", "precision", "recall")
_MOST_RUNS = 200  # compared with each other
_FIX = "look whether a file was copied, or one checkpoint evaluated under two names"


def copies(runs: Sequence[Run]) -> list[Finding]:
    """One finding for each pair of runs and kind of equality, told of the second run."""
    found: list[Finding] = []
    for one, other in combinations(runs[:_MOST_RUNS], 2):
        if told := [*_curves(one, other)]:
            keys = ", ".join(told[:6])
            what = f"the same values as {one.name}: {keys}"
            found.append(_finding(one, other, other.sources, "curves of its own", what))
        for mine, theirs in ((a, b) for a in _tables(one) for b in _tables(other) if _same_table(a, b)):
            found.append(_finding(one, other, [theirs.file], "a table of its own", f"the same numbers as {mine.file}"))
        for mine, theirs in ((a, b) for a in _answers(one) for b in _answers(other) if _same_answers(a, b)):
            what = f"the same answer to every one of {len(mine):,} items as {mine.file}"
            found.append(_finding(one, other, [theirs.file], "answers of its own", what))
    return found


def _finding(one: Run, other: Run, files: Sequence[str], expected: str, found: str) -> Finding:
    return Finding("suspicious_copy", other.name, ", ".join(files[:3]), expected, found, _FIX)


def _curves(one: Run, other: Run) -> Iterator[str]:
    partners = by_name(other.curves)
    for curve in one.curves:
        partner = partners.get(curve.name)
        if curve.metric in _TELLING and curve.label is None and partner is not None and _equal(curve, partner):
            yield curve.key


def _equal(a: Curve, b: Curve) -> bool:
    """Whether all values at common steps are the same, and they move."""
    a, b = a.current(), b.current()
    if abs(len(a) - len(b)) > 0.1 * max(len(a), len(b)):
        return False
    _, mine, theirs = at_common_steps(a, b)
    finite = np.isfinite(mine)
    return (
        len(mine) >= _FEWEST
        and len(np.unique(mine[finite])) >= _FEWEST
        and np.array_equal(mine, theirs, equal_nan=True)
    )


def _tables(run: Run) -> list[Table]:
    tables = [*run.tables, *(table for c in run.checkpoints for table in c.tables)]
    return [t for t in tables if isinstance(t, ReportTable | MatrixTable)]


def _same_table(a: Table, b: Table) -> bool:
    if isinstance(a, MatrixTable) and isinstance(b, MatrixTable):
        spread = np.count_nonzero(a.values) > len(a.labels)  # a perfect or a collapsed matrix may well come twice
        return spread and a.labels == b.labels and np.array_equal(a.values, b.values)
    if isinstance(a, ReportTable) and isinstance(b, ReportTable):
        scores = {row.f1 for row in a.classes}
        return len(scores) >= _FEWEST and a.classes == b.classes
    return False


def _answers(run: Run) -> list[Predictions]:
    return [*run.predictions, *(p for c in run.checkpoints for p in c.predictions)]


def _same_answers(a: Predictions, b: Predictions) -> bool:
    same = a.ids == b.ids and a.labels == b.labels and np.array_equal(a.predicted, b.predicted)
    return same and len(a) >= 20 and bool((a.predicted != a.true).any())
