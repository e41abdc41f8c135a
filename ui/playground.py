"""What the Playground does apart from drawing: reads what was typed or pasted, classifies it, and words the result.

Imports no streamlit; the page draws what these functions return.
"""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from refusal_core import chats
from refusal_core.classifier import matcher
from refusal_core.classifier.texts import EMPTY_RESPONSE, UNFINISHED_REASONING, clean
from refusal_core.errors import InputError
from refusal_core.exchanges import Exchange, read_pasted
from refusal_core.jobs import Job
from refusal_core.labels import Fold
from refusal_core.limits import TEXT_CHARACTERS
from refusal_core.reports import to_json
from refusal_core.samples import SAMPLES, Sample
from ui.checkpoints import Choice

if TYPE_CHECKING:
    from refusal_core.classifier import CheckpointInfo, Classification, Classifier, TokensRead

COMMAND_CHARACTERS = 8_000  # of an exchange in a shell line; a longer one is saved to a file first
COMMAND_FILE = "exchange.jsonl"
LINE = 1  # the id that `classify` gives to the only row of a file
EVERY_TURN_CHARACTERS = 2 * TEXT_CHARACTERS  # of all turns together, each with what was said before it
EVERY_TURN_BATCH = 8  # small, so that the progress moves

ERROR_WORDS = {
    UNFINISHED_REASONING: "The response ends inside its reasoning: a <think> block is opened and never closed, so "
    "there is no answer to classify. Raise the model's token limit and run it again.",
    EMPTY_RESPONSE: "The response holds no text to classify. Paste one, or take a sample.",
}


@dataclass(frozen=True)
class Asked:
    """What is to be classified: an exchange, and the chat it was the last one of when one was pasted."""

    exchange: Exchange
    chat: tuple[chats.Turn, ...] = ()
    note: str = ""  # how the boxes were read, when not as typed

    @property
    def assistant_turns(self) -> int:
        return sum(turn.role == "assistant" for turn in self.chat)


@dataclass(frozen=True)
class Turn:
    """One answered exchange: the classifier's answer and the phrase matcher's."""

    exchange: Exchange
    said: Classification
    matched: matcher.Match


@dataclass(frozen=True)
class Result:
    """What the page shows until the next one."""

    asked: Asked
    turn: Turn
    choice: Choice
    info: CheckpointInfo
    seconds: float  # of classifying
    loading_seconds: float | None  # None when the checkpoint was in memory already
    every_turn: tuple[Turn, ...] = ()  # of the pasted chat, when asked for


