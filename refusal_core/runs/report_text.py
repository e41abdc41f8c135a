"""Classification reports as text, one or several in a file, between anything else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from refusal_core.errors import InputError
from refusal_core.runs.names import split_word
from refusal_core.runs.tables import MOST_ITEMS, ReportRow, ReportTable
from refusal_core.runs.text import number

AVERAGES = frozenset(("micro avg", "macro avg", "weighted avg", "samples avg"))
# Column names in any order of the first three; cut from the right, since labels may hold spaces and digits.
_HEADER = re.compile(
    r"^[\s|]*(?:class|label|category)?[\s|]*precision[\s|,]+recall[\s|,]+f1(?:[-_ ]?score)?[\s|,]+support[\s|]*$", re.I
)
_CELL = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?%?|nan|inf|-"
_ROW = re.compile(rf"^(?:(.*?)\s+)?({_CELL})\s+({_CELL})\s+({_CELL})\s+(\d+(?:\.0*)?|nan)\s*$", re.I | re.S)
_ACCURACY = re.compile(rf"^\s*accuracy\s+({_CELL})\s+(\d+(?:\.0*)?)\s*$", re.I)
_RULED = re.compile(r"^[\s|:+=-]*$")
_MOST_CHARACTERS = 2_000  # of a line that can be part of a report
_MOST_HEADINGS = 5  # lines above a table that are looked at for its name


@dataclass
class _Found:
    """A table on its way: rows as they come."""

    name: str
    classes: list[ReportRow]
    averages: list[ReportRow]
    accuracy: float | None = None
    accuracy_n: int | None = None
    digits: int = 0


def has_header(text: str) -> bool:
    """Whether any line is the header of a report."""
    return any(_is_header(line) for line in text.splitlines())


def read_reports(text: str, file: str) -> tuple[ReportTable, ...]:
    """Every report of the text, in order, each named by the heading above it. None at all gives an empty tuple."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if _is_header(line)]
    found = []
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        table = _Found(_heading(lines, start), [], [])
        for line in _rows(lines[start + 1 : end]):
            if not _take(line, table):
                break
        if table.classes or table.averages:
            found.append(_finished(table, file))
    return tuple(found)


def _rows(lines: Sequence[str]) -> Iterator[str]:
    """The lines of a table; a label that holds a line break is put together again."""
    held = ""
    for line in lines:
        if len(line) > _MOST_CHARACTERS:
            return
        plain = " ".join((line.replace("|", " ") if line.count("|") >= 4 else line).split())
        if held and not plain:
            held = ""
        if _RULED.match(plain):
            continue
        whole = f"{held}\n{plain}" if held else plain
        if held and _is_row(plain) and plain.split(None, 1)[0].lower() in ("micro", "macro", "weighted", "accuracy"):
            whole = plain
        if _is_row(whole):
            held = ""
            yield whole
        elif held or not _has_numbers(plain):
            held = whole if whole.count("\n") < 2 else ""
            if not held:
                yield plain  # no row: the table ends here
        else:
            yield plain


def _is_header(line: str) -> bool:
    return len(line) <= _MOST_CHARACTERS and "recall" in line.lower() and bool(_HEADER.match(" ".join(line.split())))


def _is_row(line: str) -> bool:
    return bool(_ROW.match(line) or _ACCURACY.match(line))


def _has_numbers(line: str) -> bool:
    return len(re.findall(r"\d", line)) > 3


def _take(line: str, table: _Found) -> bool:
    """Add the line to the table; False when it is no part of one."""
    if found := _ACCURACY.match(line):
        n = items(found[2])
        table.accuracy, table.accuracy_n = score(found[1]), None if n is None else int(n)
        return True
    found = _ROW.match(line)
    if not found:
        return False
    label = " ".join((found[1] or "").split())
    row = ReportRow(label, score(found[2]), score(found[3]), score(found[4]), items(found[5]))
    table.digits = max(table.digits, *(len(cell.partition(".")[2]) for cell in found.groups()[1:4]))
    if label.lower() in AVERAGES:
        table.averages.append(row)
    elif label.lower() == "avg / total":  # scikit-learn before 0.20: the weighted average
        table.averages.append(ReportRow("weighted avg", row.precision, row.recall, row.f1, row.support))
    elif any(row.label.lower() == "weighted avg" for row in table.averages):
        return False  # averages end a table
    else:
        table.classes.append(row)
    return True


def score(cell: object) -> float | None:
    """A cell as a number; None for an empty, NaN or "-" one; "85%" is 0.85."""
    if isinstance(cell, str) and cell.strip().endswith("%"):
        found = number(cell.strip()[:-1])
        return None if found is None or found != found else found / 100
    found = number(cell)
    return None if found is None or found != found or abs(found) == float("inf") else found


def items(cell: object) -> float | None:
    """A cell as a number of items; None for what none can be."""
    found = score(cell)
    return found if found is not None and 0 <= found < MOST_ITEMS else None


def _heading(lines: Sequence[str], start: int) -> str:
    """The nearest line above with words that is no row of a table, without its decoration."""
    for line in reversed(lines[max(0, start - _MOST_HEADINGS) : start]):
        line = " ".join(line[:_MOST_CHARACTERS].split())
        if words := line.strip(" =#*-_:|"):
            return "" if _is_row(line) else words[:200]
    return ""


def _finished(table: _Found, file: str) -> ReportTable:
    names = [row.label.lower() for row in table.averages]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        what = f'a class of the report is called "{twice}", like an average'
        raise InputError(
            what, where=file, why="the two cannot be told apart", fix="rename the class and evaluate again"
        )
    totals = [row.support for row in table.averages if row.support is not None]
    supports = [row.support for row in table.classes if row.support is not None]
    n = table.accuracy_n if table.accuracy_n is not None else (totals[0] if totals else sum(supports))
    return ReportTable(
        file=file,
        name=table.name,
        split=split_word(table.name) or split_word(file.rpartition("/")[2]),
        classes=tuple(table.classes),
        averages=tuple(table.averages),
        accuracy=table.accuracy,
        n=int(n),
        digits=table.digits or None,
    )
