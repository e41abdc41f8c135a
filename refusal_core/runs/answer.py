"""What to take of a run, as a sentence: the best checkpoint, its number, and what cannot be told from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refusal_core.errors import RefusalCoreError
from refusal_core.metrics.compare import PairedDifference, paired, unpaired
from refusal_core.metrics.intervals import Interval, Rate, format_rate, rate
from refusal_core.metrics.metric import Metric
from refusal_core.metrics.scores import score, score_matrix
from refusal_core.runs.best import spoken
from refusal_core.runs.model import Best, Checkpoint, Run, Score, Scores
from refusal_core.runs.own_evaluation import items_behind
from refusal_core.runs.predictions import Predictions
from refusal_core.runs.recount import of_report, stated_averages
from refusal_core.runs.tables import MatrixTable, ReportTable, Table, count_of

_COMPARED = 12  # checkpoints that the best one is compared with: the nearest by value
_MACRO_F1 = Metric("f1", "macro")


@dataclass(frozen=True)
class Answer:
    """What to take, as a sentence; and the checkpoints that cannot be told from it, with the differences."""

    sentence: str
    best: Best | None
    alike: tuple[str, ...] = ()
    differences: tuple[tuple[str, PairedDifference], ...] = ()
    """(checkpoint, best less that checkpoint) for each one that it was compared with."""


def answer(run: Run, *, seed: int = 0) -> Answer:
    """The sentence that heads a run, for example "Take checkpoint-2600 by macro F1, 0.84; not distinguishable from
    checkpoint-2400".

    Checkpoints are compared by predictions over the same items (paired), else by their confusion matrices, else by
    accuracy and the number of items (both unpaired). One is distinguishable when the interval excludes no difference.
    """
    best = run.best
    if best is None:
        return Answer(_without_best(run, seed), None)
    metric = best.metric.split(" ")[-1]
    own = next((c for c in run.checkpoints if c.name == best.checkpoint), None)
    others = [c for c in run.checkpoints if c.name != best.checkpoint]
    alike, differences, unknown = [], [], []
    for other in _nearest(others, metric, best.value)[:_COMPARED]:
        interval, difference = _difference(own, other, metric, seed)
        if difference is not None:
            differences.append((other.name, difference))
        if interval is None:
            unknown.append(other.name)
        elif interval.low <= 0 <= interval.high:
            alike.append(other.name)
    told = _with_interval(own, metric, best.value)
    text = f"Take {best.checkpoint} by {spoken(metric)}, {told}"
    if best.checkpoint.startswith("step ") and own is None:
        text = f"The best evaluation by {spoken(metric)} is of {best.checkpoint}, {told}; no checkpoint of it is here"
    if alike:
        text += f"; not distinguishable from {_list(alike)}"
    elif differences or (others and not unknown):
        text += "; distinguishable from every other one"
    ties = [name for name in best.ties if name not in alike]
    if ties:
        text += f"; {_list(ties)} {'has' if len(ties) == 1 else 'have'} the same value"
    if unknown and not alike and not differences:
        text += "; no predictions or matrices say how sure that is"
    return Answer(text + ".", best, tuple(alike), tuple(differences))


def _without_best(run: Run, seed: int) -> str:
    """Of a run of one evaluation its number; else why no checkpoint is the best."""
    tables = [*run.tables, *(t for c in run.checkpoints for t in c.tables)]
    answers = [*run.predictions, *(p for c in run.checkpoints for p in c.predictions)]
    sets = sorted({c.dataset for c in run.curves if c.split == "eval" and c.dataset})
    if len(sets) > 1:
        told = f"there are {len(sets)} evaluation sets, and the training does not say which one decides"
        return f"No checkpoint can be called the best: {told}."
    for file, number in _numbers(answers, tables, run.scores, seed):
        return f"{number}, by {file}."
    told = "nothing was evaluated" if run.curves else "no file says how good one is"
    return f"No checkpoint can be called the best: {told}."


def _numbers(answers: Sequence[Predictions], tables: Sequence[Table], scores: Sequence[Scores], seed: int):
    """(file, number in words), the ones with an interval first."""
    for found in answers:
        try:
            yield found.file, f"Macro F1 {format_rate(score(found.items(), _MACRO_F1, seed=seed))}"
        except RefusalCoreError:  # no true classes, or several splits
            continue
    for table in tables:
        if isinstance(table, MatrixTable) and table.counted == "counts" and table.true_by_predicted() is not None:
            yield (
                table.file,
                f"Macro F1 {format_rate(score_matrix(_counts(table), table.labels, _MACRO_F1, seed=seed))}",
            )
    for table in tables:
        if isinstance(table, ReportTable):
            f1, accuracy = stated_averages(table).get("macro_f1"), of_report(table).values.get("accuracy")
            parts = [] if f1 is None else [f"macro F1 {f1:.4g} (no interval: it needs a matrix or predictions)"]
            right = count_of(accuracy, table.n)
            if right is not None and table.n:
                parts.insert(0, f"accuracy {format_rate(rate(right, table.n))}")
            if parts:
                text = "; ".join(parts)
                yield table.file, text[0].upper() + text[1:]
    for each in scores:
        stated = each.find("accuracy", split="test") or each.find("accuracy", split="eval")
        n = each.n or items_behind(each.scores)
        if stated is not None and math.isfinite(stated.value):
            value = stated.value
            right = count_of(value, n)
            told = format_rate(rate(right, n)) if n and right is not None else f"{value:.4f}"
            yield each.file, f"{(each.split or stated.split).capitalize()} accuracy {told}"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _score(checkpoint: Checkpoint, metric: str) -> Score | None:
    return checkpoint.metrics.find(metric) if checkpoint.metrics else None


def _nearest(others: Sequence[Checkpoint], metric: str, value: float) -> list[Checkpoint]:
    def distance(checkpoint: Checkpoint) -> float:
        score = _score(checkpoint, metric)
        return abs(score.value - value) if score and math.isfinite(score.value) else math.inf

    return sorted(others, key=distance)


_METRICS = {
    "macro_f1": Metric("f1", "macro"),
    "weighted_f1": Metric("f1", "weighted"),
    "accuracy": Metric("accuracy"),
    "macro_precision": Metric("precision", "macro"),
    "macro_recall": Metric("recall", "macro"),
    "balanced_accuracy": Metric("balanced_accuracy"),
    "mcc": Metric("mcc"),
    "kappa": Metric("kappa"),
    "loss": Metric("log_loss"),
}


def _difference(
    best: Checkpoint | None, other: Checkpoint, metric: str, seed: int
) -> tuple[Interval | None, PairedDifference | None]:
    measure = _METRICS.get(metric)
    if best is None or measure is None:
        return None, None
    try:
        if best.predictions and other.predictions:
            found = paired(best.predictions[0].items(), other.predictions[0].items(), measure, seed=seed)
            return found.interval, found if found.n else None
        mine, theirs = _matrix(best), _matrix(other)
        if mine and theirs and mine.labels == theirs.labels and not measure.needs_probabilities:
            found = unpaired(_counts(mine), _counts(theirs), mine.labels, measure, seed=seed)
            return found.interval, found
    except RefusalCoreError:  # predictions of other items or classes: nothing to compare
        return None, None
    return (_of_accuracy(best, other) if metric == "accuracy" else None), None


def _matrix(checkpoint: Checkpoint) -> MatrixTable | None:
    for table in checkpoint.tables:
        if isinstance(table, MatrixTable) and table.counted == "counts" and table.true_by_predicted() is not None:
            return table
    return None


def _counts(table: MatrixTable) -> np.ndarray:
    return np.rint(table.true_by_predicted()).astype(np.int64)


def _of_accuracy(best: Checkpoint, other: Checkpoint) -> Interval | None:
    """Newcombe's interval of a difference of proportions (1998, method 10), as if of separate items."""
    sides = [_accuracy(checkpoint) for checkpoint in (best, other)]
    if any(side is None or side.interval is None for side in sides):
        return None
    (a, b), difference = sides, sides[0].value - sides[1].value
    low = math.hypot(a.value - a.interval.low, b.interval.high - b.value)
    high = math.hypot(a.interval.high - a.value, b.value - b.interval.low)
    return Interval(difference - low, difference + high, a.interval.level, "Newcombe, unpaired")


def _accuracy(checkpoint: Checkpoint) -> Rate | None:
    score = _score(checkpoint, "accuracy")
    n = (score.n if score else None) or (checkpoint.metrics.n if checkpoint.metrics else None)
    right = count_of(score.value, n) if score is not None and n else None
    return rate(right, n) if right is not None and abs(right / n - score.value) < 0.51 / n else None


def _with_interval(own: Checkpoint | None, metric: str, value: float) -> str:
    if own is not None and metric == "accuracy" and (found := _accuracy(own)) is not None:
        return format_rate(found)
    return f"{value:.4f}"
