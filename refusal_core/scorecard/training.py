"""The assertion `training`: is the training that made the checkpoint sound, as far as its files tell?"""

from __future__ import annotations

import posixpath
import re

import numpy as np

from refusal_core.runs.discover import discover
from refusal_core.runs.model import Curve, Run
from refusal_core.scorecard.assertions import Training
from refusal_core.scorecard.cell import Cell, Finding
from refusal_core.scorecard.columns import Column
from refusal_core.scorecard.result import Evidence
from refusal_core.scorecard.table import NoData, NotComputed
from refusal_core.scorecard.verdicts import Bound, Judgement

_NUMBERED = re.compile(r"checkpoint[-_ ](\d+)")
_WATCHED = ("loss", "grad_norm")
_NO_SCORE = ("runtime", "samples_per_second", "steps_per_second", "learning_rate")


def training(cell: Cell) -> Finding:
    """finite: every logged loss and gradient norm is. has_eval_row: an evaluation of this very step was logged."""
    assertion: Training = cell.assertion
    if cell.column.spec.kind == "responses":
        raise NoData("answers of a language model have no training here")
    folder, name = folder_of(cell.column)
    run: Run = cell.once(("run", folder, name), lambda: _run(cell.column, folder, name))
    return _finite(run) if assertion.check == "finite" else _has_eval_row(run, name)


def folder_of(column: Column) -> tuple[str, str | None]:
    """The training's folder as the suite would write it, and the name of the checkpoint in it where it has one."""
    spec = column.spec
    own = [p for p in (spec.path, spec.predictions and posixpath.dirname(spec.predictions)) if p is not None]
    named = next((p for p in own if _NUMBERED.fullmatch(posixpath.basename(p.rstrip("/")))), None)
    name = posixpath.basename(named.rstrip("/")) if named else None
    if spec.run is not None:
        return spec.run, name
    if named is not None:
        return posixpath.dirname(named.rstrip("/")) or ".", name
    return own[0] or ".", None


def _run(column: Column, folder: str, name: str | None) -> Run:
    runs, _ = discover(column.files.resolver.folder(folder))
    with_curves = [run for run in runs if run.curves]
    if name is not None:
        holding = [run for run in with_curves if any(c.name == name for c in run.checkpoints)]
        with_curves = holding or with_curves
    if not with_curves:
        raise NotComputed(f"{folder} holds no training history (trainer_state.json, event files, ...)")
    if len(with_curves) > 1:
        listed = ", ".join(run.name for run in with_curves[:5])
        raise NotComputed(f"{folder} holds several trainings ({listed}); name one with run")
    return with_curves[0]


def _finite(run: Run) -> Finding:
    watched = [curve for curve in run.curves if curve.metric in _WATCHED and len(curve)]
    if not any(curve.metric == "loss" for curve in watched):
        raise NotComputed(f"the training {run.name} logged no loss")
    notes, bad, total = [], 0, 0
    for curve in watched:
        current = curve.current()
        broken = ~np.isfinite(current.values)
        bad, total = bad + int(broken.sum()), total + len(current)
        if broken.any():
            notes.append(
                f"{curve.key or curve.metric} is not finite from step {_step(current, int(np.argmax(broken)))}"
            )
    return Finding(
        subject="logged losses and gradient norms that are not finite",
        judgement=Judgement("fail" if bad else "pass"),
        value=float(bad),
        n=total,
        bound=Bound(0, at_least=False),
        evidence=Evidence(notes=tuple(notes)),
    )


def _has_eval_row(run: Run, name: str | None) -> Finding:
    found = _NUMBERED.fullmatch(name) if name else None
    if found is None:
        raise NotComputed("no folder name such as checkpoint-600 tells the checkpoint's step")
    step = int(found[1])
    curves = [c for c in run.curves if c.split not in ("train", "") and c.metric not in _NO_SCORE]
    rows = [c for c in curves if np.any(np.abs(c.current().steps - step) < 0.5)]
    known = [c for c in run.checkpoints if c.name == name and c.metrics is not None]
    there = bool(rows or known)
    return Finding(
        subject=f"evaluations at step {step:,}",
        judgement=Judgement("pass" if there else "fail"),
        value=float(len(rows) or len(known)),
        n=1,
        bound=Bound(1),
        evidence=Evidence(notes=(f"logged: {', '.join(sorted({c.key for c in rows}))}",) if rows else ()),
    )


def _step(curve: Curve, row: int) -> str:
    step = curve.steps[row]
    return f"{step:,.0f}" if np.isfinite(step) else f"row {row + 1}"
