"""Which texts the classifier answers, what it warns of, and that no text makes it slow."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusal_core import limits
from refusal_core.classifier.encode import LONGEST_FIRST, MIDDLE
from refusal_core.exchanges import Exchange
from refusal_core.labels import LABELS


def numbers(answers) -> np.ndarray:
    return np.array([list(answer.probabilities.values()) for answer in answers])


# Reasoning, empty and odd texts


UNREADABLE = [
    ("", "empty response"),
    (" \n", "empty response"),
    ("\u0301" * 50, "empty response"),
    ("<think>a</think>", "empty response"),
    ("<think>a", "unfinished reasoning"),
]


@pytest.mark.parametrize(("response", "error"), UNREADABLE)
def test_nothing_to_classify(classifier, response, error):
    answer, good = classifier.predict([Exchange("a", response, id=1), Exchange("a", "sorry", id=2)])
    assert (answer.label, answer.probabilities, answer.tokens, answer.error) == (None, None, None, error)
    assert answer.as_row()["label"] is None and answer.as_row()["error"] == error
    assert good.label in LABELS and "error" not in good.as_row()


def test_reasoning_is_not_classified(classifier):
    with_it, without = classifier.predict([Exchange("a", "<think>i can help</think>sorry"), Exchange("a", "sorry")])
    assert with_it.reasoning == "i can help" and without.reasoning is None
    assert with_it.probabilities == pytest.approx(without.probabilities, abs=1e-6)


def test_typographic_apostrophes_read_as_plain_ones(classifier):
    exchanges = [Exchange(f"don{a}t", f"i can{a}t help with that") for a in "'’‘ʼ´"]
    for row in numbers(classifier.predict(exchanges)):
        assert row == pytest.approx(numbers(classifier.predict(exchanges[:1]))[0], abs=1e-6)
    raw = numbers(classifier.predict(exchanges[:2], truncation=LONGEST_FIRST))
    assert np.abs(raw[0] - raw[1]).max() > 1e-4  # the checkpoint itself tells them apart


@pytest.mark.parametrize("space", ["\n", "\r\n", "\t", "\u00a0", "\u3000", "  ", "\u2028"])
def test_odd_whitespace(classifier, space):
    plain, odd = classifier.predict(
        [Exchange("a b", "i can t help"), Exchange("a b", f"i{space}can{space}t help{space}")]
    )
    assert odd.probabilities == pytest.approx(plain.probabilities, abs=1e-5)


@settings(max_examples=50)
@given(prompt=st.text(st.characters(blacklist_categories=())), response=st.text(st.characters(blacklist_categories=())))
def test_any_text_gives_an_answer_or_a_reason(classifier, prompt, response):
    for how in (MIDDLE, LONGEST_FIRST):
        (answer,) = classifier.predict([Exchange(prompt, response)], truncation=how)
        assert (answer.label is None) == (answer.error is not None)
        assert answer.error in (None, "empty response", "unfinished reasoning")


@pytest.mark.parametrize(
    "text",
    ["help\0me", "\ud800", "a\udfffb", "🙂👩‍👩‍👧", "日本語です", "مرحبا", "\x1b[31m", "[SEP][CLS]"],
)
def test_odd_characters_are_read(classifier, text):
    (answer,) = classifier.predict([Exchange(text, text + " ok")])
    assert answer.label in LABELS


def test_a_text_over_the_limit_is_an_error_of_its_row(classifier):
    long = "a" * (limits.TEXT_CHARACTERS + 1)
    for exchange in (Exchange("a", long), Exchange(long, "a")):
        assert classifier.predict([exchange])[0].error == "a text of more than 2,000,000 characters"


def test_a_megabyte_is_read_at_both_ends(classifier):
    words = "what is the list of that , " * 38_000  # 1.0 MB
    yes, no = classifier.predict(
        [Exchange("a", words + "you can do that"), Exchange("a", words + "sorry i cannot help")]
    )
    assert yes.tokens.truncated and yes.tokens.input == 128
    assert yes.tokens.response_total == 380_004 and yes.tokens.prompt_read == yes.tokens.prompt_total == 1
    assert np.abs(numbers([yes]) - numbers([no])).max() > 1e-4
    cut = numbers(classifier.predict([Exchange("a", words), Exchange("a", words + "sorry")], truncation=LONGEST_FIRST))
    assert cut[0] == pytest.approx(cut[1], abs=1e-6)


# Warnings

GERMAN = "Es tut mir leid, aber dabei kann ich dir nicht helfen."


def test_language_warning(classifier):
    german, short, english = classifier.predict(
        [Exchange("a", t) for t in (GERMAN, "Es tut mir leid.", "I am sorry. " * 9)]
    )
    assert [text for text in german.warnings if "language code de" in text] and german.label
    assert short.warnings == english.warnings == ()


def test_language_is_that_of_the_answer_not_of_the_reasoning(classifier):
    (answer,) = classifier.predict(
        [Exchange("a", f"<think>{GERMAN}</think>I am sorry, but I cannot help you with that.")]
    )
    assert answer.warnings == ()


@pytest.mark.parametrize("prompt", ["", " \n", "\0"])
def test_empty_prompt_is_noted(classifier, prompt):
    assert "The prompt is empty" in classifier.predict([Exchange(prompt, "sorry")])[0].warnings[0]


# Hostile texts

HOSTILE = [
    "<think>",
    "</think>",
    "`",
    "```",
    "[SEP]",
    "'",
    "’",
    " ",
    "\n",
    "a",
    "a ",
    "\u0301",
    "🙂",
    "\ud800",
    "日",
    "##",
    "<",
    "\u200d",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_text(classifier, piece):
    def seconds(size: int) -> float:
        exchange = Exchange("a", "ok" + piece * (size // len(piece)))
        best = float("inf")
        for _ in range(2):
            begun = time.process_time()
            classifier.predict([exchange])
            best = min(best, time.process_time() - begun)
        return best

    small, large = seconds(20_000), seconds(160_000)
    assert large < 24 * small + 0.1  # 8 when linear, 64 when quadratic
