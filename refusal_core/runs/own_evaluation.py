"""The checkpoints of a run, each with its own evaluation: from any state of the run, and from results by value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.group import Group, checkpoint_folder, checkpoint_order, step_of
from refusal_core.runs.model import Checkpoint, Curve, Score, Scores

EVALUATED = ("eval", "test")
TIMINGS = ("runtime", "samples_per_second", "steps_per_second", "samples", "model_preparation_time")
Key = tuple[str, str, str, str | None]
_MATCH = 1e-6  # relative: values of one evaluation are written in full in every file of the Trainer


class Evaluations:
    """What was measured at each step of a training, after the rows that a later one stands for are gone.

    Kept as the curves they are: a long training has a million of them, and few are ever asked for.
    """

    def __init__(self, curves: Iterable[Curve]) -> None:
        self._curves = [c.current() for c in curves if c.split in EVALUATED]
        self._curves = [c.take(np.isfinite(c.steps)) for c in self._curves]
        self.steps: NDArray[np.float64] = np.unique(np.concatenate([c.steps for c in self._curves] or [np.empty(0)]))

    def __bool__(self) -> bool:
        return len(self.steps) > 0

    def __contains__(self, step: float) -> bool:
        return bool(np.isin(step, self.steps))

    def until(self, step: float | None) -> Evaluations:
        """Those before a step; all of them without one."""
        return self if step is None else Evaluations(c.take(c.steps < step) for c in self._curves)

    def finite(self) -> list[Key]:
        """The names that have a finite value."""
        return [c.name for c in self._curves if np.isfinite(c.values).any()]

    def values(self, key: Key) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Steps and finite values of a name."""
        for curve in self._curves:
            if curve.name == key:
                finite = np.isfinite(curve.values)
                return curve.steps[finite], curve.values[finite]
        return np.empty(0), np.empty(0)

    def at(self, step: float) -> Scores | None:
        """The evaluation of one step."""
        rows = [(c, int(place[-1])) for c in self._curves if len(place := np.flatnonzero(c.steps == step))]
        if not rows:
            return None
        scores = tuple(Score(c.metric, c.split, c.dataset, c.label, c.key, float(c.values[i])) for c, i in rows)
        epochs = [float(c.epochs[i]) for c, i in rows if np.isfinite(c.epochs[i])]
        return Scores(rows[0][0].file, scores, float(step), epochs[0] if epochs else None, items_behind(scores))

    def having(self, scores: Scores) -> tuple[float, ...]:
        """The steps whose evaluation has exactly these values; none where they share no finite number."""
        mine = {name: v for name, v in measures(scores, "eval").items() if np.isfinite(v)}
        fits, against = np.empty(0), np.empty(0)
        for curve in self._curves:
            name = (curve.dataset, curve.metric, curve.label)
            if curve.split != "eval" or name not in mine:
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                near = np.abs(curve.values - mine[name]) <= _MATCH * np.maximum(1.0, np.abs(curve.values))
            fits, against = np.union1d(fits, curve.steps[near]), np.union1d(against, curve.steps[~near])
        return tuple(float(step) for step in np.setdiff1d(fits, against))


def checkpoints_of(found: Group, evaluations: Evaluations) -> list[Checkpoint]:
    """By step, those without a number last; where no folder is there, the one that the training calls the best."""
    folders = sorted({f for a in found.artefacts if (f := checkpoint_folder(a.folder))}, key=checkpoint_order)
    if folders:
        return [_checkpoint(found, folder, evaluations) for folder in folders]
    for state in reversed(found.states):
        name = state.best.checkpoint if state.best else None
        if name and (step := step_of(name)) is not None:
            note = f"not in the folder: {state.file} names it as the best one"
            return [Checkpoint(name, "", step, evaluations.at(step), notes=(note,))]
    return []


def items_behind(scores: Iterable[Score]) -> int | None:
    """The items of an evaluation: stated, or its runtime times its samples a second where that is near a whole."""
    scores = [s for s in scores if s.label is None]
    stated = next((s.n for s in scores if s.n), None)
    if stated:
        return stated
    for split, dataset in dict.fromkeys((s.split, s.dataset) for s in scores):
        of = {s.metric: s.value for s in scores if (s.split, s.dataset) == (split, dataset)}
        if 0 < of.get("samples", 0) < 1e12:
            return round(of["samples"])
        product = of.get("runtime", np.nan) * of.get("samples_per_second", np.nan)
        if np.isfinite(product) and 0.5 < product < 1e7:
            # Both are printed with few digits: the product is right to about 1 in 3,000.
            return round(product) if abs(product - round(product)) < 0.3 else None
    return None


