"""Rows of predictions.jsonl, checked one by one and kept as columns."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import InputError, one_line
from refusal_core.exchange_formats.json_values import kind_of
from refusal_core.labels import LABELS
from refusal_core.limits import PREDICTION_CLASSES, PREDICTION_ROWS

_SUM_TOLERANCE = 1e-2  # probabilities that were written with few digits
_TEXTS = ("prompt", "response", "error")


class Rows:
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
                shown = (
                    kind_of(value)
                    if isinstance(value, bool) or not isinstance(value, int | float)
                    else repr(value)[:40]
                )
                raise self.error(f'the probability of "{one_line(name, 80)}" is {shown}', why="0 to 1 is expected")
        if abs(sum(values) - 1) > _SUM_TOLERANCE:
            raise self.error(f"the probabilities sum to {sum(values):.4g}, not 1")
        self.numbers.extend(values)
        return True

    def finish(self) -> dict[str, object]:
        """The fields of `Predictions`."""
        names = tuple(self.place)
        labels = LABELS if set(names) <= set(LABELS) else names
        place = np.array([labels.index(name) for name in names] + [-1], dtype=np.int64)  # -1 stays -1
        true, predicted = (place[np.array(column, dtype=np.int64)] for column in (self.true, self.predicted))
        probabilities = self._matrix(labels) if self.classes else None
        for column in (true, predicted, probabilities):
            if column is not None:
                column.setflags(write=False)
        return {
            "file": self.file,
            "labels": tuple(labels),
            "ids": tuple(self.ids),
            "predicted": predicted,
            "true": true,
            "probabilities": probabilities,
            "groups": tuple(self.groups),
            "splits": tuple(self.splits),
            "variants": tuple(self.variants),
            "texts": self.texts,
        }

    def _matrix(self, labels: tuple[str, ...]) -> NDArray[np.float64]:
        """[n, k]; a class without a probability has 0 in the rows that have some."""
        given = np.array(self.numbers).reshape(len(self.ids), len(self.classes))
        whole = np.zeros((len(self.ids), len(labels)))
        whole[np.isnan(given).any(axis=1)] = np.nan
        whole[:, [labels.index(name) for name in self.classes]] = given
        return whole
