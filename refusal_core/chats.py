"""Chats as turns: message lists in the common layouts and pasted transcripts, and the exchanges that lie in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from refusal_core.errors import InputError, one_line
from refusal_core.exchange_formats.json_values import kind_of
from refusal_core.limits import MESSAGES_PER_CHAT

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
# The `from` of ShareGPT rows, as the data sets at large write it.
_SHAREGPT = _ROLES | {
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
    "function_call": "assistant",
    "observation": "tool",
    "function_response": "tool",
}
_SET_ASIDE = ("thinking", "redacted_thinking", "reasoning")  # no part of what was said
_WITHOUT_CONTENT = (
    "tool_calls",
    "function_call",
    "refusal",
    "audio",
)  # a message with one of these may have no content

_WHO = {"system": "system", "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
_MARKER = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]+)?(?:(WHO)[ \t]*:|\*\*(WHO)[ \t]*:\*\*|\*\*(WHO)\*\*[ \t]*:)".replace(
        "WHO", "|".join(_WHO)
    ),
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: `role` is "system", "user", "assistant" or "tool"; `text` may be empty."""

    role: str
    text: str


def looks_like_message(value: object) -> bool:
    """Whether `value` is an object with the keys of a chat message: role and content, or from and value."""
    return isinstance(value, Mapping) and ({"role", "content"} <= value.keys() or {"from", "value"} <= value.keys())


def read_turns(messages: object) -> list[Turn]:
    """The turns of a message list, in order.

    A message has `role` and `content`, or `from` and `value`. Raises InputError when `messages` is no list, is longer
    than limits.MESSAGES_PER_CHAT, or holds a message with an unknown role or no readable content; it names the
    message (from 1).
    """
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise InputError("the chat is not a list of messages")
    if len(messages) > MESSAGES_PER_CHAT:
        raise InputError(f"the chat has {len(messages):,} messages", why=f"at most {MESSAGES_PER_CHAT:,} are read")
    return [_turn(message, f"message {number}") for number, message in enumerate(messages, start=1)]


def pairs(turns: Sequence[Turn], *, every_turn: bool = False) -> Iterator[tuple[int, str, str]]:
    """(number of the assistant turn from 1, prompt, response): of the last assistant turn, or of each one.

    A single user turn before it is the prompt as it stands; more turns are written as "User: ..." paragraphs. Turns
    without text (tool calls, empty system messages) are left out of a prompt. Raises InputError when no turn is the
    assistant's.
    """
    answers = [place for place, turn in enumerate(turns) if turn.role == "assistant"]
    if not answers:
        raise InputError("the chat has no assistant turn", why="there is no response to classify")
    for number, place in enumerate(answers, start=1):
        if every_turn or place == answers[-1]:
            yield number, _prompt(turns[:place]), turns[place].text


def read_transcript(text: str) -> list[Turn] | None:
    """The turns of a pasted "User: ... Assistant: ..." transcript; None when `text` is not one.

    Markers stand at line start, also as Human, AI, System, and in Markdown bold. The text has to begin with one, the
    user has to speak before the assistant, and the assistant has to have said something.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    marks = list(_MARKER.finditer(text))
    if not marks or text[: marks[0].start()].strip():
        return None
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    turns = [
        Turn(_WHO[next(filter(None, mark.groups())).lower()], text[mark.end() : end].strip())
        for mark, end in zip(marks, ends, strict=True)
    ]
    if turns[-1].role == "assistant" and not turns[-1].text:
        turns.pop()  # the open "Assistant:" at the end of a prompt
    speakers = [turn.role for turn in turns if turn.role != "system"]
    return turns if speakers[:1] == ["user"] and "assistant" in speakers else None


def _prompt(before: Sequence[Turn]) -> str:
    said = [turn for turn in before if turn.text.strip()]
    if len(said) == 1 and said[0].role == "user":
        return said[0].text
    return "\n\n".join(f"{turn.role.capitalize()}: {turn.text}" for turn in said)


def _turn(message: object, where: str) -> Turn:
    if not isinstance(message, Mapping):
        raise InputError("it is not an object with role and content", where=where)
    names, role, content_key = _ROLES, message.get("role"), "content"
    if role is None and message.get("from") is not None:
        names, role, content_key = _SHAREGPT, message["from"], "value"
    if not isinstance(role, str):
        raise InputError("it has no role", where=where, why="a role is a text such as user or assistant")
    if role.lower() not in names:
        raise InputError(
            f'the role "{one_line(role, 40)}" is not known', where=where, why=f"known are {', '.join(names)}"
        )
    content = message.get(content_key)
    if content is None and message.get("refusal"):
        content = message["refusal"]  # where the OpenAI interface puts a declined structured output
    elif content_key not in message and not any(message.get(key) for key in _WITHOUT_CONTENT):
        raise InputError(f"it has no {content_key}", where=where)
    return Turn(names[role.lower()], _text(content, where))


def _text(content: object, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if isinstance(content, Sequence) and not isinstance(content, bytes):
        return "\n".join(text for text in map(_part, content) if text is not None)
    raise InputError(f"its content is {kind_of(content)}", where=where, why="it has to be text or a list of parts")


def _part(part: object) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return "[part]"
    kind = part.get("type")
    kind = kind if isinstance(kind, str) and kind else None
    if kind in _SET_ASIDE:
        return None
    for key in ("text", "refusal"):
        if isinstance(part.get(key), str) and kind in (None, key, f"input_{key}", f"output_{key}"):
            return part[key]
    short = (kind or "part").removeprefix("input_").removeprefix("output_").removesuffix("_url")
    return f"[{one_line(short, 40)}]"
