"""Whether the probabilities mean what they say: reliability by bin, ECE, Brier score, log loss, and thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refusal_core.metrics.intervals import LEVEL, Rate, rate
from refusal_core.metrics.items import Items
from refusal_core.metrics.metric import Metric
from refusal_core.metrics.probabilities import bin_of, confidence, statistic_of
from refusal_core.metrics.resample import RESAMPLES
from refusal_core.metrics.scores import score

MIN_ITEMS = 200  # with fewer, ECE says more about n than about the model


@dataclass(frozen=True)
class ReliabilityBin:
    """Items whose confidence (the probability of the predicted class) is above `low` and at most `high`.

    `confidence` is their mean, `right` the part that is right, with Wilson's interval; a bin of no items has neither.
    """

    low: float
    high: float
    n: int
    confidence: float | None
    right: Rate


@dataclass(frozen=True)
class Calibration:
    """How far confidence is from being right. `enough` is False below MIN_ITEMS items: then ECE decides nothing.

    `too_sure` is mean confidence less accuracy: positive when the model is surer than right.
    """

    n: int
    enough: bool
    bins: tuple[ReliabilityBin, ...]
    ece: Rate
    brier: Rate
    log_loss: Rate
    too_sure: float | None


@dataclass(frozen=True)
class ThresholdPoint:
    """What happens when answers below a confidence of `threshold` are withheld.

    `abstained` is the part of all items that is withheld; `accuracy` is over the others. With a `label`: `precision`
    over the answers that call it so, `recall` over all items of the class (a withheld one counts as missed). Without,
    both are None.
    """

    threshold: float
    abstained: Rate
    accuracy: Rate
    precision: Rate | None
    recall: Rate | None


def calibration(
    items: Items,
    *,
    bins: int = 15,
    binning: str = "equal_mass",
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Calibration:
    """Reliability and the scores that depend on it. Raises InputError when the items have no probabilities.

    Bins of equal mass are at most n / 20, since ECE grows with the number of bins on few items.
    """
    options = {"seed": seed, "resamples": resamples, "level": level}
    of_bins = Metric("ece", bins=bins, binning=binning)
    ece = score(items, of_bins, **options)  # refuses items without probabilities
    sure, right = confidence(items), items.true == items.predicted
    return Calibration(
        n=len(items),
        enough=len(items) >= MIN_ITEMS,
        bins=_reliability(items, of_bins, sure, right, level),
        ece=ece,
        brier=score(items, Metric("brier"), **options),
        log_loss=score(items, Metric("log_loss"), **options),
        too_sure=float(sure.mean() - right.mean()) if len(items) else None,
    )


def thresholds(
    items: Items,
    at: NDArray[np.float64] | tuple[float, ...] | None = None,
    *,
    label: str | None = None,
    level: float = LEVEL,
) -> tuple[ThresholdPoint, ...]:
    """One point for each threshold in `at` (0 to 1; from 0 to 0.99 in steps of 0.01 when not given), in that order.

    Intervals are Wilson's, of items that stand alone. Raises InputError for items without probabilities or a label that
    is not there.
    """
    statistic_of(items, Metric("ece") if label is None else Metric("roc_auc", label=label))  # refuses what cannot be
    sure, right = confidence(items), items.true == items.predicted
    place = items.labels.index(label) if label is not None else None
    points = []
    for threshold in np.arange(100) / 100 if at is None else at:
        kept = sure >= threshold
        answered = int(kept.sum())
        precision = recall = None
        if place is not None:
            called, of_class = kept & (items.predicted == place), items.true == place
            hits = int((called & of_class).sum())
            precision, recall = rate(hits, int(called.sum()), level), rate(hits, int(of_class.sum()), level)
        abstained = rate(len(items) - answered, len(items), level)
        accuracy = rate(int(right[kept].sum()), answered, level)
        points.append(ThresholdPoint(float(threshold), abstained, accuracy, precision, recall))
    return tuple(points)


def _reliability(
    items: Items, metric: Metric, sure: NDArray[np.float64], right: NDArray[np.bool_], level: float
) -> tuple[ReliabilityBin, ...]:
    place, edges = bin_of(items, metric)
    found = []
    for b, (low, high) in enumerate(zip(edges, edges[1:], strict=False)):
        of_bin = place == b
        n = int(of_bin.sum())
        mean = float(sure[of_bin].mean()) if n else None
        found.append(ReliabilityBin(float(low), float(high), n, mean, rate(int(right[of_bin].sum()), n, level)))
    return tuple(found)
