"""Rows in portions: what is read at once, and what goes through the model at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from refusal_core import limits
from refusal_core.classifier.encode import EncodedPair
from refusal_core.exchanges import BadRow, Exchange

_CHUNK_CHARACTERS = 2 * limits.TEXT_CHARACTERS


def chunks(rows: Iterable[Exchange | BadRow], most: int) -> Iterator[list[Exchange | BadRow]]:
    """`rows` in lists of at most `most`, shorter where the texts are long."""
    part: list[Exchange | BadRow] = []
    characters = 0
    for row in rows:
        size = len(row.prompt) + len(row.response) if isinstance(row, Exchange) else 0
        if part and (len(part) >= most or characters + size > _CHUNK_CHARACTERS):
            yield part
            part, characters = [], 0
        part.append(row)
        characters += size
    if part:
        yield part


def batches(encoded: dict[int, EncodedPair], batch_size: int) -> Iterator[list[int]]:
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