def measures(scores: Scores, split: str | None = None) -> dict[tuple[str, str, str | None], float]:
    """(data set, metric, class) to value: what two evaluations can be compared by, without timings and counts."""
    return {
        (s.dataset, s.metric, s.label): s.value
        for s in scores.scores
        if s.split == (split or s.split) and s.split in EVALUATED and s.metric not in (*TIMINGS, "support")
    }


def merged(metrics: Scores | None, more: Scores, split: str | None = None) -> Scores:
    """`metrics` with the numbers of `more` that it lacks; those of one split where it is named."""
    if metrics is None:
        return more
    have = {score.name for score in metrics.scores}
    new = tuple(score for score in more.scores if score.name not in have and split in (None, score.split))
    return replace(metrics, scores=metrics.scores + new, n=metrics.n or more.n)


def _checkpoint(found: Group, folder: str, evaluations: Evaluations) -> Checkpoint:
    inside = [a for a in found.others if checkpoint_folder(a.folder) == folder]
    states = [s for s in found.states if checkpoint_folder(s.folder) == folder]
    step = step_of(folder)
    at = step if step is not None else states[-1].step if states else None
    metrics = evaluations.at(float(at)) if at is not None else None
    notes = []
    if metrics is not None:
        own = next((Evaluations(s.curves).at(float(at)) for s in states), None)
        if states and own is None:
            notes.append(f"its own state lacks its evaluation, which is in {metrics.file}")
        elif own is not None:
            metrics = replace(metrics, file=states[0].file)
    for artefact in inside:
        if artefact.scores is not None:
            metrics = merged(metrics, artefact.scores)
    return Checkpoint(
        name=folder.rpartition("/")[2],
        folder=folder,
        step=step,
        metrics=metrics,
        tables=tuple(a.table for a in inside if a.table),
        predictions=tuple(a.predictions for a in inside if a.predictions),
        notes=tuple(notes),
    )


def place_by_value(
    found: Group, checkpoints: Sequence[Checkpoint], evaluations: Evaluations, loose: Sequence[Artefact]
) -> tuple[list[Checkpoint], list[Scores]]:
    """Results of the whole folder go to the checkpoint whose values they have; what fits none stays with the run.

    Their own step and epoch are the last ones of the training even when the weights are the best ones, so that they say
    nothing; where they differ from the checkpoint's, that is found.
    """
    placed = list(checkpoints)
    stay: list[Scores] = []
    told: dict[float, list[Scores]] = {}
    after = [s for state in found.states[-1:] for s in state.after_training]
    for scores in [a.scores for a in loose if a.scores] + after:
        steps = evaluations.having(scores)
        if not steps:
            if scores not in after or measures(scores):
                stay.append(scores)
            continue
        stamped = [s for s in steps if scores.epoch is None or _same_epoch(scores.epoch, evaluations.at(s).epoch)]
        step = stamped[-1] if stamped else steps[0]
        if not stamped:
            told.setdefault(step, []).append(scores)
        at = next((i for i, c in enumerate(placed) if c.step == step), None)
        if at is None:
            stay.append(scores)
            continue
        what = f"the evaluation after the training in {scores.file}" if scores in after else scores.file
        note = f"{what} is its own, by value" + ("" if stamped else ", not by its epoch stamp")
        placed[at] = replace(
            placed[at],
            metrics=merged(placed[at].metrics, scores, "eval"),
            notes=placed[at].notes if note in placed[at].notes else (*placed[at].notes, note),
        )
    for step, of_step in told.items():
        files = ", ".join(dict.fromkeys(scores.file for scores in of_step))
        epoch = evaluations.at(step).epoch
        found.find(
            "epoch_mismatch",
            files,
            f"epoch {epoch:.4g}, of step {step:,.0f}, whose evaluation has these very values"
            if epoch is not None
            else f"step {step:,.0f}, whose evaluation has these very values",
            f"epoch {of_step[0].epoch:.4g}: the last evaluation is of the best weights, with the last epoch's stamp",
            f"read it as the evaluation of checkpoint-{step:.0f}",
        )
    return placed, stay


def _same_epoch(one: float, other: float | None) -> bool:
    return other is None or abs(one - other) < 1e-2
