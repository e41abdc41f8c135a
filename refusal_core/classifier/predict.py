"""Classify exchanges: length-sorted batches, one forward pass at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from refusal_core import limits
from refusal_core.classifier import int8 as eight_bit
from refusal_core.classifier import texts
from refusal_core.classifier.checkpoint import LoadedCheckpoint, load_checkpoint
from refusal_core.classifier.encode import (
    LONGEST_FIRST,
    MIDDLE,
    SHORTEST_INPUT,
    TRUNCATIONS,
    EncodedPair,
    is_out_of_memory,
)
from refusal_core.classifier.portions import batches, chunks
from refusal_core.classifier.result import CheckpointInfo, Classification
from refusal_core.errors import InputError, RefusalCoreError, WorkError
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import Job

if TYPE_CHECKING:
    import torch

BATCH_SIZE = 32
# What is read, sorted by length and answered together; bounds memory and the wait for the first answers.
CHUNK_ROWS = 512


def load(name: str = "starter", *, int8: bool = False) -> Classifier:
    """The classifier of `starter`, a local checkpoint folder, or a hub id with an optional `@revision`.

    `int8` is for speed: its answers differ a little, and `info` says so. Raises InputError for what is not a loadable
    sequence classifier, WorkError when the hub is not reached, MissingPackage for `int8` without its packages.
    """
    if int8:
        eight_bit.check_packages()
    classifier = Classifier(load_checkpoint(name))
    classifier.try_out()
    if int8:
        classifier.quantise()
    return classifier


@dataclass(frozen=True, slots=True)
class _Ready:
    """An exchange whose texts are ready for the tokenizer."""

    prompt: str
    response: str
    warnings: tuple[str, ...]
    reasoning: str | None


# Two models that compute at once, each on every core, are slower than one after the other.
_FORWARD = threading.Lock()


@dataclass(frozen=True, slots=True)
class Encoded:
    """Exchanges as tokens; those that cannot be classified have their answer already. Keys are positions."""

    exchanges: Sequence[Exchange]
    answers: dict[int, Classification]
    ready: dict[int, _Ready]
    pairs: dict[int, EncodedPair]


class Classifier:
    """One loaded checkpoint. Safe to share between threads: forward passes take turns, a batch at a time."""

    def __init__(self, checkpoint: LoadedCheckpoint) -> None:
        self.info: CheckpointInfo = checkpoint.info
        self._model = checkpoint.model
        self._encoder = checkpoint.encoder
        self._pad = checkpoint.tokenizer.pad_token_id
        self._pads_left = checkpoint.tokenizer.padding_side == "left"
        self._takes_segments = checkpoint.takes_segments

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
        self.check_options(max_length=max_length, batch_size=batch_size, truncation=truncation)
        job = job or Job()
        encoded = self.encode(exchanges, max_length=max_length, truncation=truncation, job=job)
        return self.answer(encoded, batch_size=batch_size, job=job)

    def check_options(
        self, *, max_length: int | None = None, batch_size: int = BATCH_SIZE, truncation: str = MIDDLE
    ) -> None:
        """Raise InputError for options that are out of range."""
        self._checked_length(max_length)
        if batch_size < 1:
            raise InputError(f"the batch size is {batch_size}", why="at least 1 was expected")
        if truncation not in TRUNCATIONS:
            raise InputError(
                f"there is no truncation {truncation!r}", why=f"one of {', '.join(TRUNCATIONS)} was expected"
            )

    def encode(
        self,
        exchanges: Sequence[Exchange],
        *,
        max_length: int | None = None,
        truncation: str = MIDDLE,
        job: Job | None = None,
    ) -> Encoded:
        """Half of `predict`: texts to tokens. `job` is asked only whether to go on. Any thread may call it."""
        check = job.check if job else lambda: None
        answers: dict[int, Classification] = {}
        ready: dict[int, _Ready] = {}
        for at, exchange in enumerate(exchanges):
            check()
            prepared = _prepare(exchange, plain=truncation == MIDDLE)
            if isinstance(prepared, Classification):
                answers[at] = prepared
            else:
                ready[at] = prepared
        prompts, responses = [r.prompt for r in ready.values()], [r.response for r in ready.values()]
        pairs: dict[int, EncodedPair] = {}
        each = self._encoder.encode_each(prompts, responses, self._checked_length(max_length), truncation)
        for at, pair in zip(ready, each, strict=True):
            check()
            if pair.read.response_total:
                pairs[at] = pair
            else:  # nothing but characters that the tokenizer drops
                answers[at] = Classification(exchanges[at].id, None, None, None, error=texts.EMPTY_RESPONSE)
        return Encoded(exchanges, answers, ready, pairs)

    def answer(self, encoded: Encoded, *, batch_size: int = BATCH_SIZE, job: Job | None = None) -> list[Classification]:
        """The other half of `predict`: tokens to answers, one forward pass at a time."""
        job = job or Job()
        answers = dict(encoded.answers)
        job.advance(len(answers))
        for batch in batches(encoded.pairs, batch_size):
            job.check()
            logits = self._logits([encoded.pairs[at] for at in batch])
            probabilities = softmax(logits / self.info.temperature, axis=-1)
            for at, row in zip(batch, probabilities, strict=True):
                answers[at] = self._answer(encoded.exchanges[at], encoded.ready[at], encoded.pairs[at], row)
            job.advance(len(batch))
        return [answers[at] for at in range(len(encoded.exchanges))]

    def predict_rows(
        self, rows: Iterable[Exchange | BadRow], *, chunk: int = CHUNK_ROWS, **options
    ) -> Iterator[Classification]:
        """Answers in the order of `rows`, in constant memory; a BadRow becomes an answer with its error.

        `options` are those of `predict`.
        """
        job = options.get("job") or Job()
        for part in chunks(rows, chunk):
            good = iter(self.predict([row for row in part if isinstance(row, Exchange)], **options))
            for row in part:
                if isinstance(row, Exchange):
                    yield next(good)
                else:
                    job.advance()
                    yield Classification(row.id, None, None, None, error=row.error)

    def try_out(self) -> None:
        """Answer a short pair alone and padded; raises InputError when the parts of the checkpoint do not fit together.

        Pads on the tokenizer's side unless that changes the answer, as it does where a model reads its first token.
        """
        try:
            pairs = self._encoder.encode(["a", "a"], ["b \U0001f642", "b a b a b a"], SHORTEST_INPUT)
            alone = self._logits(pairs[:1])
            if alone.shape != (1, len(self.info.labels)):
                what = f"its model gives {alone.size} numbers for {len(self.info.labels)} classes"
                raise InputError(what, where=self.info.name, fix="mend id2label in config.json")
            for side in (self._pads_left, not self._pads_left):
                self._pads_left = side
                if np.allclose(self._logits(pairs)[0], alone[0], rtol=1e-3, atol=1e-3):
                    return
        except RefusalCoreError:
            raise
        except Exception as problem:
            what = f"its model does not run on its tokenizer's tokens ({type(problem).__name__}: {problem})"
            raise InputError(what, where=self.info.name, fix="save model and tokenizer of one training") from problem
        raise InputError("padding changes its answers", where=self.info.name, fix="mend pad_token and pad_token_id")

    def quantise(self) -> None:
        """Compute in int8 from now on; raises InputError for a model that cannot."""
        names = tuple(self._tensors([]))
        longest = self.info.longest_input
        with _FORWARD:
            model = eight_bit.quantised(self._model, names, pad=self._pad, longest=longest, where=self.info.name)
        self._model = model
        self.info = replace(self.info, precision=eight_bit.PRECISION, notes=(*self.info.notes, eight_bit.NOTE))

    def _checked_length(self, max_length: int | None) -> int:
        if max_length is None:
            return self.info.max_tokens
        if not SHORTEST_INPUT <= max_length <= self.info.longest_input:
            raise InputError(
                f"a maximum length of {max_length} tokens was asked for",
                why=f"{self.info.name} reads {SHORTEST_INPUT} to {self.info.longest_input}",
            )
        return max_length

    def _logits(self, pairs: Sequence[EncodedPair]) -> np.ndarray:
        """The model's outputs, shape [pairs, classes], float64."""
        import torch

        inputs = self._tensors(pairs)
        try:
            with _FORWARD, torch.inference_mode():
                logits = self._model(**inputs).logits
        except (MemoryError, RuntimeError) as problem:
            if not is_out_of_memory(problem):
                raise
            raise WorkError(
                "Not enough memory for this batch; lower the batch size or the maximum length."
            ) from problem
        if not torch.isfinite(logits).all():
            raise InputError(
                "the checkpoint answered with NaN or infinity", where=self.info.name, fix="use another checkpoint"
            )
        return logits.double().numpy()

    def _tensors(self, pairs: Sequence[EncodedPair]) -> dict[str, torch.Tensor]:
        import torch

        longest = max((len(pair.ids) for pair in pairs), default=0)
        ids = np.full((len(pairs), longest), self._pad, dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, pair in enumerate(pairs):
            where = slice(longest - len(pair.ids), longest) if self._pads_left else slice(0, len(pair.ids))
            ids[row, where], types[row, where], mask[row, where] = pair.ids, pair.type_ids, 1
        inputs = {"input_ids": ids, "attention_mask": mask}
        if self._takes_segments:
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
    if max(len(exchange.prompt), len(exchange.response)) > limits.TEXT_CHARACTERS:
        error = f"a text of more than {limits.TEXT_CHARACTERS:,} characters"
        return Classification(exchange.id, None, None, None, error=error)
    answer = texts.split_reasoning(texts.clean(exchange.response))
    if answer.error:
        return Classification(exchange.id, None, None, None, error=answer.error, reasoning=answer.reasoning)
    prompt, response = texts.clean(exchange.prompt), answer.text
    warnings = []
    if not prompt.strip():
        warnings.append("The prompt is empty; the response was read alone.")
    if language := texts.foreign_language(response):
        warnings.append(f"The response does not look like English (language code {language}); expect more errors.")
    if plain:
        prompt, response = texts.plain_quotes(prompt), texts.plain_quotes(response)
    return _Ready(prompt, response, tuple(warnings), answer.reasoning)


__all__ = ["BATCH_SIZE", "LONGEST_FIRST", "MIDDLE", "Classifier", "load"]
