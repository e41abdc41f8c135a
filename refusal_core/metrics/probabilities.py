"""Scores of probabilities under any weighting of the items: log loss, Brier score, ECE, ROC AUC."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import InputError
from refusal_core.metrics.items import Items
from refusal_core.metrics.metric import Metric, place_of
from refusal_core.metrics.report import LOG_LOSS_CLIP
from refusal_core.metrics.resample import Statistic

ITEMS_PER_BIN = 20  # of bins of equal mass, at least: ECE grows with fewer


def statistic_of(items: Items, metric: Metric) -> Statistic:
    """The metric as a function of weights of the items [r, n]. InputError when the items have no probabilities."""
    if items.probabilities is None:
        raise InputError(f"{metric} needs probabilities", why="the predictions hold classes only")
    if metric.name == "roc_auc":
        return _auc(items, metric)
    if metric.name == "ece":
        gaps = bin_gaps(items, metric)
        return lambda w: np.abs(w @ gaps).sum(axis=1) / w.sum(axis=1)
    losses = item_losses(items, metric.name)
    return lambda w: (w @ losses) / w.sum(axis=1)


def item_losses(items: Items, name: str) -> NDArray[np.float64]:
    """What each item adds [n]: -ln of the true class's probability (nats, clipped); or the squared distance, 0 to 2."""
    p = items.probabilities
    if name == "log_loss":
        return -np.log(np.clip(p[np.arange(len(items)), items.true], LOG_LOSS_CLIP, 1.0)) + 0.0
    return ((p - np.eye(len(items.labels))[items.true]) ** 2).sum(axis=1)


def confidence(items: Items) -> NDArray[np.float64]:
    """The probability of the predicted class [n]."""
    return np.minimum(items.probabilities[np.arange(len(items)), items.predicted], 1.0)


def bin_of(items: Items, metric: Metric) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The bin of each item's confidence [n], and the edges [bins + 1]. Equal confidences share a bin.

    Bins of equal mass hold equally many items where ties allow, at least ITEMS_PER_BIN.
    """
    sure = confidence(items)
    bins = metric.bins
    if metric.binning == "equal_mass":
        bins = max(1, min(bins, len(items) // ITEMS_PER_BIN))
        inner = np.unique(np.quantile(sure, np.arange(1, bins) / bins)) if len(items) else np.empty(0)
    else:
        inner = np.arange(1, bins) / bins
    # A confidence on an edge belongs to the bin below it, so that 1.0 is in the last.
    return np.searchsorted(inner, sure, side="left"), np.array([0.0, *inner, 1.0])


def bin_gaps(items: Items, metric: Metric) -> NDArray[np.float64]:
    """Each item's confidence less 1 if right, in the column of its bin [n, bins]: sums by bin are ECE's terms."""
    place, edges = bin_of(items, metric)
    gaps = np.zeros((len(items), len(edges) - 1))
    gaps[np.arange(len(items)), place] = confidence(items) - (items.true == items.predicted)
    return gaps


def ece_if_calibrated(items: Items, metric: Metric, seed: int, draws: int = 2_000) -> NDArray[np.float64]:
    """ECE [draws] that a perfectly calibrated model of these confidences would show on as many items."""
    place, edges = bin_of(items, metric)
    sure = confidence(items)
    spread = np.sqrt(np.bincount(place, weights=sure * (1 - sure), minlength=len(edges) - 1))
    normal = np.random.default_rng(seed).standard_normal((draws, len(spread)))
    return np.abs(normal * spread).sum(axis=1) / len(items)


def _auc(items: Items, metric: Metric) -> Statistic:
    """One against the rest: the chance that an item of the class gets the higher probability of it, ties half."""
    places = range(len(items.labels)) if metric.label is None else [place_of(metric, items.labels)]
    parts = []
    for c in places:
        p = items.probabilities[:, c]
        positive, negative = np.flatnonzero(items.true == c), np.flatnonzero(items.true != c)
        negative = negative[np.argsort(p[negative], kind="stable")]
        below, up_to = (np.searchsorted(p[negative], p[positive], side) for side in ("left", "right"))
        parts.append((positive, negative, below, up_to))

    def of_class(w: NDArray[np.float64], positive: NDArray, negative: NDArray, below: NDArray, up_to: NDArray):
        pos = w[positive]
        beaten = np.zeros((len(negative) + 1, w.shape[1]))
        np.cumsum(w[negative], axis=0, out=beaten[1:])
        total = pos.sum(axis=0)
        wins = np.einsum("ir,ir->r", pos, beaten[below]) + np.einsum("ir,ir->r", pos, beaten[up_to])
        return wins / (2 * total * beaten[-1]), total

    def statistic(w: NDArray[np.float64]) -> NDArray[np.float64]:
        w = np.ascontiguousarray(w.T)  # whole rows are taken, which is some four times faster
        with np.errstate(divide="ignore", invalid="ignore"):
            values, sizes = (np.array(x) for x in zip(*(of_class(w, *part) for part in parts), strict=True))
            there = np.isfinite(values)  # a class that no item has, or every item, has no AUC
            weights = there * (sizes if metric.average == "weighted" else 1.0)
            return (np.where(there, values, 0.0) * weights).sum(axis=0) / weights.sum(axis=0)

    return statistic
