"""Studies under way or finished, for all sessions: one at a time, the others wait. Imports no streamlit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from refusal_core import limits
from refusal_core.jobs import Job
from ui import shelf

Result = TypeVar("Result")
FAILED = "The study could not be run: an error of this program, which its log describes."

# The study sets the number of BLAS threads of the whole process while it runs: two at once would undo each other's.
_TURN = threading.Lock()


class Task(shelf.Task, Generic[Result]):
    """One study, or work beside one: ends with `result` or `problem`."""

    noun, failed = "study", FAILED

    def __init__(
        self, title: str, work: Callable[[Job], Result], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock=clock)
        self.title = title
        self.result: Result | None = None
        self.waiting = True  # for its turn
        self._work: Callable[[Job], Result] | None = work

    def run(self) -> None:
        """Wait for the turn and work; never raises."""
        self._finish(self._in_turn)

    def _in_turn(self) -> None:
        while not _TURN.acquire(timeout=0.1):
            self._look()
            self._job.check()
        try:
            self.waiting = False
            self.result = self._work(self._job)
        finally:
            _TURN.release()

    def _let_go(self) -> None:
        self._work = None  # and with it the uploaded files


class Shelf(shelf.Shelf[Task]):
    """The studies. `waiting` bounds those that are not finished."""

    busy = "As many studies as this server takes at once are waiting: try again in a minute."

    def __init__(self, kept: int = limits.STUDIES_KEPT, waiting: int = limits.STUDIES_WAITING) -> None:
        super().__init__(kept, waiting)

    def start(self, title: str, work: Callable[[Job], Result]) -> Task[Result]:
        """A new task, already under way or waiting for its turn. Raises WorkError when too many are."""
        task = Task(title, work)
        return self._begin(task, task.run)

    def keep(self, title: str, result: Result) -> Task[Result]:
        """A finished task that holds `result`: a study out of the store."""
        task = Task(title, lambda job: result)
        task.run()
        return self.put(task)
