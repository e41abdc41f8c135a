"""Confusion matrix, scores of each class with intervals, averages, and the text that scikit-learn would print."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refusal_core.errors import InputError, one_line
from refusal_core.metrics.intervals import Rate, f1_rate, rate

# Machine epsilon of float64, where scikit-learn clips too: a probability of 0 costs 36.04 nats rather than infinity.
LOG_LOSS_CLIP = float(np.finfo(np.float64).eps)
SCORES = ("precision", "recall", "f1")


@dataclass(frozen=True)
class ClassScores:
    """One class. Undefined scores have value None: precision when never predicted, recall when never true.

    `precision.n` is the predicted count, `recall.n` the support, and `f1.n` TP + FP + FN.
    """

    label: str
    precision: Rate
    recall: Rate
    f1: Rate
    support: int
    predicted: int


@dataclass(frozen=True)
class Averages:
    """Means over classes, each 0 to 1, or None where there is nothing to average."""

    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class ClassificationReport:
    """Everything that a confusion matrix tells. `matrix[i][j]` counts items of true class i predicted as class j.

    `macro` and `weighted` follow scikit-learn with `labels=labels, zero_division=0`: every class in `labels` counts,
    one that is neither true nor predicted too, and an undefined score counts as 0. `undefined_as_zero` lists those
    scores as (label, "precision" | "recall" | "f1"). `macro_where_defined` leaves them out instead
    (`zero_division=nan`). All averages are None when there are no items.
    """

    labels: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    classes: tuple[ClassScores, ...]
    accuracy: Rate
    macro: Averages
    weighted: Averages
    macro_where_defined: Averages
    undefined_as_zero: tuple[tuple[str, str], ...]

    @property
    def n(self) -> int:
        return self.accuracy.n

    def confusion_matrix(self) -> dict:
        """The contents of `confusion_matrix.json`."""
        matrix = [list(row) for row in self.matrix]
        return {"labels": list(self.labels), "matrix": matrix, "rows": "true", "columns": "predicted"}

    def text(self, digits: int = 4) -> str:
        """The contents of `classification_report.txt`, in scikit-learn's layout, undefined as 0.

        The same characters as `sklearn.metrics.classification_report(..., labels=labels, zero_division=0)`, but for two
        of its slips: control characters in a label become spaces, and support is a whole number also when no prediction
        is right (it then prints "1.0").
        """
        names = [one_line(label) for label in self.labels]
        width = max(max(map(len, names)), len("weighted avg"), digits)
        rows = [("", ["precision", "recall", "f1-score"], "support"), None]
        for name, scores in zip(names, self.classes, strict=True):
            rows.append((name, [getattr(scores, score).value for score in SCORES], scores.support))
        rows += [None, ("accuracy", ["", "", self.accuracy.value], self.n)]
        for name, means in (("macro avg", self.macro), ("weighted avg", self.weighted)):
            rows.append((name, [getattr(means, score) for score in SCORES], self.n))

        def cell(score: float | str | None) -> str:
            return score if isinstance(score, str) else f"{score or 0.0:.{digits}f}"

        def line(name: str, scores: Sequence[float | str | None], support: int | str) -> str:
            return f"{name:>{width}} " + "".join(f" {cell(score):>9}" for score in scores) + f" {support:>9}"

        return "\n".join(line(*row) if row else "" for row in rows) + "\n"


def report(true: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> ClassificationReport:
    """Scores of `predicted` against `true`, item by item, over the classes `labels` in that order.

    Raises InputError when a label is not among `labels`, and ValueError when the two sequences differ in length.
    """
    if len(true) != len(predicted):
        raise ValueError(f"{len(true)} true labels but {len(predicted)} predicted ones")
    place = {label: i for i, label in enumerate(labels)}
    pairs = Counter(zip(true, predicted, strict=True))
    for side, name in ((0, "true labels"), (1, "predicted labels")):
        strangers: Counter = Counter()
        for pair, count in pairs.items():
            if pair[side] not in place:
                strangers[pair[side]] += count
        _refuse_strangers(strangers, name, labels)
    matrix = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for (t, p), count in pairs.items():
        matrix[place[t], place[p]] = count
    return report_from_matrix(matrix, labels)


def report_from_matrix(matrix: Sequence[Sequence[int]] | np.ndarray, labels: Sequence[str]) -> ClassificationReport:
    """The same from a confusion matrix, rows true, columns predicted, square over `labels`, whole numbers from 0.

    Raises ValueError for another shape, a negative count, no labels or a label twice, and TypeError for fractions.
    """
    labels = tuple(str(label) for label in labels)
    rows = tuple(tuple(operator.index(count) for count in row) for row in matrix)
    size = len(labels)
    if not size or len(set(labels)) < size:
        raise ValueError(f"labels must be given, each once, not {labels!r}")
    if len(rows) != size or any(len(row) != size for row in rows) or min(map(min, rows)) < 0:
        raise ValueError(f"the matrix must be {size} by {size} counts from 0")

    supports = [sum(row) for row in rows]
    predicted = [sum(column) for column in zip(*rows, strict=True)]
    classes = tuple(_class_scores(labels[i], rows[i][i], supports[i], predicted[i]) for i in range(size))
    n = sum(supports)
    undefined = tuple((c.label, score) for c in classes for score in SCORES if getattr(c, score).value is None)
    return ClassificationReport(
        labels=labels,
        matrix=rows,
        classes=classes,
        accuracy=rate(sum(rows[i][i] for i in range(size)), n),
        macro=_means(classes, n),
        weighted=_means(classes, n, weights=supports),
        macro_where_defined=_means(classes, n, skip_undefined=True),
        undefined_as_zero=undefined,
    )


def log_loss(true_probabilities: Sequence[float] | np.ndarray) -> float | None:
    """Mean cross-entropy in nats: the mean of -ln p, where p (shape [n], 0 to 1) is the probability of the true class.

    p is clipped to LOG_LOSS_CLIP (2.2e-16) from below, and to 1 from above, where float32 rounding may carry it up to
    1e-5 over. None when n is 0. Raises ValueError for NaN, numbers outside 0 to 1, or another shape.
    """
    p = np.asarray(true_probabilities, dtype=np.float64)
    if p.ndim != 1:
        raise ValueError(f"one probability an item is needed, not shape {p.shape}")
    if not np.all((p >= 0) & (p <= 1 + 1e-5)):  # NaN fails both
        raise ValueError("probabilities must be from 0 to 1")
    return float(np.mean(-np.log(np.clip(p, LOG_LOSS_CLIP, 1.0)))) + 0.0 if p.size else None


def _class_scores(label: str, tp: int, support: int, predicted: int) -> ClassScores:
    return ClassScores(
        label=label,
        precision=rate(tp, predicted),
        recall=rate(tp, support),
        f1=f1_rate(tp, predicted - tp, support - tp),
        support=support,
        predicted=predicted,
    )


def _means(
    classes: Sequence[ClassScores], n: int, *, weights: Sequence[int] | None = None, skip_undefined: bool = False
) -> Averages:
    def mean(score: str) -> float | None:
        values = [getattr(c, score).value for c in classes]
        values = [v for v in values if v is not None] if skip_undefined else [v or 0.0 for v in values]
        return float(np.average(values, weights=weights)) if n and values else None

    return Averages(*(mean(score) for score in SCORES))


def _refuse_strangers(strangers: Counter, name: str, labels: Sequence[str]) -> None:
    if not strangers:
        return
    shown = ", ".join(f'"{label}" ({count:,} times)' for label, count in strangers.most_common(5))
    more = f" and {len(strangers) - 5:,} more" if len(strangers) > 5 else ""
    raise InputError(
        f"labels that are not among the classes: {shown}{more}",
        where=name,
        why="the classes are " + ", ".join(map(str, labels)),
        fix="correct the labels, or name the classes that they stand for",
    )
