"""What an export is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refusal_core.activations.language_model import LAST, MEAN_RESPONSE, POOLINGS
from refusal_core.activations.prompts import Skipped
from refusal_core.classifier.predict import Classifier
from refusal_core.errors import InputError
from refusal_core.labels import DEFAULT_FOLD, Fold

PROMPT, EXCHANGE = "prompt", "exchange"


@dataclass(frozen=True)
class ExportSettings:
    """`layers` as the hidden states are counted, None for all. `reads` says whether the model reads the prompt alone
    ("prompt") or the prompt with its response ("exchange"); `pooling` is over what it reads. `new_tokens` above 0
    generates a response where none is given. `max_length` leaves longer rows out.
    """

    layers: tuple[int, ...] | None
    pooling: str = LAST
    reads: str = PROMPT
    dtype: str = "float32"
    batch_size: int = 8
    max_length: int | None = None
    new_tokens: int = 0
    system: str | None = None
    template: bool = True

    def __post_init__(self) -> None:
        for name, value, known in (
            ("--pooling", self.pooling, POOLINGS),
            ("--read", self.reads, (PROMPT, EXCHANGE)),
            ("--dtype", self.dtype, ("float16", "float32")),
        ):
            if value not in known:
                raise InputError(f'it is "{value}"', where=name, why=f"{', '.join(known)} are known")
        if self.pooling == MEAN_RESPONSE and self.reads != EXCHANGE:
            raise InputError(
                "the prompt alone is read, which has no response", where="--pooling", fix="add --read exchange"
            )
        for name, value, least, most in (
            ("--batch-size", self.batch_size, 1, 1_024),
            ("--max-length", self.max_length, 1, 1_000_000),
            ("--generate", self.new_tokens, 0, 4_096),
        ):
            if value is not None and not least <= value <= most:
                raise InputError(f"it is {value:,}", where=name, why=f"{least:,} to {most:,} is possible")


@dataclass(frozen=True)
class Labels:
    """Where labels come from: the column, or `classifier` over the responses. `positive` and `fold` as in two_labels;
    `means` is what label 1 says for a study to read, "refused" or "harmful"; folded classes are "refused" by
    themselves. `meaning` says it in words.
    """

    classifier: Classifier | None = None
    positive: tuple[str, ...] = ()
    fold: Fold = DEFAULT_FOLD
    meaning: str | None = None
    means: str | None = None


@dataclass(frozen=True)
class Exported:
    """What was written, and `rows` for a table beside it: id, prompt, response, category, label (0 or 1) of each."""

    shape: tuple[int, ...]
    label_counts: tuple[int, int]
    categories: int
    metadata: Mapping[str, object]
    rows: tuple[Mapping[str, object], ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
