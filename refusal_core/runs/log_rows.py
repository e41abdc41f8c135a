"""Histories as rows: JSON lines, JSON lists, CSV, and the dictionaries that a Trainer prints on a console."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping

from refusal_core.errors import InputError
from refusal_core.exchange_formats.json_values import JsonError, parse
from refusal_core.jobs import Job
from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.columns import Columns
from refusal_core.runs.model import Problem
from refusal_core.runs.names import EPOCH_KEYS, STEP_KEYS
from refusal_core.runs.text import number

_CONSOLE = re.compile(r"\{'[^{}\n]{1,20000}\}")
_CONSOLE_PAIR = re.compile(r"'((?:[^'\\]|\\.)*)'\s*:\s*(?:'([^']*)'|([^,'{}]+))")
_ROWS_BETWEEN_LOOKS = 20_000
_LOOKED_AT = 50


def is_log_row(row: object) -> bool:
    """Whether a row is one of a training log: a step or epoch, and another number."""
    if not isinstance(row, Mapping):
        return False
    stamps = (*STEP_KEYS, *EPOCH_KEYS)
    numbers = [key for key, value in row.items() if number(value) is not None]
    return any(key in stamps for key in numbers) and (
        any(key not in stamps for key in numbers) or any(isinstance(v, Mapping) for v in row.values())
    )


def json_lines(text: str, job: Job | None = None) -> Iterator[tuple[int, object]]:
    """(line number, value) of each line with text; a line that is no JSON gives a JsonError in place of the value."""
    scan = json.JSONDecoder().scan_once
    for line_number, line in enumerate(_lines(text), start=1):
        if job and line_number % _ROWS_BETWEEN_LOOKS == 0:
            job.check()
        try:
            value, end = scan(line, 0)
            if end == len(line):
                yield line_number, value
                continue
        except (StopIteration, ValueError, RecursionError):
            pass
        if stripped := line.strip():
            try:
                yield line_number, parse(stripped)
            except JsonError as error:
                yield line_number, error


def _lines(text: str) -> Iterator[str]:
    """Lines by "\\n" only, one at a time: JSON text may hold other line breaks."""
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[at:end]
        at = end + 1


def read_json_log(
    rows: Iterable[tuple[int, object]], file: str, what: str = "JSON-lines log"
) -> tuple[Artefact, list[Problem]]:
    """The history in rows of (line number, object). Raises InputError when none of them is a log row."""
    columns, broken, strange = Columns(file), [], 0
    logged = 0
    for line_number, row in rows:
        if isinstance(row, JsonError):
            broken.append((line_number, str(row)))
        elif isinstance(row, Mapping):
            logged += columns.rows < _LOOKED_AT and is_log_row(row)
            columns.add(row)
        else:
            strange += 1
        if columns.rows == _LOOKED_AT and not logged:
            break
    if not logged:
        raise InputError("no row in it has a step or epoch and a number beside it", where=file)
    problems = []
    if broken:
        first = f"line {broken[0][0]:,} is {broken[0][1]}"
        more = "" if len(broken) == 1 else f", and {len(broken) - 1:,} more lines are not JSON"
        problems.append(
            Problem(file, f"{first}{more}; {columns.rows:,} whole rows were kept", "copy it again", "in part")
        )
    if strange:
        problems.append(Problem(file, f"{strange:,} lines are no objects", "", "in part"))
    return history(columns, file, what), problems


def history(columns: Columns, file: str, what: str, **more: object) -> Artefact:
    """The artefact of rows that were read."""
    return Artefact(
        kind="history",
        format=what,
        file=file,
        curves=columns.curves(),
        rows=columns.rows,
        replaced=columns.replaced(),
        notes=columns.notes(),
        **more,
    )


def console_rows(text: str) -> Iterator[tuple[int, dict]]:
    """The dictionaries that a Trainer prints: {'loss': 1.6, 'epoch': 0.3} of older versions, all text in newer ones."""
    for line_number, line in enumerate(_lines(text), start=1):
        for found in _CONSOLE.finditer(line) if "{'" in line else ():
            row = {
                key: value
                for key, quoted, bare in _CONSOLE_PAIR.findall(found[0])
                if (value := number(quoted or bare)) is not None
            }
            if row:
                yield line_number, row


def has_stamp(header: Iterable[str]) -> bool:
    """Whether a column of a CSV is a step or an epoch."""
    return any(key in (*STEP_KEYS, *EPOCH_KEYS) for key in _keys(header))


def _keys(header: Iterable[str]) -> list[str]:
    names = [cell.strip() for cell in header]
    lowered = [{"global step": "global_step", "steps": "step"}.get(name.lower(), name.lower()) for name in names]
    return [low if low in (*STEP_KEYS, *EPOCH_KEYS) else name for name, low in zip(names, lowered, strict=True)]


def read_csv_log(header: list[str], rows: Iterable[list[str]], file: str, job: Job | None = None) -> Artefact:
    """The history in a CSV with a step or epoch column. Raises InputError when it has none, or no numbers."""
    keys = _keys(header)
    if not has_stamp(header):
        raise InputError("no column of it is a step or an epoch", where=file)
    if len(set(filter(None, keys))) < len([key for key in keys if key]):
        raise InputError("two of its columns have one name", where=file, fix="rename one of them")
    columns = Columns(file)
    for count, row in enumerate(rows):
        if job and count % _ROWS_BETWEEN_LOOKS == 0:
            job.check()
        cells = {key: cell for key, cell in zip(keys, row, strict=False) if key and cell and not cell.isspace()}
        if cells:
            columns.add(_as_numbers(cells))
    columns.texts = 0  # every cell of a CSV is text
    found = history(columns, file, "CSV history")
    if not found.curves:
        raise InputError("no column of it holds numbers beside the step", where=file)
    return found


def _as_numbers(cells: dict[str, str]) -> Mapping[str, object]:
    """The cells as numbers where all of them are; the usual case, which is several times faster."""
    try:
        if "_" not in "".join(cells.values()):  # float() takes 1_000
            return dict(zip(cells, map(float, cells.values()), strict=True))
    except ValueError:
        pass
    return cells


def csv_table(text: str) -> tuple[list[str], Iterator[list[str]]] | None:
    """(first record, the others) split by the delimiter that the first record has most of; None for no table."""
    start = next((line for line in _lines(text) if line.strip()), "")
    counts = {delimiter: start.count(delimiter) for delimiter in (",", ";", "\t")}
    delimiter = max(counts, key=counts.get)
    if not counts[delimiter] or len(start) > 1_000_000:
        return None
    if csv.field_size_limit() < len(start) + 1_000_000:
        csv.field_size_limit(len(start) + 1_000_000)
    reader = _quiet(csv.reader((line + "\n" for line in _lines(text) if line.strip()), delimiter=delimiter))
    first = next(reader, None)
    return None if first is None or len(first) < 2 else (first, reader)


def _quiet(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """The records up to the one that is no CSV."""
    try:
        yield from reader
    except csv.Error:
        return
