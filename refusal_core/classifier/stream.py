"""Answer rows as they are read, chunk by chunk, in constant memory.

Reading and tokenising run ahead on their own thread while the model computes. Identical exchanges are computed once, as
long as they are among the latest KEPT_ANSWERS different ones. Which rows are computed together depends on the rows and
the chunk alone, never on timing, so that the same rows give the same bytes, also when a stopped run goes on.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from refusal_core.classifier import texts
from refusal_core.classifier.matcher import Match, match
from refusal_core.classifier.portions import chunks
from refusal_core.classifier.predict import BATCH_SIZE, CHUNK_ROWS, Classifier, Encoded
from refusal_core.classifier.result import Classification
from refusal_core.errors import InputError
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import Job
from refusal_core.labels import DEFAULT_FOLD, Fold

KEPT_ANSWERS = 20_000  # about 1 kB each
_AHEAD = 1  # chunks that wait tokenised
_LOOK_AROUND = 0.2  # seconds between looks at whether to stop


@dataclass(frozen=True, slots=True)
class Answered:
    """A row with its answer. `matched` is the phrase matcher's, None for a row that is no exchange."""

    row: Exchange | BadRow
    answer: Classification
    matched: Match | None

    @property
    def confidence(self) -> float | None:
        """Probability of the answered class, 0 to 1; None without an answer."""
        return self.answer.probabilities[self.answer.label] if self.answer.label is not None else None

    def disagrees(self, fold: Fold = DEFAULT_FOLD) -> bool:
        """Whether one of model and matcher calls it refused and the other does not; False without an answer."""
        if self.answer.label is None or self.matched is None:
            return False
        return fold.is_refused(self.answer.label) != fold.is_refused(self.matched.label)


def answer_rows(
    classifier: Classifier,
    rows: Iterable[Exchange | BadRow],
    *,
    chunk: int = CHUNK_ROWS,
    finished: Iterable[Sequence[Classification]] = (),
    job: Job | None = None,
    batch_size: int = BATCH_SIZE,
    **options,
) -> Iterator[list[Answered]]:
    """The answers in the order of `rows`, in lists of at most `chunk`. `options` are those of `Classifier.predict`.

    `finished` holds the answers of the first lists of an earlier run over the same rows with the same options and
    chunk: they are taken as they are. `rows` is read on another thread. Raises InputError for options out of range and
    for `finished` that does not fit, Cancelled when `job` is cancelled, and what reading `rows` raises.
    """
    classifier.check_options(batch_size=batch_size, **options)
    job = job or Job()
    reader = _Reader(classifier, rows, chunk, iter(finished), job, options)
    kept: dict[bytes, Classification] = {}
    try:
        for part in reader:
            if part.finished is None:
                fresh = classifier.answer(part.encoded, batch_size=batch_size, job=job)
                answers = dict(zip(part.fresh, fresh, strict=True))
            else:
                answers = {at: part.finished[at] for at in part.fresh}
            job.advance(len(part.rows) - (len(part.fresh) if part.finished is None else 0))
            for at, answer in answers.items():
                kept[part.keys[at]] = replace(answer, reasoning=None)
            yield [
                Answered(row, _answer_of(row, answers.get(at), kept.get(part.keys[at])), part.matched[at])
                for at, row in enumerate(part.rows)
            ]
            for key in part.forget:
                del kept[key]
    finally:
        reader.stop()


def _answer_of(row: Exchange | BadRow, computed: Classification | None, kept: Classification | None) -> Classification:
    if isinstance(row, BadRow):
        return Classification(row.id, None, None, None, error=row.error)
    if computed is not None:
        return replace(computed, id=row.id)
    return replace(kept, id=row.id, reasoning=texts.split_reasoning(texts.clean(row.response)).reasoning)


@dataclass(slots=True)
class _Part:
    """A chunk to compute. `fresh` are the positions to compute, the others are BadRows or answered before."""

    rows: list[Exchange | BadRow]
    keys: list[bytes]  # of the exchanges; b"" for a BadRow
    matched: list[Match | None]
    fresh: list[int]
    forget: list[bytes]
    encoded: Encoded | None = None
    finished: Sequence[Classification] | None = None


@dataclass
class _Reader:
    """Reads, finds repeats and tokenises on its own thread, a bounded number of chunks ahead."""

    classifier: Classifier
    rows: Iterable[Exchange | BadRow]
    chunk: int
    finished: Iterator[Sequence[Classification]]
    job: Job
    options: dict
    _seen: OrderedDict[bytes, None] = field(default_factory=OrderedDict)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _at_work: threading.Lock = field(default_factory=threading.Lock)

    def __iter__(self) -> Iterator[_Part]:
        self._queue: queue.Queue = queue.Queue(_AHEAD)
        # A daemon: reading from a pipe may never end, and must not keep a stopped process alive.
        threading.Thread(target=self._run, name="read-and-tokenise", daemon=True).start()
        while True:
            try:
                item = self._queue.get(timeout=_LOOK_AROUND)
            except queue.Empty:
                self.job.check()
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    def stop(self) -> None:
        """Begin no further part and wait for the one in work: Python aborts when it ends under the tokenizers."""
        self._stopped.set()
        with self._at_work:
            pass

    def _run(self) -> None:
        try:
            for rows in chunks(self.rows, self.chunk):
                with self._at_work:
                    part = None if self._stopped.is_set() else self._part(rows)
                if part is None or not self._put(part):
                    return
            self._put(None)
        except BaseException as problem:  # also a panic of the tokenizers library: raised where the answers are read
            self._put(problem)

    def _put(self, item: _Part | BaseException | None) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=_LOOK_AROUND)
                return True
            except queue.Full:
                continue
        return False

    def _part(self, rows: list[Exchange | BadRow]) -> _Part:
        keys = [_key(row) if isinstance(row, Exchange) else b"" for row in rows]
        fresh = []
        for at, key in enumerate(keys):
            if not key:
                continue
            if key not in self._seen:
                fresh.append(at)
            self._seen[key] = None
            self._seen.move_to_end(key)
        forget = [self._seen.popitem(last=False)[0] for _ in range(len(self._seen) - KEPT_ANSWERS)]
        matched = [match(row.response) if isinstance(row, Exchange) else None for row in rows]
        part = _Part(rows, keys, matched, fresh, forget)
        part.finished = next(self.finished, None)
        if part.finished is None:
            part.encoded = self.classifier.encode([rows[at] for at in fresh], job=self.job, **self.options)
        elif len(part.finished) != len(rows):
            raise InputError(
                "the unfinished work does not fit the rows", why="the same input and settings were expected"
            )
        return part


def _key(row: Exchange) -> bytes:
    """Equal for exchanges with equal texts."""
    digest = hashlib.blake2b(digest_size=16)
    for text in (row.prompt, row.response):
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()
