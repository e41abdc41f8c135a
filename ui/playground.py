"""What the Playground does apart from drawing: reads what was typed or pasted, classifies it, and words the result.

Imports no streamlit; the page draws what these functions return.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from refusal_core.chats import pairs, read_transcript
from refusal_core.classifier import matcher
from refusal_core.classifier.texts import EMPTY_RESPONSE, UNFINISHED_REASONING
from refusal_core.exchange_formats.json_values import JsonError, parse
from refusal_core.exchange_formats.keys import CHAT_KEYS
from refusal_core.exchanges import Exchange, from_messages, from_pasted
from refusal_core.labels import Fold
from refusal_core.reports import to_json
from ui.checkpoints import Choice

if TYPE_CHECKING:
    from refusal_core.classifier import CheckpointInfo, Classification, Classifier, TokensRead

COMMAND_CHARACTERS = 8_000  # of an exchange in a shell line; a longer one is saved to a file first
COMMAND_FILE = "exchange.jsonl"

ERROR_WORDS = {
    UNFINISHED_REASONING: "The response ends inside its reasoning: a <think> block is opened and never closed, so there is "
    "no answer to classify. Raise the model's token limit and run it again.",
    EMPTY_RESPONSE: "The response holds no text to classify. Paste one, or take a sample.",
}


@dataclass(frozen=True)
class Asked:
    """What is to be classified: one exchange, or the assistant turns of a pasted chat, of which the last one counts."""

    turns: tuple[Exchange, ...]
    note: str = ""  # how it was read, when not as typed

    @property
    def last(self) -> Exchange:
        return self.turns[-1]


@dataclass(frozen=True)
class Turn:
    """One answered exchange: the classifier's answer and the phrase matcher's."""

    exchange: Exchange
    said: Classification
    matched: matcher.Match


@dataclass(frozen=True)
class Result:
    """What the page shows until the next one: the last turn, and the others when they were asked for."""

    turns: tuple[Turn, ...]
    choice: Choice
    info: CheckpointInfo
    seconds: float  # of classifying
    loading_seconds: float | None  # None when the checkpoint was in memory already

    @property
    def last(self) -> Turn:
        return self.turns[-1]


@dataclass(frozen=True)
class Verdict:
    """Refused or not under a fold; both None when the checkpoint lacks the classes of the fold."""

    refused: bool | None
    probability: float | None

    @property
    def torn(self) -> bool:
        """Whether the most probable class says one thing and the sum over the refused classes the other."""
        return self.probability is not None and self.refused != (self.probability >= 0.5)


def read_boxes(prompt: str, response: str) -> Asked:
    """What the two boxes hold. A chat is recognised when the other box is empty; its last assistant turn counts.

    Raises InputError for a chat that cannot be read.
    """
    empty_prompt, empty_response = not prompt.strip(), not response.strip()
    if empty_prompt != empty_response:
        pasted = response if empty_prompt else prompt
        if turns := _chat_turns(pasted):
            return Asked(tuple(turns), _chat_note(len(turns)))
    note = ""
    if not empty_prompt and not empty_response and _is_chat(response):
        note = "The response looks like a chat and was classified as it stands; empty the prompt box to have it split."
    return Asked((Exchange(prompt, response),), note)


def answer(classifier: Classifier, exchanges: Sequence[Exchange], choice: Choice, loading: float | None) -> Result:
    """Classify `exchanges`, by the checkpoint and by phrases."""
    begun = time.perf_counter()
    said = classifier.predict(list(exchanges))
    seconds = time.perf_counter() - begun
    turns = tuple(Turn(e, s, matcher.match(e.response)) for e, s in zip(exchanges, said, strict=True))
    return Result(turns, choice, classifier.info, seconds, loading)


def verdict(said: Classification, fold: Fold) -> Verdict:
    """Whether the most probable class is refused under `fold`, and the probability of all its refused classes."""
    if said.probabilities is None or not fold.refused <= said.probabilities.keys():
        return Verdict(None, None)
    return Verdict(fold.is_refused(said.label), fold.refused_probability(said.probabilities))


def reading_sentences(tokens: TokensRead) -> list[str]:
    """What was read of both texts, and what was not."""
    lines = [
        f"Prompt: {tokens.prompt_read:,} of {tokens.prompt_total:,} tokens read. "
        f"Response: {tokens.response_read:,} of {tokens.response_total:,}."
    ]
    if cut := tokens.prompt_total - tokens.prompt_read:
        lines.append(f"The start of the prompt, {cut:,} tokens, was not read.")
    if cut := tokens.response_total - tokens.response_read:
        lines.append(f"The middle of the response, {cut:,} tokens, was not read.")
    return lines


def time_sentence(result: Result) -> str:
    """How long it took, loading apart."""
    loading = "the checkpoint was loaded already" if result.loading_seconds is None else f"loading {_time(result.loading_seconds)}"
    return f"Classified in {_time(result.seconds)}; {loading}."


def row(result: Result, turn: Turn) -> dict:
    """The JSON row of `classify` with the phrase matcher's answer and the checkpoint beside it."""
    info = result.info
    return turn.said.as_row() | {
        "matcher": {"label": turn.matched.label, "phrase": turn.matched.phrase},
        "checkpoint": {"name": info.name, "revision": info.revision, "digest": info.digest},
    }


def command(result: Result, turn: Turn) -> tuple[str, str | None]:
    """The shell line that gives the same row, and the content of COMMAND_FILE when it reads one (long exchanges)."""
    exchange = to_json({"prompt": turn.exchange.prompt, "response": turn.exchange.response})
    source, content = "-", None
    if len(exchange) > COMMAND_CHARACTERS:
        source, content = COMMAND_FILE, exchange + "\n"
    line = f"python -m refusal_core.cli classify {source} --output - --checkpoint {shlex.quote(_command_name(result))}"
    return (line if content else f"printf '%s\\n' {shlex.quote(exchange)} |\n  {line}"), content


def _command_name(result: Result) -> str:
    """The checkpoint as a command started in the app's folder takes it; a hub checkpoint at the commit that answered."""
    if result.choice.kind == "directory":
        folder, here = Path(result.choice.name), Path.cwd()
        return os.path.relpath(folder, here) if folder.is_relative_to(here) else str(folder)
    if result.choice.kind == "hub" and result.info.revision:
        return f"{result.choice.name.partition('@')[0]}@{result.info.revision}"
    return result.choice.name


def link_checkpoint(result: Result) -> str | None:
    """The checkpoint's name in a share link."""
    return None if result.choice.link_name is None else _command_name(result)


def _is_chat(text: str) -> bool:
    return from_pasted(text) is not None


def _chat_turns(text: str) -> list[Exchange] | None:
    """Every assistant turn of a pasted chat as an exchange; None for plain text."""
    last = from_pasted(text)
    if last is None:
        return None
    if turns := read_transcript(text):
        return [Exchange(prompt, response, id=number) for number, prompt, response in pairs(turns, every_turn=True)]
    try:
        value = parse(text.lstrip("\ufeff"))
    except JsonError:
        return last
    if isinstance(value, dict):
        if isinstance(value.get("prompt"), str) and isinstance(value.get("response"), str):
            return last
        value = next((value[key] for key in CHAT_KEYS if key in value), None)
    return from_messages(value, every_turn=True)


def _chat_note(turns: int) -> str:
    if turns == 1:
        return "Read as a pasted chat with one assistant turn."
    return f"Read as a pasted chat with {turns:,} assistant turns; the answer below is for the last one."


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
