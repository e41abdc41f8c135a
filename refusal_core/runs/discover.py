"""A folder becomes runs: what the readers found, and what it says together."""

from __future__ import annotations

from pathlib import Path

from refusal_core.jobs import Job
from refusal_core.runs.build import make_runs
from refusal_core.runs.model import Problem, Run
from refusal_core.runs.read import read_folder


def discover(folder: str | Path, job: Job | None = None) -> tuple[list[Run], list[Problem]]:
    """The runs below a folder, and the files that were not read, or not as they are.

    Raises InputError only when the folder itself cannot be opened or holds too many files.
    """
    artefacts, problems = read_folder(folder, job)
    return make_runs(artefacts, Path(folder).resolve().name or "."), problems
