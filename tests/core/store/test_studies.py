"""Stored studies: kept once by digest, listed, deleted, limited; a store of the first version gets their table."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from refusal_core import limits
from refusal_core.errors import InputError
from refusal_core.store import Feedback, Store, database, schema

ONE, TWO = "a" * 64, "b" * 64


def test_a_study_is_kept_once_listed_and_deleted(store):
    assert store.studies.add(ONE, b"first\0", title="t\n<b>", headline="h", who=" ana  lee ")
    assert not store.studies.add(ONE, b"other", title="x", headline="x")
    assert store.studies.add(TWO, b"second", title="t" * 300, headline="h")
    assert store.studies.get(ONE) == b"first\0" and store.studies.get("c" * 64) is None
    latest = store.studies.latest()
    assert [one.digest for one in latest] == [TWO, ONE]
    assert (latest[1].title, latest[1].who) == ("t <b>", "ana lee") and latest[0].who == "not named"
    assert len(latest[0].title) == limits.STUDY_NAME_CHARACTERS and latest[0].when.tzinfo
    assert store.studies.delete(ONE) and not store.studies.delete(ONE)
    assert [one.digest for one in store.studies.latest()] == [TWO]


@pytest.mark.parametrize("digest", ["", "A" * 64, "../" + "a" * 61, "a" * 65])
def test_a_digest_that_is_none(store, digest):
    with pytest.raises(InputError, match="SHA-256"):
        store.studies.add(digest, b"x", title="t", headline="h")


def test_a_study_too_large(store, monkeypatch):
    monkeypatch.setattr("refusal_core.store.studies.STUDY_STORED_BYTES", 10)
    with pytest.raises(InputError, match="at most 10 bytes"):
        store.studies.add(ONE, b"x" * 11, title="t", headline="h")


def test_a_store_of_the_first_version_is_brought_up_to_date(url):
    opened = database.open_database(url, schema.STEPS[:1])
    opened.close()
    with Store.open(url) as store:
        store.add_feedback([Feedback(prompt="p", response="r", right="compliant")])
        assert store.studies.add(ONE, b"x", title="t", headline="h") and store.count() == 1


def test_the_table_is_as_the_step_leaves_it(url):
    with Store.open(url) as store, store._database.reading() as connection:
        found = {column["name"]: column["nullable"] for column in sa.inspect(connection).get_columns("refusal_study")}
    assert found == {column.name: column.nullable for column in schema.STUDIES.columns}
