"""`predictions.jsonl`: one answer of a checkpoint a line, with the true class, probabilities, group, split, variant."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import InputError
from refusal_core.exchange_formats.bytes_in import opened
from refusal_core.exchange_formats.json_values import JsonError, kind_of, parse, repeated_among
from refusal_core.limits import LINE_BYTES, show_bytes
from refusal_core.runs.prediction_rows import Rows

if TYPE_CHECKING:
    from refusal_core.metrics.items import Items

KEYS = frozenset(("id", "label", "true", "probabilities", "group", "split", "variant"))


@dataclass(frozen=True, eq=False)
class Predictions:
    """The lines of one file, in its order. Arrays of length n, read-only; -1 stands for "none"."""

    file: str
    labels: tuple[str, ...]
    """Classes: our five in house order when there is no other one, else as they come in the probabilities and rows."""
    ids: tuple[str, ...]
    """The row's own, or its line number."""
    predicted: NDArray[np.int64]
    """Place in `labels`; -1 where the checkpoint gave no answer."""
    true: NDArray[np.int64]
    """Place in `labels`; -1 where the row has no true class."""
    probabilities: NDArray[np.float64] | None
    """[n, k] in the order of `labels`, NaN in rows without; None when no row has any."""
    groups: tuple[str | None, ...]
    """The prompt or conversation that an item belongs to."""
    splits: tuple[str, ...]
    """"test", "cases", …; "" where the row states none."""
    variants: tuple[str, ...]
    """The perturbation; "" for a row that is as it was."""
    texts: Mapping[int, Mapping[str, str]]
    """Row to its "prompt", "response" and "error", where the file has them."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def main_split(self) -> str:
        """The split that is meant when none is named: "test" when there is one, else the only one.

        Raises InputError when there are several others.
        """
        found = tuple(dict.fromkeys(self.splits))
        if "test" in found:
            return "test"
        if len(found) <= 1:
            return found[0] if found else ""
        shown = ", ".join(f'"{name}"' for name in found[:8])
        raise InputError(f"it holds several splits: {shown}", where=self.file, fix="name the one that is meant")

    def rows(self, split: str | None = None, variant: str | None = None) -> NDArray[np.int64]:
        """Places of the rows of a split (None: `main_split`) and a variant (None: the rows that are as they were)."""
        wanted = self.main_split if split is None else split
        pairs = enumerate(zip(self.splits, self.variants, strict=True))
        return np.array([row for row, (s, v) in pairs if s == wanted and v == (variant or "")], dtype=np.int64)

    def items(
        self, labels: tuple[str, ...] | None = None, split: str | None = None, variant: str | None = None
    ) -> Items:
        """The rows with an answer and a true class, over `labels` (None: those of the file) in that order.

        Raises InputError for an id that comes twice among them, for a class of theirs that is not in `labels`, and when
        there is no such row. Probabilities are there when every one of the rows has them.
        """
        from refusal_core.metrics.items import Items

        rows = self.rows(split, variant)
        rows = rows[(self.true[rows] >= 0) & (self.predicted[rows] >= 0)]
        if not len(rows):
            part = f'split "{split}"' if split else "the file"
            what = f"no row with an answer and a true class in {part}" + (f' of variant "{variant}"' if variant else "")
            raise InputError(what, where=self.file, fix="name another split, or a file that has true classes")
        ids = tuple(self.ids[row] for row in rows)
        self._refuse_repeated(ids)
        labels = self.labels if labels is None else tuple(labels)
        place = self._places(labels, rows)
        probabilities = None
        if self.probabilities is not None and set(labels) == set(self.labels):
            probabilities = self.probabilities[rows][:, [self.labels.index(label) for label in labels]]
            probabilities = None if np.isnan(probabilities).any() else probabilities
        return Items(
            labels=labels,
            ids=ids,
            true=place[self.true[rows]],
            predicted=place[self.predicted[rows]],
            probabilities=probabilities,
            groups=self._group_numbers(rows),
        )

    def _refuse_repeated(self, ids: tuple[str, ...]) -> None:
        if len(set(ids)) < len(ids):
            seen: set[str] = set()
            twice = next(i for i in ids if i in seen or seen.add(i))
            raise InputError(
                f'the id "{twice}" comes twice', where=self.file, why="an item counts once", fix="give each its own id"
            )

    def _places(self, labels: tuple[str, ...], rows: NDArray) -> NDArray[np.int64]:
        """Place in `labels` of each of the file's own; InputError for one that the rows use and `labels` lacks."""
        place = np.array([labels.index(label) if label in labels else -1 for label in self.labels], dtype=np.int64)
        used = np.unique(np.concatenate([self.true[rows], self.predicted[rows]]))
        if len(strange := used[place[used] < 0]):
            shown = ", ".join(f'"{self.labels[i]}"' for i in strange[:5])
            raise InputError(
                f"classes that are not among those asked for: {shown}",
                where=self.file,
                why="the classes are " + ", ".join(labels),
            )
        return place

    def _group_numbers(self, rows: NDArray) -> NDArray[np.int64] | None:
        """A row without a group is a cluster of its own; None when no row has one."""
        names = [self.groups[row] for row in rows]
        if not any(name is not None for name in names):
            return None
        numbers: dict[object, int] = {}
        keys = (("own", row) if name is None else name for row, name in zip(rows, names, strict=True))
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def read_predictions(source: Path | str | BinaryIO, name: str | None = None) -> Predictions:
    """The file, whole and without guesses. `name` stands for it in messages and as `file`.

    Raises InputError with the line for anything that is not as `docs/training_runs.md` says.
    """
    shown = name or (os.path.basename(source) if isinstance(source, str | os.PathLike) else "predictions")
    build = Rows(shown)
    with opened(source, shown) as file:
        file.refuse_foreign()
        lines = file.lines()
        while line := lines.next(LINE_BYTES + 1):
            build.line = lines.number
            if len(line) > LINE_BYTES:
                raise build.error(f"the line is longer than {show_bytes(LINE_BYTES)}")
            if line.strip():
                build.add(_object(line, build))
    return Predictions(**build.finish())


def is_prediction(row: object) -> bool:
    """Whether an object of a JSON-lines file is a row of this format; a label alone may be a data set's."""
    return has_label(row) and ("probabilities" in row or "true" in row)


def has_label(row: object) -> bool:
    """Whether an object has a label, or null in its place."""
    return isinstance(row, dict) and "label" in row and isinstance(row["label"], str | None)


def _object(line: bytes, build: Rows) -> dict:
    try:
        row = parse(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise build.error(f"the line is not UTF-8 at byte {error.start + 1:,}", fix="save the file as UTF-8") from None
    except JsonError as error:
        raise build.error(f"the line is {error}") from None
    if not isinstance(row, dict):
        raise build.error(f"the line is {kind_of(row)}, not an object")
    if twice := repeated_among(row, KEYS):
        raise build.error(f'the key "{twice}" comes twice')
    return row


def variants_of(predictions: Predictions) -> Iterator[tuple[str, str]]:
    """Every (split, variant) that has rows, in the order of the file."""
    yield from dict.fromkeys(zip(predictions.splits, predictions.variants, strict=True))
