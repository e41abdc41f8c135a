"""What a report or a matrix says when it is added up again: the averages, under each rule for 0/0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from refusal_core.metrics.report import SCORES, report_from_matrix
from refusal_core.runs.tables import MOST_ITEMS, MatrixTable, ReportRow, ReportTable, count_of

Split = str


@dataclass(frozen=True)
class Recount:
    """Averages by name ("accuracy", "macro_f1", "weighted_recall" …) as they follow from a table's own rows.

    `left_out` has them with 0/0 left out of the mean, where that makes a difference. `within` is how far rounding of
    what is in the file may carry each of them.
    """

    file: str
    name: str
    split: Split
    n: int | None
    values: Mapping[str, float]
    left_out: Mapping[str, float]
    within: float
    source: str


def of_report(table: ReportTable) -> Recount:
    """From the class rows. A score that the file leaves empty or calls NaN is 0/0.

    A score of which a class has a number outside 0 to 1 has no average, nor is anything weighted by supports that count
    no items: such a number is in no mean, and one like 1e308 would overflow it.
    """
    values: dict[str, float] = {}
    left_out: dict[str, float] = {}
    supports = [row.support for row in table.classes]
    known = all(support is not None and 0 <= support < MOST_ITEMS for support in supports)
    shown = any(getattr(row, score) is None for row in table.classes for score in SCORES)  # then a 0 is a true 0
    total = sum(supports) if known else 0
    for score in SCORES:
        found = [getattr(row, score) for row in table.classes]
        undefined = [
            value is None or (not shown and _is_nothing(row, score))
            for row, value in zip(table.classes, found, strict=True)
        ]
        if all(value is None for value in found) or not all(value is None or 0 <= value <= 1 for value in found):
            continue
        zeros = [value or 0.0 for value in found]
        values[f"macro_{score}"] = float(np.mean(zeros))
        kept = [value for value, odd in zip(zeros, undefined, strict=True) if not odd]
        if len(kept) < len(zeros) and kept:
            left_out[f"macro_{score}"] = float(np.mean(kept))
        if known and total > 0:
            values[f"weighted_{score}"] = float(np.average(zeros, weights=supports))
            weights = [support for support, odd in zip(supports, undefined, strict=True) if not odd]
            if len(kept) < len(zeros) and sum(weights):
                left_out[f"weighted_{score}"] = float(np.average(kept, weights=weights))
    if known and total > 0 and all(row.recall is not None or not row.support for row in table.classes):
        # Recall times support is a whole number of right answers, which rounding hides: it is rounded back.
        rights = [count_of(row.recall or 0.0, row.support) for row in table.classes]
        if None not in rights:
            values["accuracy"] = sum(rights) / total
    unit = 10.0**-table.digits if table.digits is not None else 2e-6
    source = f"the class rows of {table.file}"
    return Recount(table.file, table.name, table.split, table.n, values, left_out, unit, source)


def of_matrix(table: MatrixTable) -> Recount | None:
    """From the counts; None for shares and while the axes are unknown."""
    counts = table.true_by_predicted()
    if counts is None or table.counted != "counts" or not np.array_equal(counts, np.rint(counts)) or counts.min() < 0:
        return None
    report = report_from_matrix(counts.astype(np.int64), table.labels)
    values = {} if report.accuracy.value is None else {"accuracy": report.accuracy.value}
    left_out = {}
    for kind, means in (("macro", report.macro), ("weighted", report.weighted)):
        values |= {f"{kind}_{s}": getattr(means, s) for s in SCORES if getattr(means, s) is not None}
    for score in SCORES:
        other = getattr(report.macro_where_defined, score)
        if other is not None and other != values.get(f"macro_{score}"):
            left_out[f"macro_{score}"] = other
    source = f"the matrix of {table.file}"
    return Recount(table.file, table.name, table.split, report.n, values, left_out, 1e-6, source)


def stated_averages(table: ReportTable) -> dict[str, float]:
    """The averages that a report prints, by the same names."""
    found = {} if table.accuracy is None else {"accuracy": table.accuracy}
    for kind in ("macro", "weighted", "micro"):
        row = table.average(kind)
        for score in SCORES if row else ():
            if getattr(row, score) is not None:
                found[f"{kind}_{score}"] = getattr(row, score)
    return found


def settled(matrix: MatrixTable, reports: Sequence[ReportTable], matrices: Sequence[MatrixTable] = ()) -> MatrixTable:
    """The matrix with its axes named, where a report beside it has the sums of just one of them as its supports.

    Or where another matrix with the same counts names them.
    """
    if matrix.rows != "unknown" or matrix.counted != "counts":
        return matrix
    if np.array_equal(matrix.values, matrix.values.T):
        return replace(matrix, rows="true", columns="predicted", axes_from="it is symmetric: both ways say the same")
    for other in matrices:
        if other.rows != "unknown" and np.array_equal(other.values, matrix.values):
            told = f"the same counts as in {other.file}"
            return replace(matrix, rows=other.rows, columns=other.columns, axes_from=told)
    for report in reports:
        supports = supports_of(report, matrix)
        if supports is None or (report.split and matrix.split and report.split != matrix.split):
            continue
        rows, columns = (np.array_equal(matrix.values.sum(axis=axis), supports) for axis in (1, 0))
        if rows != columns:
            true, side = ("true", "row") if rows else ("predicted", "column")
            other = "predicted" if rows else "true"
            return replace(matrix, rows=true, columns=other, axes_from=f"{side} sums are the supports of {report.file}")
    return matrix


def supports_of(report: ReportTable, matrix: MatrixTable) -> np.ndarray | None:
    """The report's supports in the order of the matrix; by place where the matrix has no names of its own."""
    if len(report.classes) != len(matrix.labels) or any(row.support is None for row in report.classes):
        return None
    rows = {row.label: row.support for row in report.classes}
    if matrix.labels_stated:
        if set(rows) != set(matrix.labels):
            return None
        return np.array([rows[label] for label in matrix.labels])
    return np.array([row.support for row in report.classes])


def _is_nothing(row: ReportRow, score: str) -> bool:
    """Whether a stated 0 may be 0/0: a class without items has no recall, nor an F1 when it was never predicted."""
    return row.support == 0 and (score == "recall" or (score == "f1" and not row.precision))
