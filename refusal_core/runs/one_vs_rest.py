"""Counts of each class against all others: TP, FP, FN, TN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from refusal_core.runs.names import split_word
from refusal_core.runs.tables import MOST_A_CELL, OneVsRestTable
from refusal_core.runs.text import number

CELLS = {
    "true_positives": ("tp", "true_positive", "true_positives", "true positives"),
    "false_positives": ("fp", "false_positive", "false_positives", "false positives"),
    "false_negatives": ("fn", "false_negative", "false_negatives", "false negatives"),
    "true_negatives": ("tn", "true_negative", "true_negatives", "true negatives"),
}


def key_of(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    return next((name for name in names if name.strip().lower() in wanted), None)


def from_mapping(value: Mapping, file: str, name: str) -> OneVsRestTable | None:
    if not value or not all(isinstance(row, Mapping) for row in value.values()):
        return None
    rows = []
    for label, row in value.items():
        keys = [key_of(list(row), wanted) for wanted in CELLS.values()]
        if None in keys:
            return None
        rows.append((label, *(number(row[key]) for key in keys)))
    return _table(rows, file, name)


def from_rows(header: Sequence[str], rows: Sequence[Sequence[str]], file: str) -> OneVsRestTable | None:
    places = [key_of(header, wanted) for wanted in CELLS.values()]
    if None in places or not rows:
        return None
    at = [list(header).index(place) for place in places]
    label_at = next((i for i in range(len(header)) if i not in at), None)
    if label_at is None or any(len(row) != len(header) for row in rows):
        return None
    return _table([(row[label_at].strip(), *(number(row[i]) for i in at)) for row in rows], file, "")


def _table(rows: list[tuple], file: str, name: str) -> OneVsRestTable | None:
    if any(cell is None or not 0 <= cell < MOST_A_CELL or cell != round(cell) for row in rows for cell in row[1:]):
        return None
    columns = [np.array(column, dtype=np.int64) for column in list(zip(*rows, strict=True))[1:]]
    split = split_word(name) or split_word(file.rpartition("/")[2])
    return OneVsRestTable(file, name, split, tuple(str(row[0]) for row in rows), *columns)
