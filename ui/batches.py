"""Batches that are being scored or were: each in a thread of its own, kept for as long as the shelf has room.

A session remembers only a batch's token. The work goes on over reruns, page changes and a reload; what nobody looks at
any more is stopped. Imports no streamlit.
"""

from __future__ import annotations

import io
import logging
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from refusal_core import limits
from refusal_core.errors import Cancelled, InputError, RefusalCoreError, WorkError
from refusal_core.exchange_files import read_exchanges
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import Job, Progress
from ui.checkpoints import Choice

if TYPE_CHECKING:
    from refusal_core.classifier import Classifier
    from refusal_core.classifier.batch import Batch

SAMPLE, UPLOAD, FILE = "sample", "upload", "file"
TOKEN_BYTES = 16  # nobody guesses the address of somebody else's batch
UNWATCHED_SECONDS = 600  # a hidden browser tab still asks once a minute
STOPPED_EMPTY = "Stopped before the first rows were classified."
FAILED = "The batch could not be scored: an error of this program, which its log describes."


@dataclass(frozen=True)
class Source:
    """A file of exchanges and how it is read. `content` is its bytes, a path below a data root, or rows read before."""

    kind: str  # SAMPLE, UPLOAD or FILE
    name: str  # as a reader sees it
    content: bytes | Path | tuple[Exchange | BadRow, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    every_turn: bool = False
    path: Path | None = None  # where rows that were read before came from

    def rows(self) -> Iterator[Exchange | BadRow]:
        if isinstance(self.content, tuple):
            return iter(self.content)
        content = io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content
        return read_exchanges(content, name=self.name, columns=self.columns, every_turn=self.every_turn)


class Task:
    """One batch: `progress` while it runs, then `batch` or `problem`, one sentence. `labels` are corrections by row."""

    def __init__(self, source: Source, choice: Choice, *, clock=time.monotonic) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.name, self.kind = source.name, source.kind
        self.path = source.content if isinstance(source.content, Path) else source.path
        self.columns, self.every_turn = dict(source.columns), source.every_turn
        self.choice = choice
        self.batch: Batch | None = None
        self.problem: str | None = None
        self.progress: Progress | None = None
        self.seconds = 0.0
        self.characters = 0  # of all texts that were read
        self.labels: dict[int, str] = {}
        self.latest_view: tuple | None = None  # what a page drew of it last, with the settings of that
        self._finished, self._clock, self._seen = threading.Event(), clock, clock()
        self._job = Job(show=self._show)

    @property
    def running(self) -> bool:
        return not self._finished.is_set()

    @property
    def stopping(self) -> bool:
        return self.running and self._job.cancel.is_set()

    def stop(self) -> None:
        """Ask it to end with the rows that are finished."""
        self._job.cancel.set()

    def watch(self, seconds: float = 0.0) -> bool:
        """Say that somebody looks at it, and wait for at most so long; whether it is finished."""
        self._seen = self._clock()
        return self._finished.wait(seconds)

    def work(self, classifier: Classifier, source: Source, most: int) -> None:
        """Read and score; never raises."""
        from refusal_core.classifier.batch import score_batch

        begun = time.monotonic()
        try:
            batch = score_batch(classifier, self._read(source), self._job, most=most)
            self.batch, self.problem = (batch, None) if batch.rows else (None, STOPPED_EMPTY)
        except Cancelled:
            self.problem = STOPPED_EMPTY
        except RefusalCoreError as error:
            self.problem = str(error)
        except MemoryError:
            self.problem = "There is not enough memory for this batch."
        except Exception:
            logging.getLogger(__name__).exception("a batch failed")
            self.problem = FAILED
        self.seconds = time.monotonic() - begun
        self._finished.set()

    def _read(self, source: Source) -> Iterator[Exchange | BadRow]:
        for row in source.rows():
            self._job.check()
            self.characters += len(row.prompt) + len(row.response) if isinstance(row, Exchange) else len(row.error)
            if self.characters > limits.BATCH_CHARACTERS:
                raise InputError(
                    f"its texts have more than {limits.BATCH_CHARACTERS:,} characters",
                    where=source.name,
                    why="a page takes no more",
                    fix="score a part of the file, or all of it in a terminal: python -m refusal_core.cli classify",
                )
            yield row

    def _show(self, now: Progress) -> None:
        self.progress = now
        if self._clock() - self._seen > UNWATCHED_SECONDS:
            self.stop()


class Shelf:
    """Tasks by token, the last used last. Holds at most `kept` of them, and at most `at_once` that run."""

    def __init__(self, kept: int = limits.BATCHES_KEPT, at_once: int = limits.BATCHES_AT_ONCE) -> None:
        self._kept, self._at_once = kept, at_once
        self._tasks: dict[str, Task] = {}
        self._turn = threading.Lock()

    def start(self, source: Source, choice: Choice, classifier: Classifier, most: int) -> Task:
        """A new task, already running. Raises WorkError when too many run."""
        task = Task(source, choice)
        with self._turn:
            if sum(one.running for one in self._tasks.values()) >= self._at_once:
                raise WorkError("As many batches as this server takes at once are being scored: try again in a minute.")
            self._tasks[task.token] = task
            self._make_room()
        threading.Thread(target=task.work, args=(classifier, source, most), daemon=True).start()
        return task

    def get(self, token: str | None) -> Task | None:
        """The task, None when there is none of that token (any more)."""
        with self._turn:
            if found := self._tasks.pop(token, None):
                self._tasks[token] = found
            return found

    def _make_room(self) -> None:
        """Forget finished tasks, the longest unused first, until the rest fits."""
        for token in [token for token, one in self._tasks.items() if not one.running]:
            characters = sum(one.characters for one in self._tasks.values())
            if len(self._tasks) <= self._kept and characters <= limits.BATCHES_KEPT_CHARACTERS:
                return
            del self._tasks[token]
