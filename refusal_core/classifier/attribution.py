"""Which parts of a response drive the answer: leave each span out, classify again, and see what changes."""

from __future__ import annotations

from dataclasses import dataclass

from refusal_core.classifier.predict import Classifier
from refusal_core.classifier.result import Classification
from refusal_core.exchanges import Exchange
from refusal_core.jobs import Job

SPANS = 60  # at most; neighbours are joined in longer responses


@dataclass(frozen=True, slots=True)
class Span:
    """`response[start:end]` (character positions), sentence-like.

    `drop` is the probability of the predicted class with the whole response minus that without the span, -1 to 1:
    above 0 the span speaks for the answer. `label` is the answer without the span. Both are None where nothing that can
    be classified is left without it.
    """

    start: int
    end: int
    text: str
    drop: float | None
    label: str | None


@dataclass(frozen=True)
class Attribution:
    """The answer, and its spans in text order; together they cover the response but for white space between them.

    A drop is the effect of leaving one span out: spans that say the same cover for each other and show small drops.
    """

    exchange: Exchange
    answer: Classification
    spans: tuple[Span, ...]

    @property
    def strongest(self) -> tuple[Span, ...]:
        """The spans by the size of their drop, largest first; those without one left out."""
        return tuple(sorted((s for s in self.spans if s.drop is not None), key=lambda s: (-abs(s.drop), s.start)))


def attribute(
    classifier: Classifier, exchange: Exchange, job: Job | None = None, *, most: int = SPANS, **options
) -> Attribution:
    """Leave one span of the response out at a time. `options` are those of `Classifier.predict`.

    Costs one answer a span. Reasoning in `<think>` is no span: it is not read. Raises InputError when the exchange
    itself cannot be classified, Cancelled when `job` is cancelled.
    """
    raise NotImplementedError
