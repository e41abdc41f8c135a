"""Answering rows as they are read: order, repeats, bounded reading ahead, and going on from finished lists."""

from __future__ import annotations

import json
import threading

import pytest

from refusal_core.classifier import Classification, Classifier, load, stream
from refusal_core.classifier.stream import answer_rows
from refusal_core.errors import Cancelled, InputError
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import Job
from refusal_core.reports import to_json


@pytest.fixture(scope="module")
def classifier(tiny_checkpoint) -> Classifier:
    return load(str(tiny_checkpoint))


def many(count: int, different: int) -> list[Exchange | BadRow]:
    return [
        BadRow(i, i, "no row.") if i % 50 == 49 else Exchange(f"what is lima {i % different}", "sorry " * (i % 7), i)
        for i in range(count)
    ]


def computed_texts(monkeypatch) -> list[tuple[str, str]]:
    """The texts that the model computes from now on."""
    seen: list = []
    answer = Classifier.answer

    def counting(self, encoded, **options):
        seen.extend((exchange.prompt, exchange.response) for exchange in encoded.exchanges)
        return answer(self, encoded, **options)

    monkeypatch.setattr(Classifier, "answer", counting)
    return seen


def test_the_answers_are_those_of_predict_rows(classifier):
    rows = many(200, 31)
    expected = list(classifier.predict_rows(rows))
    parts = list(answer_rows(classifier, iter(rows), chunk=16))
    assert [len(part) for part in parts] == [16] * 12 + [8]
    found = [answered for part in parts for answered in part]
    assert [a.row for a in found] == rows
    for one, other in zip(expected, found, strict=True):
        assert (one.id, one.label, one.error, one.tokens) == (
            other.answer.id, other.answer.label, other.answer.error, other.answer.tokens,
        )  # fmt: skip
        if one.label:
            assert other.answer.probabilities == pytest.approx(one.probabilities, abs=1e-6)


def test_identical_exchanges_are_computed_once(classifier, monkeypatch):
    seen = computed_texts(monkeypatch)
    rows = [Exchange("help", "sorry", i) for i in range(40)] + [Exchange("helps", "orry", 40), Exchange("help", "", 41)]
    found = [a for part in answer_rows(classifier, rows, chunk=8) for a in part]
    assert sorted(seen) == [("help", ""), ("help", "sorry"), ("helps", "orry")]
    assert [a.answer.id for a in found] == list(range(42))
    assert len({a.answer.label for a in found[:40]}) == 1
    assert found[41].answer.error == "empty response"


def test_a_repeat_has_its_own_reasoning(classifier):
    rows = [Exchange("help", "<think>hm</think>sorry", i) for i in range(3)]
    for part in answer_rows(classifier, rows, chunk=1):
        assert part[0].answer.reasoning == "hm"


def test_only_so_many_answers_are_kept(classifier, monkeypatch):
    monkeypatch.setattr(stream, "KEPT_ANSWERS", 4)
    seen = computed_texts(monkeypatch)

    def row(i: int) -> Exchange:
        return Exchange(f"lima {i}", "sorry", i)

    rows = [row(i) for i in (0, 1, 2, 3, 0, 4, 5, 0, 1)]  # 0 was used again, 1 is the oldest when 5 comes
    answers = [a for part in answer_rows(classifier, rows, chunk=1) for a in part]
    assert [a.answer.id for a in answers] == [r.id for r in rows]
    assert [prompt for prompt, _ in seen] == [f"lima {i}" for i in (0, 1, 2, 3, 4, 5, 1)]


def test_going_on_gives_the_same_bytes_and_computes_the_rest_only(classifier, monkeypatch):
    rows = many(150, 40)
    whole = [[a.answer.as_row() for a in part] for part in answer_rows(classifier, rows, chunk=16)]
    for done in (0, 1, 4, len(whole)):
        seen = computed_texts(monkeypatch)
        earlier = [[Classification.from_row(json.loads(to_json(row))) for row in part] for part in whole[:done]]
        again = [
            [a.answer.as_row() for a in part] for part in answer_rows(classifier, rows, chunk=16, finished=earlier)
        ]
        assert to_json(again) == to_json(whole)
        before = {(r.prompt, r.response) for r in rows[: 16 * done] if isinstance(r, Exchange)}
        assert not before & set(seen)
        monkeypatch.undo()


def test_what_does_not_fit_is_refused(classifier):
    earlier = [[Classification(1, None, None, None, error="x.")]]
    with pytest.raises(InputError, match="does not fit"):
        list(answer_rows(classifier, many(20, 20), chunk=8, finished=earlier))


def test_reading_is_never_far_ahead(classifier):
    read = 0

    def rows():
        nonlocal read
        for i in range(400):
            read += 1
            yield Exchange(f"lima {i}", "sorry", i)

    done = 0
    for part in answer_rows(classifier, rows(), chunk=10):
        done += len(part)
        # One part waits, one is being read with one row to see its end, one is handed over.
        assert read <= done + 3 * 10 + 1
    assert done == 400


def test_what_reading_raises_comes_after_the_answers_before_it(classifier):
    def rows():
        yield from many(20, 20)
        raise InputError("the file breaks off")

    done = []
    with pytest.raises(InputError, match="breaks off"):
        for part in answer_rows(classifier, rows(), chunk=8):
            done += part
    assert len(done) == 16


def test_a_cancel_is_noticed_while_nothing_comes(classifier):
    stop, wait = threading.Event(), threading.Event()

    def rows():
        yield Exchange("help", "sorry", 1)
        stop.set()
        wait.wait(60)

    with pytest.raises(Cancelled):
        list(answer_rows(classifier, rows(), job=Job(cancel=stop)))
    assert not wait.is_set()
    wait.set()


def test_the_reader_ends_with_its_caller(classifier):
    def readers() -> list[threading.Thread]:
        return [t for t in threading.enumerate() if t.name == "read-and-tokenise"]

    parts = answer_rows(classifier, many(400, 400), chunk=10)
    next(parts)
    mine = readers()
    assert mine
    parts.close()
    for thread in mine:
        thread.join(timeout=30)
        assert not thread.is_alive()


def test_no_thread_is_left_at_work_when_the_answers_are_no_longer_wanted(classifier, monkeypatch):
    """A process that ends while its thread tokenises is aborted by the tokenizers library."""
    at_work, slow = threading.Event(), threading.Event()
    encode = classifier.encode

    def encode_slowly(*args, **options):
        at_work.set()
        slow.wait(0.3)
        try:
            return encode(*args, **options)
        finally:
            at_work.clear()

    monkeypatch.setattr(classifier, "encode", encode_slowly)
    answers = answer_rows(classifier, (Exchange(f"what is {n}", "lima", id=n) for n in range(100)), chunk=2)
    next(answers)
    assert at_work.wait(10)
    answers.close()
    assert not at_work.is_set()
