"""Rows of one checkpoint with everything that an assertion may ask of them, and the parts of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from refusal_core.exchanges import Exchange
from refusal_core.metrics.items import Items
from refusal_core.scorecard.result import Example

LEFT_OUT = 0.01  # share of rows that may lack an answer or a partner; more is an error
UNKNOWN = "the label "  # how the problem of a row begins whose label is no class of the suite


class NotComputed(Exception):
    """The row cannot be computed; `str()` says why. Its verdict is "error"."""


class NoData(Exception):
    """The suite has no such data for this checkpoint; `str()` says what. Its verdict is "not run"."""


@dataclass(frozen=True, eq=False)
class Table:
    """n rows. `predicted` and `true` are places in `labels`, -1 for none; `problems` says why a row has no answer."""

    labels: tuple[str, ...]
    ids: tuple[str, ...]
    predicted: NDArray[np.int64]
    true: NDArray[np.int64]
    probabilities: NDArray[np.float64] | None
    groups: tuple[str | None, ...]
    fields: tuple[Mapping[str, object], ...]
    exchanges: tuple[Exchange | None, ...]
    problems: Mapping[int, str] = field(default_factory=dict)
    sliceable: frozenset[str] | None = None
    """Fields that slices may name; None for all."""

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Sequence[int] | NDArray) -> Table:
        at = np.asarray(rows, dtype=np.int64)
        pick = at.tolist()
        return replace(
            self,
            ids=tuple(self.ids[i] for i in pick),
            predicted=self.predicted[at],
            true=self.true[at],
            probabilities=None if self.probabilities is None else self.probabilities[at],
            groups=tuple(self.groups[i] for i in pick),
            fields=tuple(self.fields[i] for i in pick),
            exchanges=tuple(self.exchanges[i] for i in pick),
            problems={new: self.problems[old] for new, old in enumerate(pick) if old in self.problems},
        )

    def named(self, ids: tuple[str, ...]) -> Table:
        """The same rows under other ids."""
        return replace(self, ids=ids)

    def sliced(self, wanted: Mapping[str, str]) -> Table:
        """The rows whose fields have the values of `wanted`. Raises NotComputed for a field that no row has."""
        if not wanted:
            return self
        known = self.field_names() if self.sliceable is None else self.sliceable
        if missing := [name for name in wanted if name not in known]:
            listed = ", ".join(sorted(known)) or "none"
            raise NotComputed(f'there is no field "{missing[0]}" to slice by; the fields are: {listed}')
        keep = [i for i, f in enumerate(self.fields) if all(shown(f.get(name)) == v for name, v in wanted.items())]
        return self.take(keep)

    def field_names(self) -> set[str]:
        return {name for fields in self.fields for name in fields}

    def values(self, name: str) -> list[str]:
        """The different values of a field, texts and whole numbers only."""
        return list(dict.fromkeys(v for f in self.fields if (v := shown(f.get(name))) is not None))

    def answered(self) -> tuple[Table, int]:
        """The rows with an answer, and how many were left out.

        Raises NotComputed when those are more than 1%, and for any answer that is no class of the suite.
        """
        missing = np.flatnonzero(self.predicted < 0)
        if unknown := [i for i in missing if self.problems.get(int(i), "").startswith(UNKNOWN)]:
            raise NotComputed(f'row "{self.ids[unknown[0]]}": {self.problems[int(unknown[0])]}')
        if len(missing) > LEFT_OUT * len(self):
            first = int(missing[0])
            why = self.problems.get(first, "it has no prediction")
            raise NotComputed(
                f'{len(missing):,} of {len(self):,} rows have no answer, the first is "{self.ids[first]}": {why}'
            )
        return (self.take(np.flatnonzero(self.predicted >= 0)), len(missing)) if len(missing) else (self, 0)

    def items(self, need_probabilities: bool = False) -> tuple[Items, int]:
        """Labelled rows for the metrics, and how many were left out."""
        labelled = np.flatnonzero(self.true >= 0)
        if not len(labelled):
            raise NoData("no row has a true class")
        table, left_out = (self if len(labelled) == len(self) else self.take(labelled)).answered()
        probabilities = table.probabilities
        if probabilities is not None and np.isnan(probabilities).any():
            probabilities = None
        if need_probabilities and probabilities is None:
            raise NotComputed("it needs probabilities, and the rows have none")
        groups = cluster_numbers(table.groups)
        return Items(table.labels, table.ids, table.true, table.predicted, probabilities, groups), left_out

    def probability(self, row: int, chosen: frozenset[str] | set[str]) -> float | None:
        """Probability of the classes `chosen` together, None without."""
        if self.probabilities is None or np.isnan(self.probabilities[row]).any():
            return None
        return min(
            float(sum(self.probabilities[row, i] for i, label in enumerate(self.labels) if label in chosen)), 1.0
        )

    def label(self, row: int) -> str | None:
        place = int(self.predicted[row])
        return self.labels[place] if place >= 0 else None

    def example(self, row: int, expected: str | None = None) -> Example:
        """The row as evidence; `expected` for its true class."""
        predicted = self.label(row)
        true = int(self.true[row])
        return Example(
            self.ids[row],
            predicted,
            expected if expected is not None else (self.labels[true] if true >= 0 else None),
            None if predicted is None else self.probability(row, {predicted}),
            self.exchanges[row],
        )


def shown(value: object) -> str | None:
    """A field's value as slices write it; None for what is no plain value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) and str(value).strip() else None


def cluster_numbers(groups: Sequence[str | None]) -> NDArray[np.int64] | None:
    """A row without a group is a cluster of its own; None when no row has one."""
    if not any(group is not None for group in groups):
        return None
    numbers: dict[object, int] = {}
    keys = (("own", row) if group is None else group for row, group in enumerate(groups))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def places(names: Sequence[str | None], labels: Sequence[str], aliases: Mapping[str, str]) -> NDArray[np.int64]:
    """Place of each name in `labels`, aliases followed; -1 for None and for names that are not there."""
    at = {label: i for i, label in enumerate(labels)}
    at |= {alias: at[label] for alias, label in aliases.items()}
    return np.array([-1 if name is None else at.get(name, -1) for name in names], dtype=np.int64)


def spread(
    given: NDArray[np.float64], own: Sequence[str], labels: Sequence[str], aliases: Mapping[str, str]
) -> NDArray[np.float64]:
    """Probabilities [n, own classes] over `labels`; two of our own that are one class there add up."""
    whole = np.zeros((len(given), len(labels)))
    for column, place in enumerate(places(own, labels, aliases)):
        if place >= 0:
            whole[:, place] += given[:, column]
    return whole


def clusters(rows: Sequence[object], name: str | None) -> tuple[str | None, ...]:
    if name is None:
        return (None,) * len(rows)
    return tuple(shown(row.extra.get(name)) if isinstance(row, Exchange) else None for row in rows)
