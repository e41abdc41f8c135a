"""Labelled predictions of one checkpoint, item by item: what every score and comparison is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import InputError


@dataclass(frozen=True, eq=False)
class Items:
    """Predictions of one checkpoint over items with known classes. All arrays have length n and are read-only.

    `true` and `predicted` are places in `labels`. `probabilities` has shape [n, k], k classes, each 0 to 1 and each row
    summing to 1 within rounding; None when the file has none. `groups` numbers the cluster of each item (the prompt or
    conversation that it belongs to), which is resampled as a whole; None where every item stands alone.

    Raises InputError for an id twice, a place outside `labels`, lengths that differ, and numbers that are no
    probabilities.
    """

    labels: tuple[str, ...]
    ids: tuple[str, ...]
    true: NDArray[np.integer]
    predicted: NDArray[np.integer]
    probabilities: NDArray[np.float64] | None = None
    groups: NDArray[np.integer] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "ids", tuple(self.ids))
        if not self.labels or len(set(self.labels)) < len(self.labels):
            raise InputError("class names must be given, each once", where="labels", why=f"they are {self.labels!r}")
        if len(set(self.ids)) < len(self.ids):
            seen: set[str] = set()
            twice = next(i for i in self.ids if i in seen or seen.add(i))
            raise InputError(f'the id "{twice}" is there twice', where="ids", fix="give each item its own id")
        for name in ("true", "predicted", "groups"):
            self._places(name)
        self._check_probabilities()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def clustered(self) -> bool:
        """Whether some items belong together, so that they are not independent."""
        return self.groups is not None and len(np.unique(self.groups)) < len(self)

    @property
    def matrix(self) -> NDArray[np.int64]:
        """Counts [k, k]: rows are the true class, columns the predicted one."""
        k = len(self.labels)
        return np.bincount(self.true * k + self.predicted, minlength=k * k).reshape(k, k)

    def take(self, rows: NDArray | Sequence[int] | slice) -> Items:
        """The part of the items at `rows` (places, a mask, or a slice), in that order."""
        at = np.arange(len(self))[rows if isinstance(rows, slice) else np.asarray(rows)]
        part = (None if a is None else a[at] for a in (self.probabilities, self.groups))
        return Items(self.labels, tuple(self.ids[i] for i in at), self.true[at], self.predicted[at], *part)

    def relabelled(self, labels: Sequence[str]) -> Items:
        """The same items over `labels`, which hold all of ours: in another order, or with more classes."""
        labels = tuple(labels)
        if labels == self.labels:
            return self
        place = np.array([labels.index(label) for label in self.labels])
        wider = None
        if self.probabilities is not None:
            wider = np.zeros((len(self), len(labels)))
            wider[:, place] = self.probabilities
        return Items(labels, self.ids, place[self.true], place[self.predicted], wider, self.groups)

    def _places(self, name: str) -> None:
        given = getattr(self, name)
        if given is None and name == "groups":
            return
        array = np.asarray(given)
        if array.shape != (len(self.ids),) or (array.size and array.dtype.kind not in "iu"):
            raise InputError(f"one whole number an item is needed, n = {len(self.ids)}", where=name)
        array = array.astype(np.int64)
        if name != "groups" and array.size and not 0 <= array.min() <= array.max() < len(self.labels):
            raise InputError(f"a place outside the {len(self.labels)} labels", where=name)
        array.flags.writeable = False
        object.__setattr__(self, name, array)

    def _check_probabilities(self) -> None:
        if self.probabilities is None:
            return
        array = np.array(self.probabilities, dtype=np.float64)
        shape = (len(self.ids), len(self.labels))
        if array.shape != shape:
            raise InputError(f"shape {shape} is needed, one row an item and one column a class", where="probabilities")
        # float32 sums over many classes stray by some 1e-6; files with rounded numbers by a few 1e-3.
        good = ((array >= 0) & (array <= 1 + 1e-5)).all(axis=1) & (np.abs(array.sum(axis=1) - 1) < 0.02)
        if not good.all():
            row = int(np.argmin(good))
            raise InputError(
                "numbers that are no probabilities",
                where=f'the item "{self.ids[row]}"',
                why="each must be from 0 to 1 and their sum 1",
            )
        array.flags.writeable = False
        object.__setattr__(self, "probabilities", array)
