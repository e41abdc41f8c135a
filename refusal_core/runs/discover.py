"""A folder becomes runs: what the readers found, and what it says together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from refusal_core.jobs import Job
from refusal_core.roots import natural_key
from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.model import Checkpoint, Problem, Run
from refusal_core.runs.read import read_folder

_CHECKPOINT = re.compile(r"(?:^|/)checkpoint[-_ ](?:(\d+)$)?", re.I)


def discover(folder: str | Path, job: Job | None = None) -> tuple[list[Run], list[Problem]]:
    """The runs below a folder, and the files that were not read, or not as they are.

    Raises InputError only when the folder itself cannot be opened or holds too many files.
    """
    artefacts, problems = read_folder(folder, job)
    return make_runs(artefacts), problems


def make_runs(artefacts: Sequence[Artefact]) -> list[Run]:
    """One run a folder that holds a state or is the parent of checkpoints that do; other histories are runs."""
    by_folder: dict[str, list[Artefact]] = {}
    runs = []
    states = {_run_folder(a.folder) for a in artefacts if a.kind == "state"}
    for artefact in artefacts:
        folder = _run_folder(artefact.folder)
        if artefact.kind == "history" and folder not in states:
            name = artefact.name or artefact.part or artefact.file
            runs.append(
                Run(name, artefact.folder, curves=artefact.curves, settings=artefact.settings, sources=(artefact.file,))
            )
        else:
            by_folder.setdefault(folder, []).append(artefact)
    runs += [_run(folder, found) for folder, found in by_folder.items()]
    return sorted(runs, key=lambda run: natural_key(f"{run.folder}/{run.name}"))


def step_of(folder: str) -> int | None:
    """The step in the name of a checkpoint's folder, None when it has none."""
    found = _CHECKPOINT.search(folder)
    return int(found[1]) if found and found[1] and len(found[1]) < 16 else None


def _checkpoint_order(folder: str) -> tuple:
    """By step; those without a number last."""
    step = step_of(folder)
    return step is None, step or 0, natural_key(folder)


def _run_folder(folder: str) -> str:
    return folder.rpartition("/")[0] if _CHECKPOINT.search(folder.rpartition("/")[2]) else folder


def _run(folder: str, found: list[Artefact]) -> Run:
    states = [a for a in found if a.kind == "state"]
    longest = max(states, key=lambda a: (a.rows, a.step or 0), default=None)
    inner = sorted({a.folder for a in found if a.folder != folder}, key=_checkpoint_order)
    checkpoints = tuple(
        Checkpoint(
            name.rpartition("/")[2],
            name,
            step_of(name),
            tables=tuple(a.table for a in found if a.folder == name and a.table),
            predictions=tuple(a.predictions for a in found if a.folder == name and a.predictions),
        )
        for name in inner
    )
    top = [a for a in found if a.folder == folder]
    return Run(
        name=folder or ".",
        folder=folder,
        checkpoints=checkpoints,
        curves=longest.curves if longest else (),
        tables=tuple(a.table for a in top if a.table),
        scores=tuple(a.scores for a in top if a.scores),
        predictions=tuple(a.predictions for a in top if a.predictions),
        settings=longest.settings if longest else {},
        sources=tuple(dict.fromkeys(a.file for a in found)),
        notes=tuple(note for a in found for note in a.notes),
    )