@dataclass(frozen=True)
class Problem:
    """Why there is no new result, in one sentence, with the reasoning of a response that is nothing but reasoning."""

    sentence: str
    reasoning: str | None = None


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

    Its texts can be shown: what JSON escapes may hold and no box can is replaced. Raises InputError for a chat that
    cannot be read.
    """
    asked = _read_boxes(prompt, response)
    exchange = replace(asked.exchange, prompt=clean(asked.exchange.prompt), response=clean(asked.exchange.response))
    return replace(asked, exchange=exchange, chat=tuple(replace(turn, text=clean(turn.text)) for turn in asked.chat))


def _read_boxes(prompt: str, response: str) -> Asked:
    if bool(prompt.strip()) != bool(response.strip()):
        in_response = bool(response.strip())
        pasted = response if in_response else prompt
        if found := read_pasted(pasted):
            asked = Asked(replace(found.exchanges[-1], id=LINE), found.turns)
            # A chat in the prompt box that ends with the user is a prompt of several turns, its response still missing.
            if in_response or not asked.chat or asked.chat[-1].role == "assistant":
                return replace(asked, note=_chat_note(asked.assistant_turns))
    elif prompt.strip() and _looks_like_chat(response):
        return Asked(
            Exchange(prompt, response, id=LINE),
            note="The response looks like a chat and was read as it stands; empty the prompt box to have it split.",
        )
    return Asked(Exchange(prompt, response, id=LINE))


def answer(classifier: Classifier, asked: Asked, choice: Choice, loading: float | None) -> Result:
    """Classify what was asked, by the checkpoint and by phrases."""
    begun = time.perf_counter()
    said = classifier.predict([asked.exchange])
    seconds = time.perf_counter() - begun
    turn = Turn(asked.exchange, said[0], matcher.match(asked.exchange.response))
    return Result(asked, turn, choice, classifier.info, seconds, loading)


def problem_of(result: Result) -> Problem | None:
    """Why a result is none: the response holds nothing to classify."""
    said = result.turn.said
    if said.error is None:
        return None
    return Problem(ERROR_WORDS.get(said.error, f"It cannot be classified: {said.error}."), said.reasoning)


def answer_every_turn(classifier: Classifier, result: Result, job: Job | None = None) -> Result:
    """`result` with an answer for each assistant turn of its chat.

    Raises InputError when the turns with all that was said before them are too much text for a page.
    """
    exchanges, characters = [], 0
    for number, prompt, response in chats.pairs(result.asked.chat, every_turn=True):
        characters += len(prompt) + len(response)
        if characters > EVERY_TURN_CHARACTERS:
            raise InputError(
                f"the turns up to number {number} come to more than {EVERY_TURN_CHARACTERS:,} characters",
                where="every turn",
                why="each is read with all that was said before it",
                fix="classify a shorter chat, or the file with the command line",
            )
        exchanges.append(Exchange(prompt, response, id=number))
    if job:
        job.start(len(exchanges), "turns")
    said = classifier.predict(exchanges, batch_size=EVERY_TURN_BATCH, job=job)
    turns = (Turn(e, s, matcher.match(e.response)) for e, s in zip(exchanges, said, strict=True))
    return replace(result, every_turn=tuple(turns))


def verdict(said: Classification, fold: Fold) -> Verdict:
    """Whether the most probable class is refused under `fold`, and the probability of all its refused classes."""
    if said.probabilities is None or not fold.refused <= said.probabilities.keys():
        return Verdict(None, None)
    return Verdict(fold.is_refused(said.label), fold.refused_probability(said.probabilities))


def agreement(said: Classification, matched: matcher.Match, fold: Fold) -> str:
    """How the phrase matcher's class relates to the checkpoint's."""
    if said.label == matched.label:
        return "It agrees with the checkpoint."
    refused, by_phrases = verdict(said, fold).refused, fold.is_refused(matched.label)
    if refused is None:
        return "It cannot be compared: the checkpoint has other classes."
    if refused == by_phrases:
        return f"It names another class, and agrees that this is {'refused' if refused else 'not refused'}."
    says = {True: "refused", False: "not refused"}
    return f"It disagrees: {says[refused]} by the checkpoint, {says[by_phrases]} by phrases."


def reading_sentence(tokens: TokensRead) -> str:
    """How much was read of both texts."""
    return (
        f"Read: {tokens.prompt_read:,} of {tokens.prompt_total:,} tokens of the prompt, "
        f"{tokens.response_read:,} of {tokens.response_total:,} of the response."
    )


def remarks(result: Result) -> list[str]:
    """What a reader of the answer must know: what was not read, the answer's warnings, the checkpoint's notes."""
    tokens, lines = result.turn.said.tokens, []
    if tokens and (cut := tokens.prompt_total - tokens.prompt_read):
        lines.append(f"The start of the prompt, {cut:,} tokens, was not read.")
    if tokens and (cut := tokens.response_total - tokens.response_read):
        lines.append(f"The middle of the response, {cut:,} tokens, was not read.")
    return [*lines, *result.turn.said.warnings, *result.info.notes]


def time_sentence(result: Result) -> str:
    """How long it took, loading apart."""
    loaded = result.loading_seconds
    loading = "the checkpoint was in memory" if loaded is None else f"loading the checkpoint took {_time(loaded)}"
    return f"Classified in {_time(result.seconds)}; {loading}."


def row(result: Result, turn: Turn) -> dict:
    """The JSON row of `classify` with the phrase matcher's answer and the checkpoint beside it."""
    info = result.info
    return turn.said.as_row() | {
        "matcher": turn.matched.label,
        "matcher_phrase": turn.matched.phrase,
        "checkpoint": {"name": result.choice.shown, "revision": info.revision, "digest": info.digest},
    }


def command(result: Result, turn: Turn) -> tuple[str, str | None]:
    """The shell line that gives the same row, and the content of COMMAND_FILE when it reads one (long exchanges)."""
    exchange = to_json({"prompt": turn.exchange.prompt, "response": turn.exchange.response})
    quoted, checkpoint = shlex.quote(exchange), shlex.quote(command_name(result.choice, result.info))
    line = "python -m refusal_core.cli classify {} --output - --checkpoint " + checkpoint
    if len(quoted) > COMMAND_CHARACTERS:
        return line.format(COMMAND_FILE), exchange + "\n"
    return f"printf '%s\\n' {quoted} |\n  {line.format('-')}", None


def command_name(choice: Choice, info: CheckpointInfo) -> str:
    """The checkpoint as a command in the app's folder takes it; one from the hub at the commit that answered."""
    if choice.kind == "directory":
        return near(Path(choice.name))
    if choice.kind == "hub" and info.revision:
        return f"{choice.name.partition('@')[0]}@{info.revision}"
    return choice.name


def near(path: Path) -> str:
    """`path` as a command in the app's folder takes it."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def link_checkpoint(result: Result) -> str | None:
    """The checkpoint's name in a share link."""
    return None if result.choice.link_name is None else command_name(result.choice, result.info)


def sample_of(result: Result) -> Sample | None:
    """The sample that was classified, None for the visitor's own text."""
    exchange = result.turn.exchange
    return next((s for s in SAMPLES.values() if (s.prompt, s.response) == (exchange.prompt, exchange.response)), None)


def _looks_like_chat(text: str) -> bool:
    try:
        return read_pasted(text) is not None
    except InputError:
        return True


def _chat_note(turns: int) -> str:
    if turns == 0:
        return "Read as a JSON row with a prompt and a response."
    if turns == 1:
        return "Read as a pasted chat with one assistant turn."
    return f"Read as a pasted chat with {turns:,} assistant turns; this is the answer for the last one."


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
