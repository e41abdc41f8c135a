"""Suites that come with the app, are uploaded or picked, and their runs, for all sessions. Imports no streamlit."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import refusal_core
from refusal_core import limits
from refusal_core.errors import InputError
from refusal_core.jobs import Progress
from refusal_core.roots import DataRoots
from refusal_core.scorecard import Choice, Scorecard, WithinRoots, read_suite, run
from refusal_core.scorecard.cache import AnswerCache
from refusal_core.scorecard.readers import Load
from refusal_core.scorecard.report import json_text
from ui import shelf

SAMPLE, UPLOAD, FILE, DRAFT, TYPED, STORED = "sample", "upload", "file", "draft", "typed", "stored"
PACKAGE = Path(refusal_core.__file__).resolve().parent
SAMPLES = PACKAGE / "scorecard" / "samples"
STOPPED = "Stopped. What was classified by then is kept and need not be classified again."
FAILED = "The suite could not be run: an error of this program, which its log describes."
ALLOWED = (".yaml", ".yml")
TITLES = {"starter": "Three checkpoints", "answers": "Answers of two models"}


@dataclass(frozen=True)
class Source:
    """A suite with where its files are looked up. `content` is its bytes; `uploads` are data files by name."""

    kind: str
    name: str  # the file's, as the command would see it
    shown: str  # for readers, and for the history
    content: bytes
    folder: str = ""  # of the suite, as a data root names it
    path: Path | None = None  # on disk, None for what exists only here
    uploads: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    choice: Choice = Choice()
    edited: bool = False

    @property
    def text(self) -> str:
        return self.content.decode("utf-8-sig", "replace")

    def with_text(self, text: str) -> Source:
        """The suite as it stands in the text area; the same bytes where nothing was changed."""
        if _lines(text) == _lines(self.text):
            return self
        return replace(self, content=text.encode("utf-8", "replace"), path=None, edited=True)

    def resolver(self, *, demo: bool) -> WithinRoots:
        """What the suite may open: uploads, what lies below the data roots, and beside a sample what we ship."""
        roots = () if demo else DataRoots.from_environment().roots
        if self.kind == SAMPLE:
            roots = (PACKAGE, *roots)
        return WithinRoots(DataRoots(tuple(roots)), self.folder, self.uploads, starter_only=demo, hub=not demo)


def sample_names() -> list[str]:
    """The suites that come with the app, by their path without its ending."""
    found = [path for path in SAMPLES.rglob("*") if path.suffix in ALLOWED and _is_suite(path)]
    return sorted(str(path.relative_to(SAMPLES).with_suffix("")).replace("\\", "/") for path in found)


def sample_title(name: str) -> str:
    """What a reader sees of a sample's name."""
    return TITLES.get(name, name.rpartition("/")[2].replace("_", " ").replace("-", " ").capitalize())


def sample(name: str) -> Source | None:
    """A suite that comes with the app."""
    if name not in sample_names():
        return None
    path = next(p for ending in ALLOWED if (p := SAMPLES / f"{name}{ending}").is_file())
    folder = posixpath.dirname(f"{SAMPLES.relative_to(PACKAGE).as_posix()}/{name}")
    return Source(SAMPLE, path.name, f"the sample {name}", path.read_bytes(), folder, path)


def _is_suite(path: Path) -> bool:
    return path.is_file() and b"assert" in path.read_bytes()[: limits.SUITE_BYTES]


class Task(shelf.Task):
    """One run of a suite: ends with `scorecard`, its `text` and `digest`, or with `problem`."""

    noun, stopped, failed = "suite", STOPPED, FAILED

    def __init__(self, source: Source, *, demo: bool = False) -> None:
        super().__init__()
        self.source, self.demo = source, demo
        self.scorecard: Scorecard | None = None
        self.text = self.digest = ""
        self.kept = False  # whether its session has put it into the history
        self.earlier: dict[str, Scorecard] = {}  # results of the history that a page has read, by digest

    def work(self, load: Load, cache: AnswerCache | None) -> None:
        """Read and run the suite; never raises."""

        def judge() -> None:
            file = read_suite(self.source.content, self.source.name)
            resolver = self.source.resolver(demo=self.demo)
            self.hold(run(file, resolver, self._job, choice=self.source.choice, cache=cache, load=load))

        self._finish(judge)

    def hold(self, scorecard: Scorecard) -> None:
        """Take the result in, and what every report of it begins with."""
        self.scorecard, self.text = scorecard, json_text(scorecard)
        self.digest = hashlib.sha256(self.text.encode()).hexdigest()

    def _let_go(self) -> None:
        self.source = replace(self.source, uploads={})

    def _show(self, now: Progress) -> None:
        most = {"exchanges": limits.DEMO_BATCH_ROWS, "rows": limits.DEMO_SUITE_ROWS}.get(now.unit)
        if self.demo and most is not None and (now.total or 0) > most:
            raise InputError(
                f"it asks for {now.total:,} {now.unit}",
                where=self.source.name,
                why=f"the demo takes at most {most:,}",
                fix="run it on your own machine",
            )
        super()._show(now)


class Shelf(shelf.Shelf[Task]):
    """The runs of suites."""

    busy = "As many suites as this server takes at once are being run: try again in a minute."

    def __init__(self, kept: int = limits.SCORECARDS_KEPT, at_once: int = limits.SCORECARDS_AT_ONCE) -> None:
        super().__init__(kept, at_once)

    def start(self, source: Source, load: Load, *, demo: bool, answers: AnswerCache | None = None) -> Task:
        """A new task, already running. Raises WorkError when too many run."""
        task = Task(source, demo=demo)
        return self._begin(task, lambda: task.work(load, answers))

    def keep(self, source: Source, scorecard: Scorecard) -> Task:
        """A task that is finished: a result out of the store."""
        task = Task(source)
        task._finish(lambda: task.hold(scorecard))
        return self.put(task)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
