"""The store's tables, and the ordered steps that bring an older store up to date."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence

import sqlalchemy as sa

from refusal_core.errors import InputError

Step = Callable[[sa.Connection], None]


class UtcTime(sa.types.TypeDecorator):
    """A moment in UTC, in both databases; without a time zone in SQLite, which has none."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime.datetime | None, dialect: sa.Dialect) -> datetime.datetime | None:
        return value and value.astimezone(datetime.UTC)

    def process_result_value(self, value: datetime.datetime | None, dialect: sa.Dialect) -> datetime.datetime | None:
        if value is not None and value.tzinfo is None:
            return value.replace(tzinfo=datetime.UTC)
        return value and value.astimezone(datetime.UTC)


METADATA = sa.MetaData()
# As the last step leaves it; a test compares the two. Numbers are never used twice, also after a delete.
FEEDBACK = sa.Table(
    "refusal_feedback",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("exchange", sa.String(64), nullable=False),  # Feedback.exchange
    sa.Column("item", sa.Text),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("prompt", sa.Text, nullable=False),
    sa.Column("response", sa.Text, nullable=False),
    sa.Column("model_label", sa.Text),
    sa.Column("probabilities", sa.Text, nullable=False),  # a JSON object, class to number, in the model's order
    sa.Column("checkpoint", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("right_label", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("at", UtcTime, nullable=False),
    sa.Index("refusal_feedback_exchange", "exchange"),
    sa.Index("refusal_feedback_at", "at"),
    sqlite_autoincrement=True,
)
STUDIES = sa.Table(
    "refusal_study",
    METADATA,
    sa.Column("digest", sa.String(64), primary_key=True),  # SHA-256 of study.json
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("headline", sa.Text, nullable=False),
    sa.Column("packed", sa.LargeBinary, nullable=False),  # direction.record.Record.packed
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("at", UtcTime, nullable=False),
    sa.Index("refusal_study_at", "at"),
)
SCORECARDS = sa.Table(
    "refusal_scorecard",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("suite", sa.Text, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),  # SHA-256 of scorecard.json
    sa.Column("sentence", sa.Text, nullable=False),
    sa.Column("packed", sa.LargeBinary, nullable=False),  # scorecard.json, deflated
    sa.Column("at", UtcTime, nullable=False),
    sa.Index("refusal_scorecard_digest", "digest"),
    sqlite_autoincrement=True,
)
SIGN_OFFS = sa.Table(
    "refusal_sign_off",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("digest", sa.String(64), nullable=False),  # of the result that was signed
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("at", UtcTime, nullable=False),
    sa.Index("refusal_sign_off_digest", "digest"),
    sqlite_autoincrement=True,
)
_VERSION = sa.Table("refusal_store_version", sa.MetaData(), sa.Column("version", sa.Integer, nullable=False))


def _first(connection: sa.Connection) -> None:
    """Version 1: feedback. Written out, since FEEDBACK above follows later versions."""
    number = "SERIAL PRIMARY KEY"
    time = "TIMESTAMP WITH TIME ZONE"
    if connection.dialect.name == "sqlite":
        number, time = "INTEGER PRIMARY KEY AUTOINCREMENT", "DATETIME"
    connection.exec_driver_sql(
        f"""CREATE TABLE refusal_feedback (
            number {number}, exchange VARCHAR(64) NOT NULL, item TEXT, source TEXT NOT NULL, prompt TEXT NOT NULL,
            response TEXT NOT NULL, model_label TEXT, probabilities TEXT NOT NULL, checkpoint TEXT NOT NULL,
            digest TEXT NOT NULL, right_label TEXT NOT NULL, who TEXT NOT NULL, note TEXT NOT NULL, at {time} NOT NULL
        )"""
    )
    connection.exec_driver_sql("CREATE INDEX refusal_feedback_exchange ON refusal_feedback (exchange)")
    connection.exec_driver_sql("CREATE INDEX refusal_feedback_at ON refusal_feedback (at)")


def _studies(connection: sa.Connection) -> None:
    """Stored studies: result and settings by digest, no activations."""
    sqlite = connection.dialect.name == "sqlite"
    blob, time = ("BLOB", "DATETIME") if sqlite else ("BYTEA", "TIMESTAMP WITH TIME ZONE")
    connection.exec_driver_sql(
        f"""CREATE TABLE refusal_study (
            digest VARCHAR(64) NOT NULL PRIMARY KEY, title TEXT NOT NULL, headline TEXT NOT NULL,
            packed {blob} NOT NULL, who TEXT NOT NULL, at {time} NOT NULL
        )"""
    )
    connection.exec_driver_sql("CREATE INDEX refusal_study_at ON refusal_study (at)")


def _scorecards(connection: sa.Connection) -> None:
    """Runs of suites and what people signed."""
    sqlite = connection.dialect.name == "sqlite"
    number = "INTEGER PRIMARY KEY AUTOINCREMENT" if sqlite else "SERIAL PRIMARY KEY"
    blob, time = ("BLOB", "DATETIME") if sqlite else ("BYTEA", "TIMESTAMP WITH TIME ZONE")
    connection.exec_driver_sql(
        f"""CREATE TABLE refusal_scorecard (
            number {number}, suite TEXT NOT NULL, digest VARCHAR(64) NOT NULL, sentence TEXT NOT NULL,
            packed {blob} NOT NULL, at {time} NOT NULL
        )"""
    )
    connection.exec_driver_sql("CREATE INDEX refusal_scorecard_digest ON refusal_scorecard (digest)")
    connection.exec_driver_sql(
        f"""CREATE TABLE refusal_sign_off (
            number {number}, digest VARCHAR(64) NOT NULL, who TEXT NOT NULL, note TEXT NOT NULL, at {time} NOT NULL
        )"""
    )
    connection.exec_driver_sql("CREATE INDEX refusal_sign_off_digest ON refusal_sign_off (digest)")


# Version n is reached by the first n steps. A released step is never changed: add another.
STEPS: Sequence[Step] = (_first, _studies, _scorecards)


def version_of(connection: sa.Connection) -> int:
    """The store's version, 0 where there is no store yet."""
    if not sa.inspect(connection).has_table(_VERSION.name):
        return 0
    return connection.execute(sa.select(sa.func.max(_VERSION.c.version))).scalar() or 0


def check_not_newer(version: int, where: str, steps: Sequence[Step] = STEPS) -> None:
    """Raise InputError for a store that a newer version of this package wrote."""
    if version > len(steps):
        raise InputError(
            f"a newer version of this package wrote the store (schema {version})",
            where=where,
            why=f"this one knows schemas up to {len(steps)}",
            fix="update the package, or name another store",
        )


def upgrade(connection: sa.Connection, where: str, steps: Sequence[Step] = STEPS) -> None:
    """Run the missing steps in the transaction of `connection`, which keeps other writers out."""
    version = version_of(connection)
    check_not_newer(version, where, steps)
    _VERSION.create(connection, checkfirst=True)
    for step in steps[version:]:
        step(connection)
    connection.execute(sa.delete(_VERSION))
    connection.execute(sa.insert(_VERSION).values(version=len(steps)))
