"""The assertion `rate`: how often a class or a set is answered, plain and corrected, alone or against a baseline."""

from __future__ import annotations

import numpy as np

from refusal_core.metrics.compare import PairedDifference, paired
from refusal_core.metrics.intervals import Rate
from refusal_core.metrics.items import Items
from refusal_core.metrics.metric import Metric as Measure
from refusal_core.scorecard.assertions import Rate as RateAssertion
from refusal_core.scorecard.cell import Cell, Finding, failing, flips, left_out_note, rows_of
from refusal_core.scorecard.columns import Column
from refusal_core.scorecard.correction import ASSUMPTION, corrected_difference, corrected_rate
from refusal_core.scorecard.quality import no_flip_interval, share
from refusal_core.scorecard.result import Evidence
from refusal_core.scorecard.table import LEFT_OUT, NotComputed, Table, cluster_numbers
from refusal_core.scorecard.verdicts import Bound, Judgement, against, all_of

_SHARE = Measure("accuracy")  # of items "in the set", where being in it is called right


def rate(cell: Cell) -> Finding:
    assertion: RateAssertion = cell.assertion
    chosen = cell.labels_of(cell.label, assertion.label_set)
    name = cell.label if cell.label is not None else assertion.label_set
    return _change(cell, chosen, name) if assertion.against_baseline else _level(cell, chosen, name)


def _level(cell: Cell, chosen: frozenset[str], name: str) -> Finding:
    assertion: RateAssertion = cell.assertion
    table, left_out = cell.table().answered()
    items = in_set(table, chosen)
    raw = cell.once(("rate", cell.place, chosen), lambda: share(items, cell.options))
    corrected, withheld = _corrected(cell, table, chosen)
    found = raw
    if assertion.corrected:
        if corrected is None:
            raise NotComputed(f"the corrected rate is withheld: {withheld}")
        found = corrected
    bounds = [Bound(assertion.min_rate)] if assertion.min_rate is not None else []
    bounds += [Bound(assertion.max_rate, at_least=False)] if assertion.max_rate is not None else []
    judgement, bound = _judged(cell, found, bounds)
    above = bound.at_least  # too few of them, or too many
    lost = np.flatnonzero((items.predicted == 1) != above)
    return Finding(
        subject=f"{'corrected ' if assertion.corrected else ''}rate of {name}",
        judgement=judgement,
        value=found.value,
        interval=found.interval,
        n=found.n,
        bound=bound,
        min_support=cell.min_support,
        can_grow=not assertion.corrected,
        evidence=Evidence(**failing(table, lost), left_out=left_out, raw=raw, corrected=corrected),
    ).noting(
        f"corrected, assuming that {ASSUMPTION}" if corrected else "",
        f"no corrected rate: {withheld}" if withheld else "",
        left_out_note(left_out, len(table)),
    )


def _change(cell: Cell, chosen: frozenset[str], name: str) -> Finding:
    assertion: RateAssertion = cell.assertion
    baseline = cell.need_baseline()
    (table, lost), (old_table, _) = cell.table().answered(), cell.table(baseline).answered()
    _same_prompts(table, old_table)
    new, old = in_set(table, chosen), in_set(old_table, chosen)
    found: PairedDifference = cell.once(
        ("rate change", cell.place, chosen), lambda: paired(new, old, _SHARE, **cell.options)
    )
    if found.left_out > LEFT_OUT * (found.n + found.left_out) or not found.n:
        total = found.n + found.left_out
        raise NotComputed(f"the ids do not match: {found.left_out:,} of {total:,} are in only one of the two")
    value, interval = found.value, found.interval
    if assertion.corrected:
        value, interval = _corrected_change(cell, baseline, table, old_table, chosen)
    elif interval is None:
        interval = no_flip_interval(found, cell.options["level"])
    bounds = [Bound(assertion.max_increase, at_least=False)] if assertion.max_increase is not None else []
    bounds += [Bound(-assertion.max_decrease)] if assertion.max_decrease is not None else []
    judgement, bound = _judged(cell, Rate(value, found.n, interval), bounds)
    entered, left = found.better, found.worse  # into the set, and out of it
    return Finding(
        subject=f"change of the {'corrected ' if assertion.corrected else ''}rate of {name} against {baseline.spec.id}",
        judgement=judgement,
        value=value,
        interval=interval,
        n=found.n,
        bound=bound,
        against_baseline=True,
        min_support=cell.min_support,
        can_grow=not assertion.corrected,
        evidence=Evidence(
            **failing(table, rows_of(table, left if bound.at_least else entered)),
            **flips(entered, left),
            left_out=found.left_out,
            p=found.mcnemar_p,
            candidate=found.candidate,
            baseline=found.baseline,
        ),
    ).noting(
        f"flips: {len(entered):,} came into the set, {len(left):,} left it",
        f"corrected, assuming that {ASSUMPTION}" if assertion.corrected else "",
        left_out_note(lost, len(table)),
    )


