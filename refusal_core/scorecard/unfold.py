"""From assertions to rows: "*" becomes one row for each class, slice value or perturbation, on every column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product

from refusal_core.errors import InputError
from refusal_core.roots import natural_key
from refusal_core.scorecard.assertions import EVERY, Assertion
from refusal_core.scorecard.cell import Cell
from refusal_core.scorecard.changes import perturbations_of
from refusal_core.scorecard.columns import Column
from refusal_core.scorecard.suite import Suite, Test
from refusal_core.scorecard.table import NoData, NotComputed, shown


@dataclass(frozen=True)
class Line:
    """A row of the matrix: an assertion for one class, slice and perturbation."""

    test: Test
    assertion: Assertion
    name: str
    label: str | None = None
    slice: Mapping[str, str] | None = None
    perturbation: str | None = None

    @property
    def unfolded(self) -> dict[str, str]:
        """The fields of the slice that were written as *, and the perturbation: what tells the row from its like."""
        part = {name: value for name, value in (self.slice or {}).items() if self.assertion.slice.get(name) == EVERY}
        return part | ({"perturbation": self.perturbation} if self.perturbation else {})


def lines(suite: Suite, columns: Sequence[Column], make: Mapping[str, Cell]) -> Iterator[Line]:
    """Every row of the matrix in order. `make` gives a bare cell for each column that could be opened."""
    for test in suite.tests:
        for assertion, name in zip(test.asserts, names_of(test), strict=True):
            for label in _labels(suite, assertion):
                for part in _slices(suite, test, assertion, columns, make):
                    for perturbation in _perturbations(test, assertion, columns, make):
                        yield Line(test, assertion, name, label, part, perturbation)


def chosen(test: str, assertion: str, pattern: str | None) -> bool:
    """Whether --filter takes the row: the name of a test, of an assertion, or test/assertion; * and ? stand for any."""
    if pattern is None:
        return True
    return any(fnmatchcase(name, pattern) for name in (test, assertion, f"{test}/{assertion}"))


def names_of(test: Test) -> list[str]:
    """The assertion's id, else its type, numbered where it comes again."""
    taken, names = {a.id for a in test.asserts if a.id is not None}, []
    numbers: dict[str, int] = {}
    for assertion in test.asserts:
        name = assertion.id or assertion.type
        while assertion.id is None and name in taken:
            number = numbers[assertion.type] = numbers.get(assertion.type, 1) + 1
            name = f"{assertion.type}-{number}"
        taken.add(name)
        names.append(name)
    return names


def _labels(suite: Suite, assertion: Assertion) -> Sequence[str | None]:
    label = getattr(assertion, "label", None)
    return suite.labels if label == EVERY else [label]


def _slices(
    suite: Suite, test: Test, assertion: Assertion, columns: Sequence[Column], make: Mapping[str, Cell]
) -> Iterator[dict[str, str]]:
    wanted = {name: shown(value) for name, value in assertion.slice.items()}
    open_names = [name for name, value in wanted.items() if value == EVERY]
    values = [_values(name, test, assertion, columns, make) for name in open_names]
    for combination in product(*values):
        yield wanted | dict(zip(open_names, combination, strict=True))


def _values(
    name: str, test: Test, assertion: Assertion, columns: Sequence[Column], make: Mapping[str, Cell]
) -> list[str]:
    """The values of a field in any column; "*" itself where none can be read, so that the row says why."""
    from refusal_core.scorecard.behaviour import cases_of

    found: dict[str, None] = {}
    for column in columns:
        if column.spec.id not in make:
            continue
        cell = replace(make[column.spec.id], test=test, assertion=assertion, slice={})
        try:
            table = cases_of(cell) if hasattr(assertion, "min_pass_rate") else cell.table()
            found |= dict.fromkeys(table.values(name))
        except (NoData, NotComputed, InputError):
            continue
    return sorted(found, key=natural_key) or [EVERY]


def _perturbations(
    test: Test, assertion: Assertion, columns: Sequence[Column], make: Mapping[str, Cell]
) -> Sequence[str | None]:
    if getattr(assertion, "perturbation", None) is None:
        return [None]
    bare = next(iter(make.values()), None)
    if bare is None:
        return [EVERY]
    opened = [column for column in columns if column.spec.id in make]
    return perturbations_of(replace(bare, test=test, assertion=assertion), opened) or [EVERY]
