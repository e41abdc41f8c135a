"""The parts of an export as they are computed, kept beside the output so that a kill loses one of them at most.

`OUT.unfinished` says which rows are done and holds their responses, `OUT.unfinished.rows` their numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from refusal_core import limits
from refusal_core.activations.export_settings import EXCHANGE, ExportSettings
from refusal_core.activations.language_model import LanguageModel, Tokens
from refusal_core.activations.prompts import Prompt
from refusal_core.errors import InputError
from refusal_core.jobs import Job, Journal

CHUNK = 64  # rows of one part
UNFINISHED, ROWS = ".unfinished", ".unfinished.rows"


def identity(
    rows: Sequence[tuple[Prompt, Tokens]], model: LanguageModel, settings: ExportSettings, layers: tuple[int, ...]
) -> dict:
    """What the numbers depend on: a run with another identity is not mixed with this one."""
    digest = hashlib.sha256()
    for prompt, tokens in rows:
        digest.update(json.dumps([prompt.id, prompt.response, *tokens.ids]).encode())
    return {
        "schema": "refusal-export/1",
        "rows": digest.hexdigest(),
        "model": model.digest,
        "precision": model.precision,
        "settings": {**asdict(settings), "layers": list(layers)},
        "chunk": CHUNK,
    }


def computed(
    rows: Sequence[tuple[Prompt, Tokens]],
    model: LanguageModel,
    settings: ExportSettings,
    layers: tuple[int, ...],
    journal: Journal,
    side: Path,
    job: Job,
) -> list[str | None]:
    """The responses of all rows, given or generated; their vectors are in `side`. Goes on from what is there."""
    responses: list[str | None] = [response for piece in journal.done() for response in piece["responses"]]
    job.start(len(rows), "prompts")
    try:
        _work(rows, model, settings, layers, journal, side, responses, job)
    except BaseException:
        if not responses:
            discard(journal, side)
        raise
    return responses


def discard(journal: Journal, side: Path) -> None:
    """Remove what is done."""
    journal.delete()
    side.unlink(missing_ok=True)


def _work(
    rows: Sequence[tuple[Prompt, Tokens]],
    model: LanguageModel,
    settings: ExportSettings,
    layers: tuple[int, ...],
    journal: Journal,
    side: Path,
    responses: list[str | None],
    job: Job,
) -> None:
    """Add to `responses` and `side` what they lack."""
    item = len(layers) * model.dimensions * np.dtype(settings.dtype).itemsize
    with journal, open(side, "r+b" if responses and side.exists() else "w+b") as file:
        if file.seek(0, os.SEEK_END) < len(responses) * item:
            raise InputError(
                "it does not hold the rows that the journal names", where=side.name, fix="delete both to begin anew"
            )
        file.truncate(len(responses) * item)
        file.seek(0, os.SEEK_END)
        job.advance(len(responses))
        for start in range(len(responses), len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            answers, vectors = _part(chunk, model, settings, layers, job)
            file.write(vectors.tobytes())
            file.flush()
            os.fsync(file.fileno())
            journal.add({"responses": answers})
            responses += answers
            job.advance(len(chunk))


def _part(
    chunk: Sequence[tuple[Prompt, Tokens]],
    model: LanguageModel,
    settings: ExportSettings,
    layers: tuple[int, ...],
    job: Job,
) -> tuple[list[str | None], np.ndarray]:
    answers = [prompt.response for prompt, _ in chunk]
    read = [tokens for _, tokens in chunk]
    if settings.new_tokens:
        lacking = [place for place, answer in enumerate(answers) if answer is None]
        for batch in _batches(read, lacking, settings):
            found = model.responses([read[place] for place in batch], settings.new_tokens)
            for place, answer in zip(batch, found, strict=True):
                answers[place] = answer
            job.check()
        if settings.reads == EXCHANGE:
            for place in lacking:
                turns, answer = chunk[place][0].turns, answers[place]
                read[place] = model.tokens(turns, answer, system=settings.system, template=settings.template)
    vectors = np.zeros((len(chunk), len(layers), model.dimensions), settings.dtype)
    whole = [place for place, answer in enumerate(answers) if answer or settings.reads != EXCHANGE]
    for batch in _batches(read, whole, settings):
        found = model.vectors([read[place] for place in batch], layers, settings.pooling)
        with np.errstate(over="ignore"):  # infinity is refused when the file is written
            vectors[batch] = found
        job.check()
    return answers, vectors


def _batches(tokens: Sequence[Tokens], places: Collection[int], settings: ExportSettings) -> Iterator[list[int]]:
    """Places in batches of similar length, the longest first so that a lack of memory shows at once."""
    batch: list[int] = []
    longest = 0
    for place in sorted(places, key=lambda place: (-len(tokens[place].ids), place)):
        length = len(tokens[place].ids) + settings.new_tokens
        longest = longest or length
        over = (len(batch) + 1) * longest > limits.PADDED_TOKENS_PER_BATCH
        if batch and (len(batch) == settings.batch_size or over):
            yield batch
            batch, longest = [], length
        batch.append(place)
    if batch:
        yield batch
