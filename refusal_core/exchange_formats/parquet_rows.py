"""Rows of Parquet, a small batch at a time."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from refusal_core.errors import InputError, WorkError, one_line
from refusal_core.exchange_formats.bytes_in import PARQUET, Source
from refusal_core.exchange_formats.rows import Row
from refusal_core.limits import PARQUET_ROW_GROUP_BYTES, UPLOAD_BYTES, check_size

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_BATCH_ROWS = 64  # a dictionary-encoded column of long texts is small in the file and large here
_TAIL_BYTES = 8
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


class _Unreadable(str):
    """Why a cell could not be read."""


@contextmanager
def opened_parquet(source: Source) -> Iterator[pq.ParquetFile]:
    """The file behind `source`; a stream that cannot seek is kept in a temporary file meanwhile.

    Raises InputError when it is cut short, encrypted, damaged, has two columns of one name, or a row group over
    limits.PARQUET_ROW_GROUP_BYTES.
    """
    import pyarrow.parquet as pq

    with _seekable(source) as stream:
        size = stream.seek(0, 2)
        stream.seek(max(size - _TAIL_BYTES, 0))
        if size < 12 or stream.read(_TAIL_BYTES)[-4:] != PARQUET:
            raise source.error("is a Parquet file that was cut short", fix="copy or download it again")
        stream.seek(0)
        with _faults(source):
            file = pq.ParquetFile(stream, pre_buffer=False)
            names = file.schema_arrow.names
            for name in names:
                if names.count(name) > 1:
                    raise source.error(f'has two columns named "{name}"', fix="rename one of them")
            for place in range(file.metadata.num_row_groups):
                # Not .column(): pyarrow 26 ends the whole process there when the column is encrypted.
                check_size(
                    file.metadata.row_group(place).total_byte_size,
                    PARQUET_ROW_GROUP_BYTES,
                    what=f"row group {place + 1} is too large: it",
                    where=source.name,
                    fix="write the file with smaller row groups",
                )
        yield file


def column_names(file: pq.ParquetFile) -> list[str]:
    return list(file.schema_arrow.names)


def read_rows(source: Source, file: pq.ParquetFile, names: frozenset[str]) -> Iterator[Row]:
    """One Row a row, from 1: the columns in `names` whatever they hold, the others where they hold plain values.

    Texts without a text annotation (bytes) are decoded; dates and decimals become text. Raises InputError for a
    damaged file.
    """
    import pyarrow.types as types

    wanted = [field.name for field in file.schema_arrow if field.name in names or not types.is_nested(field.type)]
    wanted = [name for name in wanted if not _PANDAS_INDEX.fullmatch(name)]
    number = 0
    with _faults(source):
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=wanted):
            columns = {name: _cells(batch.column(name)) for name in wanted}
            for place in range(batch.num_rows):
                number += 1
                values = {name: cells[place] for name, cells in columns.items()}
                unread = next(
                    (name for name in values if name in names and isinstance(values[name], _Unreadable)), None
                )
                yield Row(number, values, f"{unread} {values[unread]}" if unread is not None else None)


def _cells(column: Any) -> list[object]:
    try:
        return [_plain(cell) for cell in column.to_pylist()]
    except (ValueError, OverflowError):  # a text that is not UTF-8, a date that Python cannot hold: find out which
        return [_cell(scalar) for scalar in column]


def _cell(scalar: Any) -> object:
    try:
        return _plain(scalar.as_py())
    except UnicodeDecodeError:
        return _Unreadable("is not UTF-8")
    except (ValueError, OverflowError) as error:
        return _Unreadable(f"cannot be read: {one_line(str(error), 100)}")


def _plain(cell: object) -> object:
    """`cell` as a JSON value."""
    if cell is None or isinstance(cell, str | int | float | list | dict):
        return cell
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return _Unreadable("is bytes that are not UTF-8 text")
    return str(cell)


@contextmanager
def _seekable(source: Source) -> Iterator[BinaryIO]:
    if source.seekable:
        yield source.stream
        return
    with tempfile.SpooledTemporaryFile(UPLOAD_BYTES) as spool:
        size = 0
        for chunk in source.chunks():
            size += len(chunk)
            check_size(
                size,
                PARQUET_ROW_GROUP_BYTES,
                what="Parquet that comes through a pipe",
                where=source.name,
                fix="name the file instead, or send JSON lines",
            )
            try:
                spool.write(chunk)
            except OSError as error:
                raise WorkError(f"{source.name}: no room for a temporary copy: {error.strerror or error}.") from None
        yield spool


@contextmanager
def _faults(source: Source) -> Iterator[None]:
    """pyarrow's errors as ours."""
    import pyarrow

    try:
        yield
    except InputError:
        raise
    except MemoryError:
        raise WorkError(f"{source.name}: there is not enough memory for a part of this Parquet file.") from None
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, IndexError, TypeError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise WorkError(f"{source.name}: reading failed: {one_line(error.strerror or str(error), 200)}.") from None
        if "crypt" in str(error):
            raise source.error("is an encrypted Parquet file", fix="write it without encryption") from None
        why = one_line(str(error).partition("\n")[0], 200)
        raise source.error("is Parquet that cannot be read", why=why, fix="write it again") from None
