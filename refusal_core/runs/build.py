"""Artefacts become runs: grouped, joined, with checkpoints, their own evaluations and the best one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.best import best_of
from refusal_core.runs.diverged import diverged_at
from refusal_core.runs.gather import gather
from refusal_core.runs.group import Group, checkpoint_folder
from refusal_core.runs.join import resumed_at
from refusal_core.runs.model import Checkpoint, Run
from refusal_core.runs.own_evaluation import Evaluations, checkpoints_of, place_by_value
from refusal_core.runs.recount import settled
from refusal_core.runs.tables import MatrixTable, ReportTable, Table


def make_runs(artefacts: Sequence[Artefact], root: str = ".") -> list[Run]:
    """The runs in the natural order of their folders. Nothing is lost: every artefact is in one of them.

    `root` is what the folder that was read is called: the name of a run that lies in it without a folder of its own.
    """
    return [_run(found, root) for found in gather(artefacts)]


def _run(found: Group, root: str) -> Run:
    newest = found.states[-1] if found.states else None
    evaluations = Evaluations(found.curves)
    loose = [a for a in found.others if checkpoint_folder(a.folder) is None]
    checkpoints, scores = place_by_value(found, checkpoints_of(found, evaluations), evaluations, loose)
    best, wrong = best_of(newest.best if newest else None, evaluations, checkpoints, diverged_at(found.curves))
    if wrong:
        expected = f"the best {best.metric}: {wrong}"
        told = f"{best.checkpoint} with {best.value:.6g}"
        fix = "name metric_for_best_model and greater_is_better; a loss is better when lower"
        found.find("contradiction", f"{newest.file}: best_metric", expected, told, fix)
    _look_at_states(found, evaluations, checkpoints)
    checkpoints = [replace(c, tables=_tables(c.tables)) for c in checkpoints]
    return Run(
        name=(root + found.name[1:] if found.name.startswith(". (") else found.name) or found.folder or root,
        folder=found.folder,
        checkpoints=tuple(checkpoints),
        curves=found.curves,
        tables=_tables([a.table for a in loose if a.table]),
        scores=tuple(scores),
        predictions=tuple(a.predictions for a in loose if a.predictions),
        settings=_settings(found),
        sources=tuple(dict.fromkeys(a.file for a in found.artefacts)),
        resumed_at=tuple(sorted({*resumed_at(c for c in found.curves if not c.superseded.all()), *found.resumed})),
        best=best,
        notes=tuple(dict.fromkeys([*found.notes, *(f"{a.file}: {note}" for a in found.artefacts for note in a.notes)])),
        findings=tuple(found.findings),
    )


def _settings(found: Group) -> dict[str, object]:
    """Of the newest state; what only a store or an event file says comes after."""
    settings = dict(found.states[-1].settings) if found.states else {}
    for history in found.histories:
        for key, value in history.settings.items():
            settings.setdefault(key, value)
    return settings


def _look_at_states(found: Group, evaluations: Evaluations, checkpoints: Sequence[Checkpoint]) -> None:
    for state in found.states:
        if not state.rows:
            at = "" if state.step is None else f" at step {state.step:,}"
            found.find(
                "empty_history",
                state.file,
                "log rows",
                f"log_history is empty{at}",
                f"nothing was logged: logging_steps is {state.settings.get('logging_steps', 'not stated')}",
            )
        for alert in state.alerts:
            found.find("alert", state.file, "no alert", alert, "the training itself warned of this")
    for history in found.histories:
        for alert in history.alerts:
            found.find("alert", history.file, "no alert", alert, "the training itself warned of this")
    newest = found.states[-1] if found.states else None
    if newest is None or newest.step is None or not evaluations:
        return
    finished = newest.step == newest.settings.get("max_steps")
    if finished and newest.step not in evaluations and all(c.step != newest.step for c in checkpoints):
        found.find(
            "missing_evaluation",
            f"{newest.file}, step {newest.step:,}",
            f"an evaluation of the last weights, at step {newest.step:,}",
            f"the last one of the training is at step {evaluations.steps[-1]:,.0f}",
            "evaluate them on their own before they are compared",
        )


def _tables(tables: Sequence[Table]) -> tuple[Table, ...]:
    """With the axes of matrices settled by the reports beside them; the same report from several files once."""
    reports = [t for t in tables if isinstance(t, ReportTable)]
    kept: list[Table] = []
    for table in tables:
        if isinstance(table, MatrixTable):
            table = settled(table, reports, [t for t in tables if isinstance(t, MatrixTable)])
        if not (isinstance(table, ReportTable) and any(_same(table, t) for t in kept if isinstance(t, ReportTable))):
            kept.append(table)
    return tuple(kept)


def _same(a: ReportTable, b: ReportTable) -> bool:
    return (a.name, a.split, a.classes, a.averages, a.accuracy) == (b.name, b.split, b.classes, b.averages, b.accuracy)
