"""Copies of a row that look different and mean the same, so that a training learns what an answer does, not its dress.

The wordings are others than those of `refusal_core.perturb`, by which a finished classifier is measured.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace

from refusal_core.exchanges import Exchange

# None of these says whether an answer follows.
OPENINGS = (
    "Hello!", "Hi there.", "Good question.", "Great question!", "Thanks for asking.", "I appreciate the question.",
    "Okay.", "Right.", "Hmm.", "Well,", "Let's see.", "That's an interesting one.", "I hear you.", "Understood.",
    "Thanks for the details.", "I understand what you're asking.", "I see what you mean.", "Noted.",
    "Let me be straight with you.", "Happy to hear from you.", "Thank you for reaching out.",
    "Alright, here's my reply.",
)  # fmt: skip
CLOSINGS = (
    "Take care!", "Have a nice day.", "All the best.", "Let me know if anything else comes up.", "I hope that's clear.",
    "Feel free to ask about something else.", "Thanks for understanding.", "Best wishes.", "That's all from me.",
    "If you have other questions, I'm here.",
)  # fmt: skip
HEADINGS = ("## Answer", "# Reply", "**Answer:**", "#### Assistant", "**My reply**", "---", "## In short", "*Reply:*")

_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")
_FIRST_WORDS = re.compile(r"(?![#>|*`_\-+{\[<\d])([^\n*`]{3,}?[.!?,:;])(?=\s|\Z)")
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['\u2019](?=[^\W\d_])")


def _opening(text: str, draw: random.Random) -> str:
    return draw.choice(OPENINGS) + draw.choice((" ", "\n\n")) + text


def _closing(text: str, draw: random.Random) -> str:
    return text + draw.choice((" ", "\n\n")) + draw.choice(CLOSINGS)


def _heading(text: str, draw: random.Random) -> str:
    return draw.choice(HEADINGS) + "\n\n" + text


def _emphasis(text: str, draw: random.Random) -> str:
    mark = draw.choice(("**", "*", "__"))
    return _FIRST_WORDS.sub(lambda m: f"{mark}{m[1]}{mark}", text, count=1)


def _quote_block(text: str, _: random.Random) -> str:
    return "\n".join("> " + line for line in text.split("\n"))


def _paragraphs(text: str, draw: random.Random) -> str:
    return _SENTENCE_END.sub(lambda _: draw.choice((" ", "\n\n")), text)


def _no_capitals(text: str, _: random.Random) -> str:
    return _APOSTROPHE.sub("", text.lower())


def _curly(text: str, _: random.Random) -> str:
    return _APOSTROPHE.sub("\u2019", text)


_CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    _opening, _closing, _heading, _emphasis, _quote_block, _paragraphs, _no_capitals, _curly,
)  # fmt: skip
# Words around an answer are English, and a code block is no place for marks.
_FOR_ANY_TEXT = (_heading, _paragraphs, _curly)


def varied(row: Exchange, copy: int) -> Exchange:
    """`row` with one or two changes of its response's form, drawn by its id and `copy`; the label stays true."""
    draw = random.Random(f"{row.id}/{copy}")
    plain_english = row.extra.get("language", "en") == "en" and "```" not in row.response
    changes = draw.sample(_CHANGES if plain_english else _FOR_ANY_TEXT, draw.choice((1, 2)))
    response = row.response
    for change in changes:
        response = change(response, draw)
    return replace(row, response=response)
