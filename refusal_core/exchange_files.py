"""Exchanges from a file or a stream: JSON lines, a JSON list, CSV or Parquet, told apart by content, never by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from refusal_core.chats import looks_like_message
from refusal_core.errors import InputError, WorkError
from refusal_core.exchange_formats import csv_rows, json_rows, parquet_rows
from refusal_core.exchange_formats.bytes_in import PARQUET, Source, opened
from refusal_core.exchange_formats.keys import Keys
from refusal_core.exchange_formats.rows import Row
from refusal_core.exchanges import BadRow, Exchange, bad_row, exchanges_of_row, row_id_of
from refusal_core.limits import LINE_BYTES, MESSAGES_PER_CHAT

_ROWS_LOOKED_AT = 20  # for the keys of a JSON file


def read_exchanges(
    source: Path | str | BinaryIO,
    *,
    name: str | None = None,
    columns: Mapping[str, str] | None = None,
    every_turn: bool = False,
    need_label: bool = False,
) -> Iterator[Exchange | BadRow]:
    """The exchanges of a file in its order, one at a time, with a BadRow where a row is none.

    `source` is a path, or a binary stream: one that can seek is read from its start, and none is closed. `name`
    stands in messages for the path's last part. `columns` maps our names (prompt, response, id, label, messages) to
    the file's. A row holds prompt and response, or a chat; with `every_turn` a chat gives an exchange for each
    assistant turn, with ids `<id>#1`, `<id>#2`. A missing id becomes the line number. With `need_label` a row without
    a label is a BadRow.

    Raises, at the first item or later: InputError when the file as a whole is not readable or has no rows, WorkError
    when reading fails.
    """
    keys = Keys.of(columns)
    try:
        with opened(source, name) as file, _table(file, keys) as table:
            if table.columns is not None:
                _check_columns(table.columns, keys, columns or {}, need_label, file.name)
            rows = table.rows if table.columns is not None else _checked_json(table.rows, keys, file.name)
            row = None
            for row in rows:
                if row.error is not None or row.values is None:
                    yield bad_row(
                        row_id_of(row.values or {}, keys, row.line), row.line, row.error or "the row is empty"
                    )
                    continue
                yield from exchanges_of_row(
                    row.values, line=row.line, keys=keys, every_turn=every_turn, need_label=need_label
                )
            if row is None:
                raise InputError("there are no rows", where=file.name)
    except MemoryError:
        raise WorkError("There is not enough memory to read the file.") from None


def read_rows(source: Path | str | BinaryIO, *, name: str | None = None, names: Collection[str] = ()) -> Iterator[Row]:
    """The rows of a file that holds no exchanges: prompts alone, or a table. `names` are the columns looked for.

    A Row has its line, its values by column, and the reason where it could not be read. Raises as read_exchanges does,
    but not for columns.
    """
    try:
        with opened(source, name) as file, _table(file, _Columns(frozenset(names))) as table:
            row = None
            for row in table.rows:
                yield row
            if row is None:
                raise InputError("there are no rows", where=file.name)
    except MemoryError:
        raise WorkError("There is not enough memory to read the file.") from None


@dataclass(frozen=True)
class _Columns:
    """What the format readers ask of Keys, for columns of any name."""

    all: frozenset[str]
    id: str = "id"

    def held_by(self, found: Collection[str]) -> bool:
        return bool(self.all & set(found))


def columns_of(source: Path | str | BinaryIO, name: str | None = None) -> list[str]:
    """The file's column names in order; of JSON, the keys of the first 20 rows. Raises as read_exchanges does."""
    with opened(source, name) as file, _table(file, Keys()) as table:
        if table.columns is not None:
            return list(table.columns)
        found = {key: None for row in islice(table.rows, _ROWS_LOOKED_AT) for key in row.values or ()}
        if not found:
            raise InputError("there are no rows with named columns", where=file.name)
        return list(found)


def map_argument(values: Sequence[str]) -> dict[str, str]:
    """`NAME=KEY` arguments as the `columns` of read_exchanges. Raises InputError for one of another form."""
    columns: dict[str, str] = {}
    for value in values:
        ours, equals, key = value.partition("=")
        if not equals:
            raise InputError(f'"{value}" has no =', where="--map", fix="write NAME=KEY, for example prompt=question")
        if ours.strip() in columns:
            raise InputError(f"{ours.strip()} is mapped twice", where="--map")
        columns[ours.strip()] = key
    Keys.of(columns)
    return columns


class _Table(NamedTuple):
    rows: Iterator[Row]
    columns: tuple[str, ...] | None  # None where rows name their own (JSON)


@contextmanager
def _table(file: Source, keys: Keys | _Columns) -> Iterator[_Table]:
    """The reader that the content asks for."""
    file.refuse_foreign()
    if file.head.startswith(PARQUET):
        with parquet_rows.opened_parquet(file) as parquet:
            yield _Table(parquet_rows.read_rows(file, parquet, keys.all), tuple(parquet_rows.column_names(parquet)))
        return
    lines = file.lines()
    first = lines.next(LINE_BYTES + 1)
    while first and not first.strip():
        first = lines.next(LINE_BYTES + 1)
    if not first:
        raise InputError("the file is empty", where=file.name)
    lines.hold(first)
    if first.lstrip().startswith(b"[") or json_rows.is_spread_out(first):
        yield _Table(json_rows.read_whole_rows(file, lines, keys.all), None)
    elif first.lstrip().startswith(b"{"):
        yield _Table(json_rows.read_line_rows(lines, keys.all), None)
    else:
        header = csv_rows.read_header(file, lines, keys.held_by)
        yield _Table(csv_rows.read_rows(file, lines, header, keys.id), header.columns)


def _check_columns(found: Sequence[str], keys: Keys, columns: Mapping[str, str], need_label: bool, name: str) -> None:
    if not keys.held_by(found):
        raise keys.missing(found, name=name, what="column")
    asked = [ours for ours in ("id", "label") if ours in columns or (need_label and ours == "label")]
    if lacking := [ours for ours in asked if getattr(keys, ours) not in found]:
        raise keys.lacking(lacking, found, name=name, what="column")


def _checked_json(rows: Iterator[Row], keys: Keys, name: str) -> Iterator[Row]:
    """`rows`, once one of the first objects has our keys; a list of messages becomes one row.

    An odd first object waits for the rows after it: when none of _ROWS_LOOKED_AT has our keys, the file has others.
    """
    waiting: list[Row] = []
    for row in rows:
        if row.values is not None and keys.held_by(row.values.keys()):
            yield from (*waiting, row)
            yield from rows
            return
        if row.values is None and not waiting:
            yield row
            continue
        waiting.append(row)
        if len(waiting) == _ROWS_LOOKED_AT:
            break
    objects = [row.values for row in waiting if row.values is not None]
    if not objects:
        return
    if keys != Keys() or not looks_like_message(objects[0]):
        raise keys.missing(objects[-1].keys(), name=name, what="key")  # the last one: a header may stand first
    waiting += islice(rows, MESSAGES_PER_CHAT + 1 - len(waiting))
    yield Row(waiting[0].line, {keys.chats[0]: [message.values for message in waiting]})
