"""Assertions on labelled rows: metric, no-regression, confusion, support."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from refusal_core.metrics.compare import PairedDifference, paired
from refusal_core.metrics.intervals import Interval, Rate, f1_interval, rate, wilson
from refusal_core.metrics.items import Items
from refusal_core.metrics.metric import Metric as Measure
from refusal_core.metrics.scores import score, undefined_classes
from refusal_core.scorecard.assertions import Confusion, Metric, NoRegression, Support
from refusal_core.scorecard.cell import Cell, Finding, failing, flips, left_out_note, rows_of
from refusal_core.scorecard.result import Evidence
from refusal_core.scorecard.table import LEFT_OUT, NoData, NotComputed, Table
from refusal_core.scorecard.verdicts import Bound, Judgement, against

ECE_SUPPORT = 200  # ECE of fewer items is mostly its own bias
_PROBABILITIES = ("roc_auc", "log_loss", "brier", "ece")


def metric(cell: Cell) -> Finding:
    """A score against a threshold, mirrored where lower is better."""
    assertion: Metric = cell.assertion
    table, items, left_out = _labelled(cell, assertion.metric in _PROBABILITIES)
    measure = assertion.measure(cell.label, cell.defaults.zero_division, len(items))
    found: Rate = cell.once(("score", cell.place, measure), lambda: score(items, measure, **cell.options))
    if found.value is None:
        raise _undefined(items, measure)
    bound = Bound(assertion.threshold, measure.greater_is_better)
    interval = found.interval or _without_spread(items, measure, found.value, cell.options["level"])
    support = max(cell.min_support, ECE_SUPPORT) if measure.name == "ece" else cell.min_support
    by_rule = found.n == 0  # the value is zero_division's, of no items
    judgement = against(
        found.value, interval, bound, n=found.n, min_support=0 if by_rule else support, point=cell.point or by_rule
    )
    lost = rows_of(table, _failing(items, measure))
    counted = undefined_classes(items.matrix, items.labels, measure)
    rule = f"{measure.rule}: {', '.join(counted)}" if counted and measure.rule else ""
    return Finding(
        subject=str(measure),
        judgement=judgement,
        value=found.value,
        interval=interval,
        n=found.n,
        bound=bound,
        min_support=support,
        evidence=Evidence(**failing(table, lost), left_out=left_out),
    ).noting(rule, left_out_note(left_out, len(items)))


def no_regression(cell: Cell) -> Finding:
    """The paired difference to the baseline against a margin; positive is better."""
    assertion: NoRegression = cell.assertion
    baseline = cell.need_baseline()
    needs = assertion.metric in _PROBABILITIES
    (table, new, lost), (_, old, _) = _labelled(cell, needs), _labelled(cell, needs, baseline)
    together = len(set(new.ids) & set(old.ids))
    measure = assertion.measure(cell.label, cell.defaults.zero_division, together)
    found: PairedDifference = cell.once(
        ("paired", cell.place, measure, cell.resamples), lambda: paired(new, old, measure, **cell.options)
    )
    if found.left_out > LEFT_OUT * (together + found.left_out):
        raise NotComputed(
            f"the ids do not match: {found.left_out:,} of {together + found.left_out:,} are in only one of the two"
        )
    if found.value is None:
        raise _undefined(new, measure)
    margin = assertion.min_absolute_change
    if margin is None:
        if not found.baseline.value:
            raise NotComputed("min_relative_change has no meaning where the baseline's value is 0")
        margin = assertion.min_relative_change * abs(found.baseline.value)
    bound = Bound(margin)
    interval = found.interval or no_flip_interval(found, cell.options["level"])
    same_n = found.n if cell.label is not None and measure.name == "recall" else together
    judgement = against(found.value, interval, bound, n=same_n, min_support=cell.min_support, point=cell.point)
    finding = Finding(
        subject=f"change of {measure} against {baseline.spec.id}",
        judgement=judgement,
        value=found.value,
        interval=interval,
        n=same_n,
        bound=bound,
        against_baseline=True,
        min_support=cell.min_support,
        evidence=Evidence(
            **failing(table, rows_of(table, found.worse)),
            **flips(found.worse, found.better),
            left_out=found.left_out,
            p=found.mcnemar_p,
            candidate=found.candidate,
            baseline=found.baseline,
        ),
        test_at=found,
    )
    return finding.noting(*_remarks(cell, found, lost, len(new)))


def confusion(cell: Cell) -> Finding:
    """How often one true class is answered as another: Wilson over the true class."""
    assertion: Confusion = cell.assertion
    table, items, left_out = _labelled(cell, False)
    true, predicted = items.labels.index(assertion.true), items.labels.index(assertion.predicted)
    of_class = np.flatnonzero(items.true == true)
    if not len(of_class):
        raise NoData(f"no row is truly {assertion.true}")
    wrong = of_class[items.predicted[of_class] == predicted]
    if items.clustered:
        flags = Items(("other", "so"), *_flags(items.take(of_class), predicted))
        found = share(flags, cell.options)
    else:
        found = rate(len(wrong), len(of_class), cell.options["level"])
    bound = Bound(assertion.max_rate, at_least=False)
    return Finding(
        subject=f"share of {assertion.true} answered as {assertion.predicted}",
        judgement=against(
            found.value, found.interval, bound, n=found.n, min_support=cell.min_support, point=cell.point
        ),
        value=found.value,
        interval=found.interval,
        n=found.n,
        bound=bound,
        min_support=cell.min_support,
        evidence=Evidence(**failing(table, rows_of(table, [items.ids[i] for i in wrong])), left_out=left_out),
    ).noting(left_out_note(left_out, len(items)))


def support(cell: Cell) -> Finding:
    """The number of labelled rows; it has no interval, since it is no estimate."""
    assertion: Support = cell.assertion
    table = cell.table()
    labelled = table.true >= 0
    if not labelled.any():
        raise NoData("no row has a true class")
    n = int((table.true == table.labels.index(cell.label)).sum() if cell.label is not None else labelled.sum())
    bound = Bound(assertion.min)
    return Finding(
        subject=f"labelled rows of {cell.label}" if cell.label is not None else "labelled rows",
        judgement=Judgement("pass" if n >= assertion.min else "fail"),
        value=float(n),
        n=n,
        bound=bound,
    )


def _labelled(cell: Cell, need_probabilities: bool, column=None) -> tuple[Table, Items, int]:
    column = column or cell.column
    if column.spec.kind == "responses":
        raise NoData("answers of a language model have no true class; assert a rate")
    key = "items", column.spec.id, *cell.place[1:], need_probabilities

    def make() -> tuple[Table, Items, int]:
        table = cell.table(column)
        return table, *table.items(need_probabilities)

    return cell.once(key, make)


def _undefined(items: Items, measure: Measure) -> Exception:
    """Why a score has no value: the data hold nothing of the class, or the checkpoint never answers it."""
    if measure.label is not None and measure.name in ("recall", "f1"):
        return NoData(f"no row is truly {measure.label}")
    if measure.label is not None and measure.name == "precision":
        never = f"{measure.label} is never answered"
        return NotComputed(f"{measure} is undefined: {never}; defaults: zero_division can say what counts")
    return NotComputed(f"{measure} is undefined on these {len(items):,} rows")


def share(items: Items, options: dict) -> Rate:
    """The accuracy of `items`. Where clusters show no spread, Wilson's interval counts them instead of items."""
    found = score(items, Measure("accuracy"), **options)
    if found.interval is None and items.clustered and found.value in (0.0, 1.0):
        return replace(found, interval=_of_clusters(items, found.value, options["level"]))
    return found


