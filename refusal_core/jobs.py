"""Progress, cancel and resume for long work, without knowing who shows it.

A long function takes `job: Job | None = None` and calls `job.advance(n)` after each piece of work. A command passes a
job that draws a bar on stderr, a page one that moves `st.progress`; both may set `job.cancel`.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self

from refusal_core.errors import Cancelled, InputError


@dataclass(frozen=True)
class Progress:
    """State of a job. `total` is None while unknown; `seconds` since `start`, or since the Job was made."""

    done: int
    total: int | None
    unit: str
    seconds: float

    @property
    def rate(self) -> float:
        """Units a second, 0.0 before the first one."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        if self.total is None or not self.rate:
            return None
        return max(self.total - self.done, 0) / self.rate

    def __str__(self) -> str:
        total = "" if self.total is None else f" of {self.total:,}"
        rate = f"{self.rate:.3g}" if self.rate < 999.5 else f"{self.rate:,.0f}"
        left = "" if self.seconds_left is None else f", about {show_seconds(self.seconds_left)} left"
        return f"{self.done:,}{total} {self.unit}, {rate} {self.unit}/s{left}"


@dataclass
class Job:
    """One piece of long work. `show` is called with a Progress at most every `every` seconds, and at the end."""

    show: Callable[[Progress], None] | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    every: float = 0.2
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._begun, self._shown = self.clock(), float("-inf")
        self._done, self._total, self._unit = 0, None, "items"

    def start(self, total: int | None, unit: str) -> None:
        """Begin (again) at zero of `total` units."""
        self._begun, self._shown = self.clock(), float("-inf")
        self._done, self._total, self._unit = 0, total, unit
        self.advance(0)

    def advance(self, count: int = 1) -> None:
        """Count finished units. Raises Cancelled when the user asked to stop: call it between pieces of work."""
        self._done += count
        now = self.clock()
        finished = self._total is not None and self._done >= self._total
        if self.show and (finished or now - self._shown >= self.every):
            self._shown = now
            self.show(Progress(self._done, self._total, self._unit, now - self._begun))
        self.check()

    def check(self) -> None:
        """Raise Cancelled when the user asked to stop."""
        if self.cancel.is_set():
            raise Cancelled


def show_seconds(seconds: float) -> str:
    """For example "12 s", "3 min", "1 h 20 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class Journal:
    """Finished pieces of a job in an append-only JSON-lines file, so that a killed job goes on where it was.

    The first line holds `settings`; a journal of other settings is refused rather than mixed. A last line that a kill
    cut short is dropped. Use as a context manager; `done()` first, then `add()`.
    """

    def __init__(self, path: str | os.PathLike[str], settings: dict) -> None:
        self.path = Path(path)
        self.settings = json.loads(json.dumps(settings, sort_keys=True, allow_nan=False))
        self._file = None

    def done(self) -> Iterator[dict]:
        """The finished pieces in the order they were added; empty when there is no journal yet."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            if not self._read_header(file):
                return
            for line in file:
                piece = _whole_line(line)
                if piece is None:
                    return
                yield piece

    def __enter__(self) -> Self:
        keep = self._whole_bytes()
        self._file = self.path.open("ab")
        self._file.truncate(keep)
        if keep == 0:
            self.add(self.settings)
        return self

    def add(self, piece: dict) -> None:
        """Write one finished piece and hand it to the operating system at once."""
        self._file.write(_json_line(piece))
        self._file.flush()

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def delete(self) -> None:
        """Remove the file; the work is done."""
        self.path.unlink(missing_ok=True)

    def _read_header(self, file: BinaryIO) -> int:
        """Length of the first line, 0 when there is none or a kill cut it; InputError for any other first line."""
        line = file.readline()
        if line.endswith(b"\n") and _whole_line(line) == self.settings:
            return len(line)
        if _json_line(self.settings).startswith(line):
            return 0
        raise InputError(
            "the unfinished work there was begun with other settings",
            where=self.path.name,
            fix="use the same settings, or delete that file to begin anew",
        )

    def _whole_bytes(self) -> int:
        """Length up to the last line that is whole."""
        keep = 0
        if self.path.exists():
            with self.path.open("rb") as file:
                keep = self._read_header(file)
                for line in file if keep else ():
                    if _whole_line(line) is None:
                        break
                    keep += len(line)
        return keep


def _json_line(piece: dict) -> bytes:
    return json.dumps(piece, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def _whole_line(line: bytes) -> dict | None:
    if not line.endswith(b"\n"):
        return None
    try:
        piece = json.loads(line)
    except ValueError:
        return None
    return piece if isinstance(piece, dict) else None
