"""Which trainer states are of one training: those whose histories begin alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from refusal_core.roots import natural_key
from refusal_core.runs.agree import is_prefix, shared_until
from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.join import chained, with_old_tails
from refusal_core.runs.model import Curve, Finding

SETTINGS = ("max_steps", "num_train_epochs", "train_batch_size")
"""What a trainer state says of how it was set up."""
_CHECKPOINT = re.compile(r"checkpoint(?:[-_ ](.*))?", re.I)


@dataclass
class Group:
    """The artefacts of one run, and what was found out while they were put together."""

    folder: str
    name: str = ""
    states: list[Artefact] = field(default_factory=list)
    """By rows and step: the last one is the newest history."""
    histories: list[Artefact] = field(default_factory=list)
    others: list[Artefact] = field(default_factory=list)
    """Scores, tables, predictions, configs."""
    curves: tuple[Curve, ...] = ()
    resumed: list[float] = field(default_factory=list)
    """Steps of resumes that only the settings of the states tell."""
    findings: list[Finding] = field(default_factory=list)
    """Their `run` is filled in when the run has its name."""
    notes: list[str] = field(default_factory=list)

    @property
    def artefacts(self) -> list[Artefact]:
        return [*self.states, *self.histories, *self.others]

    def find(self, kind: str, where: str, expected: str, found: str, fix: str) -> None:
        self.findings.append(Finding(kind, "", where, expected, found, fix))


def run_folder(folder: str) -> str:
    """The folder of the training that a file in `folder` is of: above the checkpoint that it may be in."""
    parts = folder.split("/") if folder else []
    for place, part in enumerate(parts):
        if _CHECKPOINT.fullmatch(part):
            return "/".join(parts[:place])
    return folder


def checkpoint_folder(folder: str) -> str | None:
    """The checkpoint that a folder is, or lies in."""
    parts = folder.split("/") if folder else []
    for place, part in enumerate(parts):
        if _CHECKPOINT.fullmatch(part):
            return "/".join(parts[: place + 1])
    return None


def step_of(folder: str) -> int | None:
    """The step in the name of a checkpoint's folder; None for "checkpoint-best" and "checkpoint-12 (1)"."""
    found = _CHECKPOINT.fullmatch(folder.rpartition("/")[2])
    digits = found[1] if found else None
    return int(digits) if digits and digits.isascii() and digits.isdigit() and len(digits) < 16 else None


def checkpoint_order(folder: str) -> tuple:
    """By step; those without a number last."""
    step = step_of(folder)
    return step is None, step or 0, natural_key(folder)


def settings_of(state: Artefact) -> tuple[object, ...]:
    return tuple(state.settings.get(key) for key in SETTINGS)


def told(settings: Sequence[object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in zip(SETTINGS, settings, strict=True) if value is not None)


def by_history(folder: str, states: list[Artefact]) -> list[Group]:
    """One group for each training among the states of one folder.

    A history that another one begins with is of the same training, whatever the settings. So is one that only shares a
    beginning with it, where the settings are the same: the training was resumed from before its end.
    """
    groups: list[Group] = []
    for state in sorted(states, key=_age, reverse=True):
        home = _home_of_state(groups, state)
        if home is None:
            home = Group(folder)
            groups.append(home)
        home.states.insert(0, state)
    if len(groups) > 1:
        for found in groups:
            newest = found.states[-1]
            found.name = f"{folder or '.'} ({told(settings_of(newest)) or newest.file})"
        if len({found.name for found in groups}) < len(groups):
            for found in groups:
                found.name = f"{folder or '.'} ({found.states[-1].file})"
        names = ", ".join(f"{found.states[-1].file} ({told(settings_of(found.states[-1]))})" for found in groups)
        for found in groups:
            found.find(
                "two_runs_in_one_folder",
                folder or ".",
                "the checkpoints of one training: one history, of which the others are beginnings",
                f"{len(groups)} histories that do not begin alike: {names}",
                "they are shown as separate runs; give each training a folder of its own",
            )
    return groups


def _home_of_state(groups: Sequence[Group], state: Artefact) -> Group | None:
    same = [g for g in groups if settings_of(g.states[-1]) == settings_of(state)]
    if not state.rows:
        return same[0] if same else None
    for found in groups:
        if is_prefix(state.curves, found.states[-1].curves):
            return found
    for found in same:
        if not found.states[-1].rows or shared_until(state.curves, found.states[-1].curves) is not None:
            return found
    return None


def _age(state: Artefact) -> tuple:
    """Newest last: by step, then by rows; a checkpoint's own state before that of its whole folder."""
    return state.step or 0, state.rows, checkpoint_folder(state.folder) is None, natural_key(state.file)


def join_states(found: Group) -> None:
    newest = found.states[-1]
    curves = chained([newest.curves]) if newest.curves else ()
    for state in found.states[:-1]:
        if not is_prefix(state.curves, newest.curves) and state.rows:
            shared = shared_until(state.curves, newest.curves)
            if shared is not None and not any(curve.attempt.any() for curve in curves):
                curves = with_old_tails(curves, state.curves, shared)
    found.curves = curves
    for older, younger in zip(found.states, found.states[1:], strict=False):
        differ = settings_of(older) != settings_of(younger)
        if differ and older.step is not None and older.step < (younger.step or 0):
            found.resumed.append(float(older.step))
            found.notes.append(
                f"the settings changed at step {older.step:,}: {told(settings_of(older))} before, "
                f"{told(settings_of(younger))} after"
            )
