"""The store on SQLite and on PostgreSQL: what goes in comes out, the latest word counts, deleted is gone."""

from __future__ import annotations

import datetime
import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refusal_core import limits
from refusal_core.errors import InputError
from refusal_core.exchange_files import read_exchanges
from refusal_core.labels import LABELS
from refusal_core.store import Feedback, Store
from refusal_core.training.data import read_training_data

PROBABILITIES = {"compliant": 0.1, "full_refusal": 0.7, "partial_refusal": 0.2}


def entry(number: int = 1, **changes) -> Feedback:
    values = {"prompt": f"prompt {number}", "response": f"response {number}", "right": "compliant", "who": "ana"}
    return Feedback(**{**values, **changes})


def exported(store: Store) -> list[dict]:
    file = io.StringIO()
    lines = store.export(file)
    rows = [json.loads(line) for line in file.getvalue().splitlines()]
    assert len(rows) == lines
    return rows


def test_everything_comes_back(store):
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    given = entry(
        label="full_refusal", probabilities=PROBABILITIES, checkpoint="starter", digest="a" * 64, item=7,
        source="rows.csv", note="It helps.\nReally.", when=when,
    )  # fmt: skip
    [number] = store.add_feedback(given)
    [found] = store.feedback()
    assert (found.prompt, found.response, found.right, found.who) == ("prompt 1", "response 1", "compliant", "ana")
    assert (found.label, found.checkpoint, found.digest, found.item) == ("full_refusal", "starter", "a" * 64, "7")
    assert (found.source, found.note, found.id) == ("rows.csv", "It helps.\nReally.", number)
    assert list(found.probabilities.items()) == list(PROBABILITIES.items())
    assert found.when == when
    assert found.when.tzinfo == datetime.UTC


def test_the_time_is_set_when_it_is_stored(store):
    before = datetime.datetime.now(datetime.UTC)
    store.add_feedback(entry())
    assert before <= store.feedback()[0].when <= datetime.datetime.now(datetime.UTC)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_any_text_is_kept_as_the_classifier_reads_it(store, prompt, response):
    """Also halves of characters and NUL, which one database or the other refuses."""
    from refusal_core.classifier.texts import clean

    store.add_feedback(entry(prompt=prompt, response=response))
    found = store.feedback(limit=1)[0]
    assert (found.prompt, found.response) == (clean(prompt), clean(response))


def test_many_entries_keep_their_order_and_numbers(store):
    numbers = store.add_feedback([entry(i) for i in range(1_200)])
    found = store.feedback(limit=None)
    assert [f.prompt for f in reversed(found)] == [f"prompt {i}" for i in range(1_200)]
    assert [f.id for f in reversed(found)] == numbers
    assert store.count() == 1_200
    assert store.add_feedback([]) == []


def test_all_or_none(store):
    def entries():
        yield entry(1)
        raise KeyError("the second one")

    with pytest.raises(KeyError):
        store.add_feedback(entries())
    with pytest.raises(InputError, match="at most"):
        store.add_feedback([entry(1)] * (limits.FEEDBACK_AT_ONCE + 1))
    assert store.count() == 0


def test_lists_are_paged_and_filtered(store):
    store.add_feedback([entry(i, who="ana" if i % 2 else "ben", digest="d" * (i % 3)) for i in range(10)])
    first = store.feedback(limit=4)
    assert [f.prompt for f in first] == [f"prompt {i}" for i in (9, 8, 7, 6)]
    assert [f.prompt for f in store.feedback(limit=4, before=first[-1].id)] == [f"prompt {i}" for i in (5, 4, 3, 2)]
    assert [f.prompt for f in store.feedback(who="ben", digest="dd")] == ["prompt 8", "prompt 2"]


def test_the_latest_word_on_an_exchange_is_exported(store):
    store.add_feedback([entry(1, right="compliant"), entry(2, right="clarification", label="compliant")])
    store.add_feedback(entry(1, right="full_refusal"))
    one, two = exported(store)
    assert (one["prompt"], one["label"], one["entries"], one["disputed"]) == ("prompt 1", "full_refusal", 2, False)
    assert (two["label"], two["model_label"], two["entries"], two["disputed"]) == (
        "clarification",
        "compliant",
        1,
        False,
    )
    store.add_feedback(entry(1, right="compliant", who="ben"))
    assert exported(store)[0]["label"] == "compliant"
    assert exported(store)[0]["disputed"] is True
    store.add_feedback(entry(1, right="compliant", who="ana"))
    assert exported(store)[0]["disputed"] is False
    assert len({row["id"] for row in exported(store)}) == 2


def test_train_reads_the_export(store, tmp_path):
    store.add_feedback([entry(i, right=label) for i, label in enumerate(LABELS)])
    path = tmp_path / "feedback.jsonl"
    with path.open("w") as file:
        store.export(file)
    data = read_training_data([path], commercial_only=False)  # one's own rows state no licence
    assert [(e.prompt, e.label) for e in data.exchanges] == [(f"prompt {i}", label) for i, label in enumerate(LABELS)]
    assert data.left_out == {}
    assert all(row.extra["who"] == "ana" for row in read_exchanges(path))


def test_delete(store):
    numbers = store.add_feedback([entry(i) for i in range(1_001)] + [entry(5)])
    assert store.delete([*numbers[600:1_001], 10**6]) == 401
    assert store.count() == 601
    assert store.delete_exchange("prompt 5", "response 5") == 2
    assert "prompt 5" not in {f.prompt for f in store.feedback(limit=None)}
    assert store.delete([]) == 0
    [new] = store.add_feedback(entry(5))
    assert new > max(numbers)


def test_retention_deletes_what_is_older(store):
    now = datetime.datetime.now(datetime.UTC)
    ages = [0, 1, 29, 31, 400]
    store.add_feedback([entry(a, when=now - datetime.timedelta(days=a)) for a in ages])
    assert store.keep_days(30) == 2
    assert [f.prompt for f in store.feedback()] == ["prompt 29", "prompt 1", "prompt 0"]
    assert store.keep_days(30) == 0
    for days in (-1, 10**9):
        with pytest.raises(InputError, match="days"):
            store.keep_days(days)
    assert store.keep_days(0) == 3


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"right": " \n"}, "blank"),
        ({"who": "x" * 201}, "who"),
        ({"prompt": "x" * (limits.TEXT_CHARACTERS + 1)}, "prompt"),
        ({"probabilities": {"compliant": float("nan")}}, "probability"),
    ],
)
def test_what_is_no_feedback_is_refused(changes, part):
    with pytest.raises(InputError, match=part):
        entry(**changes)


def test_names_are_one_line_and_never_blank():
    assert entry(who=" ana\nlee ").who == "ana lee"
    assert entry(who="").who == "not named"
    with pytest.raises(ValueError, match="time zone"):
        entry(when=datetime.datetime(2026, 1, 1))