def in_set(table: Table, chosen: frozenset[str]) -> Items:
    """The rows as "in the set" or not; called right where they are, so that accuracy is the rate."""
    inside = np.isin(table.predicted, [table.labels.index(label) for label in chosen])
    ones = np.ones(len(table), dtype=np.int64)
    return Items(("other", "in the set"), table.ids, ones, inside.astype(np.int64), None, cluster_numbers(table.groups))


def _judged(cell: Cell, found: Rate, bounds: list[Bound]) -> tuple[Judgement, Bound]:
    """The verdict over all bounds, and the one that decides it: else the one that lies closer to the value."""
    judged = [
        against(found.value, found.interval, bound, n=found.n, min_support=cell.min_support, point=cell.point)
        for bound in bounds
    ]
    whole = all_of(judged)
    deciding = [bound for bound, one in zip(bounds, judged, strict=True) if one.verdict == whole.verdict]
    return whole, min(deciding, key=lambda bound: abs(bound.value - found.value))


def _corrected(cell: Cell, table: Table, chosen: frozenset[str]) -> tuple[Rate | None, str]:
    """The corrected rate, or why there is none; neither where the column names no validation rows."""
    validation = cell.column.validation()
    if validation is None:
        named = "the column has no validated_on" if cell.assertion.corrected else ""
        return None, named
    if validation.withheld:
        return None, validation.withheld

    def compute() -> Rate:
        places = [table.labels.index(label) for label in sorted(chosen)]
        groups = cluster_numbers(table.groups)
        return corrected_rate(validation, table.predicted, places, groups=groups, **cell.options)

    return cell.once(("corrected", cell.place, chosen), compute), ""


def _corrected_change(
    cell: Cell, baseline: Column, table: Table, old_table: Table, chosen: frozenset[str]
) -> tuple[float, object]:
    sides = []
    for column, part in ((cell.column, table), (baseline, old_table)):
        validation = column.validation()
        why = "it has no validated_on" if validation is None else validation.withheld
        if why:
            raise NotComputed(f"the corrected rate of {column.spec.id} is withheld: {why}")
        sides.append((validation, part))
    at = {item: row for row, item in enumerate(table.ids)}
    old_rows = [row for row, item in enumerate(old_table.ids) if item in at]
    matched = [table.take([at[old_table.ids[row]] for row in old_rows]), old_table.take(old_rows)]
    same = cell.column.spec.validated_on == baseline.spec.validated_on and (
        cell.column.spec.classifier == baseline.spec.classifier
    )
    return corrected_difference(
        (sides[0][0], matched[0].predicted),
        (sides[1][0], matched[1].predicted),
        [table.labels.index(label) for label in sorted(chosen)],
        same_classifier=same,
        groups=cluster_numbers(matched[0].groups),
        **cell.options,
    )


def _same_prompts(table: Table, old_table: Table) -> None:
    """Raises NotComputed where one id has two prompts: rows that are paired must answer the same one."""
    prompts = {i: e.prompt for i, e in zip(old_table.ids, old_table.exchanges, strict=True) if e is not None}
    for item, exchange in zip(table.ids, table.exchanges, strict=True):
        if exchange is not None and prompts.get(item, exchange.prompt) != exchange.prompt:
            raise NotComputed(f'the id "{item}" has another prompt in the baseline; give equal prompts equal ids')
