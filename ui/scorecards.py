"""Suites under way or run: each in a thread of its own, kept for as long as the shelf has room.

A session remembers only a token that nobody guesses. The work goes on over reruns and page changes; what nobody looks
at any more is stopped. Imports no streamlit.
"""

from __future__ import annotations

import hashlib
import logging
import posixpath
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import refusal_core
from refusal_core import limits
from refusal_core.errors import Cancelled, InputError, RefusalCoreError, WorkError
from refusal_core.jobs import Job, Progress
from refusal_core.memory import give_back
from refusal_core.roots import DataRoots
from refusal_core.scorecard import Choice, Scorecard, WithinRoots, read_suite, run
from refusal_core.scorecard.cache import AnswerCache
from refusal_core.scorecard.readers import Load
from refusal_core.scorecard.report import json_text

SAMPLE, UPLOAD, FILE, DRAFT, TYPED, STORED = "sample", "upload", "file", "draft", "typed", "stored"
PACKAGE = Path(refusal_core.__file__).resolve().parent
SAMPLES = PACKAGE / "scorecard" / "samples"
TOKEN_BYTES = 16
UNWATCHED_SECONDS = 600  # a hidden browser tab still asks once a minute
STOPPED = "Stopped. What was classified by then is kept and need not be classified again."
FAILED = "The suite could not be run: an error of this program, which its log describes."
BUSY = "As many suites as this server takes at once are being run: try again in a minute."
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


class Task:
    """One run of a suite: `progress` while it runs, then `scorecard` with its `text` and `digest`, or `problem`."""

    def __init__(self, source: Source, *, demo: bool = False, clock=time.monotonic) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.source, self.demo = source, demo
        self.scorecard: Scorecard | None = None
        self.text = self.digest = ""
        self.problem: str | None = None
        self.progress: Progress | None = None
        self.seconds = 0.0
        self.kept = False  # whether its session has put it into the history
        self.earlier: dict[str, Scorecard] = {}  # results of the history that a page has read, by digest
        self._finished, self._clock, self._seen = threading.Event(), clock, clock()
        self._job = Job(show=self._show)

    @property
    def running(self) -> bool:
        return not self._finished.is_set()

    @property
    def stopping(self) -> bool:
        return self.running and self._job.cancel.is_set()

    def stop(self) -> None:
        """Ask it to end; no result is made of what is done."""
        self._job.cancel.set()

    def watch(self, seconds: float = 0.0) -> bool:
        """Say that somebody looks at it, and wait for at most so long; whether it is finished."""
        self._seen = self._clock()
        return self._finished.wait(seconds)

    def work(self, load: Load, cache: AnswerCache | None) -> None:
        """Read and run the suite; never raises."""
        begun = time.monotonic()
        try:
            file = read_suite(self.source.content, self.source.name)
            resolver = self.source.resolver(demo=self.demo)
            self.hold(run(file, resolver, self._job, choice=self.source.choice, cache=cache, load=load))
        except Cancelled:
            self.problem = STOPPED
        except RefusalCoreError as error:
            self.problem = str(error)
        except MemoryError:
            self.problem = "There is not enough memory for this suite."
        except Exception:
            logging.getLogger(__name__).exception("a suite failed")
            self.problem = FAILED
        self.seconds = time.monotonic() - begun
        self.source = replace(self.source, uploads={})
        give_back()
        self._finished.set()

    def hold(self, scorecard: Scorecard) -> None:
        """Take the result in, and what every report of it begins with."""
        self.scorecard, self.text = scorecard, json_text(scorecard)
        self.digest = hashlib.sha256(self.text.encode()).hexdigest()

    def finish(self, scorecard: Scorecard) -> Task:
        """A result that was there already."""
        self.hold(scorecard)
        self._finished.set()
        return self

    def _show(self, now: Progress) -> None:
        self.progress = now
        most = {"exchanges": limits.DEMO_BATCH_ROWS, "rows": limits.DEMO_SUITE_ROWS}.get(now.unit)
        if self.demo and most is not None and (now.total or 0) > most:
            raise InputError(
                f"it asks for {now.total:,} {now.unit}",
                where=self.source.name,
                why=f"the demo takes at most {most:,}",
                fix="run it on your own machine",
            )
        if self._clock() - self._seen > UNWATCHED_SECONDS:
            self.stop()


class Shelf:
    """Tasks by token, the last used last. Holds at most `kept` of them, and at most `at_once` that run."""

    def __init__(self, kept: int = limits.SCORECARDS_KEPT, at_once: int = limits.SCORECARDS_AT_ONCE) -> None:
        self._kept, self._at_once = kept, at_once
        self._tasks: dict[str, Task] = {}
        self._turn = threading.Lock()

    def start(self, source: Source, load: Load, *, demo: bool, answers: Callable[[], AnswerCache | None]) -> Task:
        """A new task, already running. Raises WorkError when too many run."""
        task = Task(source, demo=demo)
        with self._turn:
            if sum(one.running for one in self._tasks.values()) >= self._at_once:
                raise WorkError(BUSY)
            self._hold(task)
        threading.Thread(target=task.work, args=(load, answers()), daemon=True).start()
        return task

    def put(self, source: Source, scorecard: Scorecard) -> Task:
        """A task that is finished: a result out of the store."""
        task = Task(source).finish(scorecard)
        with self._turn:
            self._hold(task)
        return task

    def get(self, token: str | None) -> Task | None:
        """The task, None when there is none of that token (any more)."""
        with self._turn:
            if found := self._tasks.pop(token, None):
                self._tasks[token] = found
            return found

    def _hold(self, task: Task) -> None:
        """Take it in, and forget finished ones that are over `kept`, the longest unused first."""
        finished = [token for token, one in self._tasks.items() if not one.running]
        for token in finished[: max(0, len(self._tasks) + 1 - self._kept)]:
            del self._tasks[token]
        self._tasks[task.token] = task


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
