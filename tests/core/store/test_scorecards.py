"""The history of suites on SQLite and on PostgreSQL: runs in order, sign-offs of one result only."""

from __future__ import annotations

import hashlib

import pytest
import sqlalchemy as sa

from refusal_core import limits
from refusal_core.errors import InputError
from refusal_core.store import Store, database, schema


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_runs_come_back_in_order_and_the_same_result_is_one_run(store):
    kept = store.scorecards
    for text in ("one", "two", "two", "one"):
        kept.add("gate.yaml", text, f"PASS: {text}")
    kept.add("other.yaml", "three", "FAIL")
    assert [run.digest for run in kept.runs("gate.yaml")] == [digest("one"), digest("two"), digest("one")]
    assert [run.sentence for run in kept.runs("gate.yaml", limit=1)] == ["PASS: one"]
    assert kept.get(digest("three")) == "three" and kept.get(digest("nowhere")) is None
    assert kept.add("gate.yaml", "one", "PASS: one") is False
    latest = kept.runs("gate.yaml")[0]
    assert kept.delete(latest.number) and not kept.delete(latest.number)
    assert [run.digest for run in kept.runs("gate.yaml")] == [digest("two"), digest("one")]


def test_a_sign_off_is_of_one_result(store):
    kept = store.scorecards
    kept.add("gate.yaml", "one", "PASS")
    first = kept.sign(digest("one"), who="  Ana\n B ", note="Seen.\nReally.\0")
    kept.sign(digest("one"), who="Bo")
    assert [(s.who, s.note, s.number == first) for s in kept.sign_offs(digest("one"))] == [
        ("Ana B", "Seen.\nReally. ", True), ("Bo", "", False),
    ]  # fmt: skip
    kept.add("gate.yaml", "one, changed", "PASS")
    assert kept.sign_offs(digest("one, changed")) == []
    assert kept.withdraw(first) and [s.who for s in kept.sign_offs(digest("one"))] == ["Bo"]


@pytest.mark.parametrize(("name", "signed"), [(" \n", digest("x")), ("Ana", "x" * 64)])
def test_what_is_no_sign_off_is_one_sentence(store, name, signed):
    with pytest.raises(InputError):
        store.scorecards.sign(signed, who=name)
    assert store.scorecards.sign_offs(signed) == []


def test_too_large_and_damaged_results_are_refused(store, monkeypatch):
    kept = store.scorecards
    kept.add("gate.yaml", "one", "PASS")
    with store._database.writing() as connection:
        connection.execute(sa.update(schema.SCORECARDS).values(packed=b"not deflated"))
    with pytest.raises(InputError, match="damaged"):
        kept.get(digest("one"))
    monkeypatch.setattr("refusal_core.store.scorecards.SCORECARD_STORED_BYTES", 5)
    with pytest.raises(InputError, match="at most"):
        kept.add("gate.yaml", "a text that packs into more than five bytes", "PASS")
    assert limits.SCORECARD_STORED_BYTES > 5


def test_the_tables_are_as_the_code_knows_them(url):
    with Store.open(url):
        pass
    engine = sa.create_engine(database._parsed(url))
    for table in (schema.SCORECARDS, schema.SIGN_OFFS):
        assert [c["name"] for c in sa.inspect(engine).get_columns(table.name)] == list(table.columns.keys())
        found = {index["name"] for index in sa.inspect(engine).get_indexes(table.name)}
        assert found == {index.name for index in table.indexes}
    engine.dispose()
