"""The store's functions: add, list, export, delete, and keep for so many days only."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Self

from refusal_core.errors import InputError
from refusal_core.limits import FEEDBACK_AT_ONCE
from refusal_core.reports import to_json
from refusal_core.store.database import Database, open_database
from refusal_core.store.feedback import Feedback

if TYPE_CHECKING:
    import sqlalchemy

_PAGE = 500  # rows of the database read at once


class Store:
    """An open store. Safe to share between threads, and several processes may use one database at once.

    Every method raises WorkError when the database cannot be reached, is locked for longer than 30 s, or is full.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, url: str | None = None) -> Store:
        """The store at an SQLAlchemy URL of SQLite or PostgreSQL; it is made, or brought up to date, when needed.

        None takes REFUSAL_STORE, and without that a file in the user's data folder (`default_url`). Raises InputError
        for another kind of URL and for a store that a newer version wrote, MissingPackage without psycopg for a
        PostgreSQL URL, WorkError when the database cannot be opened. Never call it in demo mode.
        """
        return cls(open_database(url))

    @property
    def where(self) -> str:
        """The store's URL for a reader, without its password."""
        return self._database.where

    def add_feedback(self, entries: Feedback | Iterable[Feedback]) -> list[int]:
        """Store one or several entries, all or none; their numbers in the same order.

        Nothing is overwritten: when a person corrects an exchange again, the later entry counts in `export`. Raises
        InputError for more than limits.FEEDBACK_AT_ONCE entries.
        """

    def feedback(
        self, *, limit: int | None = 200, before: int | None = None, digest: str | None = None, who: str | None = None
    ) -> list[Feedback]:
        """Entries, the latest first, at most `limit` (None: all). `before` a number continues an earlier list.

        `digest` and `who` keep the entries on one checkpoint, or of one person.
        """

    def count(self) -> int:
        """Number of entries."""

    def export(self, file: IO[str]) -> int:
        """Write the corrected exchanges as JSONL that `train`, `evaluate` and `classify` read; the number of lines.

        One line an exchange, in the order of its first entry, with the right label of its latest entry: `id`, `prompt`,
        `response`, `label`, `model_label`, `checkpoint`, `who`, `when` (ISO 8601, UTC), `entries`, and `disputed`
        (whether people gave it different labels: each person's latest counts).
        """

    def delete(self, numbers: Iterable[int]) -> int:
        """Delete entries by their number; how many there were."""

    def delete_exchange(self, prompt: str, response: str) -> int:
        """Delete all entries on one exchange; how many there were."""

    def keep_days(self, days: int) -> int:
        """Retention: delete the entries older than `days` days (from 0 up); how many there were."""

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
