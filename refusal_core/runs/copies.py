"""Runs that are suspiciously equal: a file twice, or the same curve, predictions or matrix in two trainings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from refusal_core.runs.agree import at_common_steps
from refusal_core.runs.model import Curve, Finding, Run
from refusal_core.runs.predictions import Predictions
from refusal_core.runs.tables import MatrixTable, ReportTable, Table

_FEWEST = 3  # values that two trainings do not share by chance
_FEWEST_ANSWERS = 20
_TELLING = ("loss", "grad_norm", "accuracy", "macro_f1", "weighted_f1", "f1", "precision", "recall")
_FIX = "look whether a file was copied, or one checkpoint evaluated under two names"

T = TypeVar("T")


def copies(runs: Sequence[Run]) -> list[Finding]:
    """One finding for each run and kind of equality, told of the later run and the first one that it equals."""
    curves = [(place, c.current()) for place, run in enumerate(runs) for c in run.curves if _tells(c)]
    equal: dict[tuple[int, int], list[str]] = {}
    for (one, mine), (other, theirs) in _alike(curves, lambda c: (c.name, c.steps[0], c.values[0])):
        if _equal(mine, theirs):
            equal.setdefault((one, other), []).append(theirs.key)
    found = []
    for (one, other), keys in equal.items():
        what = f"the same values as {runs[one].name}: {', '.join(keys[:6])}"
        found.append((other, _finding(runs[other], runs[other].sources, "curves of its own", what)))
    tables = [(place, t) for place, run in enumerate(runs) for t in _tables(run)]
    for (_, mine), (other, theirs) in _alike(tables, _numbers):
        what = f"the same numbers as {mine.file}"
        found.append((other, _finding(runs[other], [theirs.file], "a table of its own", what)))
    answers = [(place, p) for place, run in enumerate(runs) for p in _answers(run)]
    for (_, mine), (other, theirs) in _alike(answers, lambda p: (p.ids, p.labels, p.predicted.tobytes())):
        what = f"the same answer to every one of {len(mine):,} items as {mine.file}"
        found.append((other, _finding(runs[other], [theirs.file], "answers of its own", what)))
    for place, run in enumerate(runs):  # the answers of a training settle, its probabilities move on
        each = [(i, p) for i, p in enumerate(_answers(run)) if p.probabilities is not None]
        for (_, mine), (_, theirs) in _alike(each, lambda p: (p.ids, p.labels, p.probabilities.tobytes())):
            what = f"the same probabilities for every one of {len(mine):,} items as {mine.file}"
            found.append((place, _finding(run, [theirs.file], "probabilities of its own", what)))
    return [finding for _, finding in sorted(found, key=lambda pair: pair[0])]


def _finding(run: Run, files: Sequence[str], expected: str, found: str) -> Finding:
    return Finding("suspicious_copy", run.name, ", ".join(files[:3]), expected, found, _FIX)


def _alike(
    things: Sequence[tuple[int, T]], key: Callable[[T], Hashable]
) -> Iterator[tuple[tuple[int, T], tuple[int, T]]]:
    """Each thing with the first one of another run that has its key."""
    first: dict[Hashable, tuple[int, T]] = {}
    for place, thing in things:
        before = first.setdefault(key(thing), (place, thing))
        if before[0] != place:
            yield before, (place, thing)


def _tells(curve: Curve) -> bool:
    """Whether it moves, over enough values, and is of a metric that says something."""
    if curve.metric not in _TELLING or curve.label is not None or curve.superseded.all():
        return False
    values = curve.current().values
    return len(np.unique(values[np.isfinite(values)])) >= _FEWEST


def _equal(a: Curve, b: Curve) -> bool:
    """Whether all values at common steps are the same, and few steps are not common."""
    if abs(len(a) - len(b)) > 0.1 * max(len(a), len(b)):
        return False
    _, mine, theirs = at_common_steps(a, b)
    return len(mine) >= max(_FEWEST, 0.9 * len(a)) and np.array_equal(mine, theirs, equal_nan=True)


def _tables(run: Run) -> list[Table]:
    """Those whose numbers do not come twice by chance: a perfect or a collapsed matrix may well."""
    tables = [*run.tables, *(table for c in run.checkpoints for table in c.tables)]
    matrices = [t for t in tables if isinstance(t, MatrixTable) and np.count_nonzero(t.values) > len(t.labels)]
    reports = [t for t in tables if isinstance(t, ReportTable) and len({row.f1 for row in t.classes}) >= _FEWEST]
    return [*matrices, *reports]


def _numbers(table: Table) -> Hashable:
    return (table.labels, table.values.tobytes()) if isinstance(table, MatrixTable) else table.classes


def _answers(run: Run) -> list[Predictions]:
    """Those that are many, and not all right."""
    found = [*run.predictions, *(p for c in run.checkpoints for p in c.predictions)]
    return [p for p in found if len(p) >= _FEWEST_ANSWERS and bool((p.predicted != p.true).any())]
