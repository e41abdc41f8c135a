"""The store's functions: add, list, export, delete, and keep for so many days only."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Iterable
from typing import IO, Self

import sqlalchemy as sa

from refusal_core.errors import InputError
from refusal_core.limits import FEEDBACK_AT_ONCE
from refusal_core.reports import to_json
from refusal_core.store.database import Database, open_database
from refusal_core.store.feedback import Feedback
from refusal_core.store.schema import FEEDBACK
from refusal_core.store.scorecards import Scorecards
from refusal_core.store.studies import Studies

_AT_ONCE = 500  # rows read, numbers deleted
_LONGEST_DAYS = 36_500


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

    @property
    def studies(self) -> Studies:
        """The studies of refusal directions that are kept."""
        return Studies(self._database)

    def add_feedback(self, entries: Feedback | Iterable[Feedback]) -> list[int]:
        """Store one or several entries, all or none; their numbers in the same order.

        Nothing is overwritten: when a person corrects an exchange again, the later entry counts in `export`. Raises
        InputError for more than limits.FEEDBACK_AT_ONCE entries.
        """
        entries = [entries] if isinstance(entries, Feedback) else list(entries)
        if len(entries) > FEEDBACK_AT_ONCE:
            raise InputError(
                f"{len(entries):,} entries at once", why=f"at most {FEEDBACK_AT_ONCE:,} are stored in one go"
            )
        if not entries:
            return []
        now = datetime.datetime.now(datetime.UTC)
        statement = sa.insert(FEEDBACK).returning(FEEDBACK.c.number, sort_by_parameter_order=True)
        with self._database.writing() as connection:
            return list(connection.execute(statement, [_columns(entry, now) for entry in entries]).scalars())

    def feedback(
        self, *, limit: int | None = 200, before: int | None = None, digest: str | None = None, who: str | None = None
    ) -> list[Feedback]:
        """Entries, the latest first, at most `limit` (None: all). `before` a number continues an earlier list.

        `digest` and `who` keep the entries on one checkpoint, or of one person.
        """
        statement = sa.select(FEEDBACK).order_by(FEEDBACK.c.number.desc())
        if before is not None:
            statement = statement.where(FEEDBACK.c.number < before)
        if digest is not None:
            statement = statement.where(FEEDBACK.c.digest == digest)
        if who is not None:
            statement = statement.where(FEEDBACK.c.who == who)
        if limit is not None:
            statement = statement.limit(limit)
        with self._database.reading() as connection:
            return [_entry(row) for row in connection.execute(statement)]

    def count(self) -> int:
        """Number of entries."""
        with self._database.reading() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(FEEDBACK)).scalar_one()

    def export(self, file: IO[str]) -> int:
        """Write the corrected exchanges as JSONL that `train`, `evaluate` and `classify` read; the number of lines.

        One line an exchange, in the order of its first entry, with the right label of its latest entry: `id`
        ("feedback-" and the number of its first entry), `prompt`, `response`, `label`, `model_label`, `checkpoint` (its
        digest), `item` and `source` (the exchange's own id and file), `who`, `when` (ISO 8601, UTC), `entries`, and
        `disputed` (whether people hold different labels of it: each person's latest counts). In constant memory.
        """
        lines = 0
        with self._database.reading() as connection:
            streamed = connection.execution_options(yield_per=_AT_ONCE)
            for row in streamed.execute(_latest_of_each_exchange()):
                file.write(to_json(_training_row(row)) + "\n")
                lines += 1
        return lines

    def delete(self, numbers: Iterable[int]) -> int:
        """Delete entries by their number; how many there were."""
        numbers, deleted = iter(set(numbers)), 0
        with self._database.writing() as connection:
            while part := list(itertools.islice(numbers, _AT_ONCE)):
                deleted += connection.execute(sa.delete(FEEDBACK).where(FEEDBACK.c.number.in_(part))).rowcount
        self._database.forget_deleted()
        return deleted

    def delete_exchange(self, prompt: str, response: str) -> int:
        """Delete all entries on one exchange; how many there were."""
        digest = Feedback(prompt=prompt, response=response, right="any").exchange
        return self._delete_where(FEEDBACK.c.exchange == digest)

    def keep_days(self, days: int) -> int:
        """Retention: delete the entries older than `days` days (from 0 up); how many there were."""
        if not 0 <= days <= _LONGEST_DAYS:
            raise InputError(f"{days} days were asked for", why=f"0 to {_LONGEST_DAYS:,} days were expected")
        oldest = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days)
        return self._delete_where(FEEDBACK.c.at < oldest)

    @property
    def scorecards(self) -> Scorecards:
        """Runs of suites and sign-offs."""
        return Scorecards(self._database)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _delete_where(self, condition: sa.ColumnElement[bool]) -> int:
        with self._database.writing() as connection:
            deleted = connection.execute(sa.delete(FEEDBACK).where(condition)).rowcount
        self._database.forget_deleted()
        return deleted


def _columns(entry: Feedback, now: datetime.datetime) -> dict[str, object]:
    return {
        "exchange": entry.exchange,
        "item": entry.item,
        "source": entry.source,
        "prompt": entry.prompt,
        "response": entry.response,
        "model_label": entry.label,
        "probabilities": to_json(entry.probabilities),
        "checkpoint": entry.checkpoint,
        "digest": entry.digest,
        "right_label": entry.right,
        "who": entry.who,
        "note": entry.note,
        "at": entry.when or now,
    }


def _entry(row: sa.Row) -> Feedback:
    return Feedback(
        prompt=row.prompt,
        response=row.response,
        right=row.right_label,
        label=row.model_label,
        probabilities=json.loads(row.probabilities),
        checkpoint=row.checkpoint,
        digest=row.digest,
        item=row.item,
        source=row.source,
        who=row.who,
        note=row.note,
        when=row.at,
        id=row.number,
    )


def _latest_of_each_exchange() -> sa.Select:
    """The latest entry on each exchange, with `first` and `entries` of the exchange and the labels that people hold."""
    word = (
        sa.select(sa.func.max(FEEDBACK.c.number).label("number"))
        .group_by(FEEDBACK.c.exchange, FEEDBACK.c.who)
        .subquery()
    )
    held = (
        sa.select(
            FEEDBACK.c.exchange,
            sa.func.max(FEEDBACK.c.number).label("last"),
            sa.func.count(FEEDBACK.c.right_label.distinct()).label("labels"),
        )
        .where(FEEDBACK.c.number.in_(sa.select(word.c.number)))
        .group_by(FEEDBACK.c.exchange)
        .subquery()
    )
    whole = (
        sa.select(FEEDBACK.c.exchange, sa.func.min(FEEDBACK.c.number).label("first"), sa.func.count().label("entries"))
        .group_by(FEEDBACK.c.exchange)
        .subquery()
    )
    return (
        sa.select(FEEDBACK, held.c.labels, whole.c.first, whole.c.entries)
        .join(held, FEEDBACK.c.number == held.c.last)
        .join(whole, FEEDBACK.c.exchange == whole.c.exchange)
        .order_by(whole.c.first)
    )


def _training_row(row: sa.Row) -> dict[str, object]:
    return {
        "id": f"feedback-{row.first}",
        "prompt": row.prompt,
        "response": row.response,
        "label": row.right_label,
        "model_label": row.model_label,
        "checkpoint": row.digest,
        "item": row.item,
        "source": row.source,
        "who": row.who,
        "when": row.at.isoformat(),
        "entries": row.entries,
        "disputed": row.labels > 1,
    }
