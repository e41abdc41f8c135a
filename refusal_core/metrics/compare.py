"""Two checkpoints over the same items: the paired difference, which items flipped, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import InputError
from refusal_core.metrics.flips import FEWEST_FLIPS, mcnemar, tango, tango_tail
from refusal_core.metrics.intervals import LEVEL, Interval, Rate
from refusal_core.metrics.items import Items
from refusal_core.metrics.metric import Metric, place_of
from refusal_core.metrics.report import report_from_matrix
from refusal_core.metrics.resample import RESAMPLES, Bootstrap, Units, bootstrap
from refusal_core.metrics.scores import bootstrap_of, counts_statistic, score, score_matrix


class Tails(NamedTuple):
    """One-sided p values at a margin; each is small when its claim is well supported."""

    above: float  # that the true difference is above the margin
    below: float  # that it is below


@dataclass(frozen=True, eq=False)
class PairedDifference:
    """How much better the candidate is than the baseline, item by item. Positive is better, for log loss and ECE too.

    `value` and `interval` are None where one side is undefined, or (the interval) where it would have no width: that
    decides nothing. `n` is the items that the metric is over (of the class, for the recall of a label), `left_out` the
    ids that only one of the two has. `worse` are the ids of those n that went from right to wrong and `better` those
    that went the other way; `mcnemar_p` is the exact two-sided p of McNemar for 0/1 outcomes of items that stand alone,
    else None.
    """

    metric: Metric
    value: float | None
    interval: Interval | None
    n: int
    left_out: int
    candidate: Rate
    baseline: Rate
    worse: tuple[str, ...]
    better: tuple[str, ...]
    mcnemar_p: float | None
    paired: bool = True
    _bootstrap: Bootstrap | None = field(default=None, repr=False)

    @property
    def too_few_flips(self) -> bool:
        """Whether McNemar's test could not reach 0.05 whatever the flips were: to be said instead of the p alone."""
        return len(self.worse) + len(self.better) < FEWEST_FLIPS

    def p_at_margin(self, margin: float) -> Tails | None:
        """One-sided p values against `margin`, for Holm; they agree with `interval`. None where that is None.

        "No worse than one point" is the margin -0.01: passed when `above` is small, failed when `below` is.
        """
        if self.interval is None:
            return None
        if self._bootstrap is None:
            tail = tango_tail(len(self.worse), len(self.better), self.n, margin)
        else:
            tail = self._bootstrap.tail(margin)
        return None if tail is None else Tails(tail, 1 - tail)


def paired(
    candidate: Items,
    baseline: Items,
    metric: Metric,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> PairedDifference:
    """The difference over the ids that both have, in the baseline's order.

    Its interval is Tango's for accuracy and the recall of a class where items stand alone, and else a bootstrap of the
    pairs, as in `score`.
    Class names are matched by name. Raises InputError when an item has another true class or cluster on the two sides,
    and as `score` does.
    """
    sides, left_out = matched(candidate, baseline)
    new, old = sides
    rates = [score(side, metric, seed=seed, resamples=resamples, level=level) for side in sides]
    if not metric.greater_is_better:
        sides = (old, new)
    over = np.arange(len(new))
    of_class = metric.name == "recall" and metric.label is not None
    if of_class:
        over = np.flatnonzero(new.true == place_of(metric, new.labels))
    was_right, is_right = (side.true[over] == side.predicted[over] for side in (old, new))
    worse, better = over[was_right & ~is_right], over[is_right & ~was_right]
    zero_or_one = (of_class or metric.name == "accuracy" or metric.average == "micro") and not new.clustered
    if zero_or_one or not len(new):
        boot, interval = None, tango(len(worse), len(better), len(over), level)
    else:
        boot = bootstrap_of(sides, metric, seed=seed, resamples=resamples)
        interval = boot and boot.interval(level)
    return PairedDifference(
        metric=metric,
        value=_difference(metric, *rates),
        interval=interval,
        n=len(over),
        left_out=left_out,
        candidate=rates[0],
        baseline=rates[1],
        worse=tuple(new.ids[i] for i in worse),
        better=tuple(new.ids[i] for i in better),
        mcnemar_p=mcnemar(len(worse), len(better)) if zero_or_one else None,
        _bootstrap=boot,
    )


def unpaired(
    candidate: Sequence[Sequence[int]] | NDArray,
    baseline: Sequence[Sequence[int]] | NDArray,
    labels: Sequence[str],
    metric: Metric,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> PairedDifference:
    """The difference of two confusion matrices as if of separate items; `paired` is False and no flip is known.

    For files that keep aggregates only. Over the same items it is wider than the paired difference.
    """
    labels = tuple(labels)
    matrices = [np.array(report_from_matrix(m, labels).matrix, dtype=np.int64) for m in (candidate, baseline)]
    rates = [score_matrix(m, labels, metric, seed=seed, resamples=resamples, level=level) for m in matrices]
    cells = [np.nonzero(m) for m in matrices]
    cut, k = len(cells[0][0]), len(labels)
    stratum = np.concatenate([true + side * k for side, (true, _) in enumerate(cells)])
    units = Units(stratum, np.concatenate([m[at] for m, at in zip(matrices, cells, strict=True)]))
    new, old = (counts_statistic(metric, labels, *at) for at in cells)
    boot = bootstrap(units, lambda w: new(w[:, :cut]) - old(w[:, cut:]), seed=seed, resamples=resamples)
    n = int(matrices[0].sum())
    return PairedDifference(
        metric, _difference(metric, *rates), boot and boot.interval(level), n, 0, *rates, (), (), None, False, boot
    )


def matched(candidate: Items, baseline: Items) -> tuple[tuple[Items, Items], int]:
    """Both sides over the ids that both have, in the baseline's order, with the same labels; how many are left out."""
    labels = baseline.labels + tuple(label for label in candidate.labels if label not in baseline.labels)
    new, old = candidate, baseline
    if new.ids != old.ids:
        at = {item: row for row, item in enumerate(new.ids)}
        old = old.take(np.array([row for row, item in enumerate(old.ids) if item in at], dtype=np.int64))
        new = new.take(np.array([at[item] for item in old.ids], dtype=np.int64))
    new, old = new.relabelled(labels), old.relabelled(labels)
    if (differ := np.flatnonzero(new.true != old.true)).size:
        i = int(differ[0])
        raise InputError(
            f"{len(differ):,} items have another true class in the two files",
            where=f'the item "{new.ids[i]}"',
            why=f"it is {labels[new.true[i]]} for the candidate and {labels[old.true[i]]} for the baseline",
            fix="compare predictions over one labelled file",
        )
    groups = _one_grouping(new, old)
    if new.groups is not old.groups:
        new, old = (Items(s.labels, s.ids, s.true, s.predicted, s.probabilities, groups) for s in (new, old))
    return (new, old), len(candidate) + len(baseline) - 2 * len(new)


def _one_grouping(new: Items, old: Items) -> NDArray | None:
    if new.groups is None or old.groups is None:
        return old.groups if new.groups is None else new.groups
    pairs = {*zip(new.groups.tolist(), old.groups.tolist(), strict=True)}
    if not len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}):
        raise InputError(
            "the two files put the items into different groups",
            where="group",
            fix="compare predictions over one labelled file",
        )
    return old.groups


def _difference(metric: Metric, candidate: Rate, baseline: Rate) -> float | None:
    if candidate.value is None or baseline.value is None:
        return None
    return (candidate.value - baseline.value) * (1 if metric.greater_is_better else -1)
