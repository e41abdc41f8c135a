"""Classification reports as data: scikit-learn's dict in JSON, and its table in CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refusal_core.runs.names import split_word
from refusal_core.runs.report_text import AVERAGES, items, score
from refusal_core.runs.tables import ReportRow, ReportTable

_F1 = ("f1-score", "f1_score", "f1", "f1score", "f-score")
_NEEDED = ("precision", "recall", "support")


def is_report(value: object) -> bool:
    """Whether a JSON value is a report: an object of objects with an F1, apart from plain numbers like accuracy."""
    if not isinstance(value, Mapping):
        return False
    inner = [row for row in value.values() if isinstance(row, Mapping)]
    others = [row for row in value.values() if not isinstance(row, Mapping)]
    return (
        len(inner) >= 1
        and all(_f1_key(row) and "precision" in row and "recall" in row for row in inner)
        and all(isinstance(row, int | float | str | None) for row in others)
    )


def from_mapping(value: Mapping[str, object], file: str, name: str = "") -> ReportTable:
    """The report that `is_report` is true of."""
    rows, numbers, accuracy = [], {}, None
    for label, row in value.items():
        if isinstance(row, Mapping):
            rows.append(_row(label, row.get("precision"), row.get("recall"), row[_f1_key(row)], row.get("support")))
        elif (found := score(row)) is not None:
            if label.lower() == "accuracy":
                accuracy = found
            else:
                numbers[label] = found
    return _table(rows, file, name, accuracy, numbers)


def from_rows(header: Sequence[str], rows: Sequence[Sequence[str]], file: str) -> ReportTable | None:
    """The report of a CSV, its first column the labels; None when the header is none of a report."""
    names = [cell.strip().lower() for cell in header]
    f1 = next((name for name in _F1 if name in names), None)
    if f1 is None or any(name not in names for name in _NEEDED):
        return None
    place = {name: names.index(name) for name in ("precision", "recall", "support")} | {"f1": names.index(f1)}
    label_at = next((i for i in range(len(names)) if i not in place.values()), None)
    if label_at is None:
        return None
    kept, accuracy = [], None
    for row in rows:
        if len(row) <= max(place.values()) or not row[label_at].strip():
            continue
        found = _row(row[label_at].strip(), *(row[place[key]] for key in ("precision", "recall", "f1", "support")))
        if found.label.lower() == "accuracy":  # its support repeats the score, or is empty
            accuracy = found.f1 if found.f1 is not None else found.precision
        else:
            kept.append(found)
    return _table(kept, file, "", accuracy, {}) if kept else None


def _row(label: str, precision: object, recall: object, f1: object, support: object) -> ReportRow:
    return ReportRow(label, score(precision), score(recall), score(f1), items(support))


def _f1_key(row: Mapping) -> str | None:
    return next((key for key in _F1 if key in row), None)


def _table(rows: list[ReportRow], file: str, name: str, accuracy: float | None, numbers: dict) -> ReportTable:
    averages = tuple(row for row in rows if row.label.lower() in AVERAGES)
    classes = tuple(row for row in rows if row.label.lower() not in AVERAGES)
    totals = [row.support for row in averages if row.support is not None]
    supports = [row.support for row in classes if row.support is not None]
    n = totals[0] if totals else sum(supports) if supports else None
    return ReportTable(
        file=file,
        name=name,
        split=split_word(name) or split_word(file.rpartition("/")[2]),
        classes=classes,
        averages=averages,
        accuracy=accuracy,
        n=None if n is None else int(n),
        digits=None,
        numbers=numbers,
    )