def _without_spread(items: Items, measure: Measure, value: float, level: float) -> Interval | None:
    """An interval for a score whose resamples are all alike: right answers, drawn again, are right answers.

    For a proportion of clusters all or none of which are right, Wilson's over the clusters. For an average that is 1,
    the mean of the lower ends of its classes, which is cautious.
    """
    if measure.name == "accuracy" or (measure.label is not None and measure.name in ("recall", "precision")):
        of_class = np.ones(len(items), dtype=bool)
        if measure.label is not None:
            side = items.true if measure.name == "recall" else items.predicted
            of_class = side == items.labels.index(measure.label)
        extreme = items.clustered and value in (0.0, 1.0)
        return _of_clusters(items.take(of_class), value, level) if extreme else None
    if value != 1.0 or items.clustered or measure.name not in ("f1", "recall", "precision", "balanced_accuracy"):
        return None
    sizes = [int(size) for size in np.bincount(items.true, minlength=len(items.labels)) if size]
    lows = [f1_interval(s, 0, 0, level).low if measure.name == "f1" else wilson(s, s, level).low for s in sizes]
    weights = sizes if measure.average == "weighted" else None
    return Interval(float(np.average(lows, weights=weights)), 1.0, level, "wilson of each class, averaged")


def _of_clusters(items: Items, value: float, level: float) -> Interval | None:
    """None without a cluster: the value is zero_division's."""
    clusters = len(np.unique(items.groups))
    if not clusters:
        return None
    found = wilson(clusters if value else 0, clusters, level)
    return replace(found, method="wilson of clusters")


def no_flip_interval(found: PairedDifference, level: float) -> Interval | None:
    """Where no item changed between right and wrong: as many might as Wilson's interval of 0 in n allows."""
    if found.mcnemar_p is None or found.worse or found.better or not found.n:
        return None
    most = wilson(0, found.n, level).high
    return Interval(-most, most, level, "wilson of no flip")


def _remarks(cell: Cell, found: PairedDifference, lost: int, n: int) -> list[str]:
    remarks = [left_out_note(lost, n)]
    if found.left_out:
        remarks.append(f"{found.left_out:,} ids are in only one of the two and left out")
    if cell.baseline.digest == cell.column.digest:
        remarks.append("candidate and baseline are the same file: nothing is compared")
    if found.mcnemar_p is not None and found.too_few_flips:
        b, c = len(found.worse), len(found.better)
        remarks.append(f"{b + c} items changed ({b} worse, {c} better): fewer than 6 can never reach p = 0.05")
    return remarks


def _failing(items: Items, measure: Measure) -> list[str]:
    """Ids of the items that a score loses by, the surest ones first where it is about probabilities."""
    true, predicted = items.true, items.predicted
    wrong = true != predicted
    if measure.name in _PROBABILITIES and measure.name != "roc_auc" and items.probabilities is not None:
        order = np.argsort(items.probabilities[np.arange(len(items)), true], kind="stable")
        return [items.ids[i] for i in order if wrong[i]]
    if measure.label is not None and measure.label in items.labels:
        place = items.labels.index(measure.label)
        of_class = {"recall": true == place, "precision": predicted == place}
        wrong = wrong & of_class.get(measure.name, (true == place) | (predicted == place))
    return [items.ids[i] for i in np.flatnonzero(wrong)]


def _flags(items: Items, predicted: int) -> tuple:
    """Items as "answered so" or not, so that accuracy is the share."""
    ones = np.ones(len(items), dtype=np.int64)
    return items.ids, ones, (items.predicted == predicted).astype(np.int64), None, items.groups


__all__ = ["ECE_SUPPORT", "confusion", "metric", "no_regression", "support"]
