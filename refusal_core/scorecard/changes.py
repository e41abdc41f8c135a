"""Assertions on exchanges before and after a change: invariance and directional."""

from __future__ import annotations

from dataclasses import dataclass

from refusal_core.exchanges import Exchange
from refusal_core.perturb import PERTURBATIONS, perturb
from refusal_core.scorecard.assertions import Directional, Invariance
from refusal_core.scorecard.behaviour import rate_finding
from refusal_core.scorecard.cell import Cell, Finding
from refusal_core.scorecard.columns import Column, Rows
from refusal_core.scorecard.files import Pair
from refusal_core.scorecard.table import NoData, NotComputed, Table
from refusal_core.scorecard.verdicts import Bound


@dataclass(frozen=True, eq=False)
class Sides:
    """The same n items before and after, row by row."""

    before: Table
    after: Table
    left_out: int = 0


def invariance(cell: Cell) -> Finding:
    """The share of pairs whose class flips, at most `max_flip_rate`."""
    assertion: Invariance = cell.assertion
    sides = _of_pairs(cell, assertion.pairs) if assertion.pairs is not None else _of_perturbation(cell)
    outcomes: dict[str, list[bool]] = {}
    lost: dict[int, str] = {}
    for row in range(len(sides.before)):
        _need_answers(sides, row)
        flipped = sides.before.predicted[row] != sides.after.predicted[row]
        outcomes.setdefault(sides.before.ids[row], []).append(bool(flipped))
        if flipped:
            lost[row] = f"{sides.before.label(row)}, as before the change"
    subject = "class flips" if cell.perturbation is None else f"class flips under {cell.perturbation}"
    bound = Bound(assertion.max_flip_rate, at_least=False)
    return rate_finding(cell, subject, bound, outcomes, sides.after, lost, sides.left_out).noting(
        f"{sides.left_out:,} rows have no changed partner and are left out" if sides.left_out else ""
    )


def directional(cell: Cell) -> Finding:
    """Each pair must move the probability of a class as expected."""
    assertion: Directional = cell.assertion
    chosen = cell.labels_of(assertion.label, assertion.label_set)
    sides = _of_pairs(cell, assertion.pairs)
    name, outcomes, lost = assertion.label or assertion.label_set, {}, {}
    for row in range(len(sides.before)):
        _need_answers(sides, row)
        before, after = (side.probability(row, chosen) for side in (sides.before, sides.after))
        if before is None or after is None:
            raise NotComputed(f'the pair "{sides.before.ids[row]}" has no probabilities')
        good = moved_as_expected(after - before, assertion.expect, assertion.tolerance)
        outcomes.setdefault(sides.before.ids[row], []).append(good)
        if not good:
            lost[row] = f"probability of {name}: {assertion.expect}, found {before:.3f} to {after:.3f}"
    subject = f"pairs where the probability of {name} does {assertion.expect}"
    return rate_finding(cell, subject, Bound(assertion.min_pass_rate), outcomes, sides.after, lost)


def moved_as_expected(change: float, expect: str, tolerance: float) -> bool:
    """not-decrease tolerates a fall of `tolerance`; increase asks for a rise of more than it. And mirrored."""
    if expect.endswith("decrease"):
        change = -change if expect == "decrease" else change
    elif expect == "not-increase":
        change = -change
    return change >= -tolerance if expect.startswith("not-") else change > tolerance


def pair_rows(pairs: list[Pair]) -> Rows:
    """Every exchange that a file of pairs holds."""
    return [side for pair in pairs for side in (pair.original, pair.changed) if isinstance(side, Exchange)]


def changed_rows(rows: Rows, name: str) -> Rows:
    """`rows` under a built-in perturbation."""
    return [perturb(row, name) for row in rows if isinstance(row, Exchange)]


def perturbations_of(cell: Cell, columns: list[Column]) -> list[str]:
    """What the assertion unfolds into; * is all built-in ones for a checkpoint that is run, else those of its file."""
    wanted = cell.assertion.perturbation
    if wanted != "*":
        return [wanted] if isinstance(wanted, str) else list(wanted)
    selection = cell.selection()
    found = {name: None for column in columns for name in column.variants(selection.split)}
    found |= {name: None for name in PERTURBATIONS if any(column.runs(selection, name) for column in columns)}
    return [name for name in PERTURBATIONS if name in found] + [name for name in found if name not in PERTURBATIONS]


def _of_pairs(cell: Cell, written: str) -> Sides:
    column = cell.column
    if column.spec.kind == "responses":
        raise NoData("pairs ask a classifier, and this column is answers of a language model")
    pairs = column.files.pairs(written)
    if not pairs:
        raise NoData(f"{written} holds no pair")

    def make() -> Sides:
        sides = []
        for key in ("original", "changed"):
            given = [getattr(pair, key) for pair in pairs]
            if column.reader is None or any(isinstance(side, str) for side in given):
                given = [Exchange("", "", id=side if isinstance(side, str) else side.id) for side in given]
                table = column.by_id(given)
            else:
                table = column.cases(given)
            sides.append(table.named(tuple(pair.id for pair in pairs)))
        return Sides(*sides)

    return cell.once(("pairs", column.spec.id, written), make)


def _of_perturbation(cell: Cell) -> Sides:
    name, column = cell.perturbation, cell.column
    if column.spec.kind == "responses":
        raise NoData("perturbations ask a classifier, and this column is answers of a language model")
    before = cell.table()
    if column.predictions is not None and not column.runs(cell.selection(), name):
        after = column.table(cell.selection(name))
        at = {item: row for row, item in enumerate(after.ids)}
        kept = [row for row, item in enumerate(before.ids) if item in at]
        if not kept:
            raise NoData(f"the predictions hold no rows of the variant {name}")
        after = after.take([at[before.ids[row]] for row in kept])
        return Sides(before.take(kept), after, len(before) - len(kept))
    if name not in PERTURBATIONS:
        raise NotComputed(f'there is no perturbation "{name}"; built in are: {", ".join(PERTURBATIONS)}')
    if any(exchange is None for exchange in before.exchanges):
        raise NotComputed("some rows have no text that could be changed")
    return Sides(before, column.cases(changed_rows(before.exchanges, name)).named(before.ids))


def _need_answers(sides: Sides, row: int) -> None:
    for side in (sides.before, sides.after):
        if side.predicted[row] < 0:
            why = side.problems.get(row, "it has no prediction")
            raise NotComputed(f'one side of the pair "{side.ids[row]}" has no answer: {why}')
