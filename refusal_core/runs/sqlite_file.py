"""An SQLite file opened for reading only, never changed, never waited for, its writer undisturbed."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from refusal_core.errors import InputError, one_line
from refusal_core.limits import LINE_BYTES
from refusal_core.runs.files import Blob

MAGIC = b"SQLite format 3\0"
_STEPS_BETWEEN_LOOKS = 100_000
_MOST_LOOKS = 200_000


@contextmanager
def open_sqlite(blob: Blob) -> Iterator[sqlite3.Connection]:
    """A connection that only reads. With a journal beside it (a run that is being written) the newest rows are seen.

    Raises InputError for a file that is no whole database.
    """
    connection = None
    try:
        connection = _connect(blob)
        connection.execute("PRAGMA query_only = 1")
        connection.execute("PRAGMA trusted_schema = 0")
        with suppress(AttributeError):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LINE_BYTES)
        looks = iter(range(_MOST_LOOKS))
        connection.set_progress_handler(lambda: next(looks, None) is None, _STEPS_BETWEEN_LOOKS)  # a view without end
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield connection
    except sqlite3.Error as error:
        text = one_line(str(error), 100)
        raise InputError(
            f"the database cannot be read ({text})", where=blob.name, fix="copy it again, with its -wal file beside it"
        ) from None
    finally:
        if connection is not None:
            connection.close()


def tables(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Table to its columns."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(name)})")] for name in names}


def _connect(blob: Blob) -> sqlite3.Connection:
    if blob.data is not None:
        connection = sqlite3.connect(":memory:")
        # A copy in memory cannot have its journal beside it: the header says "write-ahead log", which would not open.
        data = bytearray(blob.data)
        data[18:20] = b"\1\1"
        connection.deserialize(bytes(data))
        return connection
    log = Path(f"{blob.path}-wal")
    live = log.is_file() and log.stat().st_size > 0
    where = f"file:{quote(str(blob.path))}?mode=ro"
    if not live or not _may_write(blob.path.parent):
        where += (
            "&immutable=1"  # leaves no -shm file behind; with a journal in a folder that is read-only, what is whole
        )
    return sqlite3.connect(where, uri=True, timeout=2)


def _may_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and stat.S_ISDIR(os.stat(folder).st_mode)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
