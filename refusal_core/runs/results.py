"""What results and matrices leave open: no numbers, parts of an evaluation, splits far apart, axes without names."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refusal_core.runs.diverged import word
from refusal_core.runs.model import Finding, Run
from refusal_core.runs.own_evaluation import EVALUATED
from refusal_core.runs.tables import MatrixTable, ResultsTable, Table

_GAP = 0.2  # of accuracy or F1 between two splits of one file


def _not_finite(run: Run) -> Iterator[Finding]:
    """Results that are no numbers."""
    places = [*run.scores, *(c.metrics for c in run.checkpoints if c.metrics)]
    for scores in places:
        odd = [s for s in scores.scores if not np.isfinite(s.value)]
        if odd and not any(c.file == scores.file and c.split in EVALUATED for c in run.curves):
            told = ", ".join(f"{s.key} is {word(s.value)}" for s in odd[:6])
            yield Finding(
                "not_a_number",
                run.name,
                scores.file,
                "numbers",
                told,
                "it is shown as not a number and sorts last; write nothing where nothing was measured",
            )


def _incomplete(run: Run) -> Iterator[Finding]:
    """Evaluations that ended early, or in which nothing ran."""
    for table in _tables(run):
        if isinstance(table, ResultsTable) and table.status not in ("ok", "success", ""):
            counts = {row.n for row in table.rows if row.n is not None}
            behind = f"; its numbers are over n = {min(counts):,}" if counts else ""
            yield Finding(
                "incomplete_results",
                run.name,
                f"{table.file}, {table.name}" if table.name else table.file,
                "a whole evaluation",
                table.status + behind,
                "run the whole evaluation before its numbers are compared",
            )


def _far_apart(run: Run) -> Iterator[Finding]:
    """The same score of two splits in one file, far apart."""
    for scores in run.scores:
        for metric in ("accuracy", "macro_f1", "f1"):
            by_split = {s.split: s for s in scores.scores if s.metric == metric and s.label is None and not s.dataset}
            one, other = by_split.get("eval"), by_split.get("test")
            if one and other and abs(one.value - other.value) > _GAP:
                yield Finding(
                    "splits_far_apart",
                    run.name,
                    scores.file,
                    f"{other.key} near {one.key}, {one.value:.4f}",
                    f"{other.value:.4f}",
                    "look whether both splits have the same classes in the same order, and come from one source",
                )
                break


def _axes(run: Run) -> Iterator[Finding]:
    """Matrices of which nothing says whether a row is a true or a predicted class."""
    for table in _tables(run):
        if isinstance(table, MatrixTable) and table.rows == "unknown":
            judge = f'; its rows are called "{table.row_name}", which may be another judge' if table.row_name else ""
            yield Finding(
                "axes_unknown",
                run.name,
                f"{table.file}, {table.name}" if table.name else table.file,
                "a file that says whether its rows are the true or the predicted classes",
                "nothing says so" + judge,
                "say it on the page; until then it has neither precision nor recall",
            )


def _tables(run: Run) -> list[Table]:
    return [*run.tables, *(table for checkpoint in run.checkpoints for table in checkpoint.tables)]


CHECKS = (_not_finite, _incomplete, _far_apart, _axes)
