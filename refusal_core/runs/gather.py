"""Which artefacts are of one training: states by their histories, everything else by its values and its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from refusal_core.roots import natural_key
from refusal_core.runs.agree import compare
from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.group import Group, by_history, checkpoint_folder, join_states, run_folder
from refusal_core.runs.join import chained, with_times
from refusal_core.runs.model import Curve

_MOST_ELSEWHERE = 50  # trainings that a log without one near it is compared with
_FEWEST = 3  # equal values that tell the training of a log from elsewhere
_KINDS_OF_FILES = frozenset(
    ("eval", "evaluation", "events", "figures", "log", "logs", "metrics", "plots", "predictions", "report", "reports")
    + ("result", "results", "runs", "tb", "tensorboard", "test", "validation")
)


class Index:
    """Groups by folder, so that ten thousand of them are found as fast as ten."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.folders: dict[str, list[Group]] = {}
        self.below: dict[str, list[Group]] = {}
        self.stores: dict[tuple[str, str], Group] = {}

    def add(self, found: Group) -> None:
        self.groups.append(found)
        self.folders.setdefault(found.folder, []).append(found)
        for place in _above(found.folder)[1:]:
            self.below.setdefault(place, []).append(found)

    def nearest(self, folder: str) -> list[Group]:
        """The groups of the folder itself, else of the nearest one above.

        From a folder that is named after what is in it ("logs", "results"), also the only one beside it.
        """
        above = _above(run_folder(folder))
        for place in above:
            if place in self.folders:
                return self.folders[place]
        for inner, place in zip(above, above[1:], strict=False):
            if inner[len(place) :].strip("/").lower() in _KINDS_OF_FILES:
                return self.below[place] if len(self.below.get(place, ())) == 1 else []
        return []


def gather(artefacts: Sequence[Artefact]) -> list[Group]:
    """One Group a training, in the natural order of their folders."""
    trained, logged, rest = Index(), Index(), Index()
    by_folder: dict[str, list[Artefact]] = {}
    for artefact in artefacts:
        if artefact.kind == "state":
            by_folder.setdefault(run_folder(artefact.folder), []).append(artefact)
    for folder, states in by_folder.items():
        for found in by_history(folder, states):
            join_states(found)
            trained.add(found)
    histories = [a for a in artefacts if a.kind == "history"]
    for found in _own_runs([a for a in histories if not _join_history(trained, a)]):
        logged.add(found)
        logged.stores |= {(history.file, history.part): found for history in found.histories}
    for artefact in artefacts:
        if artefact.kind not in ("state", "history"):
            _home(trained, logged, rest, artefact).others.append(artefact)
    groups = [*trained.groups, *logged.groups, *rest.groups]
    return sorted(groups, key=lambda g: (natural_key(g.folder), natural_key(g.name)))


def _above(folder: str) -> list[str]:
    """The folder, and every one above it up to the one that was read."""
    above = [folder]
    while above[-1]:
        above.append(above[-1].rpartition("/")[0])
    return above


def _join_history(trained: Index, history: Artefact) -> bool:
    """Put a history to the training whose values it has, else to the only one of its folder; False where none is."""
    near = trained.nearest(history.folder)
    elsewhere = trained.groups if len(trained.groups) <= _MOST_ELSEWHERE else []
    words = [(found, compare(history.curves, found.curves)) for found in near or elsewhere]
    if not near:
        words = [
            (found, agreement) for found, agreement in words if agreement.equal >= _FEWEST and agreement.word == "agree"
        ]
    if not words:
        return False
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


def _own_runs(histories: Sequence[Artefact]) -> list[Group]:
    """Histories without a trainer state: the same run from several files is one, and so is one that was resumed."""
    groups: list[Group] = []
    titled: dict[str, list[Group]] = {}
    untitled: dict[str, list[Group]] = {}
    for history in sorted(histories, key=_first_time):
        title = history.name or history.part
        same = titled.get(title, []) if title else untitled.get(history.folder, [])
        for found in same:
            if title and _same_run(found, history):
                have = {curve.name for curve in found.curves}
                found.curves = with_times(found.curves, history.curves)
                found.curves += tuple(c for c in chained([history.curves]) if c.name not in have)
                found.histories.append(history)
                break
            if not title and _goes_on(found, history):
                found.curves = chained([found.curves, history.curves])
                found.histories.append(history)
                break
        else:
            groups.append(_own_run(history, title, bool(same)))
            for name in {history.name, history.part} - {""}:
                titled.setdefault(name, []).append(groups[-1])
            if not title:
                untitled.setdefault(history.folder, []).append(groups[-1])
    return groups


def _own_run(history: Artefact, title: str, beside: bool) -> Group:
    name = title or (history.file if beside or not history.folder else history.folder)
    own = Group(history.folder, name, histories=[history], curves=chained([history.curves]))
    if not title and beside:
        own.find(
            "two_runs_in_one_folder",
            history.file,
            "one training in a folder",
            "it neither goes on from the other logs of its folder nor repeats them",
            "it is shown as a run of its own; give each training a folder of its own",
        )
    return own


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


def _home(trained: Index, logged: Index, rest: Index, artefact: Artefact) -> Group:
    """The group that a table, results or predictions file is of; a new one where there is none near."""
    of_store = logged.stores.get((artefact.file, artefact.part)) if artefact.part else None
    if of_store is not None:
        return of_store
    near = trained.nearest(artefact.folder) or logged.nearest(artefact.folder)
    of_checkpoint = checkpoint_folder(artefact.folder)
    owners = [g for g in near if of_checkpoint and any(s.folder == of_checkpoint for s in g.states)]
    if owners or len(near) == 1:
        return (owners or near)[0]
    if near:
        told_of = max(near, key=lambda g: (_value_matches(g, artefact), g.states[-1].rows if g.states else 0))
        if not _value_matches(told_of, artefact):
            told_of.notes.append(f"{artefact.file} may be of another run in the same folder: no value tells")
        return told_of
    home = run_folder(artefact.folder)
    if home not in rest.folders:
        rest.add(Group(home))
    return rest.folders[home][0]


def _value_matches(found: Group, artefact: Artefact) -> int:
    """How many numbers of the artefact are values that the group's evaluations have."""
    if artefact.scores is None:
        return 0
    values = {s.name: s.value for s in artefact.scores.scores if s.split == "eval"}
    return sum(bool((c.values == values[c.name]).any()) for c in found.curves if c.name in values)
