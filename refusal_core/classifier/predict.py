"""Classify exchanges: length-sorted batches, float32, one forward pass at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from refusal_core import limits
from refusal_core.classifier import texts
from refusal_core.classifier.checkpoint import LoadedCheckpoint, load_checkpoint
from refusal_core.classifier.encode import LONGEST_FIRST, MIDDLE, SHORTEST_INPUT, TRUNCATIONS, EncodedPair, PairEncoder
from refusal_core.classifier.result import CheckpointInfo, Classification
from refusal_core.errors import InputError, WorkError
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import Job

if TYPE_CHECKING:
    import torch

BATCH_SIZE = 32
# Rows that are read, sorted by length and answered together; bounds memory and the wait for the first answers.
CHUNK_ROWS = 512


def load(name: str = "starter") -> Classifier:
    """The classifier of `starter`, a local checkpoint folder, or a hub id with an optional `@revision`.

    Raises InputError for what is not a loadable sequence classifier, WorkError when the hub is not reached.
    """
    return Classifier(load_checkpoint(name))


@dataclass(frozen=True, slots=True)
class _Ready:
    """An exchange whose texts are ready for the tokenizer."""

    prompt: str
    response: str
    warnings: tuple[str, ...]
    reasoning: str | None


class Classifier:
    """One loaded checkpoint. Safe to share between threads: forward passes take turns, a batch at a time."""

    def __init__(self, checkpoint: LoadedCheckpoint) -> None:
        self.info: CheckpointInfo = checkpoint.info
        self._model = checkpoint.model
        self._encoder = PairEncoder(checkpoint.tokenizer)
        self._pad = checkpoint.tokenizer.pad_token_id
        self._pads_left = checkpoint.tokenizer.padding_side == "left"
        self._reads_type_ids = "token_type_ids" in checkpoint.tokenizer.model_input_names
        self._turn = threading.Lock()

    def predict(
        self,
        exchanges: Sequence[Exchange],
        *,
        max_length: int | None = None,
        batch_size: int = BATCH_SIZE,
        truncation: str = MIDDLE,
        job: Job | None = None,
    ) -> list[Classification]:
        """One Classification for each exchange, in the same order.

        `max_length` in tokens, from 16 to the checkpoint's limit (default `info.max_tokens`); `batch_size` pairs a
        forward pass at most. Raises InputError for options out of range, Cancelled when `job` is cancelled.
        """
        length = self._checked_length(max_length)
        if batch_size < 1:
            raise InputError(f"the batch size is {batch_size}", why="at least 1 was expected")
        if truncation not in TRUNCATIONS:
            raise InputError(f"there is no truncation {truncation!r}", why=f"one of {', '.join(TRUNCATIONS)} was expected")
        job = job or Job()
        answers: list[Classification | None] = [None] * len(exchanges)
        ready: dict[int, _Ready] = {}
        for at, exchange in enumerate(exchanges):
            prepared = _prepare(exchange, plain=truncation == MIDDLE)
            if isinstance(prepared, Classification):
                answers[at] = prepared
                job.advance()
            else:
                ready[at] = prepared
        pairs = self._encoder.encode([r.prompt for r in ready.values()], [r.response for r in ready.values()], length, truncation)
        encoded = dict(zip(ready, pairs, strict=True))
        for batch in _batches(encoded, batch_size):
            job.check()
            probabilities = self._forward([encoded[at] for at in batch])
            for at, row in zip(batch, probabilities, strict=True):
                answers[at] = self._answer(exchanges[at], ready[at], encoded[at], row)
            job.advance(len(batch))
        return answers

    def predict_rows(self, rows: Iterable[Exchange | BadRow], *, chunk: int = CHUNK_ROWS, **options) -> Iterator[Classification]:
        """Answers in the order of `rows`, in constant memory; a BadRow becomes an answer with its error.

        `options` are those of `predict`.
        """
        rows = iter(rows)
        while part := list(islice(rows, chunk)):
            good = iter(self.predict([row for row in part if isinstance(row, Exchange)], **options))
            for row in part:
                yield next(good) if isinstance(row, Exchange) else Classification(row.id, None, None, None, error=row.error)

    def _checked_length(self, max_length: int | None) -> int:
        if max_length is None:
            return self.info.max_tokens
        if not SHORTEST_INPUT <= max_length <= self.info.longest_input:
            raise InputError(
                f"a maximum length of {max_length} tokens was asked for",
                why=f"{self.info.name} reads {SHORTEST_INPUT} to {self.info.longest_input}",
            )
        return max_length

    def _forward(self, pairs: Sequence[EncodedPair]) -> np.ndarray:
        """Class probabilities, shape [pairs, classes], float64."""
        import torch

        inputs = self._tensors(pairs)
        try:
            with self._turn, torch.inference_mode():
                logits = self._model(**inputs).logits
        except (MemoryError, RuntimeError) as problem:
            if isinstance(problem, RuntimeError) and "memory" not in str(problem):
                raise
            raise WorkError("Not enough memory for this batch; lower the batch size or the maximum length.") from problem
        if not torch.isfinite(logits).all():
            raise InputError("the checkpoint answered with NaN or infinity", where=self.info.name, fix="use another checkpoint")
        return torch.softmax(logits.double(), dim=-1).numpy()

    def _tensors(self, pairs: Sequence[EncodedPair]) -> dict[str, torch.Tensor]:
        import torch

        longest = max(len(pair.ids) for pair in pairs)
        ids = np.full((len(pairs), longest), self._pad, dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, pair in enumerate(pairs):
            where = slice(longest - len(pair.ids), longest) if self._pads_left else slice(0, len(pair.ids))
            ids[row, where], types[row, where], mask[row, where] = pair.ids, pair.type_ids, 1
        inputs = {"input_ids": ids, "attention_mask": mask}
        if self._reads_type_ids:
            inputs["token_type_ids"] = types
        return {name: torch.from_numpy(array) for name, array in inputs.items()}

    def _answer(self, exchange: Exchange, ready: _Ready, pair: EncodedPair, row: np.ndarray) -> Classification:
        return Classification(
            id=exchange.id,
            label=self.info.labels[int(row.argmax())],
            probabilities=dict(zip(self.info.labels, map(float, row), strict=True)),
            tokens=pair.read,
            warnings=ready.warnings,
            reasoning=ready.reasoning,
        )


def _prepare(exchange: Exchange, *, plain: bool) -> _Ready | Classification:
    """The texts to read, or at once the answer of an exchange that cannot be classified."""
    answer = texts.split_reasoning(texts.clean(exchange.response))
    too_long = max(len(exchange.prompt), len(exchange.response)) > limits.TEXT_CHARACTERS
    error = f"a text of more than {limits.TEXT_CHARACTERS:,} characters" if too_long else answer.error
    if error:
        return Classification(exchange.id, None, None, None, error=error, reasoning=answer.reasoning)
    prompt, response = texts.clean(exchange.prompt), answer.text
    warnings = []
    if not prompt.strip():
        warnings.append("The prompt is empty; the response was read alone.")
    if language := texts.foreign_language(response):
        warnings.append(f"The response does not look like English (language code {language}); expect more errors.")
    if plain:
        prompt, response = texts.plain_quotes(prompt), texts.plain_quotes(response)
    return _Ready(prompt, response, tuple(warnings), answer.reasoning)


def _batches(encoded: dict[int, EncodedPair], batch_size: int) -> Iterator[list[int]]:
    """Positions in batches of similar length, the longest first so that a lack of memory shows at once."""
    batch: list[int] = []
    longest = 0
    for at in sorted(encoded, key=lambda at: -len(encoded[at].ids)):
        longest = longest or len(encoded[at].ids)
        if len(batch) == batch_size or (len(batch) + 1) * longest > limits.PADDED_TOKENS_PER_BATCH and batch:
            yield batch
            batch, longest = [], len(encoded[at].ids)
        batch.append(at)
    if batch:
        yield batch


__all__ = ["BATCH_SIZE", "LONGEST_FIRST", "MIDDLE", "Classifier", "load"]
