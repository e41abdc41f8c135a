"""Studies under way or finished: each in a thread of its own, one at a time, kept for as long as the shelf has room.

A session remembers only a token that nobody guesses. The work goes on over reruns and page changes; what nobody looks
at any more is stopped. Imports no streamlit.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from refusal_core import limits
from refusal_core.errors import Cancelled, RefusalCoreError, WorkError
from refusal_core.jobs import Job, Progress
from refusal_core.memory import give_back

Result = TypeVar("Result")
TOKEN_BYTES = 16
UNWATCHED_SECONDS = 600  # a hidden browser tab still asks once a minute
STOPPED = "Stopped by the user."
FAILED = "The study could not be run: an error of this program, which its log describes."
BUSY = "As many studies as this server takes at once are waiting: try again in a minute."

# The study sets the number of BLAS threads of the whole process while it runs: two at once would undo each other's.
_TURN = threading.Lock()


class Task(Generic[Result]):
    """One piece of work: `progress` while it runs, then `result` or `problem`, one sentence."""

    def __init__(self, title: str, work: Callable[[Job], Result], *, clock=time.monotonic) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.title = title
        self.result: Result | None = None
        self.problem: str | None = None
        self.progress: Progress | None = None
        self.waiting = True  # for its turn
        self.seconds = 0.0
        self._work: Callable[[Job], Result] | None = work
        self._finished, self._clock, self._seen = threading.Event(), clock, clock()
        self._job = Job(show=self._show)

    @property
    def running(self) -> bool:
        return not self._finished.is_set()

    @property
    def stopping(self) -> bool:
        return self.running and self._job.cancel.is_set()

    def stop(self) -> None:
        """Ask it to end; nothing of it is kept."""
        self._job.cancel.set()

    def watch(self, seconds: float = 0.0) -> bool:
        """Say that somebody looks at it, and wait for at most so long; whether it is finished."""
        self._seen = self._clock()
        return self._finished.wait(seconds)

    def run(self) -> None:
        """Wait for the turn and work; never raises."""
        try:
            while not _TURN.acquire(timeout=0.1):
                self._look()
            try:
                begun, self.waiting = time.monotonic(), False
                self.result = self._work(self._job)
                self.seconds = time.monotonic() - begun
            finally:
                _TURN.release()
        except Cancelled:
            self.problem = STOPPED
        except RefusalCoreError as error:
            self.problem = str(error)
        except MemoryError:
            self.problem = "There is not enough memory for this study."
        except Exception:
            logging.getLogger(__name__).exception("a study failed")
            self.problem = FAILED
        self._work = None  # and with it the uploaded files
        give_back()
        self._finished.set()

    def _look(self) -> None:
        if self._clock() - self._seen > UNWATCHED_SECONDS:
            self.stop()
        self._job.check()

    def _show(self, now: Progress) -> None:
        self.progress = now
        self._look()


class Shelf:
    """Tasks by token, the last used last. Holds at most `kept` of them, and at most `waiting` that are not finished."""

    def __init__(self, kept: int = limits.STUDIES_KEPT, waiting: int = limits.STUDIES_WAITING) -> None:
        self._kept, self._waiting = kept, waiting
        self._tasks: dict[str, Task] = {}
        self._lock = threading.Lock()

    def start(self, title: str, work: Callable[[Job], Result]) -> Task[Result]:
        """A new task, already under way or waiting for its turn. Raises WorkError when too many are."""
        task = Task(title, work)
        with self._lock:
            if sum(one.running for one in self._tasks.values()) >= self._waiting:
                raise WorkError(BUSY)
            self._hold(task)
        threading.Thread(target=task.run, daemon=True).start()
        return task

    def put(self, title: str, result: Result) -> Task[Result]:
        """A finished task that holds `result`: a study out of the store."""
        task = Task(title, lambda job: result)
        task.run()
        with self._lock:
            self._hold(task)
        return task

    def get(self, token: str | None) -> Task | None:
        """The task, None when there is none of that token (any more)."""
        with self._lock:
            if found := self._tasks.pop(token, None):
                self._tasks[token] = found
            return found

    def _hold(self, task: Task) -> None:
        """Take it in, and forget the finished ones that are over `kept`, the longest unused first."""
        self._tasks[task.token] = task
        finished = [token for token, one in self._tasks.items() if not one.running and one is not task]
        for token in finished[: max(0, len(finished) + 1 - self._kept)]:
            del self._tasks[token]
