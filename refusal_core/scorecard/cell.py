"""What one row is about, and what was found of it: shared by every type of assertion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from refusal_core.limits import SCORECARD_EXAMPLES, SCORECARD_FLIPS
from refusal_core.metrics.intervals import Interval, Rate
from refusal_core.scorecard.assertions import Assertion
from refusal_core.scorecard.columns import Column, Selection
from refusal_core.scorecard.result import Evidence
from refusal_core.scorecard.suite import Defaults, Suite, Test
from refusal_core.scorecard.table import NoData, NotComputed, Table
from refusal_core.scorecard.verdicts import Bound, Judgement


@dataclass(frozen=True, eq=False)
class Cell:
    """One assertion on one column, for one class, slice or perturbation. `memo` is shared by all cells of a run."""

    suite: Suite
    test: Test
    assertion: Assertion
    column: Column
    baseline: Column | None
    label: str | None = None
    slice: Mapping[str, str] = field(default_factory=dict)
    perturbation: str | None = None
    resamples: int = 2_000
    memo: dict[object, Any] = field(default_factory=dict)

    @property
    def defaults(self) -> Defaults:
        return self.suite.defaults

    @property
    def point(self) -> bool:
        return self.defaults.verdict == "point"

    @property
    def min_support(self) -> int:
        """Of a statistical row."""
        own = self.assertion.min_support
        return self.defaults.min_support if own is None else own

    @property
    def options(self) -> dict[str, Any]:
        """Seed, resamples and level, as the metrics take them."""
        ci = self.defaults.ci
        return {"seed": ci.seed, "resamples": self.resamples, "level": self.defaults.confidence}

    def selection(self, variant: str = "") -> Selection:
        return selection_of(self.suite, self.test, self.assertion, variant)

    def table(self, column: Column | None = None, variant: str = "") -> Table:
        """The rows of the column (or another one) in the slice. Raises NoData when there is none."""
        column = column or self.column
        table = column.table(self.selection(variant)).sliced(self.slice)
        if not len(table):
            raise NoData(f"no row has {shown_slice(self.slice)}" if self.slice else "there is no such row")
        return table

    def need_baseline(self) -> Column:
        """The column to compare with. Raises NoData for the baseline itself, NotComputed without one."""
        if self.baseline is None:
            raise NotComputed("the suite names no baseline")
        if self.baseline is self.column:
            raise NoData("this is the baseline")
        if self.baseline.spec.kind != self.column.spec.kind:
            raise NoData(f'the baseline "{self.baseline.spec.id}" is a column of the other kind')
        return self.baseline

    def once(self, key: object, compute: Callable[[], Any]) -> Any:
        """`compute()`, or what it gave for the same key before in this run."""
        if key not in self.memo:
            self.memo[key] = compute()
        return self.memo[key]

    def labels_of(self, label: str | None, label_set: str | None) -> frozenset[str]:
        """The classes that the assertion is about."""
        return frozenset({label}) if label is not None else self.suite.sets[label_set]

    @property
    def place(self) -> tuple:
        """What the rows of the cell depend on."""
        return self.column.spec.id, self.selection(), tuple(sorted(self.slice.items()))


@dataclass(frozen=True)
class Finding:
    """What was computed for a cell. `bound` is what the value was held against, a margin when `against_baseline`."""

    subject: str
    judgement: Judgement
    value: float | None = None
    interval: Interval | None = None
    n: int | None = None
    bound: Bound | None = None
    against_baseline: bool = False
    min_support: int = 0
    evidence: Evidence = Evidence()
    can_grow: bool = True
    """Whether more items of the same kind narrow the interval."""
    test_at: Any = None
    """The paired difference, for Holm."""

    @property
    def rate(self) -> Rate:
        return Rate(self.value, self.n or 0, self.interval)

    def noting(self, *notes: str) -> Finding:
        return replace(self, evidence=replace(self.evidence, notes=(*self.evidence.notes, *filter(None, notes))))


def selection_of(suite: Suite, test: Test, assertion: Assertion, variant: str = "") -> Selection:
    """The dataset and split of an assertion: its own, else the test's, else the suite's only or default one."""
    dataset = assertion.dataset or test.dataset or suite.defaults.dataset
    if dataset is None and len(suite.datasets) == 1:
        dataset = suite.datasets[0].id
    split = assertion.split if assertion.split is not None else test.split
    return Selection(dataset, split, variant)


def failing(table: Table, rows: Sequence[int] | NDArray, expected: Mapping[int, str] | None = None) -> dict[str, Any]:
    """Keyword arguments of Evidence for the `rows` of `table` that failed; `expected` of a row, else its true class."""
    expected = expected or {}
    some = (int(row) for row in rows[:SCORECARD_EXAMPLES])
    return {"failing": tuple(table.example(row, expected.get(row)) for row in some), "failing_total": len(rows)}


def rows_of(table: Table, ids: Sequence[str]) -> list[int]:
    """Places of `ids` in the table."""
    at = {name: row for row, name in enumerate(table.ids)}
    return [at[name] for name in ids]


def flips(worse: Sequence[str], better: Sequence[str]) -> dict[str, Any]:
    """Keyword arguments of Evidence for the items that changed."""
    return {
        "worse": tuple(worse[:SCORECARD_FLIPS]), "worse_total": len(worse),
        "better": tuple(better[:SCORECARD_FLIPS]), "better_total": len(better),
    }  # fmt: skip


def shown_slice(part: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in part.items())


def left_out_note(left_out: int, n: int) -> str:
    return f"{left_out:,} rows have no answer and are left out of {n + left_out:,}" if left_out else ""
