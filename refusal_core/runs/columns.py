"""Log rows of any shape become curves: rows of the same keys are kept as one flat block of float64."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import InputError
from refusal_core.limits import RUN_KEYS, RUN_ROWS
from refusal_core.runs.model import Curve
from refusal_core.runs.names import EPOCH_KEYS, STEP_KEYS, TIME_KEYS, Name, names_of
from refusal_core.runs.text import number

_TRAINING = frozenset(("loss", "learning_rate", "grad_norm"))


@dataclass
class _Block:
    """Rows of the same keys: `numbers` row after row, `places` their numbers in the file."""

    keys: tuple[str, ...]
    numbers: array = field(default_factory=lambda: array("d"))
    places: array = field(default_factory=lambda: array("q"))


class Columns:
    """Rows go in by `add`, curves come out by `curves`. Values that are no number are passed over and counted."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.rows = 0
        self.texts = 0
        """Numbers that were written as text."""
        self.passed: dict[str, int] = {}
        """Key to how many of its values were no numbers: lists, tables, words."""
        self._blocks: dict[tuple[str, ...], _Block] = {}
        self._keys: set[str] = set()

    def add(self, row: Mapping[str, object]) -> None:
        """One row. Raises InputError when there are too many of them, or of different keys."""
        keys = tuple(row)
        block = self._blocks.get(keys)
        if block is None:
            block = self._block(keys)
        numbers = block.numbers
        before = len(numbers)
        try:
            numbers.extend(row.values())
        except (TypeError, OverflowError):
            del numbers[before:]
            self._add_odd(row)
        else:
            block.places.append(self.rows)
        self.rows += 1
        if self.rows > RUN_ROWS:
            raise InputError(f"it holds more than {RUN_ROWS:,} rows", where=self.file, fix="log less often, or cut it")

    def curves(self, unprefixed: str = "") -> tuple[Curve, ...]:
        """One curve a key, in the order in which the keys come first; rows in the order of the file.

        `unprefixed` is the split of a row whose keys name none; a row with a loss, learning rate or gradient norm of no
        split is one of the training. A row that a later one stands for (the same metric at the same step) is marked.
        """
        pieces: dict[tuple[str, Name], list[tuple[NDArray, ...]]] = {}
        for block in self._blocks.values():
            self._part(block, unprefixed, pieces)
        curves = []
        for (key, name), parts in pieces.items():
            places, values, steps, epochs, times = (np.concatenate(column) for column in zip(*parts, strict=True))
            if len(parts) > 1:
                order = np.argsort(places, kind="stable")
                values, steps, epochs, times = (column[order] for column in (values, steps, epochs, times))
            curves.append(
                Curve.of(
                    name.metric,
                    values,
                    steps,
                    split=name.split,
                    dataset=name.dataset,
                    label=name.label,
                    key=key,
                    file=self.file,
                    epochs=epochs,
                    times=times,
                    superseded=superseded(epochs if np.isnan(steps).all() else steps),
                )
            )
        return tuple(curves)

    def replaced(self) -> int:
        """Rows that a later row of the same step and the same keys stands for."""
        count = 0
        for block in self._blocks.values():
            step = _first_of(block.keys, STEP_KEYS)
            if step is not None:
                count += int(superseded(_matrix(block)[:, block.keys.index(step)]).sum())
        return count

    def notes(self) -> tuple[str, ...]:
        """What was assumed, in sentences."""
        notes = []
        if self.texts:
            notes.append(f"{self.texts:,} numbers were written as text")
        notes += [f'"{key}" is no number in {count:,} rows' for key, count in list(self.passed.items())[:20]]
        return tuple(notes)

    def _block(self, keys: tuple[str, ...]) -> _Block:
        self._keys.update(keys)
        if len(self._keys) > RUN_KEYS or len(self._blocks) > RUN_KEYS:
            raise InputError(f"it holds more than {RUN_KEYS:,} different keys", where=self.file)
        return self._blocks.setdefault(keys, _Block(keys))

    def _add_odd(self, row: Mapping[str, object]) -> None:
        """A row with values that are not plain numbers."""
        kept: dict[str, float] = {}
        for key, value in row.items():
            found = _seconds(value) if key in TIME_KEYS and isinstance(value, str) else number(value)
            if found is not None:
                kept[key] = found
                self.texts += isinstance(value, str) and key not in TIME_KEYS
            elif isinstance(value, dict) and "_type" not in value:
                kept.update((f"{key}/{k}", v) for k, inner in value.items() if (v := number(inner)) is not None)
            elif value is not None:
                self.passed[key] = self.passed.get(key, 0) + 1
        block = self._block(tuple(kept))
        block.numbers.extend(kept.values())
        block.places.append(self.rows)

    def _part(self, block: _Block, unprefixed: str, pieces: dict) -> None:
        keys, matrix = block.keys, _matrix(block)
        places = np.frombuffer(block.places, dtype=np.int64)
        if not len(places):
            return
        reserved = [_first_of(keys, names) for names in (STEP_KEYS, EPOCH_KEYS, TIME_KEYS)]
        unknown = np.full(len(places), np.nan)
        steps, epochs, times = (unknown if key is None else matrix[:, keys.index(key)] for key in reserved)
        default = "train" if _TRAINING & set(keys) else unprefixed
        for column, (key, name) in enumerate(names_of(keys, default).items()):
            if key not in STEP_KEYS and key not in EPOCH_KEYS and key not in TIME_KEYS:
                pieces.setdefault((key, name), []).append((places, matrix[:, column], steps, epochs, times))


def superseded(steps: NDArray[np.float64]) -> NDArray[np.bool_]:
    """True for each row but the last one of its step; rows without a step stand for themselves."""
    if len(steps) < 2 or np.all(np.diff(steps) > 0):
        return np.zeros(len(steps), dtype=np.bool_)
    backwards = steps[::-1]
    _, last = np.unique(backwards, return_index=True)
    mask = np.ones(len(steps), dtype=np.bool_)
    mask[last] = False
    return mask[::-1] & ~np.isnan(steps)


def _matrix(block: _Block) -> NDArray[np.float64]:
    return np.frombuffer(block.numbers, dtype=np.float64).reshape(len(block.places), len(block.keys))


def _first_of(keys: Iterable[str], names: tuple[str, ...]) -> str | None:
    keys = set(keys)
    return next((name for name in names if name in keys), None)


def _seconds(text: str) -> float | None:
    """An ISO 8601 time, or a number in text, as seconds since 1970."""
    from datetime import UTC, datetime

    if (found := number(text)) is not None:
        return found
    try:
        time = datetime.fromisoformat(text.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
