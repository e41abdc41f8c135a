"""From an exchange to the two texts that a checkpoint reads: reasoning set aside, text cleaned, language noticed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from refusal_core import limits

UNFINISHED_REASONING = "unfinished reasoning"
EMPTY_RESPONSE = "empty response"

_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_APOSTROPHES = dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032\u00b4\uff07", "'")
_PLAIN_QUOTES = str.maketrans(_APOSTROPHES | dict.fromkeys("\u201c\u201d\u201f\uff02", '"'))


@dataclass(frozen=True, slots=True)
class Answer:
    """A response without its reasoning. `error` says why there is nothing to classify."""

    text: str
    reasoning: str | None = None
    error: str | None = None


def split_reasoning(response: str) -> Answer:
    """Set `<think>…</think>` blocks aside; a tag quoted as code after the first block is part of the answer.

    A closing tag without an opening one ends a block that began in the prompt template, as some reasoning models do.
    """
    answer: list[str] = []
    reasoning: list[str] = []
    at, inside = 0, False
    for tag in _tags(response):
        closes = bool(tag.group(1))
        if inside and closes:
            reasoning.append(response[at : tag.start()])
        elif closes:
            reasoning += [*answer, response[at : tag.start()]]
            answer = []
        elif not inside:
            answer.append(response[at : tag.start()])
        else:
            continue
        at, inside = tag.end(), not closes
    if inside:
        return Answer("", "".join([*reasoning, response[at:]]), UNFINISHED_REASONING)
    text = "".join([*answer, response[at:]])
    error = None if any(_is_visible(character) for character in text) else EMPTY_RESPONSE
    return Answer(text, "".join(reasoning) if reasoning else None, error)


def clean(text: str) -> str:
    """`text` as every tokenizer can take it: lone surrogates become U+FFFD, NUL a space."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", " ")


def plain_quotes(text: str) -> str:
    """Typographic apostrophes and quotation marks as ASCII ones: "can’t" and "can't" are one word to the reader."""
    return text.translate(_PLAIN_QUOTES)


def foreign_language(text: str) -> str | None:
    """ISO 639 code of the language of `text` when a detector finds it not to be English, else None.

    Shorter texts than 30 characters are not judged. Nigerian Pidgin ("pcm") is what the detector makes of some lists
    of English names, and "zxx" is no language (code, numbers): neither warrants a warning.
    """
    sample = " ".join(text.lstrip()[: limits.LANGUAGE_SAMPLE_CHARACTERS].split())
    if len(sample) < limits.LANGUAGE_CHECK_CHARACTERS:
        return None
    import py3langid

    language = py3langid.classify(sample)[0]
    return None if language in ("en", "pcm", "zxx") else language


def _is_visible(character: str) -> bool:
    return not character.isspace() and unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")


def _tags(response: str) -> Iterator[re.Match[str]]:
    """The tags outside code. A block that opens the response is taken as it is: reasoning may hold odd backticks."""
    first = _TAG.match(response, len(response) - len(response.lstrip()))
    if first and not first.group(1):
        yield first
        closing = next((tag for tag in _TAG.finditer(response, first.end()) if tag.group(1)), None)
        if not closing:
            return
        yield closing
        first = closing
    at = first.end() if first else 0
    rest = _CODE.sub(lambda code: " " * len(code.group()), response[at:])
    yield from _TAG.finditer(" " * at + rest)
