"""A folder, or uploaded files, as one result: what the page shows and the command prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from refusal_core.jobs import Job
from refusal_core.runs.answer import answer
from refusal_core.runs.build import make_runs
from refusal_core.runs.discover import discover
from refusal_core.runs.findings import findings_of
from refusal_core.runs.json_form import to_json
from refusal_core.runs.model import Finding, Problem, Run
from refusal_core.runs.read import read_files
from refusal_core.runs.view import spoken
from refusal_core.runs.view_compare import candidates, offered, side_by_side, value_words

LISTED = 20  # runs whose own answer stands beside the headline


@dataclass(frozen=True, eq=False)
class Report:
    """Runs, the files that were not read (or not as they are), and what does not add up."""

    runs: tuple[Run, ...]
    problems: tuple[Problem, ...]
    findings: tuple[Finding, ...]

    def as_json(self) -> dict:
        return to_json(self.runs, self.problems, self.findings)


@dataclass(frozen=True)
class Headline:
    """The answer in one sentence without a full stop at its end, and the sentences that stand beside it."""

    sentence: str
    beside: tuple[str, ...] = ()


def of_folder(folder: str | Path, job: Job | None = None) -> Report:
    """Raises InputError when the folder cannot be opened."""
    runs, problems = discover(folder, job)
    return Report(tuple(runs), tuple(problems), tuple(findings_of(runs)))


def of_files(files: Iterable[tuple[str, bytes | Path]], name: str = ".", job: Job | None = None) -> Report:
    """The same of uploads, zip archives among them; `name` is the run's that lies in no folder of its own."""
    artefacts, problems = read_files(files, job)
    runs = make_runs(artefacts, name)
    return Report(tuple(runs), tuple(problems), tuple(findings_of(runs)))


def headline(runs: Sequence[Run]) -> Headline:
    """Which checkpoint to take: of the one run, or of several by the metric that most of them were judged by."""
    if len(runs) == 1:
        return _of_one(runs[0])
    own = {run.name: answer(run) for run in runs[:LISTED]}
    beside = tuple(f"{name}: {found.sentence}" for name, found in own.items() if found.best)
    judged = [run for run in runs if run.best]
    if len(judged) < 2:
        one = next((_plain(found.sentence) for found in own.values() if found.best), "")
        return Headline(f"{len(runs):,} runs" + (f": {one[:1].lower()}{one[1:]}" if one else ""), beside[1:])
    return Headline(_of_several(judged), beside)


def _of_several(judged: Sequence[Run]) -> str:
    """The best of the best checkpoints by the metric that most runs were judged by, and what cannot be told from it."""
    metrics = [run.best.metric.split(" ")[-1] for run in judged]
    metric = max(dict.fromkeys(metrics), key=metrics.count)
    same = [run for run, by in zip(judged, metrics, strict=True) if by == metric]
    top = max(same, key=lambda run: run.best.value if run.best.greater_is_better else -run.best.value)
    taken = {run.name: run.best.checkpoint for run in same}
    found = {one.run: one for one in candidates(judged) if taken.get(one.run) == one.checkpoint}
    value, alike, known = f"{top.best.value:.4f}", [], False
    if top.name in found and metric in offered([found[top.name]]):
        table = side_by_side(list(found.values()), metric, found[top.name].key)
        entries = dict(zip(found, table.entries, strict=True))
        value = value_words(entries[top.name])
        alike = [found[name].name for name, e in entries.items() if e.verdict == "not distinguishable"]
        known = any(e.verdict for e in entries.values())
    told = f"{top.name} {top.best.checkpoint} has the best {spoken(metric)} of {len(same):,} runs, {value}"
    if alike:
        return told + f"; not distinguishable from {', '.join(alike[:3])}" + (" and more" if len(alike) > 3 else "")
    return told + ("" if known or len(same) < 2 else "; no shared predictions say how sure that is")


def _of_one(run: Run) -> Headline:
    found = answer(run)
    how = found.best.how if found.best is not None else ""
    return Headline(_plain(found.sentence), (f"{found.best.checkpoint} is {how}.",) if how else ())


def _plain(sentence: str) -> str:
    return sentence.removesuffix(".")
