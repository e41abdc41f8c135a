"""Answers on disk, by what they depend on alone: the checkpoint's digest and the texts.

An SQLite file that many processes may use at once. A run that is killed loses the chunk in work; the next one finds the
rest. No text is stored, only digests. Bounded: the entries that were used longest ago go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from refusal_core.exchanges import Exchange
from refusal_core.limits import SCORECARD_CACHE_ENTRIES

SETTING = "REFUSAL_CACHE"
FORMAT = "refusal-answers/1"  # a new one when the same texts and weights would be answered otherwise
_AT_ONCE = 400
_WAIT = 30.0  # seconds for another process that writes


@dataclass(frozen=True, slots=True)
class Answer:
    """`label` with `probabilities` in the order of the checkpoint's classes, or `label` None with `error`."""

    label: str | None
    probabilities: tuple[float, ...] | None
    error: str | None = None


def text_digest(exchange: Exchange) -> bytes:
    """Equal for exchanges with equal texts."""
    digest = hashlib.sha256()
    for text in (exchange.prompt, exchange.response):
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


def default_path(env: Mapping[str, str] = os.environ) -> Path:
    """`scorecard.sqlite` in the folder that REFUSAL_CACHE names, else in the user's cache folder."""
    given = env.get(SETTING, "").strip()
    folder = Path(given) if given else Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "refusal"
    return folder / "scorecard.sqlite"


class AnswerCache:
    """`path` None keeps it in memory. Where the file cannot be used, `note` says so and memory stands in."""

    def __init__(self, path: Path | None, *, most: int = SCORECARD_CACHE_ENTRIES) -> None:
        self.note, self._most, self._lock = "", most, threading.Lock()
        try:
            self._connection = self._open(path)
        except (sqlite3.Error, OSError) as problem:
            self.note = f"Answers are not kept: the cache {path} cannot be used ({problem})."
            self._connection = self._open(None)

    @classmethod
    def default(cls) -> AnswerCache:
        return cls(default_path())

    def get(self, checkpoint: str, texts: Sequence[bytes]) -> dict[bytes, Answer]:
        """The answers of the checkpoint (its digest) that are there, by text digest."""
        keys = {_key(checkpoint, text): text for text in texts}
        found: dict[bytes, Answer] = {}
        for part in _parts(list(keys)):
            marks = ",".join("?" * len(part))
            for key, value in self._all(f"SELECT key, value FROM answers WHERE key IN ({marks})", part):
                if (answer := _answer(value)) is not None:
                    found[keys[key]] = answer
        self._touch([key for key, text in keys.items() if text in found])
        return found

    def put(self, checkpoint: str, answers: Mapping[bytes, Answer]) -> None:
        """Keep `answers`, all or none of them on disk when this returns."""
        now = int(time.time())
        rows = [
            (_key(checkpoint, text), json.dumps([a.label, a.probabilities, a.error]), now)
            for text, a in answers.items()
        ]
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", rows)
            (count,) = connection.execute("SELECT COUNT(*) FROM answers").fetchone()
            if count > self._most:
                oldest = "SELECT key FROM answers ORDER BY used, rowid LIMIT ?"
                connection.execute(f"DELETE FROM answers WHERE key IN ({oldest})", (count - self._most * 9 // 10,))

    def labels(self, checkpoint: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Classes and notes of a checkpoint that has answered before, so that it need not be loaded to know them."""
        rows = self._all("SELECT value FROM checkpoints WHERE key = ?", [_key(checkpoint, b"")])
        read = _list(rows[0][0], 2) if rows else None
        if read is None or not all(isinstance(part, list) and _are(str, part) for part in read):
            return None
        return tuple(read[0]), tuple(read[1])

    def put_labels(self, checkpoint: str, labels: Sequence[str], notes: Sequence[str]) -> None:
        with self._writing() as connection:
            row = (_key(checkpoint, b""), json.dumps([list(labels), list(notes)]))
            connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", row)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _open(self, path: Path | None) -> sqlite3.Connection:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path or ":memory:", timeout=_WAIT, check_same_thread=False, isolation_level=None)
        try:
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, value TEXT, used INTEGER)")
            connection.execute("CREATE INDEX IF NOT EXISTS answers_used ON answers (used)")
            connection.execute("CREATE TABLE IF NOT EXISTS checkpoints (key BLOB PRIMARY KEY, value TEXT)")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _all(self, statement: str, values: Sequence[object]) -> list[tuple]:
        with self._lock, _tolerant(self):
            return self._connection.execute(statement, values).fetchall()
        return []

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _tolerant(self):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise

    def _touch(self, keys: Sequence[bytes]) -> None:
        now = int(time.time())
        day = now - 86_400  # once a day is enough to tell what is in use
        for part in _parts(keys):
            marks = ",".join("?" * len(part))
            stale = self._all(f"SELECT 1 FROM answers WHERE used < ? AND key IN ({marks}) LIMIT 1", [day, *part])
            if stale:
                with self._writing() as connection:
                    connection.execute(f"UPDATE answers SET used = ? WHERE key IN ({marks})", [now, *part])


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let readers and a writer work side by side. SQLite does not wait for this change, even where it has a timeout."""
    until = time.monotonic() + _WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.02)


@contextlib.contextmanager
def _tolerant(cache: AnswerCache) -> Iterator[None]:
    """A cache that fails (a full disk, a broken file) costs time, never the run."""
    try:
        yield
    except sqlite3.Error as problem:
        cache.note = cache.note or f"Some answers are not kept ({problem})."


def _key(checkpoint: str, text: bytes) -> bytes:
    return hashlib.sha256(f"{FORMAT}\n{checkpoint}\n".encode() + text).digest()


def _answer(value: object) -> Answer | None:
    """The answer of a row; None for what is none of ours, which is then asked again."""
    read = _list(value, 3)
    if read is None:
        return None
    label, probabilities, error = read
    numbers = [] if probabilities is None else probabilities
    if not isinstance(numbers, list) or not all(isinstance(p, int | float) and math.isfinite(p) for p in numbers):
        return None
    if not _are(str | None, (label, error)) or (label is None and error is None):
        return None
    return Answer(label, tuple(numbers) or None, error)


def _list(value: object, length: int) -> list | None:
    try:
        read = json.loads(value)
    except (TypeError, ValueError):
        return None
    return read if isinstance(read, list) and len(read) == length else None


def _are(kind: type, values: Iterable[object]) -> bool:
    return all(isinstance(value, kind) for value in values)


def _parts(keys: Sequence[bytes]) -> Iterable[Sequence[bytes]]:
    return (keys[at : at + _AT_ONCE] for at in range(0, len(keys), _AT_ONCE))
