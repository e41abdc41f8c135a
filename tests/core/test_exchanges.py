"""Chats, pasted text and single rows as exchanges."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusal_core import limits
from refusal_core.errors import InputError
from refusal_core.exchange_formats.keys import Keys, likely_columns
from refusal_core.exchanges import BadRow, Exchange, exchanges_of_row, from_messages, from_pasted, read_pasted


def message(role: str, content: object) -> dict:
    return {"role": role, "content": content}


def one(messages: object) -> Exchange:
    (exchange,) = from_messages(messages)
    return exchange


def test_single_user_turn_is_the_prompt_as_it_stands():
    assert one([message("user", " Hi\n"), message("assistant", "No.")]) == Exchange(" Hi\n", "No.")


def test_longer_chat_is_written_as_paragraphs_and_later_user_turn_is_ignored():
    chat = [
        message("developer", "Be terse."),
        message("user", "A?"),
        message("assistant", "a"),
        message("user", "B?"),
        message("assistant", "b"),
        message("user", "C?"),
    ]
    assert one(chat) == Exchange("System: Be terse.\n\nUser: A?\n\nAssistant: a\n\nUser: B?", "b")


def test_every_turn_numbers_the_assistant_turns():
    chat = [message("user", "A"), message("assistant", "a"), message("user", "B"), message("assistant", "b")]
    first, second = from_messages(chat, every_turn=True, id="x")
    assert (first.id, first.prompt, first.response) == ("x#1", "A", "a")
    assert (second.id, second.prompt, second.response) == ("x#2", "User: A\n\nAssistant: a\n\nUser: B", "b")


def test_tool_turns_stand_in_the_prompt_and_empty_turns_do_not():
    chat = [
        message("system", ""),
        message("user", "Rain?"),
        {"role": "assistant", "tool_calls": [{"id": "1"}]},
        message("tool", '{"mm": 3}'),
        message("function", "ok"),
        message("assistant", "Yes."),
    ]
    assert one(chat).prompt == 'User: Rain?\n\nTool: {"mm": 3}\n\nTool: ok'
    assert one([message("system", " "), message("user", "Hi"), message("assistant", "x")]).prompt == "Hi"


def test_sharegpt():
    chat = [{"from": "system", "value": "s"}, {"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
    assert one(chat) == Exchange("System: s\n\nUser: q", "a")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ([], ""),
        (["a", "b"], "a\nb"),
        ([{"type": "text", "text": "a"}], "a"),
        ({"type": "text", "text": "a"}, "a"),
        ([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}], "a\nb"),
        ([{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "x"}}], "Look:\n[image]"),
        ([{"type": "input_audio"}, {"type": "tool_use", "input": {}}, 7, {}], "[audio]\n[tool_use]\n[part]\n[part]"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}], "a"),
        ([{"type": "text", "text": None}], "[text]"),
        ([{"type": ["odd"], "text": "a"}], "a"),
        ([{"type": "refusal", "refusal": "I cannot."}], "I cannot."),
    ],
)
def test_content(content, text):
    assert one([message("user", content), message("assistant", content)]) == Exchange(text, text)


def test_refusal_beside_null_content_is_the_response():
    assert one([message("user", "x"), message("assistant", None) | {"refusal": "I cannot."}]).response == "I cannot."


def test_chat_that_begins_with_the_assistant_has_an_empty_prompt():
    assert one([message("assistant", "Hello")]) == Exchange("", "Hello")


@pytest.mark.parametrize(
    ("messages", "part"),
    [
        (None, "not a list"),
        ("text", "not a list"),
        ([], "no assistant turn"),
        ([message("user", "x")], "no assistant turn"),
        ([message("user", "x"), message("critic", "y")], 'message 2: the role "critic" is not known'),
        ([message("human", "x")], 'message 1: the role "human" is not known'),
        ([{"content": "x"}], "message 1: it has no role"),
        ([message(3, "x")], "message 1: it has no role"),
        ([message("user", 3)], "message 1: its content is a number"),
        ([{"role": "user", "text": "x"}], "message 1: it has no content"),
        (["x"], "message 1: it is not an object"),
        ([message("user", "x")] * (limits.MESSAGES_PER_CHAT + 1), "1,001 messages"),
        ([message("assistant", "x" * (limits.TEXT_CHARACTERS + 1))], "2,000,001 characters"),
    ],
)
def test_chats_that_are_refused(messages, part):
    with pytest.raises(InputError) as caught:
        from_messages(messages)
    assert part in str(caught.value)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(("role", "content", "from", "value", "type", "text", "x")), inner, max_size=4)
    ),
    max_leaves=12,
)
ROLES = st.sampled_from(("system", "user", "assistant", "tool", "developer", "critic")) | JSON_VALUES
MESSAGES = st.fixed_dictionaries({"role": ROLES, "content": JSON_VALUES})


@given(JSON_VALUES | st.lists(MESSAGES | JSON_VALUES, max_size=5), st.booleans())
@settings(deadline=None)
def test_any_json_value_is_a_chat_or_an_input_error(value, every_turn):
    try:
        found = from_messages(value, every_turn=every_turn)
    except InputError:
        return
    assert found
    assert all(isinstance(exchange.prompt, str) and isinstance(exchange.response, str) for exchange in found)


@given(st.lists(st.tuples(st.sampled_from(("user", "assistant", "system")), st.text(max_size=9)), max_size=7))
@settings(deadline=None)
def test_last_assistant_turn_is_the_response_and_earlier_texts_are_in_the_prompt(turns):
    places = [place for place, (role, _) in enumerate(turns) if role == "assistant"]
    if not places:
        return
    exchange = one([message(role, text) for role, text in turns])
    assert exchange.response == turns[places[-1]][1]
    for _, text in turns[: places[-1]]:
        assert not text.strip() or text in exchange.prompt


# Pasted text

CHAT = [message("user", "q"), message("assistant", "a")]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CHAT),
        json.dumps({"messages": CHAT}, indent=2),
        "\ufeff" + json.dumps({"model": "m", "messages": CHAT}),
        json.dumps({"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}),
        '{"prompt": "q", "response": "a"}\n',
        "User: q\nAssistant: a",
        "user: q\r\n\r\nassistant: a\r\n",
        "Human: q\n\nAI: a",
        "**User:** q\n\n**Assistant:** a",
        "**User**: q\n**Assistant**: a",
        "### User: q\n### Assistant: a",
        "  \nUser:\nq\nAssistant:\na\n\nUser: and then?",
        "User: q\nAssistant: a\nUser: b\nAssistant:",
    ],
)
def test_pasted_chat(text):
    (exchange,) = from_pasted(text)
    assert (exchange.prompt, exchange.response) == ("q", "a")


def test_pasted_transcript_with_system_and_several_turns():
    (exchange,) = from_pasted(
        "System: s\nUser: A\nmore: of it\nAssistant: a\nUser: B\nAssistant: b\n\nsecond paragraph"
    )
    assert exchange.prompt == "System: s\n\nUser: A\nmore: of it\n\nAssistant: a\n\nUser: B"
    assert exchange.response == "b\n\nsecond paragraph"


def test_pasted_row_keeps_id_label_and_extra():
    (exchange,) = from_pasted('{"id": 7, "prompt": "q", "response": "a", "label": "compliant", "model": "m"}')
    assert exchange == Exchange("q", "a", 7, "compliant", 1, {"model": "m"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello",
        "User: only",
        "Assistant: first\nUser: second",
        "Assistant: a",
        "User: q\nAssistant:",
        "A log follows.\nUser: q\nAssistant: a",
        "I asked User: q and Assistant: a",
        "User: q, then the assistant: a",
        "User q\nAssistant a",
        "Userland: q\nAssistants: a",
        "{",
        "[1, 2]",
        "[]",
        '{"a": 1}',
        '{"prompt": "q"}',
        '{"prompt": 1, "response": "a"}',
        '{"messages": "none"}',
        '{"messages": [{"text": "x"}]}',
        "[" * 100_000,
    ],
)
def test_plain_text_stays_plain(text):
    assert from_pasted(text) is None


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CHAT * 2),
        json.dumps({"conversation": CHAT * 2}),
        "User: q\nAssistant: a\nUser: q\nAssistant: a",
    ],
)
def test_pasted_chat_gives_its_turns_beside_the_exchange(text):
    found = read_pasted(text)
    assert [(turn.role, turn.text) for turn in found.turns] == [("user", "q"), ("assistant", "a")] * 2
    assert list(found.exchanges) == from_pasted(text)
    assert [exchange.response for exchange in found.exchanges] == ["a"]


def test_pasted_row_has_no_turns_even_when_it_holds_a_chat_too():
    found = read_pasted(json.dumps({"prompt": "q", "response": "a", "messages": CHAT}))
    assert found.turns == () and [exchange.response for exchange in found.exchanges] == ["a"]


def test_pasted_texts_over_the_limit_are_refused():
    chat = [CHAT[0], message("assistant", "a" * 2_000_001)]
    for text in (f"User: {'q' * 2_000_001}\nAssistant: a", json.dumps(chat)):
        with pytest.raises(InputError, match="at most 2,000,000 are read"):
            read_pasted(text)


def test_pasted_chat_without_an_answer_says_so():
    with pytest.raises(InputError, match="no assistant turn"):
        from_pasted(json.dumps(CHAT[:1]))


@given(st.text() | JSON_VALUES.map(json.dumps) | st.lists(MESSAGES, max_size=3).map(json.dumps))
@settings(deadline=None)
def test_any_pasted_text_is_exchanges_or_none_or_an_input_error(text):
    try:
        found = from_pasted(text)
    except InputError:
        return
    assert found is None or all(isinstance(exchange, Exchange) for exchange in found)


# Rows


def of_row(row: dict, columns: dict | None = None, **options) -> list:
    return list(exchanges_of_row(row, line=5, keys=Keys.of(columns), **options))


@pytest.mark.parametrize(
    ("given_id", "read"),
    [("a", "a"), ("", ""), (3, 3), (0, 0), (2**70, 2**70), (1.5, 5), (True, 5), (None, 5), ([1], 5)],
)
def test_id(given_id, read):
    (exchange,) = of_row({"id": given_id, "prompt": "p", "response": "r"})
    assert exchange.id == read
    assert type(exchange.id) is type(read)


def test_chat_is_read_where_prompt_and_response_are_not():
    row = {"messages": CHAT, "model": "m"}
    assert of_row(row) == [Exchange("q", "a", 5, None, 5, {"model": "m"})]
    assert of_row(row | {"prompt": None, "response": None})[0].prompt == "q"
    (pair,) = of_row(row | {"prompt": "p", "response": "r"})
    assert (pair.prompt, pair.extra) == ("p", {"messages": CHAT, "model": "m"})
    assert of_row(row | {"prompt": "p", "response": "r"}, {"messages": "messages"})[0].prompt == "q"


def test_label_belongs_to_the_last_turn():
    chat = [*CHAT, *CHAT]
    first, last = of_row({"messages": chat, "label": "compliant", "id": "x"}, every_turn=True)
    assert (first.id, first.label, last.id, last.label) == ("x#1", None, "x#2", "compliant")
    first, last = of_row({"messages": chat, "label": "compliant"}, every_turn=True, need_label=True)
    assert isinstance(first, BadRow)
    assert "last turn" in first.error
    assert last.label == "compliant"


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ({}, "there is no label."),
        ({"label": None}, "label is null, not text."),
        ({"label": 3}, "label is a number, not text."),
        ({"label": " "}, "label is empty."),
    ],
)
def test_need_label(row, part):
    row |= {"prompt": "p", "response": "r"}
    assert of_row(row, need_label=True) == [BadRow(5, 5, part)]
    assert isinstance(of_row(row)[0], Exchange)


def test_error_of_a_row_is_bounded_and_one_line():
    (bad,) = of_row({f"key {number}\n" * 30: 1 for number in range(1000)})
    assert len(bad.error) <= 400
    assert "\n" not in bad.error


@pytest.mark.parametrize(
    ("found", "columns"),
    [
        (["Question", "Answer", "category"], {"prompt": "Question", "response": "Answer"}),
        (["messages", "gold"], {"label": "gold", "messages": "messages"}),
        (["messages", "prompt", "output"], {"prompt": "prompt", "response": "output"}),
        (["input", "output", "uid", "label"], {"prompt": "input", "response": "output", "label": "label", "id": "uid"}),
        (["a", "b"], {}),
    ],
)
def test_likely_columns(found, columns):
    assert likely_columns(found) == columns
    Keys.of(columns)
