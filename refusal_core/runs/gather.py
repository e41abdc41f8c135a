"""Which artefacts are of one training: states by their histories, everything else by its values and its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from refusal_core.roots import natural_key
from refusal_core.runs.agree import compare
from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.group import Group, by_history, checkpoint_folder, join_states, run_folder
from refusal_core.runs.join import chained, with_times
from refusal_core.runs.model import Curve


def gather(artefacts: Sequence[Artefact]) -> list[Group]:
    """One Group a training, in the natural order of their folders."""
    groups: list[Group] = []
    by_folder: dict[str, list[Artefact]] = {}
    for artefact in artefacts:
        if artefact.kind == "state":
            by_folder.setdefault(run_folder(artefact.folder), []).append(artefact)
    for folder, states in by_folder.items():
        groups += by_history(folder, states)
    for found in groups:
        join_states(found)
    histories = [a for a in artefacts if a.kind == "history"]
    loose = [a for a in histories if not _join_history(groups, a)]
    groups += _own_runs(loose)
    for artefact in artefacts:
        if artefact.kind not in ("state", "history"):
            _home(groups, artefact).others.append(artefact)
    return sorted(groups, key=lambda g: (natural_key(g.folder), natural_key(g.name)))


def _join_history(groups: list[Group], history: Artefact) -> bool:
    """Put a history to the training whose values it has, else to the only one of its folder; False where none is."""
    near = nearest(groups, history.folder, lambda g: bool(g.states))
    if not near:
        return False
    words = [(found, compare(history.curves, found.curves)) for found in near]
    for found, agreement in words:
        if agreement.word == "agree":
            found.histories.append(history)
            have = {curve.name for curve in found.curves}
            found.curves = with_times(found.curves, history.curves)
            found.curves += tuple(c for c in chained([history.curves]) if c.name not in have)
            return True
    found, agreement = max(words, key=lambda pair: pair[0].states[-1].rows)
    found.histories.append(history)
    if agreement.first is None:
        have = {curve.name for curve in found.curves}
        found.curves += tuple(c for c in chained([history.curves]) if c.name not in have)
        return True
    step, key, theirs, ours = agreement.first
    found.find(
        "two_runs_in_one_folder",
        f"{history.file}, step {step:,.0f}",
        f"{key} {ours:.6g}, as in {found.states[-1].file}",
        f"{theirs:.6g}: it was written by another attempt than these checkpoints",
        "its curves are drawn faint and count in nothing; keep it with the checkpoints of its own attempt",
    )
    found.curves += tuple(_faint(curve, len(found.histories)) for curve in history.curves)
    return True


def _faint(curve: Curve, attempt: int) -> Curve:
    arrays = {"superseded": np.ones(len(curve), dtype=np.bool_), "attempt": np.full(len(curve), attempt)}
    for array in arrays.values():
        array.setflags(write=False)
    return replace(curve, **arrays)


def nearest(groups: Sequence[Group], folder: str, wanted: Callable[[Group], bool]) -> list[Group]:
    """The wanted groups of the folder itself, else of the nearest one above; else the only one below one above."""
    folder = run_folder(folder)
    above = [folder]
    while above[-1]:
        above.append(above[-1].rpartition("/")[0])
    for place in above:
        found = [g for g in groups if g.folder == place and wanted(g)]
        if found:
            return found
    for place in above:
        below = [g for g in groups if (not place or g.folder.startswith(place + "/")) and wanted(g)]
        if below:
            return below if len(below) == 1 else []
    return []


def _own_runs(histories: Sequence[Artefact]) -> list[Group]:
    """Histories without a trainer state: the same run from several files is one, and so is one that was resumed."""
    groups: list[Group] = []
    for history in sorted(histories, key=_first_time):
        title = history.name or history.part
        for found in groups:
            if title and title in (found.name, found.histories[0].part) and _same_run(found, history):
                have = {curve.name for curve in found.curves}
                found.curves = with_times(found.curves, history.curves)
                found.curves += tuple(c for c in chained([history.curves]) if c.name not in have)
                found.histories.append(history)
                break
            if not title and history.folder == found.folder and _goes_on(found, history):
                found.curves = chained([found.curves, history.curves])
                found.histories.append(history)
                break
        else:
            name = title or (history.folder or history.file)
            if not title and any(g.folder == history.folder for g in groups):
                name = history.file
            own = Group(history.folder, name, histories=[history], curves=chained([history.curves]))
            groups.append(own)
            if name == history.file and history.folder:
                own.find(
                    "two_runs_in_one_folder",
                    history.file,
                    f"one training in {history.folder}",
                    "it neither goes on from the other logs of its folder nor repeats them",
                    "it is shown as a run of its own; give each training a folder of its own",
                )
    return groups


def _same_run(found: Group, history: Artefact) -> bool:
    return compare(history.curves, found.curves).word == "agree"


def _goes_on(found: Group, history: Artefact) -> bool:
    """Whether a file of the same folder continues a training: it begins later than that, and not after a gap."""
    starts, own = _steps(found.curves), _steps(history.curves)
    if not len(starts) or not len(own):
        return False
    gap = (starts[-1] - starts[0]) / max(len(starts) - 1, 1)
    return starts[0] < own[0] <= starts[-1] + 2 * gap + 1


def _steps(curves: Sequence[Curve]) -> NDArray[np.float64]:
    steps = [c.steps[np.isfinite(c.steps)] for c in curves]
    return np.unique(np.concatenate(steps)) if steps else np.empty(0)


def _first_time(history: Artefact) -> tuple:
    times = [float(np.nanmin(c.times)) for c in history.curves if len(c) and np.isfinite(c.times).any()]
    return min(times, default=np.inf), -history.rows, natural_key(history.file)


def _home(groups: list[Group], artefact: Artefact) -> Group:
    """The group that a table, results or predictions file is of; a new one where there is none near."""
    stores = [g for g in groups if _is_of(g, artefact)]
    near = stores or nearest(groups, artefact.folder, lambda g: bool(g.states))
    near = near or nearest(groups, artefact.folder, lambda g: bool(g.histories))
    of_checkpoint = checkpoint_folder(artefact.folder)
    owners = [g for g in near if of_checkpoint and any(s.folder == of_checkpoint for s in g.states)]
    if owners:
        return owners[0]
    if len(near) == 1:
        return near[0]
    if near:
        told_of = max(near, key=lambda g: (_value_matches(g, artefact), g.states[-1].rows if g.states else 0))
        if not _value_matches(told_of, artefact):
            told_of.notes.append(f"{artefact.file} may be of another run in the same folder: no value tells")
        return told_of
    home = run_folder(artefact.folder)
    for found in groups:
        if found.folder == home and not found.states and not found.histories:
            return found
    groups.append(Group(home))
    return groups[-1]


def _is_of(found: Group, artefact: Artefact) -> bool:
    """Whether both are the same part of one store."""
    mine = (artefact.file, artefact.part)
    return bool(artefact.part) and any((history.file, history.part) == mine for history in found.histories)


def _value_matches(found: Group, artefact: Artefact) -> int:
    """How many numbers of the artefact are values that the group's evaluations have."""
    if artefact.scores is None:
        return 0
    values = {s.name: s.value for s in artefact.scores.scores if s.split == "eval"}
    return sum(bool((c.values == values[c.name]).any()) for c in found.curves if c.name in values)
