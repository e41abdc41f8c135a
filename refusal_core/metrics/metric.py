"""A metric by name, and its value under any weighting of the items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import InputError

NAMES = (
    "accuracy", "balanced_accuracy", "precision", "recall", "f1", "mcc", "kappa", "roc_auc", "log_loss", "brier", "ece",
)  # fmt: skip
_OF_A_CLASS = ("precision", "recall", "f1")
_OF_PROBABILITIES = ("roc_auc", "log_loss", "brier", "ece")
_LOWER_IS_BETTER = ("log_loss", "brier", "ece")
_SPOKEN = {
    "balanced_accuracy": "balanced accuracy", "f1": "F1", "mcc": "MCC", "kappa": "Cohen's kappa", "roc_auc": "ROC AUC",
    "log_loss": "log loss", "brier": "Brier score", "ece": "ECE",
}  # fmt: skip


@dataclass(frozen=True)
class Metric:
    """What is measured. precision, recall and f1 take either an `average` or a `label`; roc_auc too, macro by default.

    `micro` of precision, recall and f1 is accuracy where each item has one class. `zero_division` says what a score
    without a denominator is: "undefined" (the class leaves the average, as with scikit-learn's `zero_division=nan`; the
    score of one class has no value), or 0 or 1. It holds for mcc and kappa too. `bins` and `binning` are of ece: bins
    of equal mass are at most n / 20. brier is summed over classes, 0 to 2. Raises InputError for what has no meaning.
    """

    name: str
    average: Literal["macro", "weighted", "micro"] | None = None
    label: str | None = None
    bins: int = 15
    binning: Literal["equal_mass", "equal_width"] = "equal_mass"
    zero_division: Literal["undefined", 0, 1] = "undefined"

    def __post_init__(self) -> None:
        def refuse(what: str, why: str = "") -> None:
            raise InputError(what, where=f'metric "{self.name}"', why=why)

        if self.name not in NAMES:
            refuse("there is no such metric", why="the metrics are " + ", ".join(NAMES))
        if self.name == "roc_auc" and self.average is None and self.label is None:
            object.__setattr__(self, "average", "macro")
        averages = {"roc_auc": ("macro", "weighted"), **dict.fromkeys(_OF_A_CLASS, ("macro", "weighted", "micro"))}
        if self.name in averages:
            if (self.average is None) == (self.label is None):
                refuse("either an average or a label is needed")
            if self.average is not None and self.average not in averages[self.name]:
                refuse(
                    f'there is no average "{self.average}"', why="the averages are " + ", ".join(averages[self.name])
                )
        elif self.average is not None or self.label is not None:
            refuse("it takes no average and no label")
        if self.zero_division not in ("undefined", 0, 1) or isinstance(self.zero_division, bool):
            refuse(f"zero_division is {self.zero_division!r}", why='it is "undefined", 0 or 1')
        if self.binning not in ("equal_mass", "equal_width") or not 1 <= self.bins <= 1000:
            refuse("bins are from 1 to 1000, of equal_mass or equal_width")

    def __str__(self) -> str:
        spoken = _SPOKEN.get(self.name, self.name)
        if self.label is not None:
            return f"{spoken} of {self.label}"
        return f"{self.average} {spoken}" if self.average else spoken

    @property
    def greater_is_better(self) -> bool:
        return self.name not in _LOWER_IS_BETTER

    @property
    def needs_probabilities(self) -> bool:
        return self.name in _OF_PROBABILITIES

    @property
    def rule(self) -> str | None:
        """What happens to a score without a denominator, to be printed beside the value; None where it cannot occur."""
        if self.name not in (*_OF_A_CLASS, "mcc", "kappa") or self.average == "micro":
            return None
        if self.zero_division != "undefined":
            return f"0/0 counts as {self.zero_division}"
        return "0/0 is left out of the average" if self.average else "0/0 is undefined"


def of_counts(
    metric: Metric,
    labels: Sequence[str],
    tp: NDArray[np.float64],
    true: NDArray[np.float64],
    called: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The metric [r] of counts by class [r, k]: right ones, items of the class, items called so. NaN if undefined.

    For every metric that needs no probabilities: a confusion matrix gives them nothing more than these three.
    """
    n, right = true.sum(axis=1), tp.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        if metric.name == "accuracy" or metric.average == "micro":
            return right / n
        if metric.name == "balanced_accuracy":
            return _nan_average(tp / true, np.ones_like(true))
        if metric.name in ("mcc", "kappa"):
            chance = (true * called).sum(axis=1)
            if metric.name == "kappa":
                value = (n * right - chance) / (n * n - chance)
            else:
                spread = (n * n - (true * true).sum(axis=1)) * (n * n - (called * called).sum(axis=1))
                value = (n * right - chance) / np.sqrt(spread)
            return np.where(n > 0, _ruled(metric, value), np.nan)
        above, below = {"precision": (tp, called), "recall": (tp, true), "f1": (2 * tp, true + called)}[metric.name]
        if metric.label is not None:
            place = place_of(metric, labels)
            return _ruled(metric, above[:, place] / below[:, place])
        weights = true if metric.average == "weighted" else np.ones_like(true)
        return np.where(n > 0, _nan_average(_ruled(metric, above / below), weights), np.nan)


def place_of(metric: Metric, labels: Sequence[str]) -> int:
    """Where the metric's label is among `labels`; InputError when it is not."""
    if metric.label not in labels:
        raise InputError(
            f'there is no class "{metric.label}"', where=str(metric), why="the classes are " + ", ".join(labels)
        )
    return labels.index(metric.label)


def _ruled(metric: Metric, value: NDArray[np.float64]) -> NDArray[np.float64]:
    """`value` with 0/0, which is NaN, by the metric's rule. An infinity is 0/0 after rounding too."""
    value = np.where(np.isfinite(value), value, np.nan)
    return value if metric.zero_division == "undefined" else np.where(np.isnan(value), metric.zero_division, value)


def _nan_average(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    there = np.isfinite(values)
    return (np.where(there, values, 0.0) * weights).sum(axis=1) / (there * weights).sum(axis=1)
