"""A store in each database: an SQLite file, and a PostgreSQL server that the tests start and stop."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from refusal_core.store import Store


def _programs() -> Path | None:
    """The newest folder with initdb and pg_ctl."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    places += [Path(on_path).resolve().parent] if on_path else []
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a fresh server's own database, over a Unix socket in a temporary folder."""
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (apt-get install postgresql): the store is not tested on one")
    root = os.geteuid() == 0  # the server refuses to run as root
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if root else []
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if root:
        shutil.chown(folder, "postgres", "postgres")

    def call(program: str, *words: str) -> None:
        done = subprocess.run(
            [*as_user, programs / program, *words], cwd=folder, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    try:
        call("initdb", "-D", "data", "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync")
        settings = f"-c listen_addresses='' -k {folder} -c fsync=off"
        call("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", settings, "start")
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            call("pg_ctl", "-D", "data", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path) -> Iterator[str]:
    """The URL of an empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.sqlite'}"
        return
    server = sa.make_url(request.getfixturevalue("postgres_server"))
    engine = sa.create_engine(server.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE one_test")
    yield server.set(database="one_test").render_as_string()
    with engine.connect() as connection:
        connection.exec_driver_sql("DROP DATABASE one_test WITH (FORCE)")
    engine.dispose()


@pytest.fixture
def store(url) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened
