"""Files of one evaluation that do not say the same: headline, report and matrix against one another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from refusal_core.metrics.report import SCORES, report_from_matrix
from refusal_core.runs.model import Finding, Run, Scores
from refusal_core.runs.recount import Recount, of_matrix, of_report, stated_averages, supports_of
from refusal_core.runs.tables import MatrixTable, ReportTable, Table

_RECOMPUTE = "recompute both from the predictions; until then quote what can be added up again"
_RULE = "say which rule a macro average follows wherever it is quoted"


def contradictions(run: Run) -> list[Finding]:
    """All of a run, those of its checkpoints too; the same one of two files once."""
    found: list[Finding] = []
    places: list[tuple[Sequence[Table], Sequence[Scores]]] = [(run.tables, run.scores)]
    places += [(c.tables, (c.metrics,) if c.metrics else ()) for c in run.checkpoints]
    for tables, scores in places:
        reports = [t for t in tables if isinstance(t, ReportTable)]
        matrices = [t for t in tables if isinstance(t, MatrixTable)]
        for report in reports:
            found += _within(report)
        for i, report in enumerate(reports):
            found += (f for other in reports[i + 1 :] for f in _two_rules(report, other))
            found += (f for matrix in matrices for f in _against_matrix(report, matrix))
        recounts = [of_report(r) for r in reports] + [r for m in matrices if (r := of_matrix(m))]
        for each in scores:
            found += _headline(each, recounts)
        found += (f for r in reports for f in _without_items(r))
        found += (f for m in matrices for f in _one_answer(m))
    unique = {(f.kind, f.where, f.expected, f.found): f for f in found}
    return [Finding(f.kind, run.name, f.where, f.expected, f.found, f.fix) for f in unique.values()]


def _within(report: ReportTable) -> Iterator[Finding]:
    """A report against itself: the averages against the class rows, their supports against the sum."""
    recount = of_report(report)
    for name, stated in stated_averages(report).items():
        value = recount.values.get(name)
        if value is None or abs(stated - value) <= _tolerance(recount, report.digits):
            continue
        other = recount.left_out.get(name)
        if other is not None and abs(stated - other) <= _tolerance(recount, report.digits):
            continue  # the other rule, which `_two_rules` or the page tells
        yield _contradiction(_place(report, name), f"{_number(value)} by its class rows", _number(stated), _RECOMPUTE)
    supports = [row.support for row in report.classes]
    if supports and all(s is not None for s in supports):
        stated = next((row.support for row in report.averages if row.support is not None), None)
        if stated is not None and abs(sum(supports) - stated) > 0.5 and report.average("samples") is None:
            yield _contradiction(
                _place(report, "support"),
                f"{sum(supports):,.0f}, the sum of its classes",
                f"{stated:,.0f}",
                "a class may be missing from the table: print the report with all labels",
            )


def _two_rules(one: ReportTable, other: ReportTable) -> Iterator[Finding]:
    """Two reports of the same items that only differ in what 0/0 counts as."""
    rows = [{row.label: row for row in table.classes} for table in (one, other)]
    if rows[0].keys() != rows[1].keys() or one.split != other.split:
        return
    digits = min((t.digits for t in (one, other) if t.digits is not None), default=6)
    pairs = [(row, rows[1][label]) for label, row in rows[0].items()]
    if not all(a.support == b.support and _alike(a.recall or 0.0, b.recall or 0.0, digits) for a, b in pairs):
        return
    told = []
    for name, a in stated_averages(one).items():
        b = stated_averages(other).get(name)
        if b is None or _alike(a, b, digits):
            continue
        rules = [_rule_of(table, name, value) for table, value in ((one, a), (other, b))]
        if None not in rules and rules[0] != rules[1]:
            told.append((name, a, b, rules))
        elif name in ("accuracy", "weighted_f1", "macro_f1"):
            where = f"{other.file}: {_spoken(name)}"
            yield _contradiction(where, f"{_number(a)} by {one.file}", _number(b), _RECOMPUTE)
    if told:
        name, a, b, rules = next((each for each in told if each[0] == "macro_f1"), told[0])
        others = [_spoken(each[0]) for each in told if each[0] != name]
        also = f"; {', '.join(others)} differ likewise" if others else ""
        yield _contradiction(
            f"{one.file} and {other.file}: {_spoken(name)}",
            f"one rule for 0/0: {_number(a)} where it {rules[0]}",
            f"{_number(b)} where it {rules[1]}, of the same predictions{also}",
            _RULE,
        )


def _rule_of(table: ReportTable, name: str, value: float) -> str | None:
    """Under which rule a table's own rows give the value."""
    recount = of_report(table)
    within = _tolerance(recount, table.digits)
    undefined = recount.left_out.get(name)
    if undefined is not None and abs(undefined - value) <= within:
        return "is left out of the mean"
    if name in recount.values and abs(recount.values[name] - value) <= within:
        return "counts as 0"
    return None


