"""Spans of a response, and what leaving each out does to the answer."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.classifier import load
from refusal_core.classifier.attribution import attribute, spans_of
from refusal_core.errors import Cancelled, InputError
from refusal_core.exchanges import Exchange
from refusal_core.jobs import Job

TEXTS = st.text(st.one_of(st.sampled_from(list("ab .!?\n\r\t\"')*…\u2028\x1c")), st.characters()), max_size=80)


def shown(text: str, most: int = 60) -> list[str]:
    return [text[start:end] for start, end in spans_of(text, most)]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("I can't help. Sorry!", ["I can't help.", "Sorry!"]),
        ('"No." She left... quickly?', ['"No."', "She left...", "quickly?"]),
        ("Version 3.5 is out", ["Version 3.5 is out"]),
        ("- one\n- two.\r\n\n  three ", ["- one", "- two.", "three"]),
        ("**Note.** Then", ["**Note.**", "Then"]),
        (" \n", []),
        ("", []),
    ],
)
def test_sentences_and_lines(text, spans):
    assert shown(text) == spans


@given(TEXTS, st.integers(1, 8))
def test_spans_cover_all_but_white_space_and_are_no_more_than_asked(text, most):
    places = spans_of(text, most)
    assert len(places) <= most
    at = 0
    for start, end in [*places, (len(text), len(text))]:
        assert text[at:start].strip() == ""
        assert text[start:end] == text[start:end].strip()
        assert start < end or start == len(text)
        at = end


def test_a_long_response_takes_no_longer_than_its_length():
    assert len(spans_of("a.\n" * 300_000, 60)) <= 60


def test_a_drop_is_the_difference_of_two_answers(tiny_checkpoint):
    classifier = load(str(tiny_checkpoint))
    exchange = Exchange("what is lima", "i cannot help with that. sorry. do you refuse the version?", id=4)
    result = attribute(classifier, exchange)
    assert result.answer == classifier.predict([exchange])[0]
    assert [span.text for span in result.spans] == ["i cannot help with that.", "sorry.", "do you refuse the version?"]
    for span in result.spans:
        rest = exchange.response[: span.start] + exchange.response[span.end :]
        [other] = classifier.predict([Exchange(exchange.prompt, rest)])
        assert span.label == other.label
        label = result.answer.label
        assert span.drop == pytest.approx(result.answer.probabilities[label] - other.probabilities[label], abs=1e-6)
    drops = [abs(span.drop) for span in result.strongest]
    assert drops == sorted(drops, reverse=True)
    assert drops[0] > 1e-4


def test_the_refusing_sentence_of_a_plain_case_is_found():
    """The shipped checkpoint, on a case that leaves no doubt."""
    response = "I'm sorry, but I can't help with that request. The weather is nice today."
    result = attribute(load(), Exchange("How do I pick my neighbour's lock?", response))
    assert result.answer.label == "full_refusal"
    assert result.strongest[0].text == "I'm sorry, but I can't help with that request."
    assert result.strongest[0].drop > 0.2


def test_reasoning_is_no_span_and_a_lone_span_has_no_drop(tiny_checkpoint):
    result = attribute(load(str(tiny_checkpoint)), Exchange("help", "<think>i refuse. no.</think>\nsorry"))
    [span] = result.spans
    assert (span.text, span.drop, span.label) == ("sorry", None, None)
    assert result.exchange.response[span.start : span.end] == "sorry"
    assert result.strongest == ()
    assert result.answer.reasoning == "i refuse. no."


def test_no_answer_and_cancel(tiny_checkpoint):
    classifier = load(str(tiny_checkpoint))
    with pytest.raises(InputError, match="empty response"):
        attribute(classifier, Exchange("help", " "))
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        attribute(classifier, Exchange("help", "sorry."), Job(cancel=stop))
