"""Long work in threads, and what it found, for all sessions: kept by token for as long as the shelf has room.

A session remembers only a token that nobody guesses. The work goes on over reruns and page changes; what nobody looks
at any more is stopped. Imports no streamlit.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from refusal_core.errors import Cancelled, RefusalCoreError, WorkError
from refusal_core.jobs import Job, Progress
from refusal_core.memory import give_back

TOKEN_BYTES = 16  # nobody guesses the address of somebody else's work
UNWATCHED_SECONDS = 600  # a hidden browser tab still asks once a minute


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


class Task:
    """One piece of work: `progress` while it runs, then what a subclass made of it, or `problem`, one sentence."""

    noun = "task"
    stopped = "Stopped by the user."
    failed = "This could not be done: an error of this program, which its log describes."

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.token = new_token()
        self.problem: str | None = None
        self.progress: Progress | None = None
        self.seconds = 0.0
        self._finished, self._clock, self._seen = threading.Event(), clock, clock()
        self._job = Job(show=self._show)

    @property
    def running(self) -> bool:
        return not self._finished.is_set()

    @property
    def stopping(self) -> bool:
        return self.running and self._job.cancel.is_set()

    def stop(self) -> None:
        """Ask it to end."""
        self._job.cancel.set()

    def watch(self, seconds: float = 0.0) -> bool:
        """Say that somebody looks at it, and wait for at most so long; whether it is finished."""
        self._seen = self._clock()
        return self._finished.wait(seconds)

    def _finish(self, work: Callable[[], None]) -> None:
        """Do `work` and be finished, however it ends; never raises."""
        begun = time.monotonic()
        try:
            work()
        except Cancelled:
            self.problem = self.stopped
        except RefusalCoreError as error:
            self.problem = str(error)
        except MemoryError:
            self.problem = f"There is not enough memory for this {self.noun}."
        except Exception:
            logging.getLogger(__name__).exception("a %s failed", self.noun)
            self.problem = self.failed
        self.seconds = time.monotonic() - begun
        self._let_go()
        give_back()
        self._finished.set()

    def _let_go(self) -> None:
        """Forget what only the work needed, such as uploaded files."""

    def _look(self) -> None:
        """Stop when nobody has looked for long."""
        if self._clock() - self._seen > UNWATCHED_SECONDS:
            self.stop()

    def _show(self, now: Progress) -> None:
        self.progress = now
        self._look()


class Held(Protocol):
    """What a shelf can hold."""

    token: str

    @property
    def running(self) -> bool: ...


Kept = TypeVar("Kept", bound=Held)


class Shelf(Generic[Kept]):
    """Things by token, the last used last. Holds at most `kept` of them, and at most `at_once` that run."""

    busy = "As much work as this server takes at once is being done: try again in a minute."

    def __init__(self, kept: int, at_once: int = 0) -> None:
        self._kept, self._at_once = kept, at_once
        self._held: dict[str, Kept] = {}
        self._lock = threading.Lock()

    def get(self, token: str | None) -> Kept | None:
        """The thing, None when there is none of that token (any more)."""
        with self._lock:
            if found := self._held.pop(token, None):
                self._held[token] = found
            return found

    def put(self, one: Kept) -> Kept:
        """Take it in, and forget what does not run, the longest unused first, until the rest fits."""
        with self._lock:
            self._hold(one)
        return one

    def _begin(self, task: Kept, work: Callable[[], None]) -> Kept:
        """Take `task` in and do its `work` in a thread. Raises WorkError when too many run."""
        with self._lock:
            if sum(held.running for held in self._held.values()) >= self._at_once:
                raise WorkError(self.busy)
            self._hold(task)
        threading.Thread(target=work, daemon=True).start()
        return task

    def _hold(self, one: Kept) -> None:
        self._held[one.token] = one
        for token in [token for token, held in self._held.items() if held is not one and not held.running]:
            if self._fits():
                return
            del self._held[token]

    def _fits(self) -> bool:
        return len(self._held) <= self._kept
