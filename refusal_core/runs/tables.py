"""The tables that lie beside a training: reports by class, confusion matrices, results of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Axis = Literal["true", "predicted", "unknown"]
Counted = Literal["counts", "row shares", "column shares", "shares of all"]


MOST_ITEMS = 2**53  # whole numbers up to here are exact
MOST_A_CELL = 1e12  # of a matrix: all cells together stay below 2**63


def count_of(share: float | None, n: float | None) -> int | None:
    """The whole number of n items nearest to a share; None where the one is no share or the other counts no items."""
    if share is None or n is None or not 0 <= share <= 1 or not 0 <= n < MOST_ITEMS or n != round(n):
        return None
    return round(share * n)


@dataclass(frozen=True)
class ReportRow:
    """One class, or one average, of a report. A score that the file leaves empty or calls NaN is None."""

    label: str
    """As in the file; of an average its name there, for example "macro avg"."""
    precision: float | None
    recall: float | None
    f1: float | None
    support: float | None
    """Items whose true class it is; None where the file states none (the accuracy row of a CSV repeats a score)."""


@dataclass(frozen=True)
class ReportTable:
    """Precision, recall and F1 by class, as scikit-learn prints or returns them."""

    file: str
    """Below the folder that was read, with "/"."""
    name: str
    """The heading above the table, "" without one."""
    split: str
    """"train", "eval", "test" or "" as far as heading or file name say it."""
    classes: tuple[ReportRow, ...]
    averages: tuple[ReportRow, ...]
    """"macro avg", "weighted avg", "micro avg", "samples avg": those that the file has."""
    accuracy: float | None
    """Of the accuracy row; None where the file has "micro avg" or nothing in its place."""
    n: int | None
    """Items in all, from the averages' support, else the sum of the classes'."""
    digits: int | None
    """Digits after the point in printed scores, None where they are not rounded."""
    numbers: dict[str, float] = field(default_factory=dict)
    """Other single numbers of the same file."""

    def average(self, name: str) -> ReportRow | None:
        """The row "macro avg", "weighted avg" or "micro avg"; `name` with or without " avg"."""
        wanted = name.removesuffix(" avg")
        return next((row for row in self.averages if row.label.lower().removesuffix(" avg") == wanted), None)


@dataclass(frozen=True, eq=False)
class MatrixTable:
    """A confusion matrix as it lies in the file."""

    file: str
    name: str
    split: str
    labels: tuple[str, ...]
    """One a row, in the order of the file; "0", "1", … where the file has none."""
    labels_stated: bool
    values: NDArray[np.float64]
    """[k, k] in the file's own orientation."""
    counted: Counted
    rows: Axis
    """What a row is: "true" when the file says so. With "unknown" nobody may compute recall before it is settled."""
    columns: Axis
    row_name: str = ""
    """What the file calls the rows, for example the name of a judge."""
    column_name: str = ""
    axes_from: str = ""
    """The words of the file that settle the axes, "" where none do."""

    @property
    def n(self) -> int | None:
        """Items in all; None for a matrix of shares."""
        return round(float(self.values.sum())) if self.counted == "counts" else None

    def true_by_predicted(self) -> NDArray[np.float64] | None:
        """[k, k] with true classes as rows; None while the axes are unknown."""
        if self.rows == "unknown":
            return None
        return self.values if self.rows == "true" else self.values.T


@dataclass(frozen=True, eq=False)
class OneVsRestTable:
    """Counts of each class against all others: no full confusion matrix follows from them."""

    file: str
    name: str
    split: str
    labels: tuple[str, ...]
    true_positives: NDArray[np.int64]
    """[k], like the three below."""
    false_positives: NDArray[np.int64]
    false_negatives: NDArray[np.int64]
    true_negatives: NDArray[np.int64]


@dataclass(frozen=True)
class Result:
    """One number of a results file."""

    group: str
    """Task, scorer, provider or the path in a nested file; "" at the top."""
    metric: str
    value: float | None
    """None where the file has none or NaN; `status` says which."""
    n: int | None
    """Items behind it, where the file says it."""
    status: str
    """"ok", "nothing ran", "incomplete", "not a number", "infinite", or the file's own word."""
    error: float | None = None
    """Standard error, where the file states one."""
    higher_is_better: bool | None = None


@dataclass(frozen=True)
class ResultsTable:
    """Numbers of an evaluation that are no report by class: promptfoo, Inspect, lm-eval, home-made JSON."""

    file: str
    name: str
    tool: Literal["promptfoo", "Inspect", "lm-eval", "Trackio table", "home-made"]
    rows: tuple[Result, ...]
    status: str
    """Of the whole: "ok", "nothing ran", or why it is only a part."""
    facts: dict[str, str] = field(default_factory=dict)
    """Model, task, limit, version and the like, as text."""


Table = ReportTable | MatrixTable | OneVsRestTable | ResultsTable
