"""What is known of a checkpoint class by class: from its predictions, its matrix, or its report, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import InputError
from refusal_core.metrics.intervals import Rate, f1_rate, rate
from refusal_core.metrics.items import Items
from refusal_core.metrics.metric import Metric
from refusal_core.metrics.report import report_from_matrix
from refusal_core.metrics.scores import score, score_matrix, scores_by_class
from refusal_core.runs.model import Run
from refusal_core.runs.predictions import Predictions, variants_of
from refusal_core.runs.tables import MatrixTable, OneVsRestTable, ReportRow, ReportTable, Table, count_of

Source = Literal["predictions", "matrix", "one against the rest", "report"]
Rows = Literal["true", "predicted"]
_EXACT = 5e-7  # of a report whose scores are not rounded


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation that says something by class."""

    run: str
    checkpoint: str
    """"" for what belongs to the run as a whole."""
    source: Source
    file: str
    part: str
    """Split and variant, or the heading of a table."""
    table: ReportTable | MatrixTable | OneVsRestTable | None = None
    predictions: Predictions | None = None
    split: str = ""
    variant: str = ""
    alone: bool = False
    """Whether its run is the only one, so that a list need not name it."""

    @property
    def key(self) -> str:
        """Stable, for links and widgets."""
        return "|".join((self.run, self.checkpoint, self.source, self.file, self.part))

    @property
    def name(self) -> str:
        """For a list to choose from."""
        run = "" if self.alone else self.run
        what = f"{self.file.rpartition('/')[2]}" + (f", {self.part}" if self.part else "")
        return ": ".join(filter(None, (" ".join(filter(None, (run, self.checkpoint))), what)))

    @property
    def axes_unknown(self) -> bool:
        """Whether somebody has to say what the rows of the matrix are."""
        return isinstance(self.table, MatrixTable) and self.table.rows == "unknown"


@dataclass(frozen=True)
class ClassRow:
    """One class. Values are None where they are undefined or not stated; intervals where counts are not known."""

    label: str
    precision: Rate
    recall: Rate
    f1: Rate
    support: int | None
    predicted: int | None


@dataclass(frozen=True)
class AverageRow:
    """One average as the file states it, or as it was computed."""

    name: str
    precision: Rate
    recall: Rate
    f1: Rate
    n: int | None


@dataclass(frozen=True)
class ClassTable:
    """Every class of one evaluation, its averages, and how the intervals were had."""

    rows: tuple[ClassRow, ...]
    averages: tuple[AverageRow, ...]
    accuracy: Rate | None
    how: str


@dataclass(frozen=True, eq=False)
class Matrix:
    """Counts [k, k], rows true; `labels` in that order."""

    labels: tuple[str, ...]
    counts: NDArray[np.int64]

    def part(self, labels: Sequence[str]) -> Matrix:
        """Of these classes only."""
        at = [self.labels.index(label) for label in labels]
        return Matrix(tuple(labels), self.counts[np.ix_(at, at)])

    def most_confused(self, n: int) -> tuple[str, ...]:
        """The `n` classes with the most wrong answers, in their order."""
        wrong = self.counts.sum(0) + self.counts.sum(1) - 2 * np.diag(self.counts)
        return tuple(self.labels[i] for i in sorted(np.argsort(-wrong, kind="stable")[:n]))


def evaluations(runs: Sequence[Run]) -> tuple[Evaluation, ...]:
    """All of them: by run and checkpoint, predictions before matrices before reports."""
    return tuple(replace(one, alone=len(runs) == 1) for run in runs for one in _of_run(run))


def items_of(evaluation: Evaluation) -> Items:
    """Its labelled predictions. Raises InputError when it has none."""
    if evaluation.predictions is None:
        raise InputError("it holds no predictions", where=evaluation.file, fix="write predictions.jsonl beside it")
    return evaluation.predictions.items(split=evaluation.split, variant=evaluation.variant or None)


