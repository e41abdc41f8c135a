"""What the Training runs page does apart from drawing: what is read and kept, and the downloads.

Imports no streamlit.
"""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import ClassVar, TypeVar

from refusal_core.errors import InputError, one_line
from refusal_core.jobs import Job
from refusal_core.limits import FILES_LISTED, TABLE_ROWS
from refusal_core.reports import to_json, write_csv
from refusal_core.roots import DataRoots, natural_key
from refusal_core.runs import view_report as report
from refusal_core.runs.files import fingerprint
from refusal_core.runs.model import Problem, Run
from refusal_core.runs.samples import samples
from ui.shelf import new_token

SAMPLE, FOLDER, UPLOAD = "sample", "folder", "upload"
RUN_FILES = (".json", ".jsonl", ".csv", ".txt", ".log", ".db", ".eval", ".yaml", ".parquet")
READINGS_KEPT = 6  # in memory, for all sessions
KEPT_VALUES = 48  # computed for the page, of one reading
LIVE_SECONDS, LIVE_FILES = 600, 1_000
PROBLEMS_NAMED = 3
T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """What is to be read: `key` of a sample, `key` as the data roots name a folder, or uploaded files."""

    kind: str
    key: str
    name: str
    """As a reader sees it."""
    folder: Path | None = None
    files: tuple[tuple[str, bytes], ...] = ()


@dataclass(eq=False)
class Reading:
    """What was read. `runs` have names that differ, for the page; `result` is what the command gives."""

    token: str
    source: Source
    result: report.Report
    runs: tuple[Run, ...]
    headline: report.Headline
    stamp: str
    seconds: float
    kept: dict = field(default_factory=dict)
    running: ClassVar[bool] = False  # on a shelf it is what is finished

    @property
    def live(self) -> bool:
        """Whether a file of it was written so lately that the training may still run."""
        if self.source.kind != FOLDER:
            return False
        files = [file for run in self.runs for file in run.sources][:LIVE_FILES]
        return any(_age(self.source.folder / file) < LIVE_SECONDS for file in files)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Files that should have been read, or were not read as they are."""
        return tuple(one for one in self.result.problems if one.ours)

    def once(self, key: object, make: Callable[[], T]) -> T:
        """`make()`, computed once for each `key`; the last KEPT_VALUES are remembered."""
        if key not in self.kept:
            self.kept[key] = make()
            for old in list(self.kept)[:-KEPT_VALUES]:
                self.kept.pop(old, None)
        return self.kept[key]


def sample_source(key: str) -> Source | None:
    found = next((one for one in samples() if one.key == key), None)
    return Source(SAMPLE, key, found.title, found.folder) if found else None


def folder_source(typed: str, roots: DataRoots) -> Source:
    """A folder below a data root. Raises InputError for one that is not there, or lies elsewhere."""
    found = roots.resolve(typed)
    if not found.is_dir():
        raise InputError("this is a file", where=typed, why="a folder is expected", fix="pick the folder it lies in")
    return Source(FOLDER, typed, typed, found)


def upload_source(files: Sequence[tuple[str, bytes]]) -> Source:
    name = files[0][0] if len(files) == 1 else f"{len(files):,} files, {files[0][0]} first"
    return Source(UPLOAD, new_token(), name, files=tuple(files))


def read(source: Source, job: Job | None = None) -> Reading:
    """Read it. Raises InputError when no run is in it, with the first reasons why."""
    begun = time.monotonic()
    mark = fingerprint(source.folder) if source.folder else ""
    found = report.of_folder(source.folder, job) if source.folder else report.of_files(source.files, source.name, job)
    if not found.runs:
        raise _nothing(source, found.problems)
    runs = named_apart(found.runs, source)
    told = report.headline(runs)
    token = source.key if source.kind == UPLOAD else f"{source.kind}:{source.key}"
    return Reading(token, source, found, runs, told, mark, time.monotonic() - begun)


def named_apart(runs: Sequence[Run], source: Source) -> tuple[Run, ...]:
    """The runs with names that a reader can tell apart: with a folder or number where needed."""
    root = source.folder.name if source.folder else source.name
    names = [source.name if source.kind == SAMPLE and run.name == root else one_line(run.name, 120) for run in runs]
    counted = {name: names.count(name) for name in names}
    seen: dict[str, int] = {}
    found = []
    for run, name in zip(runs, names, strict=True):
        if counted[name] > 1 and run.folder not in ("", ".", name):
            name = f"{name} ({one_line(run.folder, 120)})"
        seen[name] = seen.get(name, 0) + 1
        found.append(replace(run, name=name if seen[name] == 1 else f"{name} #{seen[name]}"))
    return tuple(found)


def folders(roots: DataRoots) -> list[str]:
    """Folders below the data roots that may hold runs, with those above them, as `DataRoots.resolve` takes them."""
    found: dict[str, None] = {}
    for name, _ in roots.files(RUN_FILES):
        parts = name.split("/")[:-1]
        for end in range(1, len(parts) + 1):
            found["/".join(parts[:end])] = None
    return sorted(found, key=natural_key)[:FILES_LISTED]


def command(reading: Reading) -> str:
    """The shell line that prints the downloaded JSON."""
    source = reading.source
    folder = "FOLDER" if source.folder is None else _near(source.folder)
    return shlex.join(["python", "-m", "refusal_core.cli", "runs", folder, "--json"])


def as_json(reading: Reading) -> str:
    """What that command prints."""
    return to_json(reading.result.as_json()) + "\n"


def as_csv(reading: Reading) -> str:
    """Every value of every curve, one a row."""
    file = StringIO(newline="")
    write_csv(
        file,
        ("run", "split", "dataset", "metric", "class", "step", "epoch", "time", "value", "replaced", "file", "key"),
        (
            (run.name, c.split, c.dataset, c.metric, c.label or "", *row, c.file, c.key)
            for run in reading.runs
            for c in run.curves
            for row in zip(c.steps, c.epochs, c.times, _values(c.values), c.superseded, strict=True)
        ),
    )
    return file.getvalue()


def page_of(rows: Sequence[int], number: int) -> list[int]:
    """The rows on page `number`, from 1."""
    return list(rows[(number - 1) * TABLE_ROWS : number * TABLE_ROWS])


def _nothing(source: Source, problems: Sequence[Problem]) -> InputError:
    told = "; ".join(f"{one.file}: {one.what}" for one in problems[:PROBLEMS_NAMED])
    more = f"; and {len(problems) - PROBLEMS_NAMED:,} more" if len(problems) > PROBLEMS_NAMED else ""
    return InputError(
        "there is no training run in it",
        where=source.name,
        why=one_line(told, 600) + more if told else "it is empty",
        fix="give a trainer_state.json, results, a report, a matrix, a log, or the folder that holds them",
    )


def _age(file: Path) -> float:
    """Seconds since it was written; endless for one that is gone."""
    try:
        return time.time() - file.stat().st_mtime
    except OSError:
        return math.inf


def _near(folder: Path) -> str:
    """The path as it is typed in the app's folder."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)


def _values(values: Sequence[float]) -> list[object]:
    """Numbers, and words for what is none: an empty cell would hide it."""
    return [
        v if math.isfinite(v) else "NaN" if math.isnan(v) else "Infinity" if v > 0 else "minus Infinity" for v in values
    ]