def _against_matrix(report: ReportTable, matrix: MatrixTable) -> Iterator[Finding]:
    """Row sums against supports, and each class's scores against those of the matrix."""
    supports, counts = supports_of(report, matrix), matrix.true_by_predicted()
    if supports is None or counts is None or matrix.counted != "counts" or not _same_split(report.split, matrix.split):
        return
    sums = counts.sum(axis=1)
    if not np.array_equal(sums, supports):
        if np.array_equal(counts.sum(axis=0), supports):
            expected = f"row sums {_counts(supports)}, the supports of {report.file}"
            found = f"{_counts(sums)}, while the column sums are just these"
            yield _contradiction(_where(matrix), expected, found, "its rows are the predicted classes: swap the axes")
        elif sums.sum() == supports.sum():
            expected = f"row sums {_counts(supports)}, the supports of {report.file}"
            yield _contradiction(_where(matrix), expected, _counts(sums), _RECOMPUTE)
        return
    again = report_from_matrix(counts.astype(np.int64), matrix.labels)
    unit = (10.0**-report.digits if report.digits is not None else 2e-6) * 0.51
    order = {row.label: row for row in report.classes} if matrix.labels_stated else None
    for place, scores in enumerate(again.classes):
        row = order[scores.label] if order else report.classes[place]
        for score in SCORES:
            stated, counted = getattr(row, score), getattr(scores, score).value
            if stated is not None and counted is not None and abs(stated - counted) > unit:
                expected = f"{_number(counted)} by the matrix of {matrix.file}"
                yield _contradiction(_place(report, f"{score} of {row.label}"), expected, _number(stated), _RECOMPUTE)


def _headline(scores: Scores, recounts: Sequence[Recount]) -> Iterator[Finding]:
    """A results file against what its tables add up to, where both are of one evaluation.

    They are when the split that the file states, or else its keys, is the table's, or the table states none, and most
    of the numbers are the same.
    """
    for recount in recounts:
        pairs = []
        for score in scores.scores:
            value = recount.values.get(score.metric)
            if score.label is not None or score.dataset or value is None or not math.isfinite(score.value):
                continue
            if _same_split(scores.split or score.split, recount.split):
                rules = (value, recount.left_out.get(score.metric, value))
                within = _tolerance(recount, _digits(score.value))
                pairs.append((score, value, any(abs(score.value - rule) <= within for rule in rules)))
        n = scores.n
        same = sum(equal for _, _, equal in pairs)
        of_one = same * 2 > len(pairs) or (same * 2 == len(pairs) and n is not None and n == recount.n)
        if not pairs or not of_one or (n is not None and recount.n is not None and n != recount.n):
            continue
        for score, value, equal in pairs:
            if not equal:
                behind = f" (n = {recount.n:,})" if recount.n else ""
                expected = f"{_number(value, 4)} by {recount.source}{behind}"
                yield _contradiction(f"{scores.file}: {score.key}", expected, _number(score.value), _RECOMPUTE)


def _without_items(report: ReportTable) -> Iterator[Finding]:
    """Classes without an item whose 0/0 stands as 0 and lowers the macro average."""
    empty = [row.label for row in report.classes if row.support == 0]
    recount = of_report(report)
    value, other = recount.values.get("macro_f1"), recount.left_out.get("macro_f1")
    stated = stated_averages(report).get("macro_f1")
    if not empty or value is None or other is None or stated is None:
        return
    if abs(stated - value) <= _tolerance(recount, report.digits):
        yield Finding(
            "undefined_as_zero",
            "",
            _place(report, ", ".join(empty[:5])),
            f"macro F1 {_number(other, report.digits or 4)} over the classes that have items",
            f"{_number(stated)}: {len(empty)} of {len(report.classes)} classes have no item, and count as 0",
            _RULE,
        )


def _one_answer(matrix: MatrixTable) -> Iterator[Finding]:
    """A matrix of which one column is filled: the model gives one answer to everything."""
    counts = matrix.true_by_predicted()
    if counts is None or len(matrix.labels) < 2 or counts.sum() <= 0:
        return
    used = np.flatnonzero(counts.sum(axis=0) > 0)
    if len(used) == 1 and np.count_nonzero(counts.sum(axis=1)) > 1:
        yield Finding(
            "one_class_predicted",
            "",
            _where(matrix),
            f"answers of {np.count_nonzero(counts.sum(axis=1))} classes",
            f'"{matrix.labels[used[0]]}" for all {counts.sum():,.0f} items; precision of the other classes is 0/0',
            "it learned only how often each class occurs: look at the learning rate, the labels and the class weights",
        )


def _tolerance(recount: Recount, digits: int | None) -> float:
    """How far a stated number may be from the recounted one by rounding alone."""
    own = 0.51 * 10.0**-digits if digits is not None else 1e-6
    return own + 0.5 * recount.within


def _digits(value: float) -> int | None:
    """Digits after the point of a number that is written with few; None for one in full."""
    return next((digits for digits in range(2, 7) if value == round(value, digits)), None)


def _contradiction(where: str, expected: str, found: str, fix: str) -> Finding:
    return Finding("contradiction", "", where, expected, found, fix)


def _same_split(one: str, other: str) -> bool:
    return not one or not other or one == other


def _alike(a: float | None, b: float | None, digits: int) -> bool:
    return a == b if a is None or b is None else abs(a - b) <= 0.51 * 10.0**-digits + 1e-12


def _number(value: float, digits: int | None = None) -> str:
    if digits is None:
        digits = _digits(value) or 4
    return f"{value:.{digits}f}"


def _spoken(name: str) -> str:
    return name.replace("_f1", " F1").replace("_", " ")


def _where(table: Table) -> str:
    return f"{table.file}, {table.name}" if table.name else table.file


def _place(table: Table, what: str) -> str:
    return f"{_where(table)}: {_spoken(what)}"


def _counts(values: np.ndarray) -> str:
    return ", ".join(f"{value:,.0f}" for value in values[:12]) + (" …" if len(values) > 12 else "")
