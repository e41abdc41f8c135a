"""A folder, or uploaded files, as one result: what the page shows and the command prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from refusal_core.jobs import Job
from refusal_core.runs.discover import discover, make_runs
from refusal_core.runs.json_form import to_json
from refusal_core.runs.model import Finding, Problem, Run
from refusal_core.runs.read import read_files
from refusal_core.runs.view import spoken


@dataclass(frozen=True, eq=False)
class Report:
    """Runs, the files that were not read (or not as they are), what does not add up, and the answer.

    `answer` is one sentence without a full stop at its end; `beside` are further ones.
    """

    runs: tuple[Run, ...]
    problems: tuple[Problem, ...]
    findings: tuple[Finding, ...]
    answer: str
    beside: tuple[str, ...] = ()

    def as_json(self) -> dict:
        return to_json(self.runs, self.problems, self.findings)


def of_folder(folder: str | Path, job: Job | None = None) -> Report:
    """Raises InputError when the folder cannot be opened."""
    runs, problems = discover(folder, job)
    return _report(runs, problems)


def of_files(files: Iterable[tuple[str, bytes | Path]], job: Job | None = None) -> Report:
    """The same of uploads, zip archives among them."""
    artefacts, problems = read_files(files, job)
    return _report(make_runs(artefacts), problems)


def _report(runs: Sequence[Run], problems: Sequence[Problem]) -> Report:
    return Report(tuple(runs), tuple(problems), (), _answer(runs))


def _answer(runs: Sequence[Run]) -> str:
    for run in runs:
        if run.best:
            return f"Take {run.best.checkpoint} by {spoken(run.best.metric)}, {run.best.value:.4f}"
    return f"{len(runs):,} runs" if len(runs) != 1 else "One run"
