"""Batches that are being scored or were, for all sessions. Imports no streamlit."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from refusal_core import limits
from refusal_core.errors import Cancelled, InputError
from refusal_core.exchange_files import read_exchanges
from refusal_core.exchanges import BadRow, Exchange
from ui import shelf
from ui.checkpoints import Choice

if TYPE_CHECKING:
    from refusal_core.classifier import Classifier
    from refusal_core.classifier.batch import Batch

SAMPLE, UPLOAD, FILE = "sample", "upload", "file"
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


class Task(shelf.Task):
    """One batch: ends with `batch` or `problem`. `labels` are corrections by row."""

    noun, stopped, failed = "batch", STOPPED_EMPTY, FAILED

    def __init__(self, source: Source, choice: Choice, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock=clock)
        self.name, self.kind = source.name, source.kind
        self.path = source.content if isinstance(source.content, Path) else source.path
        self.columns, self.every_turn = dict(source.columns), source.every_turn
        self.choice = choice
        self.batch: Batch | None = None
        self.characters = 0  # of all texts that were read
        self.labels: dict[int, str] = {}
        self.latest_view: tuple | None = None  # what a page drew of it last, with the settings of that

    def again(self) -> Source:
        """Its rows, to be scored by another checkpoint."""
        rows = tuple(row.row for row in self.batch.rows)
        return Source(self.kind, self.name, rows, self.columns, self.every_turn, self.path)

    def work(self, classifier: Classifier, source: Source, most: int) -> None:
        """Read and score, and keep what is done when it is stopped; never raises."""

        def score() -> None:
            from refusal_core.classifier.batch import score_batch

            batch = score_batch(classifier, self._read(source), self._job, most=most)
            if not batch.rows:
                raise Cancelled
            self.batch = batch

        self._finish(score)

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


class Shelf(shelf.Shelf[Task]):
    """The batches, as many as fit by number and by the length of their texts."""

    busy = "As many batches as this server takes at once are being scored: try again in a minute."

    def __init__(self, kept: int = limits.BATCHES_KEPT, at_once: int = limits.BATCHES_AT_ONCE) -> None:
        super().__init__(kept, at_once)

    def start(self, source: Source, choice: Choice, classifier: Classifier, most: int) -> Task:
        """A new task, already running. Raises WorkError when too many run."""
        task = Task(source, choice)
        return self._begin(task, lambda: task.work(classifier, source, most))

    def _fits(self) -> bool:
        characters = sum(one.characters for one in self._held.values())
        return super()._fits() and characters <= limits.BATCHES_KEPT_CHARACTERS
