"""Where the store lies, and how SQLite and PostgreSQL are opened so that several writers get along."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from refusal_core.errors import InputError, MissingPackage, WorkError, one_line
from refusal_core.store import schema

SETTING = "REFUSAL_STORE"
WAIT_SECONDS = 30  # for another writer
CONNECT_SECONDS = 10  # for a server that does not answer
_KINDS = "name sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_LOCK = 0x5265667573616C  # names the upgrade among PostgreSQL's advisory locks


def default_url(env: Mapping[str, str] = os.environ) -> str:
    """REFUSAL_STORE, or without it the URL of `refusal/store.sqlite` in the user's data folder.

    That is `$XDG_DATA_HOME` or `~/.local/share`, `~/Library/Application Support` on macOS, `%LOCALAPPDATA%` on Windows:
    what people wrote is no cache, which may be emptied at any time.
    """
    return given if (given := env.get(SETTING, "").strip()) else f"sqlite:///{_data_folder(env) / 'store.sqlite'}"


class Database:
    """An engine whose transactions either only read or keep other writers out, and whose errors are sentences."""

    def __init__(self, engine: sa.Engine, where: str) -> None:
        self._engine = engine
        self.where = where  # without user and password
        self.is_sqlite = engine.dialect.name == "sqlite"

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees one state of the store."""
        with _sentences(self.where), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that is kept whole or not at all."""
        with _sentences(self.where), self._engine.connect() as connection:
            connection = connection.execution_options(writes=True)
            with connection.begin():
                yield connection

    def forget_deleted(self) -> None:
        """Take what was deleted out of SQLite's write-ahead log too, unless a reader still needs it."""
        if self.is_sqlite:
            with _sentences(self.where), contextlib.closing(self._engine.raw_connection()) as connection:
                connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._engine.dispose()


def open_database(url: str | None, steps: Sequence[schema.Step] = schema.STEPS) -> Database:
    """The database at `url`, with the tables of `steps`. Raises as Store.open does."""
    given = _parsed(default_url() if url is None else url)
    if given.drivername == "sqlite":
        where = given.database or ""
        _make_file(where, make_folder=url is None and not os.environ.get(SETTING, "").strip())
        engine = sa.create_engine(given, connect_args={"timeout": WAIT_SECONDS, "check_same_thread": False})
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    else:
        where = f"postgresql://{given.host or 'localhost'}/{given.database or ''}"
        if importlib.util.find_spec("psycopg") is None:
            raise MissingPackage("psycopg", purpose="A store in PostgreSQL", extra="postgres")
        waits = {} if "connect_timeout" in given.query else {"connect_timeout": CONNECT_SECONDS}
        try:
            engine = sa.create_engine(given, connect_args=waits, pool_pre_ping=True)
        except ImportError:  # without a libpq
            raise MissingPackage("psycopg[binary]", purpose="A store in PostgreSQL", extra="postgres") from None
    database = Database(engine, where)
    try:
        _bring_up_to_date(database, steps)
    except BaseException:
        database.close()
        raise
    return database


def _bring_up_to_date(database: Database, steps: Sequence[schema.Step]) -> None:
    with database.reading() as connection:
        version = schema.version_of(connection)
    schema.check_not_newer(version, database.where, steps)
    if version < len(steps):
        with database.writing() as connection:
            if not database.is_sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            schema.upgrade(connection, database.where, steps)


def _parsed(url: str) -> sa.URL:
    try:
        given = sa.make_url(url)
        driver = _DRIVERS.get(given.drivername)
    except (sa.exc.ArgumentError, ValueError):  # the URL itself may hold a password: it is not repeated
        raise InputError("it is not a database URL", where=SETTING, fix=_KINDS) from None
    if driver is None:
        raise InputError(f"a store cannot lie in {given.drivername}", where=SETTING, fix=_KINDS)
    if driver == "sqlite" and given.database in (None, "", ":memory:"):
        raise InputError("the SQLite URL names no file", where=SETTING, why="nothing would be kept", fix=_KINDS)
    return given.set(drivername=driver)


def _make_file(path: str, *, make_folder: bool) -> None:
    """An empty file that only its owner reads, where there is none: it will hold what people typed."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        if make_folder:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        elif not os.path.isdir(folder):
            raise InputError("the folder to write in does not exist", where=path, fix="create it, or name another")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as problem:
        raise WorkError(f"{one_line(path)} cannot be made: {(problem.strerror or str(problem)).lower()}.") from problem


def _set_up_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None  # transactions begin where _begin_sqlite says, not where the driver guesses
    cursor = connection.cursor()
    cursor.execute("PRAGMA secure_delete = ON")  # what was deleted is overwritten
    cursor.execute("PRAGMA synchronous = FULL")
    until = time.monotonic() + WAIT_SECONDS
    while cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:  # does not wait by itself while another process reads for the first time
            cursor.execute("PRAGMA journal_mode = WAL")
        except Exception as problem:
            if "locked" not in str(problem) or time.monotonic() > until:
                raise
            time.sleep(0.05)
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextlib.contextmanager
def _sentences(where: str) -> Iterator[None]:
    """What the database raises as one sentence, without the statement and its texts."""
    try:
        yield
    except (sa.exc.DBAPIError, sa.exc.TimeoutError, MemoryError) as problem:
        raise _told(problem, where) from problem
    except Exception as problem:
        if type(problem).__module__.partition(".")[0] not in ("sqlite3", "psycopg"):
            raise
        raise _told(problem, where) from problem


def _told(problem: BaseException, where: str) -> InputError | WorkError:
    reason = one_line(str(getattr(problem, "orig", None) or problem), 300).strip().rstrip(".")
    if "not a database" in reason:
        return InputError("the file is no SQLite database", where=where, fix="name another file")
    return WorkError(f"The store {one_line(where)} cannot be used: {reason}.")


def _data_folder(env: Mapping[str, str]) -> Path:
    if sys.platform == "win32":
        base = Path(env.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        given = env.get("XDG_DATA_HOME", "")
        base = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "share"
    return base / "refusal"
