"""The history of suites in the store: each run's scorecard.json, and who signed which result."""

from __future__ import annotations

import datetime
import hashlib
import re
import zlib
from dataclasses import dataclass

import sqlalchemy as sa

from refusal_core.errors import InputError, one_line
from refusal_core.limits import (
    NAME_CHARACTERS,
    SCORECARD_HISTORY,
    SCORECARD_JSON_BYTES,
    SCORECARD_STORED_BYTES,
    TEXT_CHARACTERS,
    check_size,
)
from refusal_core.store.database import Database
from refusal_core.store.feedback import plain
from refusal_core.store.schema import SCORECARDS, SIGN_OFFS

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = 500


@dataclass(frozen=True)
class StoredRun:
    """One run of a suite: `digest` of its scorecard.json, the conclusion, and when (UTC)."""

    number: int
    suite: str
    digest: str
    sentence: str
    when: datetime.datetime


@dataclass(frozen=True)
class SignOff:
    """A person's word on one result."""

    number: int
    digest: str
    who: str
    note: str
    when: datetime.datetime


class Scorecards:
    """Runs and sign-offs of one store; `Store.scorecards` gives it. Raises WorkError as the store does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, suite: str, text: str, sentence: str) -> bool:
        """Keep the scorecard.json `text` as the latest run of `suite`; whether it differs from the one before.

        The same result again is the same run. Raises InputError for more than limits.SCORECARD_STORED_BYTES.
        """
        content = text.encode()
        packed = zlib.compress(content, 6)
        check_size(len(packed), SCORECARD_STORED_BYTES, what="the result", where="the store", fix="download it instead")
        row = {
            "suite": _suite(suite),
            "digest": hashlib.sha256(content).hexdigest(),
            "sentence": one_line(plain(sentence)),
            "packed": packed,
            "at": _now(),
        }
        before = sa.select(SCORECARDS.c.digest).where(SCORECARDS.c.suite == row["suite"])
        with self._database.writing() as connection:
            if connection.execute(before.order_by(SCORECARDS.c.number.desc()).limit(1)).scalar() == row["digest"]:
                return False
            connection.execute(sa.insert(SCORECARDS).values(row))
        return True

    def runs(self, suite: str, limit: int = SCORECARD_HISTORY) -> list[StoredRun]:
        """The runs of a suite, the latest first."""
        columns = [SCORECARDS.c[name] for name in ("number", "suite", "digest", "sentence", "at")]
        statement = sa.select(*columns).where(SCORECARDS.c.suite == _suite(suite))
        with self._database.reading() as connection:
            rows = connection.execute(statement.order_by(SCORECARDS.c.number.desc()).limit(limit))
            return [StoredRun(*row) for row in rows]

    def get(self, digest: str) -> str | None:
        """The scorecard.json of a result, None where none of that digest is kept."""
        statement = sa.select(SCORECARDS.c.packed).where(SCORECARDS.c.digest == digest).limit(1)
        with self._database.reading() as connection:
            packed = connection.execute(statement).scalar()
        if packed is None:
            return None
        unpacker = zlib.decompressobj()
        try:
            content = unpacker.decompress(packed, SCORECARD_JSON_BYTES)
        except zlib.error:
            content = b""
        if hashlib.sha256(content).hexdigest() != digest:
            raise InputError("the stored result is damaged", where="the store", fix="run the suite again")
        return content.decode()

    def delete(self, number: int) -> bool:
        """Delete a run; whether it was there. Sign-offs of its result stay."""
        return self._delete(SCORECARDS, number)

    def sign(self, digest: str, *, who: str, note: str = "") -> int:
        """Sign the result of that digest off; the sign-off's number. Raises InputError for a blank name."""
        who = one_line(" ".join(plain(who).split()), NAME_CHARACTERS)
        if not who:
            raise InputError("the name is blank", where="sign-off", fix="say who signs")
        if not _DIGEST.fullmatch(digest):
            raise InputError(f'"{digest}" is no SHA-256', where="sign-off", fix="give the digest of scorecard.json")
        if len(note) > TEXT_CHARACTERS:
            raise InputError(f"the note has {len(note):,} characters", why=f"at most {TEXT_CHARACTERS:,} are kept")
        row = {"digest": digest, "who": who, "note": plain(note), "at": _now()}
        with self._database.writing() as connection:
            return connection.execute(sa.insert(SIGN_OFFS).values(row).returning(SIGN_OFFS.c.number)).scalar_one()

    def sign_offs(self, digest: str) -> list[SignOff]:
        """Who signed that very result, the first first."""
        statement = sa.select(SIGN_OFFS).where(SIGN_OFFS.c.digest == digest).order_by(SIGN_OFFS.c.number)
        with self._database.reading() as connection:
            return [SignOff(*row) for row in connection.execute(statement)]

    def withdraw(self, number: int) -> bool:
        """Delete a sign-off; whether it was there."""
        return self._delete(SIGN_OFFS, number)

    def _delete(self, table: sa.Table, number: int) -> bool:
        with self._database.writing() as connection:
            deleted = connection.execute(sa.delete(table).where(table.c.number == number)).rowcount
        self._database.forget_deleted()
        return bool(deleted)


def _suite(name: str) -> str:
    return one_line(plain(name), _NAME)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
