"""Hugging Face `trainer_state.json`, of any version, whole or cut."""

from __future__ import annotations

import re

from refusal_core.errors import InputError
from refusal_core.jobs import Job
from refusal_core.runs.artefacts import Artefact, Stated
from refusal_core.runs.columns import Columns
from refusal_core.runs.json_members import Members, read_members
from refusal_core.runs.model import Problem, Score, Scores
from refusal_core.runs.names import EPOCH_KEYS, STEP_KEYS, TIME_KEYS, names_of
from refusal_core.runs.text import number

FORMAT = "Hugging Face trainer state"
_NO_SETTING = frozenset(
    ("best_metric", "best_model_checkpoint", "best_global_step", "epoch", "global_step", "log_history", "total_flos")
)


def read_state(text: str, file: str, job: Job | None = None) -> tuple[Artefact, list[Problem]]:
    """The state, and what of it could not be read. Raises InputError when it is no trainer state."""
    log = _Log(file)
    members = read_members(text, {"log_history": log.add}, job)
    values = members.values
    if members.fault and "log_history" not in values:
        raise InputError(f"it is {members.fault}", where=file, fix="copy it again, or take another checkpoint's state")
    known = "global_step" in values or members.fault or log.last_step is not None
    if not isinstance(values.get("log_history"), int) or not known:
        raise InputError(
            "it is a trainer state of another program",
            where=file,
            why="log_history, a list, and global_step were expected",
            fix="name the state that the Hugging Face Trainer wrote",
        )
    problems = [_cut(file, members, log.columns.rows)] if members.fault else []
    step = number(values.get("global_step"))
    step = log.last_step if step is None else step
    epoch = number(values.get("epoch"))
    notes = log.columns.notes()
    if members.repeated:
        what = f"came twice: {', '.join(members.repeated)}; the last one counts, of a log the rows of both"
        problems.append(Problem(file, what, "", "whole"))
    return Artefact(
        kind="state",
        format=FORMAT,
        file=file,
        step=whole(step),
        epoch=epoch,
        settings={key: value for key, value in values.items() if key not in _NO_SETTING and _is_plain(value)},
        curves=log.columns.curves(),
        rows=log.columns.rows + len(log.after) + bool(log.summary),
        replaced=log.columns.replaced(),
        summary=log.summary,
        after_training=tuple(log.after),
        best=Stated(
            number(values.get("best_metric")),
            last_part(values.get("best_model_checkpoint")),
            whole(number(values.get("best_global_step"))),
        ),
        notes=notes,
    ), problems


def last_part(path: object) -> str | None:
    """The last part of a path of any system: absolute paths mean nothing on another machine."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or None if isinstance(path, str) else None


def whole(value: float | None) -> int | None:
    """The number as a whole one; None for none, NaN, infinities and what float64 cannot count."""
    return int(value) if value is not None and abs(value) <= 2**53 else None


class _Log:
    """Rows of log_history: those of the training are columns, the ones at its end stand apart."""

    def __init__(self, file: str) -> None:
        self.columns = Columns(file)
        self.summary: dict[str, float] = {}
        self.after: list[Scores] = []
        self.last_step: float | None = None

    def add(self, row: dict) -> None:
        if "train_runtime" in row:
            self.summary = {key: found for key, value in row.items() if (found := number(value)) is not None}
        elif self.summary and "loss" not in row and any(key.startswith(("eval_", "test_", "predict_")) for key in row):
            self.after.append(scores_of(row, self.columns.file))
        else:
            if self.summary and "loss" in row:  # the training went on: what came between is part of it
                self._go_on()
            self.columns.add(row)
        step = row.get("step")
        if isinstance(step, int | float) and step == step:
            self.last_step = step if self.last_step is None else max(step, self.last_step)

    def _go_on(self) -> None:
        for scores in self.after:
            row = {score.key: score.value for score in scores.scores}
            stamps = {"step": scores.step, "epoch": scores.epoch}
            self.columns.add({**row, **{key: value for key, value in stamps.items() if value is not None}})
        self.summary, self.after = {}, []


def scores_of(values: dict, file: str, unprefixed: str = "") -> Scores:
    """The numbers of a flat object, with step and epoch apart; texts that are numbers count as such."""
    numbers = {key: found for key, value in values.items() if (found := number(value)) is not None}
    step, epoch = (next((numbers[key] for key in keys if key in numbers), None) for keys in (STEP_KEYS, EPOCH_KEYS))
    named = names_of(tuple(numbers), unprefixed)
    scores = tuple(
        Score(name.metric, name.split, name.dataset, name.label, key, numbers[key])
        for key, name in named.items()
        if key not in (*STEP_KEYS, *EPOCH_KEYS, *TIME_KEYS, "_runtime")
    )
    return Scores(file=file, scores=scores, step=step, epoch=epoch)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _cut(file: str, members: Members, rows: int) -> Problem:
    kept = f"{rows:,} whole rows of its log were kept"
    return Problem(
        file, f"it is {members.fault}; {kept}", "copy it again, or take another checkpoint's state", "in part"
    )
