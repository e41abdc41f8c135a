"""Studies of a refusal direction in the store: result and settings by the digest of study.json, no activations."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

import sqlalchemy as sa

from refusal_core.errors import InputError, one_line
from refusal_core.limits import NAME_CHARACTERS, STUDY_NAME_CHARACTERS, STUDY_STORED_BYTES, check_size
from refusal_core.store.database import Database
from refusal_core.store.feedback import ANONYMOUS, plain
from refusal_core.store.schema import STUDIES

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class StoredStudy:
    """One line of the list: `digest` of study.json, `title` for a reader, the answer, who kept it and when (UTC)."""

    digest: str
    title: str
    headline: str
    who: str
    when: datetime.datetime


class Studies:
    """The stored studies of one store; `Store.studies` gives it. Raises WorkError as the store does."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, digest: str, packed: bytes, *, title: str, headline: str, who: str = "") -> bool:
        """Keep a study; whether it was new. One that is there already stays as it is.

        Raises InputError for a digest that is none, and for more than limits.STUDY_STORED_BYTES.
        """
        if not _DIGEST.fullmatch(digest):
            raise InputError(f'"{digest}" is no SHA-256', where="the store", fix="give the digest of study.json")
        check_size(len(packed), STUDY_STORED_BYTES, what="the study", where="the store", fix="download it instead")
        row = {
            "digest": digest,
            "title": one_line(plain(title), STUDY_NAME_CHARACTERS),
            "headline": one_line(plain(headline)),
            "packed": packed,
            "who": one_line(" ".join(plain(who).split()), NAME_CHARACTERS) or ANONYMOUS,
            "at": datetime.datetime.now(datetime.UTC),
        }
        with self._database.writing() as connection:
            known = connection.execute(sa.select(STUDIES.c.digest).where(STUDIES.c.digest == digest)).first()
            if known is None:
                connection.execute(sa.insert(STUDIES).values(row))
        return known is None

    def get(self, digest: str) -> bytes | None:
        """The packed study, None where none of that digest is kept."""
        with self._database.reading() as connection:
            return connection.execute(sa.select(STUDIES.c.packed).where(STUDIES.c.digest == digest)).scalar()

    def latest(self, limit: int = 200) -> list[StoredStudy]:
        """The latest ones first."""
        columns = [STUDIES.c[name] for name in ("digest", "title", "headline", "who", "at")]
        statement = sa.select(*columns).order_by(STUDIES.c.at.desc(), STUDIES.c.digest).limit(limit)
        with self._database.reading() as connection:
            return [StoredStudy(*row) for row in connection.execute(statement)]

    def delete(self, digest: str) -> bool:
        """Delete a study; whether it was there."""
        with self._database.writing() as connection:
            deleted = connection.execute(sa.delete(STUDIES).where(STUDIES.c.digest == digest)).rowcount
        self._database.forget_deleted()
        return bool(deleted)
