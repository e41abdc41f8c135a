"""The best checkpoint of a run: by which metric, in which direction, with which ties, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refusal_core.errors import RefusalCoreError
from refusal_core.metrics.compare import PairedDifference, paired, unpaired
from refusal_core.metrics.intervals import Interval, Rate, format_rate, rate
from refusal_core.metrics.metric import Metric
from refusal_core.runs.artefacts import Stated
from refusal_core.runs.model import Best, Checkpoint, Run, Score, Scores
from refusal_core.runs.own_evaluation import TIMINGS
from refusal_core.runs.tables import MatrixTable

PREFERRED = ("macro_f1", "weighted_f1", "f1", "balanced_accuracy", "mcc", "accuracy", "roc_auc", "loss")
_SPOKEN = {"macro_f1": "macro F1", "weighted_f1": "weighted F1", "f1": "F1", "mcc": "MCC", "roc_auc": "ROC AUC"}
_LOWER = ("loss", "error", "wer", "cer", "perplexity", "brier", "ece", "mae", "mse", "rmse")
_COMPARED = 12  # checkpoints that the best one is compared with: the nearest by value

Key = tuple[str, str, str, str | None]


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
    evaluations: dict[float, Scores],
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
    if diverged is not None:
        evaluations = {step: scores for step, scores in evaluations.items() if step < diverged}
        checkpoints = [c for c in checkpoints if c.step is None or c.step < diverged]
    saved = {float(c.step): c.metrics for c in checkpoints if c.step is not None and c.metrics and c.folder}
    among, unit = (saved, "saved") if _key(saved.values()) else (evaluations, "evaluated")
    key = _key(among.values())
    if key is None:
        return None, ""
    values = _finite(among, key)
    greater = greater_is_better(key[2])
    top = max(values.values()) if greater else min(values.values())
    steps = [step for step, value in values.items() if value == top]
    names = [_name(step, checkpoints) for step in steps]
    how = f"chosen here among the {len(values):,} {unit} ones: the training states none"
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


def _of_stated(
    stated: Stated, evaluations: dict[float, Scores], checkpoints: Sequence[Checkpoint]
) -> tuple[Best, str] | None:
    from refusal_core.runs.group import step_of

    step = stated.step if stated.step is not None else step_of(stated.checkpoint or "")
    hits = [
        (at, score) for at, scores in evaluations.items() for score in scores.scores if _near(score.value, stated.value)
    ]
    hits = [(at, score) for at, score in hits if score.metric not in TIMINGS]
    at_step = [hit for hit in hits if step is not None and hit[0] == step] or hits
    if not at_step:
        return None
    at, score = min(at_step, key=lambda hit: (hit[1].label is not None, _rank(hit[1].metric), hit[0]))
    key = score.name
    values = _finite(evaluations, key)
    greater = greater_is_better(key[2])
    if not _known(key[2]) and len(set(values.values())) > 1:
        greater = stated.value > min(values.values())
    top = max(values.values()) if greater else min(values.values())
    until = {s: v for s, v in values.items() if _near(v, stated.value)}
    name = stated.checkpoint or _name(at, checkpoints)
    ties = tuple(n for s in until if s != at and (n := _name(s, checkpoints)) != name)
    wrong = ""
    if not _near(top, stated.value):
        where = next(s for s, v in values.items() if v == top)
        order = "highest" if greater else "lowest"
        wrong = f"the {order} {_told(key)} is {top:.6g}, at step {where:,.0f}"
        if _near(stated.value, min(values.values()) if greater else max(values.values())):
            wrong += ", and the stated one is the worst of all"
    return Best(name, _told(key), greater, stated.value, ties, "stated by the training"), wrong


def _near(a: float, b: float) -> bool:
    return math.isfinite(a) and abs(a - b) <= 1e-9 * max(1.0, abs(b))


def _known(metric: str) -> bool:
    return metric in PREFERRED or not greater_is_better(metric)


def _rank(metric: str) -> int:
    return PREFERRED.index(metric) if metric in PREFERRED else len(PREFERRED)


def _key(evaluations) -> Key | None:
    """The metric that decides: the first of PREFERRED, of the evaluation set without a name where there is one."""
    scores = [s for e in evaluations for s in e.scores if s.label is None and math.isfinite(s.value)]
    known = [s for s in scores if s.metric in PREFERRED]
    main = [s for s in known if not s.dataset]
    if not known or (not main and len({s.dataset for s in known}) > 1):
        return None
    known = main or known
    return min(known, key=lambda s: (s.split != "eval", _rank(s.metric), s.dataset != "", s.dataset)).name


def _finite(evaluations: dict[float, Scores], key: Key) -> dict[float, float]:
    found = {step: s.value for step, e in evaluations.items() for s in e.scores if s.name == key}
    return {step: value for step, value in found.items() if math.isfinite(value)}


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
