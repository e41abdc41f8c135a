"""How the classifier of a column of responses errs: its confusion over labelled validation rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from refusal_core.errors import InputError
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.scorecard.correction import Validation
from refusal_core.scorecard.table import NotComputed, places

if TYPE_CHECKING:
    from refusal_core.scorecard.columns import Column, Rows


def validation_rows(column: Column) -> Rows:
    """The labelled exchanges that the classifier must answer; none where the file holds its answers already."""
    written = column.spec.validated_on
    if written is None or _holds_predictions(column, written):
        return []
    rows = column.files.exchanges(written, {})
    if bad := [row for row in rows if isinstance(row, BadRow) or row.label is None]:
        what = bad[0].error if isinstance(bad[0], BadRow) else "there is no label"
        raise InputError(f"line {bad[0].line}: {what}", where=written, why="validation rows are labelled exchanges")
    return rows


def validation_of(column: Column) -> Validation | None:
    """Counts of true against answered; None where the column names no validation rows."""
    written, labels = column.spec.validated_on, column.labels
    if written is None:
        return None
    if _holds_predictions(column, written):
        found = column.files.predictions(written)
        at = found.rows()
        names = [
            [found.labels[i] if i >= 0 else None for i in side[at].tolist()] for side in (found.true, found.predicted)
        ]
        true, predicted = (places(side, labels, column.suite.label_aliases) for side in names)
    else:
        rows = [row for row in validation_rows(column) if isinstance(row, Exchange)]
        true = places([row.label for row in rows], labels, column.suite.label_aliases)
        predicted = column.answered(rows).predicted
    if len(true) and (true < 0).any():
        raise NotComputed(f"some rows of {written} have no true class of the suite")
    both = (true >= 0) & (predicted >= 0)
    k = len(labels)
    counts = np.bincount(true[both] * k + predicted[both], minlength=k * k).reshape(k, k)
    return Validation(labels, counts)


def _holds_predictions(column: Column, written: str) -> bool:
    keys = column.files.first_keys(written)
    return "response" not in keys and bool({"true", "probabilities"} & keys)
