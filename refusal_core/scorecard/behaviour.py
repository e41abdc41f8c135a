"""Behavioural assertions on cases: equals, label-in, is-refusal, probability. A case without an answer is an error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refusal_core.exchanges import Exchange
from refusal_core.metrics.bootstrap import bootstrap_means
from refusal_core.metrics.intervals import Interval, wilson
from refusal_core.scorecard.assertions import Equals, IsRefusal, LabelIn, Probability
from refusal_core.scorecard.cell import Cell, Finding, failing, shown_slice
from refusal_core.scorecard.columns import Rows
from refusal_core.scorecard.result import Evidence
from refusal_core.scorecard.suite import Test
from refusal_core.scorecard.table import NoData, NotComputed, Table
from refusal_core.scorecard.verdicts import Bound, against

# Row of a table -> whether it passes, and what was expected of it in words.
Check = Callable[[Table, int], tuple[bool, str]]


def equals(cell: Cell) -> Finding:
    assertion: Equals = cell.assertion
    if assertion.value is not None:
        return _judge_cases(cell, _is_among(frozenset({assertion.value})), f"answered {assertion.value}")
    field = assertion.value_field
    return _judge_cases(cell, _as_expected(cell, field), f"answered as the field {field} says")


def label_in(cell: Cell) -> Finding:
    assertion: LabelIn = cell.assertion
    return _judge_cases(cell, _is_among(frozenset(assertion.value)), f"answered {' or '.join(assertion.value)}")


def is_refusal(cell: Cell) -> Finding:
    assertion: IsRefusal = cell.assertion
    return _judge_cases(cell, _is_among(cell.suite.sets[assertion.label_set]), f"in the set {assertion.label_set}")


def probability(cell: Cell) -> Finding:
    assertion: Probability = cell.assertion
    chosen = cell.labels_of(assertion.label, assertion.label_set)
    at_least = assertion.threshold is not None
    bound = Bound(assertion.threshold if at_least else assertion.max, at_least)
    name = assertion.label or assertion.label_set

    def check(table: Table, row: int) -> tuple[bool, str]:
        found = table.probability(row, chosen)
        if found is None:
            raise NotComputed(f'the case "{table.ids[row]}" has no probabilities')
        return bound.met(found), f"probability of {name} {bound}"

    return _judge_cases(cell, check, f"probability of {name} {bound}")


def pass_rate(outcomes: dict[str, list[bool]], level: float, seed: int) -> tuple[float, Interval | None, int]:
    """Share of cases that pass, its interval and n. Several rows of one case are averaged first: n counts cases."""
    n = len(outcomes)
    if all(all(rows) or not any(rows) for rows in outcomes.values()):
        passed = sum(rows[0] for rows in outcomes.values())
        return passed / n, wilson(passed, n, level), n
    shares = np.array([[sum(rows) / len(rows)] for rows in outcomes.values()])
    return float(shares.mean()), bootstrap_means(shares, seed=seed, level=level)[0], n


def rate_finding(
    cell: Cell,
    subject: str,
    bound: Bound,
    outcomes: dict[str, list[bool]],
    table: Table,
    lost: dict[int, str],
    left_out: int = 0,
) -> Finding:
    """The share of cases whose outcome is True, against `bound`; `lost` are the rows of `table` to show, and why.

    Where every case must come out one way the value alone decides; else the interval does.
    """
    value, interval, n = pass_rate(outcomes, cell.defaults.confidence, cell.defaults.ci.seed)
    every = bound.value == (1.0 if bound.at_least else 0.0)
    min_support = cell.assertion.min_support or 0
    return Finding(
        subject=subject,
        judgement=against(value, interval, bound, n=n, min_support=min_support, point=cell.point or every),
        value=value,
        interval=interval,
        n=n,
        bound=bound,
        min_support=min_support,
        evidence=Evidence(**failing(table, list(lost), lost), left_out=left_out),
    )


def _judge_cases(cell: Cell, check: Check, subject: str) -> Finding:
    table = cases_of(cell)
    outcomes: dict[str, list[bool]] = {}
    lost: dict[int, str] = {}
    for row in range(len(table)):
        if table.predicted[row] < 0:
            raise NotComputed(f'the case "{table.ids[row]}" has no answer: {table.problems.get(row, "none is given")}')
        good, expected = check(table, row)
        good = good != cell.assertion.negated
        outcomes.setdefault(table.ids[row], []).append(good)
        if not good:
            lost[row] = f"not {expected}" if cell.assertion.negated else expected
    words = f"not {subject}" if cell.assertion.negated else subject
    return rate_finding(cell, f"cases {words}", Bound(cell.assertion.min_pass_rate), outcomes, table, lost)


def cases_of(cell: Cell) -> Table:
    """The cases: of the test's vars or file, else the rows of the dataset or of the responses."""
    rows = case_rows(cell)
    if rows is None:
        return cell.table()
    if not rows:
        raise NoData(f"{cell.test.cases} holds no case")
    table = cell.once(("cases", cell.column.spec.id, cell.test.id), lambda: cell.column.cases(rows))
    table = table.sliced(cell.slice)
    if not len(table):
        raise NoData(f"no case has {shown_slice(cell.slice)}")
    return table


def has_cases(test: Test) -> bool:
    """Whether the test brings its own cases."""
    return test.vars is not None or test.cases is not None


def case_rows(cell: Cell) -> Rows | None:
    """The exchanges of the test; None where its cases are the rows of the column."""
    if cell.test.cases is not None:
        return cell.column.files.exchanges(cell.test.cases, {})
    if (given := cell.test.vars) is None:
        return None
    extra = {"expected": given.expected} if given.expected is not None else {}
    return [Exchange(given.prompt, given.response, id=cell.test.id, extra=extra)]


def _is_among(chosen: frozenset[str]) -> Check:
    expected = " or ".join(sorted(chosen))
    return lambda table, row: (table.label(row) in chosen, expected)


def _as_expected(cell: Cell, name: str) -> Check:
    """Each case says itself which class, label set, or list of them it expects."""
    aliases, labels, sets = cell.suite.label_aliases, set(cell.suite.labels), cell.suite.sets

    def check(table: Table, row: int) -> tuple[bool, str]:
        given = table.fields[row].get(name)
        names = given if isinstance(given, list) else [given]
        chosen: set[str] = set()
        for one in names:
            if not isinstance(one, str) or not one:
                raise NotComputed(f'the case "{table.ids[row]}" has no text in its field {name}')
            if one in sets:
                chosen |= sets[one]
            elif aliases.get(one, one) in labels:
                chosen.add(aliases.get(one, one))
            else:
                raise NotComputed(f'the case "{table.ids[row]}" expects "{one}", which is no class or label set')
        return table.label(row) in chosen, " or ".join(map(str, names))

    return check
