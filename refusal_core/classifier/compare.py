"""Two checkpoints on the same rows: how often they agree, and which rows flip under a fold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refusal_core.classifier.batch import Batch
from refusal_core.classifier.result import CheckpointInfo
from refusal_core.errors import InputError
from refusal_core.labels import DEFAULT_FOLD, Fold
from refusal_core.metrics.intervals import Rate, rate
from refusal_core.metrics.shares import refused_share


@dataclass(frozen=True)
class Comparison:
    """Checkpoint `first` against `second` over the rows that both classified. Positions point into `Batch.rows`.

    `agreement` is over labels, `agreement_folded` over refused or not; both with Wilson's interval. `moves` counts
    (label of first, label of second), equal ones too, most frequent first. A flip is a row that changes under the fold.
    """

    first: CheckpointInfo
    second: CheckpointInfo
    fold: Fold
    n: int
    left_out: int  # rows that one of the two did not classify
    agreement: Rate
    agreement_folded: Rate
    refused_first: Rate
    refused_second: Rate
    moves: Mapping[tuple[str, str], int]
    to_refused: tuple[int, ...]  # not refused by first, refused by second
    to_not_refused: tuple[int, ...]  # refused by first, not by second
    changed: tuple[int, ...]  # another label, flip or not


def compare(first: Batch, second: Batch, fold: Fold = DEFAULT_FOLD) -> Comparison:
    """Pair the rows of two batches of the same input by position, as far as both go.

    Raises InputError when the rows are not the same exchanges in the same order.
    """
    n = min(len(first.rows), len(second.rows))
    pairs = list(zip(first.rows[:n], second.rows[:n], strict=True))
    for at, (one, two) in enumerate(pairs):
        if _texts(one.row) != _texts(two.row):
            raise InputError(
                "the two batches hold different exchanges", where=f"row {at + 1}", fix="score the same file with both"
            )
    both = [(i, a.answer.label, b.answer.label) for i, (a, b) in enumerate(pairs) if a.answer.label and b.answer.label]
    moves: dict[tuple[str, str], int] = {}
    for _, one, two in both:
        moves[one, two] = moves.get((one, two), 0) + 1
    flips = [(i, fold.is_refused(one), fold.is_refused(two)) for i, one, two in both]
    return Comparison(
        first=first.checkpoint,
        second=second.checkpoint,
        fold=fold,
        n=len(both),
        left_out=n - len(both),
        agreement=rate(sum(one == two for _, one, two in both), len(both)),
        agreement_folded=rate(sum(one == two for _, one, two in flips), len(both)),
        refused_first=refused_share([one for _, one, _ in both], fold),
        refused_second=refused_share([two for _, _, two in both], fold),
        moves=dict(sorted(moves.items(), key=lambda item: (-item[1], item[0]))),
        to_refused=tuple(i for i, one, two in flips if two and not one),
        to_not_refused=tuple(i for i, one, two in flips if one and not two),
        changed=tuple(i for i, one, two in both if one != two),
    )


def _texts(row: object) -> tuple[object, object]:
    return getattr(row, "prompt", None), getattr(row, "response", None)
