"""The best checkpoint of a run: by which metric, in which direction, and with which ties."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from refusal_core.runs.artefacts import Stated
from refusal_core.runs.group import step_of
from refusal_core.runs.model import Best, Checkpoint
from refusal_core.runs.own_evaluation import TIMINGS, Evaluations, Key

PREFERRED = ("macro_f1", "weighted_f1", "f1", "balanced_accuracy", "mcc", "accuracy", "roc_auc", "loss")
_SPOKEN = {"macro_f1": "macro F1", "weighted_f1": "weighted F1", "f1": "F1", "mcc": "MCC", "roc_auc": "ROC AUC"}
_LOWER = ("loss", "error", "wer", "cer", "perplexity", "brier", "ece", "mae", "mse", "rmse")

_MOST_TIES = 20


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
    if not _known(key[2]) and (values != values[0]).any():
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
    with np.errstate(over="ignore"):
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
