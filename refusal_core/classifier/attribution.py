"""Which parts of a response drive the answer: leave each span out, classify again, and see what changes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from refusal_core.classifier import texts
from refusal_core.classifier.predict import Classifier
from refusal_core.classifier.result import Classification
from refusal_core.errors import InputError
from refusal_core.exchanges import Exchange
from refusal_core.jobs import Job

SPANS = 60  # at most; neighbours are joined in longer responses

# A sentence ends after its punctuation and closing quotes when white space follows; a line ends anyhow.
_SENTENCE = re.compile(r"""\S(?:.*?[.!?…]["'”’)\]*_]*(?=\s|$)|.*)""")


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
    """The answer to `exchange`, and its spans in text order: all of the response but white space around spans.

    `exchange.response` is what was read, with reasoning in `<think>` taken out; positions count in it. A drop is the
    effect of leaving one span out: spans that say the same stand in for each other and show small drops, and in a
    response that is too long to be read whole, others are read in the span's place.
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

    Costs one answer a span, and one more; progress is in "spans". Raises InputError when the exchange itself cannot be
    classified, ValueError for `most` below 1, Cancelled when `job` is cancelled.
    """
    read = replace(exchange, response=texts.split_reasoning(texts.clean(exchange.response)).text)
    places = spans_of(read.response, most)
    job = job or Job()
    job.start(len(places) + 1, "spans")
    [answer] = classifier.predict([exchange], job=job, **options)  # alone, as a page shows it, to the last digit
    if answer.label is None:
        raise InputError(f"there is no answer to explain: {answer.error}")
    without = [replace(read, response=read.response[:start] + read.response[end:]) for start, end in places]
    others = classifier.predict(without, job=job, **options)
    spans = tuple(_span(read.response, place, answer, other) for place, other in zip(places, others, strict=True))
    return Attribution(read, answer, spans)


def spans_of(text: str, most: int = SPANS) -> list[tuple[int, int]]:
    """Start and end of each sentence or line of `text`, in order, without white space around them.

    No two overlap, and what lies between them is white space. More than `most` are joined with their neighbours to
    pieces of similar length, at most `most` of them. Raises ValueError for `most` below 1.
    """
    if most < 1:
        raise ValueError(f"most must be at least 1, not {most}")
    places: list[tuple[int, int]] = []
    at = 0
    for line in text.splitlines(keepends=True):
        for found in _SENTENCE.finditer(line):
            sentence = found.group().rstrip()
            places.append((at + found.start(), at + found.start() + len(sentence)))
        at += len(line)
    return places if len(places) <= most else _joined(places, len(text) / most)


def _joined(places: list[tuple[int, int]], length: float) -> list[tuple[int, int]]:
    """Neighbours joined until each piece but the last has at least `length` characters."""
    joined: list[tuple[int, int]] = []
    for start, end in places:
        if joined and joined[-1][1] - joined[-1][0] < length:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _span(response: str, place: tuple[int, int], answer: Classification, other: Classification) -> Span:
    start, end = place
    if other.label is None:
        return Span(start, end, response[start:end], None, None)
    drop = answer.probabilities[answer.label] - other.probabilities[answer.label]
    return Span(start, end, response[start:end], drop, other.label)
