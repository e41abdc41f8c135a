"""Scores of each class of a report, with their intervals where its digits let one count back."""

from __future__ import annotations

import numpy as np

from refusal_core.metrics.intervals import Rate, f1_rate, rate
from refusal_core.metrics.report import ClassScores
from refusal_core.runs.tables import ReportRow, ReportTable, count_of


def class_scores(table: ReportTable) -> tuple[ClassScores, ...]:
    """One for each class of a report, in its order.

    A report states rates. Right answers are recall times support, and answers so named are those over precision; where
    both are whole numbers that give back every printed digit, the intervals follow from them. Elsewhere a rate stands
    without one, with the support as its n, and 0 for a precision. A score that the table leaves empty stays undefined.
    """
    return tuple(_of_row(row, table.digits) for row in table.classes)


def _of_row(row: ReportRow, digits: int | None) -> ClassScores:
    support = round(row.support) if row.support is not None and 0 <= row.support < 2**53 else 0
    within = 0.51 * 10.0**-digits if digits is not None else 1e-6
    right = _whole(row.recall, support, within)
    predicted = _predicted(row.precision, right, within)
    recall = rate(right, support) if right is not None and support else Rate(_value(row.recall, support), support, None)
    precision = rate(right, predicted) if predicted else Rate(row.precision, 0, None)
    whole = predicted is not None and right is not None and _agrees(row.f1, right, predicted, support, within)
    f1 = f1_rate(right, predicted - right, support - right) if whole else Rate(row.f1, support, None)
    return ClassScores(row.label, precision, recall, f1, support, predicted or 0)


def _value(stated: float | None, support: int) -> float | None:
    """A recall over no items is undefined, whatever the report prints."""
    return stated if support else None


def _whole(share: float | None, n: int, within: float) -> int | None:
    """The count of n that a share is of, where just one rounds to it."""
    count = count_of(share, n) if n and within * n < 0.5 else None
    return count if count is not None and abs(count / n - share) <= within else None


def _predicted(precision: float | None, right: int | None, within: float) -> int | None:
    """How many answers name the class, where just one number gives the precision."""
    if not precision or not right or not 0 < precision <= 1:
        return None
    low, high = (right / min(precision + within, 1.0), right / max(precision - within, 1e-9))
    first = int(np.ceil(low - 1e-9))
    return first if first <= high and first + 1 > high else None


def _agrees(f1: float | None, right: int, predicted: int, support: int, within: float) -> bool:
    return f1 is not None and abs(2 * right / (predicted + support) - f1) <= within
