"""`predictions.jsonl`: one answer of a checkpoint a line, with the true class, probabilities, group, split, variant."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import InputError, one_line
from refusal_core.exchange_formats.bytes_in import opened
from refusal_core.exchange_formats.json_values import JsonError, kind_of, parse, repeated_among
from refusal_core.labels import LABELS
from refusal_core.limits import LINE_BYTES, PREDICTION_CLASSES, PREDICTION_ROWS, show_bytes

if TYPE_CHECKING:
    from refusal_core.metrics.items import Items

KEYS = frozenset(("id", "label", "true", "probabilities", "group", "split", "variant"))
_SUM_TOLERANCE = 1e-2  # probabilities that were written with few digits
_TEXTS = ("prompt", "response", "error")


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
        if len(found) == 1:
            return found[0]
        shown = ", ".join(f'"{name}"' for name in found[:8])
        raise InputError(f"it holds several splits: {shown}", where=self.file, fix="name the one that is meant")

    def rows(self, split: str | None = None, variant: str | None = None) -> NDArray[np.int64]:
        """Places of the rows of a split (None: `main_split`) and a variant (None: the rows that are as they were)."""
        wanted = (self.main_split if len(self) else "") if split is None else split
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
    build = _Builder(shown)
    with opened(source, shown) as file:
        file.refuse_foreign()
        lines = file.lines()
        while line := lines.next(LINE_BYTES + 1):
            build.line = lines.number
            if len(line) > LINE_BYTES:
                raise build.error(f"the line is longer than {show_bytes(LINE_BYTES)}")
            if line.strip():
                build.add(_object(line, build))
    return build.finish()


def is_prediction(row: object) -> bool:
    """Whether an object of a JSON-lines file is a row of this format: `label` or `true`, beside one more of its keys."""
    if not isinstance(row, dict) or not isinstance(row.get("label"), str | None) or "label" not in row:
        return False
    return len(KEYS & row.keys()) >= 2 and ("probabilities" in row or "true" in row or "id" in row)


def _object(line: bytes, build: _Builder) -> dict:
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


class _Builder:
    """Rows become columns as they come."""

    def __init__(self, file: str) -> None:
        self.file, self.line = file, 0
        self.place: dict[str, int] = {}
        self.ids: list[str] = []
        self.predicted, self.true = array("q"), array("q")
        self.groups: list[str | None] = []
        self.splits: list[str] = []
        self.variants: list[str] = []
        self.texts: dict[int, dict[str, str]] = {}
        self.classes: tuple[str, ...] | None = None  # of the probabilities
        self.numbers = array("d")

    def error(self, what: str, *, why: str = "", fix: str = "") -> InputError:
        return InputError(what, where=f"{self.file}, line {self.line:,}", why=why, fix=fix)

    def add(self, row: dict) -> None:
        n = len(self.ids)
        if n >= PREDICTION_ROWS:
            raise self.error(f"more than {PREDICTION_ROWS:,} rows", fix="split the file")
        given = row.get("id")
        if isinstance(given, bool) or not isinstance(given, str | int | None):
            raise self.error(f'"id" is {kind_of(given)}', why="text or a whole number is expected")
        probabilities = self._probabilities(row.get("probabilities"), n)  # first: they give the order of the classes
        label = self._class(row, "label")
        if label < 0 and "label" not in row:
            raise self.error('there is no "label"', why="the predicted class, or null, is expected")
        true = self._class(row, "true")
        if probabilities and label >= 0 and (name := row["label"]) not in self.classes:
            raise self.error(f'"label" is "{one_line(name, 80)}", which has no probability')
        self.ids.append(str(self.line if given is None else given))
        self.predicted.append(label)
        self.true.append(true)
        self.groups.append(self._text(row, "group") or None)
        self.splits.append(self._text(row, "split"))
        self.variants.append(self._text(row, "variant"))
        texts = {key: row[key] for key in _TEXTS if isinstance(row.get(key), str)}
        if texts:
            self.texts[n] = texts

    def _class(self, row: dict, key: str) -> int:
        name = row.get(key)
        if name is None:
            return -1
        if not isinstance(name, str) or not name.strip():
            what = "blank" if isinstance(name, str) else kind_of(name)
            raise self.error(f'"{key}" is {what}', why="the name of a class is expected")
        return self._place(name)

    def _place(self, name: str) -> int:
        found = self.place.setdefault(name, len(self.place))
        if found >= PREDICTION_CLASSES:
            raise self.error(f"more than {PREDICTION_CLASSES:,} classes")
        return found

    def _text(self, row: dict, key: str) -> str:
        value = row.get(key)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(f'"{key}" is {kind_of(value)}', why="text is expected")
        return str(value)

    def _probabilities(self, given: object, n: int) -> bool:
        if given is None:
            if self.classes is not None:
                self.numbers.extend([np.nan] * len(self.classes))
            return False
        if not isinstance(given, dict) or not given:
            raise self.error(f'"probabilities" is {kind_of(given)}', why="an object of class to number is expected")
        if self.classes is None:
            self.classes = tuple(given)
            for name in self.classes:
                self._place(name)
            self.numbers.extend([np.nan] * (n * len(self.classes)))
        if given.keys() != set(self.classes):
            other = next(iter(given.keys() ^ set(self.classes)))
            raise self.error(
                f'"probabilities" are over other classes than before: "{one_line(other, 80)}" is in one of the two only'
            )
        values = [given[name] for name in self.classes]
        for name, value in zip(self.classes, values, strict=True):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1 + 1e-6:
                shown = one_line(repr(value), 40) if isinstance(value, int | float) else kind_of(value)
                raise self.error(f'the probability of "{one_line(name, 80)}" is {shown}', why="0 to 1 is expected")
        if abs(sum(values) - 1) > _SUM_TOLERANCE:
            raise self.error(f"the probabilities sum to {sum(values):.4g}, not 1")
        self.numbers.extend(values)
        return True

    def finish(self) -> Predictions:
        names = tuple(self.place)
        labels = LABELS if set(names) <= set(LABELS) else names
        place = np.array([labels.index(name) for name in names] + [-1], dtype=np.int64)  # -1 stays -1
        true, predicted = (place[np.array(column, dtype=np.int64)] for column in (self.true, self.predicted))
        probabilities = self._matrix(labels) if self.classes else None
        for column in (true, predicted, probabilities):
            if column is not None:
                column.setflags(write=False)
        return Predictions(
            self.file,
            tuple(labels),
            tuple(self.ids),
            predicted,
            true,
            probabilities,
            tuple(self.groups),
            tuple(self.splits),
            tuple(self.variants),
            self.texts,
        )

    def _matrix(self, labels: tuple[str, ...]) -> NDArray[np.float64]:
        """[n, k]; a class without a probability has 0 in the rows that have some."""
        given = np.array(self.numbers).reshape(len(self.ids), len(self.classes))
        whole = np.zeros((len(self.ids), len(labels)))
        whole[np.isnan(given).any(axis=1)] = np.nan
        whole[:, [labels.index(name) for name in self.classes]] = given
        return whole


def variants_of(predictions: Predictions) -> Iterator[tuple[str, str]]:
    """Every (split, variant) that has rows, in the order of the file."""
    yield from dict.fromkeys(zip(predictions.splits, predictions.variants, strict=True))
