"""Score a whole file: every answer with its row, and the summary that a page, a report or a test reads off it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from refusal_core import limits
from refusal_core.classifier.predict import Classifier
from refusal_core.classifier.result import CheckpointInfo
from refusal_core.classifier.stream import Answered, answer_rows
from refusal_core.errors import Cancelled, InputError
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import Job
from refusal_core.labels import DEFAULT_FOLD, Fold
from refusal_core.memory import give_back
from refusal_core.metrics.intervals import Rate
from refusal_core.metrics.report import ClassificationReport, report
from refusal_core.metrics.shares import GroupShare, Share, class_shares, refused_by_group, refused_share

LOW_CONFIDENCE = 0.6  # below this probability of its own answer, a row is worth a look
NO_VALUE = "(none)"  # the group of rows that lack the column
# What is sorted by length together; a stop loses at most this many rows that were begun.
CHUNK_ROWS = 128


@dataclass(frozen=True)
class Batch:
    """The answers to the first `len(rows)` of `total` rows, in input order; all of them unless `stopped`.

    `rows[i]` is an Answered: `row` (Exchange, or BadRow with its line and error), `answer` (Classification, label None
    with `error` where there is none) and `matched` (the phrase matcher's Match, None for a BadRow).
    """

    checkpoint: CheckpointInfo
    options: Mapping[str, object]  # max_length, truncation, ... as given
    rows: tuple[Answered, ...]
    total: int

    @property
    def stopped(self) -> bool:
        """Whether the user stopped before the last row."""
        return len(self.rows) < self.total

    @cached_property
    def errors(self) -> tuple[int, ...]:
        """Positions in `rows` without an answer; the line is `rows[i].row.line`, the reason `rows[i].answer.error`."""
        return tuple(i for i, row in enumerate(self.rows) if row.answer.label is None)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns besides ours that hold a text, a whole number, true or false in some row, in order of appearance."""
        found = {
            name: None
            for row in self.rows
            if isinstance(row.row, Exchange)
            for name, value in row.row.extra.items()
            if isinstance(value, str | int)
        }
        return tuple(found)

    @property
    def labelled(self) -> bool:
        """Whether some row has a true label."""
        return any(isinstance(row.row, Exchange) and row.row.label is not None for row in self.rows)


@dataclass(frozen=True)
class Summary:
    """What a Batch says under one fold. Rates are over classified rows; `n` is their number.

    Positions (`disagreements`, `low_confidence`) point into `Batch.rows`. `groups` is empty without `group_by`.
    `report` is over classified rows whose label is among the checkpoint's classes, None when there is none;
    `other_labels` counts the labels that are not.
    """

    fold: Fold
    n: int
    unclassified: int
    shares: tuple[Share, ...]
    refused: Rate
    refused_by_matcher: Rate
    group_by: str | None
    groups: tuple[GroupShare, ...]
    disagreements: tuple[int, ...]  # one of model and matcher calls it refused, the other does not
    low_confidence: tuple[int, ...]  # probability of the answer below `threshold`, the least sure first
    threshold: float
    report: ClassificationReport | None
    other_labels: Mapping[str, int]


def score_batch(
    classifier: Classifier,
    rows: Iterable[Exchange | BadRow],
    job: Job | None = None,
    *,
    most: int = limits.BATCH_ROWS,
    **options,
) -> Batch:
    """Classify `rows`, each with the phrase matcher's answer beside. `options` are those of `Classifier.predict`.

    A BadRow is kept with its error and stops nothing. When `job` is cancelled the finished rows come back as a Batch
    that is `stopped`, also when none is finished. Progress is in "rows". Identical exchanges are computed once.
    Raises InputError for more than `most` rows, for no rows, and for options out of range.
    """
    kept: list[Exchange | BadRow] = []
    for row in rows:
        if len(kept) == most:
            raise InputError(f"there are more than {most:,} rows", fix="score a part, or use the command classify")
        kept.append(row)
    if not kept:
        raise InputError("there are no rows")
    job = job or Job()
    done: list[Answered] = []
    try:
        job.start(len(kept), "rows")
        for part in answer_rows(classifier, kept, chunk=CHUNK_ROWS, job=job, **options):
            done += part
            give_back()
    except Cancelled:
        pass
    shown = {name: value for name, value in options.items() if value is not None}
    return Batch(classifier.info, shown, tuple(done), len(kept))


def summarise(
    batch: Batch, *, fold: Fold = DEFAULT_FOLD, group_by: str | None = None, threshold: float = LOW_CONFIDENCE
) -> Summary:
    """Shares, groups, doubtful rows and scores of `batch`. Cheap: call it again for another fold or column.

    `group_by` is one of `batch.columns`; rows without it form the group NO_VALUE. Raises InputError for another
    column, and ValueError unless `threshold` is from 0 to 1.
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be from 0 to 1, not {threshold!r}")
    if group_by is not None and group_by not in batch.columns:
        names = ", ".join(batch.columns) or "none"
        raise InputError(f'there is no column "{group_by}" to group by', why=f"the columns are: {names}")
    classified = [(i, row) for i, row in enumerate(batch.rows) if row.answer.label is not None]
    predicted = [row.answer.label for _, row in classified]
    matched = [row.matched.label for _, row in classified]
    sureness = {i: row.confidence for i, row in classified if row.confidence < threshold}
    scores, other = _scores(batch, [row for _, row in classified])
    return Summary(
        fold=fold,
        n=len(classified),
        unclassified=len(batch.rows) - len(classified),
        shares=class_shares(predicted, batch.checkpoint.labels),
        refused=refused_share(predicted, fold),
        refused_by_matcher=refused_share(matched, fold),
        group_by=group_by,
        groups=refused_by_group(predicted, [group_of(row, group_by) for _, row in classified], fold)
        if group_by
        else (),
        disagreements=tuple(i for i, row in classified if row.disagrees(fold)),
        low_confidence=tuple(sorted(sureness, key=lambda i: (sureness[i], i))),
        threshold=threshold,
        report=scores,
        other_labels=other,
    )


def corrected(batch: Batch, labels: Mapping[int, str]) -> Batch:
    """`batch` with the true labels of some rows replaced: position in `batch.rows` to label.

    Raises IndexError for a position that is not there and ValueError for that of a BadRow.
    """
    rows = list(batch.rows)
    for at, label in labels.items():
        if not 0 <= at < len(rows):
            raise IndexError(f"there is no row at {at}")
        if not isinstance(rows[at].row, Exchange):
            raise ValueError(f"the row at {at} is no exchange")
        rows[at] = replace(rows[at], row=replace(rows[at].row, label=label))
    return replace(batch, rows=tuple(rows))


def group_of(row: Answered, column: str) -> str:
    """The text of the group that `row` belongs to; NO_VALUE when the column is missing, empty or no plain value."""
    value = row.row.extra.get(column) if isinstance(row.row, Exchange) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return (str(value).strip() if isinstance(value, str | int) else "") or NO_VALUE


def _scores(batch: Batch, classified: Sequence[Answered]) -> tuple[ClassificationReport | None, dict[str, int]]:
    labelled = [row for row in classified if row.row.label is not None]
    known = [row for row in labelled if row.row.label in batch.checkpoint.labels]
    other = Counter(row.row.label for row in labelled if row.row.label not in batch.checkpoint.labels)
    if not known:
        return None, dict(other)
    true, predicted = [row.row.label for row in known], [row.answer.label for row in known]
    return report(true, predicted, batch.checkpoint.labels), dict(other)