def matrix_of(evaluation: Evaluation, rows: Rows | None = None) -> Matrix | None:
    """Its confusion matrix; None where it has none, where it holds shares, or while `rows` is not said and unknown."""
    if evaluation.predictions is not None:
        items = items_of(evaluation)
        return Matrix(items.labels, items.matrix)
    table = evaluation.table
    if not isinstance(table, MatrixTable) or table.counted != "counts":
        return None
    values = (
        table.true_by_predicted()
        if table.rows != "unknown"
        else {"true": table.values, "predicted": table.values.T}.get(rows)
    )
    if values is None or not _whole(values):
        return None
    return Matrix(table.labels, values.astype(np.int64))


def class_table(evaluation: Evaluation, rows: Rows | None = None) -> ClassTable | None:
    """Scores of each class; None where the file has only shares, or its axes are unknown and `rows` is not said."""
    if evaluation.predictions is not None and (items := items_of(evaluation)).clustered:
        return _from_clusters(items)
    if matrix := matrix_of(evaluation, rows):
        return _from_matrix(matrix)
    if isinstance(evaluation.table, ReportTable):
        return _from_report(evaluation.table)
    if isinstance(evaluation.table, OneVsRestTable):
        return _from_one_vs_rest(evaluation.table)
    return None


def cell_rows(evaluation: Evaluation, true: str, predicted: str) -> list[int]:
    """Rows of the predictions in one cell of the matrix, the surest first; empty without predictions."""
    found = evaluation.predictions
    if found is None or true not in found.labels or predicted not in found.labels:
        return []
    rows = found.rows(evaluation.split, evaluation.variant or None)
    rows = rows[
        (found.true[rows] == found.labels.index(true)) & (found.predicted[rows] == found.labels.index(predicted))
    ]
    if found.probabilities is not None:
        sure = np.nan_to_num(found.probabilities[rows, found.labels.index(predicted)], nan=-1.0)
        rows = rows[np.argsort(-sure, kind="stable")]
    return [int(row) for row in rows]


def _of_run(run: Run) -> Iterator[Evaluation]:
    for checkpoint in run.checkpoints:
        yield from _of_part(run.name, checkpoint.name, checkpoint.predictions, checkpoint.tables)
    yield from _of_part(run.name, "", run.predictions, run.tables)


def _of_part(
    run: str, checkpoint: str, predictions: Sequence[Predictions], tables: Sequence[Table]
) -> Iterator[Evaluation]:
    for found in predictions:
        known = (found.true >= 0) & (found.predicted >= 0)
        for split, variant in variants_of(found):
            if known[found.rows(split, variant or None)].any():
                part = ", ".join(filter(None, (split, variant)))
                yield Evaluation(run, checkpoint, "predictions", found.file, part, None, found, split, variant)
    kinds = ((MatrixTable, "matrix"), (ReportTable, "report"), (OneVsRestTable, "one against the rest"))
    for kind, source in kinds:
        for table in tables:
            if isinstance(table, kind):
                part = ", ".join(filter(None, (table.name, table.split)))
                yield Evaluation(run, checkpoint, source, table.file, part, table)


def _from_matrix(matrix: Matrix) -> ClassTable:
    found = report_from_matrix(matrix.counts, matrix.labels)
    rows = tuple(ClassRow(c.label, c.precision, c.recall, c.f1, c.support, c.predicted) for c in found.classes)
    averages = _averages(
        lambda metric: score_matrix(matrix.counts, matrix.labels, metric), found.n, bool(found.undefined_as_zero)
    )
    how = "95% intervals: Wilson's, the one for F1 that follows from it, and a bootstrap of the items for averages."
    return ClassTable(rows, averages, found.accuracy, how)


def _from_clusters(items: Items) -> ClassTable:
    """Of items that belong together: every interval is of clusters drawn as a whole."""
    found = report_from_matrix(items.matrix, items.labels)
    by_class = {name: scores_by_class(items, name) for name in ("precision", "recall", "f1")}
    rows = tuple(
        ClassRow(c.label, *(by_class[name][c.label] for name in by_class), c.support, c.predicted)
        for c in found.classes
    )
    averages = _averages(lambda metric: score(items, metric), found.n, bool(found.undefined_as_zero))
    how = "95% intervals from a bootstrap of the groups that the items belong to, each drawn as a whole."
    return ClassTable(rows, averages, score(items, Metric("accuracy")), how)


