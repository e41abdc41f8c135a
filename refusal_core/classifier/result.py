"""What the classifier says about one exchange, and what it is itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokensRead:
    """Tokens of the two texts as the checkpoint's tokenizer counts them, special tokens left out.

    `*_read` is what the model saw, `*_total` what the text has; `input` is the length of the model's whole input,
    special tokens included.
    """

    prompt_read: int
    prompt_total: int
    response_read: int
    response_total: int
    input: int

    @property
    def truncated(self) -> bool:
        return self.prompt_read < self.prompt_total or self.response_read < self.response_total


@dataclass(frozen=True, slots=True)
class Classification:
    """The answer for one exchange. Either `label` with `probabilities`, or `label` None with `error`.

    `probabilities` maps each class of the checkpoint to a number from 0 to 1, in the checkpoint's order; they sum to 1.
    `reasoning` is the `<think>` part of the response, which was set aside and not classified.
    """

    id: str | int | None
    label: str | None
    probabilities: Mapping[str, float] | None
    tokens: TokensRead | None
    warnings: tuple[str, ...] = ()
    error: str | None = None
    reasoning: str | None = None

    def as_row(self) -> dict:
        """The JSON row of `classify`; `tokens` counts the model's whole input."""
        read = self.tokens
        return {
            "id": self.id,
            "label": self.label,
            "probabilities": dict(self.probabilities) if self.probabilities is not None else None,
            "tokens": read.input if read else None,
            "tokens_read": read
            and {
                "prompt": {"read": read.prompt_read, "total": read.prompt_total},
                "response": {"read": read.response_read, "total": read.response_total},
            },
            "truncated": read.truncated if read else None,
            "warnings": list(self.warnings),
            **({"error": self.error} if self.error is not None else {}),
        }

    @classmethod
    def from_row(cls, row: Mapping) -> Classification:
        """The answer that `as_row` wrote; without `reasoning`, which is not in a row."""
        read = row["tokens_read"]
        return cls(
            id=row["id"],
            label=row["label"],
            probabilities=row["probabilities"],
            tokens=read
            and TokensRead(
                prompt_read=read["prompt"]["read"],
                prompt_total=read["prompt"]["total"],
                response_read=read["response"]["read"],
                response_total=read["response"]["total"],
                input=row["tokens"],
            ),
            warnings=tuple(row["warnings"]),
            error=row.get("error"),
        )


@dataclass(frozen=True)
class CheckpointInfo:
    """Which checkpoint answers. `digest` is the SHA-256 over its configuration, tokenizer and weights (hexadecimal)."""

    name: str  # as the user gave it
    kind: str  # "starter", "directory" or "hub"
    revision: str | None  # the hub's commit; None otherwise
    digest: str
    labels: tuple[str, ...]  # in the order of the model's outputs
    max_tokens: int  # longest input that is read by default
    longest_input: int  # longest input that the checkpoint can read
    architecture: str
    parameters: int
    precision: str = "float32"  # or "int8"
    temperature: float = 1.0  # its outputs are divided by it before the softmax; changes no label
    notes: tuple[str, ...] = ()  # what a reader of its answers must know
