"""Rows of CSV: comma, semicolon or tab, cells with line breaks in quotes, one record in memory at a time."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from refusal_core.exchange_formats.bytes_in import Lines, Source
from refusal_core.exchange_formats.json_rows import NOT_UTF8
from refusal_core.exchange_formats.rows import Row
from refusal_core.limits import LINE_BYTES, show_bytes

_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class Header:
    """The first record: its cells without white space around them, and the delimiter that splits them."""

    delimiter: str
    columns: tuple[str, ...]


def read_header(source: Source, lines: Lines, is_ours: Callable[[Collection[str]], bool]) -> Header:
    """The header, split by the delimiter that makes `is_ours` true of the columns, or else makes most columns.

    Raises InputError when the first record is no header: not text, not UTF-8, or one name twice.
    """
    whole = b""
    while (line := lines.next(LINE_BYTES)) and len(whole) <= LINE_BYTES:
        whole += line if whole or line.strip() else b""
        if whole and whole.count(b'"') % 2 == 0:
            break
    if b"\x00" in whole:
        raise source.error("is not text", why="CSV, JSON lines, a JSON list and Parquet are read")
    try:
        text = whole.decode()
    except UnicodeDecodeError as error:
        raise source.error(f"is not UTF-8 at byte {error.start + 1:,} of its first line", fix=NOT_UTF8) from None
    _allow_long_cells()
    found, fault = [], None
    for delimiter in _DELIMITERS:
        try:
            cells = next(csv.reader(_kept_breaks(text), delimiter=delimiter, strict=True), [])
            found.append(Header(delimiter, tuple(cell.strip() for cell in cells)))
        except csv.Error as error:
            fault = _in_words(error)
    if not found:
        raise source.error("has a first line that is no CSV header", why=fault)
    header = max(found, key=lambda header: (is_ours(header.columns), len(header.columns)))
    twice = [name for name in header.columns if name and header.columns.count(name) > 1]
    if twice:
        raise source.error(f'has two columns named "{twice[0]}"', fix="rename one of them")
    return header


def read_rows(source: Source, lines: Lines, header: Header, id_name: str) -> Iterator[Row]:
    """One Row a record, with the line it starts on; values are text, an empty `id_name` is None.

    Raises InputError for a record over limits.LINE_BYTES.
    """
    _allow_long_cells()
    record = _Record(source, lines)
    reader = csv.reader(record, delimiter=header.delimiter, strict=True)
    while True:
        record.begin()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fault = _in_words(error)
            if record.ended:
                fault = (
                    f"a quotation mark is never closed; all up to the end, line {lines.number:,}, is read as one cell"
                )
            yield Row(record.line, None, fault)
            continue
        if not cells or (len(cells) == 1 < len(header.columns) and not cells[0].strip()):
            continue  # a blank line
        if len(cells) != len(header.columns):
            yield Row(record.line, None, f"the row has {len(cells):,} cells, the header {len(header.columns):,}")
        else:
            values = dict(zip(header.columns, cells, strict=True))
            if values.get(id_name) == "":
                values[id_name] = None
            yield Row(record.line, values, record.fault)


class _Record:
    """The lines of one record after the other for csv.reader, which reads on while a quoted cell is open."""

    def __init__(self, source: Source, lines: Lines) -> None:
        self._source, self._lines = source, lines
        self.ended = False
        self.begin()

    def begin(self) -> None:
        self.line, self._size, self.fault = self._lines.number + 1, 0, None

    def __iter__(self) -> _Record:
        return self

    def __next__(self) -> str:
        line = self._lines.next(LINE_BYTES + 1)
        if not line:
            self.ended = True
            raise StopIteration
        self._size += len(line)
        if self._size > LINE_BYTES:
            raise self._source.error(
                f"has a record that begins on line {self.line:,} and is longer than {show_bytes(LINE_BYTES)}",
                fix="look for a quotation mark there that is not closed",
            )
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            self.fault = f"line {self._lines.number:,} is not UTF-8 at byte {error.start + 1:,}; {NOT_UTF8}"
            return line.decode("utf-8", "replace")


def _kept_breaks(text: str) -> list[str]:
    return [line + "\n" for line in text.removesuffix("\n").split("\n")]


def _in_words(error: csv.Error) -> str:
    text = str(error)
    if "new-line character" in text:
        return "a carriage return stands alone outside quotes; save the file with usual line ends"
    if "expected after" in text:
        return "text follows a closing quotation mark; a quotation mark inside a cell has to be doubled"
    return "a quotation mark is not closed" if "end of data" in text else text


def _allow_long_cells() -> None:
    """The module's own limit is 131,072 characters a cell and belongs to the whole process: raised, never lowered."""
    if csv.field_size_limit() < LINE_BYTES:
        csv.field_size_limit(LINE_BYTES)
