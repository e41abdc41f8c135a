"""The best checkpoint of a run: by which metric, in which direction, with which ties, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import RefusalCoreError
from refusal_core.metrics.compare import PairedDifference, paired, unpaired
from refusal_core.metrics.intervals import Interval, Rate, format_rate, rate
from refusal_core.metrics.metric import Metric
from refusal_core.runs.artefacts import Stated
from refusal_core.runs.group import step_of
from refusal_core.runs.model import Best, Checkpoint, Run, Score
from refusal_core.runs.own_evaluation import TIMINGS, Evaluations, Key
from refusal_core.runs.tables import MatrixTable

PREFERRED = ("macro_f1", "weighted_f1", "f1", "balanced_accuracy", "mcc", "accuracy", "roc_auc", "loss")
_SPOKEN = {"macro_f1": "macro F1", "weighted_f1": "weighted F1", "f1": "F1", "mcc": "MCC", "roc_auc": "ROC AUC"}
_LOWER = ("loss", "error", "wer", "cer", "perplexity", "brier", "ece", "mae", "mse", "rmse")
_COMPARED = 12  # checkpoints that the best one is compared with: the nearest by value

_MOST_TIES = 20


@dataclass(frozen=True)
class Answer:
    """What to take, as a sentence; and the checkpoints that cannot be told from it, with the differences."""

    sentence: str
    best: Best | None
    alike: tuple[str, ...] = ()
    differences: tuple[tuple[str, PairedDifference], ...] = ()
    """(checkpoint, best less that checkpoint) for each one that it was compared with."""


def greater_is_better(metric: str) -> bool:
    """Names that end in loss, error and the like are lower-is-better."""
    words = metric.lower().replace("/", "_").split("_")
    return words[-1] not in _LOWER


def spoken(metric: str) -> str:
    return _SPOKEN.get(metric, metric.replace("_", " "))


def best_of(
    stated: Stated | None,
    evaluations: Evaluations,
    checkpoints: Sequence[Checkpoint],
    diverged: float | None = None,
) -> tuple[Best | None, str]:
    """The best checkpoint, and what is wrong with the one that the training states ("" when nothing is).

    The metric of a stated one is that whose value it is. Without one, the first of PREFERRED that was evaluated
    decides, among the saved checkpoints where some were evaluated, before the training `diverged`. Values that are not
    finite are nobody's best; nor is one where several evaluation sets have names and none is the main one.
    """
    if stated is not None and stated.value is not None and math.isfinite(stated.value):
        found = _of_stated(stated, evaluations, checkpoints)
        if found is not None:
            return found
    before = evaluations.until(diverged)
    saved = [c for c in checkpoints if c.folder and c.step is not None and c.metrics]
    saved = [c for c in saved if diverged is None or c.step < diverged]
    of_saved = [s.name for c in saved for s in c.metrics.scores if math.isfinite(s.value)]
    key = _deciding(of_saved)
    if key is not None:
        found = [(float(c.step), s.value) for c in saved for s in c.metrics.scores if s.name == key]
        steps, values = (np.array(column) for column in zip(*found, strict=True))
        unit = "saved checkpoint"
    else:
        key = _deciding(before.finite())
        steps, values = before.values(key) if key else (np.empty(0), np.empty(0))
        unit = "evaluation"
    steps, values = steps[np.isfinite(values)], values[np.isfinite(values)]
    if key is None or not len(values):
        return None, ""
    greater = greater_is_better(key[2])
    top = float(values.max() if greater else values.min())
    names = [_name(step, checkpoints) for step in steps[values == top][:_MOST_TIES]]
    until = "" if diverged is None else f" before it diverged at step {diverged:,.0f}"
    how = f"chosen here from {len(values):,} {unit}{'s' * (len(values) != 1)}{until}: the training states none"
    return Best(names[0], _told(key), greater, top, tuple(names[1:]), how), ""


def answer(run: Run, *, seed: int = 0) -> Answer:
    """The sentence that heads a run, for example "Take checkpoint-2600 by macro F1, 0.84; not distinguishable from
    checkpoint-2400".

    Checkpoints are compared by predictions over the same items (paired), else by their confusion matrices, else by
    accuracy and the number of items (both unpaired). One is distinguishable when the interval excludes no difference.
    """
    best = run.best
    if best is None:
        sets = sorted({c.dataset for c in run.curves if c.split == "eval" and c.dataset})
        told = "nothing was evaluated" if run.curves else "there is no log to tell by"
        if len(sets) > 1:
            told = f"there are {len(sets)} evaluation sets, and the training does not say which one decides"
        return Answer(f"No checkpoint can be called the best: {told}.", None)
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
    if unknown and own is not None and not alike and not differences:
        text += "; no predictions or matrices say how sure that is"
    return Answer(text + ".", best, tuple(alike), tuple(differences))


def _of_stated(stated: Stated, evaluations: Evaluations, checkpoints: Sequence[Checkpoint]) -> tuple[Best, str] | None:
    step = stated.step if stated.step is not None else step_of(stated.checkpoint or "")
    hits: list[tuple[float, Key]] = []
    for key in evaluations.finite():
        if key[2] not in TIMINGS:
            steps, values = evaluations.values(key)
            hits += [(float(at), key) for at in steps[_near(values, stated.value)]]
    hits = [hit for hit in hits if hit[0] == step] or hits
    if not hits:
        return None
    at, key = min(hits, key=lambda hit: (hit[1][3] is not None, _rank(hit[1][2]), hit[0]))
    steps, values = evaluations.values(key)
    greater = greater_is_better(key[2])
    if not _known(key[2]) and np.ptp(values) > 0:
        greater = stated.value > values.min()
    top, bottom = (values.max(), values.min()) if greater else (values.min(), values.max())
    name = stated.checkpoint or _name(at, checkpoints)
    equal = steps[_near(values, stated.value) & (steps != at)][:_MOST_TIES]
    ties = tuple(n for s in equal if (n := _name(s, checkpoints)) != name)
    wrong = ""
    if not _near(top, stated.value):
        where = steps[values == top][0]
        wrong = f"the {'highest' if greater else 'lowest'} {_told(key)} is {top:.6g}, at step {where:,.0f}"
        if _near(bottom, stated.value):
            wrong += ", and the stated one is the worst of all"
    return Best(name, _told(key), greater, stated.value, ties, "stated by the training"), wrong


def _near(values: NDArray[np.float64] | float, value: float) -> NDArray[np.bool_]:
    return np.abs(values - value) <= 1e-9 * max(1.0, abs(value))


def _known(metric: str) -> bool:
    return metric in PREFERRED or not greater_is_better(metric)


def _rank(metric: str) -> int:
    return PREFERRED.index(metric) if metric in PREFERRED else len(PREFERRED)


def _deciding(keys: Sequence[Key]) -> Key | None:
    """The first of PREFERRED, of the main evaluation set; None where several have names and none is the main one."""
    known = [key for key in keys if key[3] is None and key[2] in PREFERRED]
    main = [key for key in known if not key[1]]
    if not known or (not main and len({key[1] for key in known}) > 1):
        return None
    return min(main or known, key=lambda key: (key[0] != "eval", _rank(key[2])))


def _name(step: float, checkpoints: Sequence[Checkpoint]) -> str:
    found = next((c.name for c in checkpoints if c.step == step), None)
    return found or f"step {step:,.0f}"


def _told(key: Key) -> str:
    return " ".join(part for part in (key[0], key[1], key[2]) if part)


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
    if score is None or not n or not 0 <= score.value <= 1:
        return None
    right = round(score.value * n)
    return rate(right, n) if abs(right / n - score.value) < 0.51 / n else None


def _with_interval(own: Checkpoint | None, metric: str, value: float) -> str:
    if own is not None and metric == "accuracy" and (found := _accuracy(own)) is not None:
        return format_rate(found)
    return f"{value:.4f}"
