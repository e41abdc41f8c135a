"""Opening, upgrading and sharing a store: two writers at once, older and newer schemas, and what cannot be opened."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from refusal_core.errors import InputError, MissingPackage, WorkError
from refusal_core.store import Feedback, Store, database, default_url, schema

REPOSITORY = Path(__file__).resolve().parents[3]
ENTRY = Feedback(prompt="a secret prompt", response="r", right="compliant")
# A process that opens the store at the same moment as others and adds its entries one by one.
WRITER = """
import sys
from refusal_core.store import Feedback, Store
url, name = sys.argv[1:]
sys.stdin.read(1)
with Store.open(url) as store:
    for i in range(60):
        store.add_feedback(Feedback(prompt=f"{name} {i}", response="r", right="compliant", who=name))
"""


def _refused(url: str | None, kind: type[Exception] = InputError) -> str:
    with pytest.raises(kind) as caught:
        Store.open(url)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_processes_write_at_once_from_the_first_moment(url):
    """All find an empty database: one of them makes the tables, and no entry is lost."""
    command = [sys.executable, "-c", WRITER, url]
    processes = [
        subprocess.Popen([*command, name], cwd=REPOSITORY, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for name in ("a", "b", "c")
    ]
    for process in processes:
        process.stdin.write(b"x")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    with Store.open(url) as store:
        found = [f.prompt for f in store.feedback(limit=None)]
    assert sorted(found) == sorted(f"{name} {i}" for name in "abc" for i in range(60))


def test_threads_share_one_store(store):
    def write(name: int) -> None:
        for i in range(30):
            store.add_feedback(Feedback(prompt=f"{name} {i}", response="r", right="compliant"))
            store.feedback(limit=5)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert store.count() == 120


def test_a_reader_sees_one_state_while_others_write(store):
    store.add_feedback([ENTRY] * 3)

    class File:
        """Adds an entry while the export is under way."""

        def write(self, text: str) -> None:
            store.add_feedback(Feedback(prompt="new", response="r", right="compliant"))

    assert store.export(File()) == 1
    assert store.count() == 4


def test_the_tables_are_as_the_code_knows_them(url):
    with Store.open(url):
        pass
    engine = sa.create_engine(database._parsed(url))
    columns = sa.inspect(engine).get_columns(schema.FEEDBACK.name)
    indexes = {index["name"] for index in sa.inspect(engine).get_indexes(schema.FEEDBACK.name)}
    engine.dispose()
    assert [c["name"] for c in columns] == list(schema.FEEDBACK.columns.keys())
    assert {c["name"] for c in columns[1:] if c["nullable"]} == {c.name for c in schema.FEEDBACK.columns if c.nullable}
    assert indexes == {index.name for index in schema.FEEDBACK.indexes}


def test_an_older_store_is_upgraded_once_and_keeps_its_entries(url):
    runs = []

    def step(connection: sa.Connection) -> None:
        runs.append(connection.exec_driver_sql("SELECT count(*) FROM refusal_feedback").scalar())
        connection.exec_driver_sql("ALTER TABLE refusal_feedback ADD COLUMN later TEXT")

    with Store.open(url) as store:
        store.add_feedback([ENTRY, ENTRY])
    for _ in range(2):
        opened = database.open_database(url, [*schema.STEPS, step])
        with opened.reading() as connection:
            assert schema.version_of(connection) == len(schema.STEPS) + 1
            assert connection.exec_driver_sql("SELECT count(later), count(*) FROM refusal_feedback").one() == (0, 2)
        opened.close()
    assert runs == [2]
    assert "newer version" in _refused(url)


def test_a_failed_upgrade_changes_nothing(url):
    def step(connection: sa.Connection) -> None:
        connection.exec_driver_sql("ALTER TABLE refusal_feedback ADD COLUMN later TEXT")
        connection.exec_driver_sql("SELECT no_such_column FROM refusal_feedback")

    with Store.open(url) as store:
        store.add_feedback(ENTRY)
    with pytest.raises(WorkError):
        database.open_database(url, [*schema.STEPS, step])
    with Store.open(url) as store:
        assert store.count() == 1


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("nonsense", "not a database URL"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("mysql://me:hunter2@host/x", "mysql"),
        ("postgresql+psycopg2://me:hunter2@host/x", "psycopg2"),
        ("postgresql://me:hunter2@host:port/x", "not a database URL"),
        ("sqlite:////no/such/folder/store.sqlite", "/no/such/folder"),
    ],
)
def test_other_urls_are_refused_without_their_password(url, part):
    message = _refused(url)
    assert part in message
    assert "hunter2" not in message


def test_a_server_that_does_not_answer_is_one_sentence():
    message = _refused("postgresql://me:hunter2@127.0.0.1:1/x", WorkError)
    assert "postgresql://127.0.0.1/x" in message
    assert "hunter2" not in message


def test_without_the_driver_the_pip_line_is_named(monkeypatch):
    monkeypatch.setattr(database.importlib.util, "find_spec", lambda name: None)
    assert 'pip install -e ".[postgres]"' in _refused("postgresql://host/x", MissingPackage)


def test_another_file_is_refused_and_kept(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("Not a database, but somebody's notes, long enough to be looked at." * 20)
    before = path.read_bytes()
    assert "no SQLite database" in _refused(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_lock_that_stays_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "WAIT_SECONDS", 0.1)
    path = tmp_path / "store.sqlite"
    with Store.open(f"sqlite:///{path}") as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(WorkError, match="locked"):
            store.add_feedback(ENTRY)
        other.execute("ROLLBACK")
        other.close()
        store.add_feedback(ENTRY)


def test_only_its_owner_reads_the_file_and_deleted_texts_leave_it(tmp_path):
    path = tmp_path / "store.sqlite"
    with Store.open(f"sqlite:///{path}") as store:
        if os.name == "posix":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        store.add_feedback([ENTRY] * 50)
        assert any(b"a secret prompt" in p.read_bytes() for p in tmp_path.iterdir())
        assert store.keep_days(0) == 50
        assert not any(b"a secret prompt" in p.read_bytes() for p in tmp_path.iterdir())


def test_the_setting_goes_before_the_users_data_folder(tmp_path, monkeypatch):
    assert default_url({"REFUSAL_STORE": " sqlite:///x "}) == "sqlite:///x"
    monkeypatch.setattr(database.sys, "platform", "linux")
    assert default_url({"XDG_DATA_HOME": "/data"}) == "sqlite:////data/refusal/store.sqlite"
    assert default_url({"XDG_DATA_HOME": "relative"}).endswith("/.local/share/refusal/store.sqlite")
    monkeypatch.delenv("REFUSAL_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with Store.open() as store:
        assert store.where == str(tmp_path / "refusal" / "store.sqlite")
        store.add_feedback(ENTRY)
    assert (tmp_path / "refusal" / "store.sqlite").exists()