def _averages(measure: Callable[[Metric], Rate], n: int, undefined: bool) -> tuple[AverageRow, ...]:
    """Macro and weighted means, with 0/0 left out, and where there is 0/0 the macro mean with it as 0 too."""
    kinds = [("macro", "macro", "undefined"), ("weighted", "weighted", "undefined")]
    if undefined:
        kinds[0:1] = [("macro, 0/0 left out", "macro", "undefined"), ("macro, 0/0 as 0", "macro", 0)]
        kinds[-1] = ("weighted, 0/0 left out", "weighted", "undefined")
    return tuple(
        AverageRow(
            name,
            *(measure(Metric(s, average=a, zero_division=rule)) for s in ("precision", "recall", "f1")),
            n,
        )
        for name, a, rule in kinds
    )


def _from_report(table: ReportTable) -> ClassTable:
    rows = tuple(_counted(row, table.digits) for row in table.classes)
    averages = tuple(
        AverageRow(
            row.label,
            *(Rate(v, round(row.support or 0), None) for v in (row.precision, row.recall, row.f1)),
            None if row.support is None else round(row.support),
        )
        for row in table.averages
    )
    with_counts = sum(row.recall.interval is not None for row in rows)
    how = (
        "95% intervals from the counts that give back the printed digits."
        if with_counts == len(rows)
        else f"{with_counts} of {len(rows)} classes have intervals; of the others the digits do not give counts."
    )
    return ClassTable(rows, averages, _accuracy(table, rows), how)


def _accuracy(table: ReportTable, rows: Sequence[ClassRow]) -> Rate | None:
    if table.accuracy is None:
        return None
    if table.n and all(row.recall.interval is not None or row.support == 0 for row in rows):
        right = sum(round((row.recall.value or 0) * (row.support or 0)) for row in rows)
        if right <= table.n and abs(right / table.n - table.accuracy) <= _tolerance(table.digits):
            return rate(right, table.n)
    return Rate(table.accuracy, table.n or 0, None)


def _counted(row: ReportRow, digits: int | None) -> ClassRow:
    """The row with the counts behind it, where whole numbers give back what is printed."""
    support = None if row.support is None else round(row.support)
    plain = ClassRow(
        row.label, *(Rate(v, support or 0, None) for v in (row.precision, row.recall, row.f1)), support, None
    )
    if support is None or row.recall is None or row.precision is None:
        return plain
    if support == 0:
        return ClassRow(row.label, Rate(row.precision, 0, None), Rate(None, 0, None), Rate(row.f1, 0, None), 0, None)
    near = _tolerance(digits)
    right = count_of(row.recall, support)
    if right is None or abs(right / support - row.recall) > near:
        return plain
    called = round(right / row.precision) if right and 0 < row.precision <= 1 else None
    if called is None or called < right or abs(right / called - row.precision) > near:
        return ClassRow(row.label, plain.precision, rate(right, support), plain.f1, support, None)
    f1 = f1_rate(right, called - right, support - right)
    return ClassRow(row.label, rate(right, called), rate(right, support), f1, support, called)


def _tolerance(digits: int | None) -> float:
    return _EXACT if digits is None else 0.5 * 10.0**-digits + 1e-9


def _from_one_vs_rest(table: OneVsRestTable) -> ClassTable:
    rows = []
    counts = zip(table.labels, table.true_positives, table.false_positives, table.false_negatives, strict=True)
    for label, tp, fp, fn in counts:
        tp, fp, fn = int(tp), int(fp), int(fn)
        rows.append(ClassRow(label, rate(tp, tp + fp), rate(tp, tp + fn), f1_rate(tp, fp, fn), tp + fn, tp + fp))
    return ClassTable(tuple(rows), (), None, "95% intervals from the counts of each class against the rest.")


def _whole(values: NDArray[np.float64]) -> bool:
    return bool(np.isfinite(values).all() and (values >= 0).all() and (values == np.round(values)).all())
