"""Answer rows as they are read, chunk by chunk, in constant memory; identical exchanges are computed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from refusal_core.classifier.matcher import Match, match
from refusal_core.classifier.predict import CHUNK_ROWS, Classifier
from refusal_core.classifier.result import Classification
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import Job
from refusal_core.labels import DEFAULT_FOLD, Fold


@dataclass(frozen=True, slots=True)
class Answered:
    """A row with its answer. `matched` is the phrase matcher's, None for a row that is no exchange."""

    row: Exchange | BadRow
    answer: Classification
    matched: Match | None

    @property
    def confidence(self) -> float | None:
        """Probability of the answered class, 0 to 1; None without an answer."""
        return self.answer.probabilities[self.answer.label] if self.answer.label is not None else None

    def disagrees(self, fold: Fold = DEFAULT_FOLD) -> bool:
        """Whether one of model and matcher calls it refused and the other does not; False without an answer."""
        if self.answer.label is None or self.matched is None:
            return False
        return fold.is_refused(self.answer.label) != fold.is_refused(self.matched.label)


def answer_rows(
    classifier: Classifier,
    rows: Iterable[Exchange | BadRow],
    *,
    chunk: int = CHUNK_ROWS,
    job: Job | None = None,
    **options,
) -> Iterator[list[Answered]]:
    """The answers in the order of `rows`, in lists of at most `chunk`. `options` are those of `Classifier.predict`."""
    job = job or Job()
    part: list = []
    answers = []
    for row in rows:
        part.append(row)
        if len(part) == chunk:
            answers = list(classifier.predict_rows(part, job=job, **options))
            yield [_answered(r, a) for r, a in zip(part, answers, strict=True)]
            part = []
    if part:
        answers = list(classifier.predict_rows(part, job=job, **options))
        yield [_answered(r, a) for r, a in zip(part, answers, strict=True)]


def _answered(row: Exchange | BadRow, answer: Classification) -> Answered:
    return Answered(row, answer, match(row.response) if isinstance(row, Exchange) else None)
