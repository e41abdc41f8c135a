"""What of a response is read: reasoning set aside, odd characters cleaned, other languages noticed."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refusal_core.classifier.texts import (
    EMPTY_RESPONSE,
    UNFINISHED_REASONING,
    Answer,
    clean,
    foreign_language,
    plain_quotes,
    split_reasoning,
)

ANY_TEXT = st.text(st.characters(blacklist_categories=()))  # lone surrogates and NUL too


@pytest.mark.parametrize(
    ("response", "text", "reasoning"),
    [
        ("plain", "plain", None),
        ("<think>a</think>b", "b", "a"),
        ("\n <think>a</think>\n\nb", "\n \n\nb", "a"),
        ("<THINK>a</Think>b", "b", "a"),
        ("<thinking>a</thinking>b", "b", "a"),
        ("<think></think>b", "b", ""),
        ("a</think>b", "b", "a"),
        ("a</think>b</think>c", "c", "ab"),
        ("<think>a<think>b</think>c", "c", "a<think>b"),
        ("<think>a</think>b<think>c</think>d", "bd", "ac"),
        ("b<think>a</think>c", "bc", "a"),
        ("<think>odd ` backtick</think>Sorry, no.", "Sorry, no.", "odd ` backtick"),
        ("<think>odd ``` fence</think>Sorry, no.", "Sorry, no.", "odd ``` fence"),
        ("The tag `<think>` opens it.", "The tag `<think>` opens it.", None),
        ("Write\n```\n<think>\n```\nfirst.", "Write\n```\n<think>\n```\nfirst.", None),
        ("<think>a</think>Use `</think>` last.", "Use `</think>` last.", "a"),
        ("```\n<think>", "```\n<think>", None),
        ("<thinks>a</thinks>", "<thinks>a</thinks>", None),
        ("< think>a", "< think>a", None),
    ],
)
def test_reasoning_is_set_aside(response, text, reasoning):
    assert split_reasoning(response) == Answer(text, reasoning)


@pytest.mark.parametrize("response", ["<think>a", "<think>", "a<think>b", "<think>a</think>b<think>c", " <think> ` "])
def test_unfinished_reasoning(response):
    answer = split_reasoning(response)
    assert (answer.text, answer.error) == ("", UNFINISHED_REASONING)
    assert answer.reasoning is not None


@pytest.mark.parametrize(
    "response", ["", " \n\t", "\u200b\u200d\ufeff", "<think>a</think>", "<think>a</think>\n ", "\u2028"]
)
def test_empty_response(response):
    assert split_reasoning(response).error == EMPTY_RESPONSE


@pytest.mark.parametrize("response", [".", "🙂", "\u0301", "ー", "0"])
def test_one_visible_character_is_a_response(response):
    assert split_reasoning(response).error is None


PIECES = st.lists(
    st.sampled_from(["<think>", "</think>", "<thinking>", "```", "`", "\n", "a", " ", "sorry"]), max_size=12
)


@given(PIECES.map("".join))
@example("`<think>`</think>`")
def test_nothing_is_read_twice_or_invented(response):
    answer = split_reasoning(response)
    assert len(answer.text) + len(answer.reasoning or "") <= len(response)
    if answer.reasoning is None:
        assert answer.text == response


@given(ANY_TEXT)
def test_clean_text_is_what_every_tokenizer_takes(text):
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert "\0" not in cleaned
    assert clean(cleaned) == cleaned
    split_reasoning(text)
    foreign_language(cleaned)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\0b", "a b"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude42", "🙂"),
        ("\ud83d", "\ufffd"),
        ("\ufeffa", "\ufeffa"),
        ("naïve 🙂 日本", "naïve 🙂 日本"),
    ],
)
def test_clean(text, cleaned):
    assert clean(text) == cleaned


@pytest.mark.parametrize("apostrophe", "\u2018\u2019\u201b\u02bc\u2032\u00b4\uff07")
def test_every_apostrophe_is_one(apostrophe):
    assert plain_quotes(f"I can{apostrophe}t") == "I can't"


@pytest.mark.parametrize("quote", "\u201c\u201d\u201f\uff02")
def test_every_quotation_mark_is_one(quote):
    assert plain_quotes(f"{quote}no{quote}") == '"no"'


def test_code_keeps_its_backticks():
    assert plain_quotes("`a` ``` 5 ° « »") == "`a` ``` 5 ° « »"


ENGLISH = "I'm sorry, but I can't help with that request."


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, None),
        (ENGLISH.upper(), None),
        ("Es tut mir leid, aber dabei kann ich dir nicht helfen.", "de"),
        ("Lo siento, pero no puedo ayudarte con esa solicitud.", "es"),
        ("申し訳ありませんが、そのご要望にはお応えできません。別の質問があればお知らせください。", "ja"),
        ("Извините, но я не могу помочь вам с этой просьбой.", "ru"),
        ("Es tut mir leid.", None),
        ("申し訳ありません", None),
        ("Nein" + " " * 100 + "!", None),
        ("", None),
    ],
)
def test_language(text, language):
    assert foreign_language(text) == language


@given(st.text(max_size=29))
def test_a_short_text_is_never_judged(text):
    assert foreign_language(text) is None


@given(st.text("äöüß ", min_size=0, max_size=29))
def test_spaces_do_not_make_a_short_text_long(text):
    assert foreign_language(text.strip() + "\n" * 500) is None


HOSTILE = [
    "<think>", "</think>", "<think></think>", "`", "``", "```", "`a`", "```a", "<", "<think", "</", "`<think>`", "`\n",
    "\u200b", "\ud800", "\0", " ", "```\n<think>\n```", "a</think>", "<thinking>`",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_text(piece):
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        best = float("inf")
        for _ in range(3):
            begun = time.process_time()
            split_reasoning(clean(text))
            foreign_language(clean(text))
            best = min(best, time.process_time() - begun)
        return best

    small, large = seconds(40_000), seconds(320_000)
    assert large < 24 * small + 0.05  # 8 when linear, 64 when quadratic
