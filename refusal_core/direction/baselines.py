"""What needs no activations: the majority label, and the training rate of each category."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.rows import Rows
from refusal_core.direction.scores import balanced_accuracy, correct_cells


@dataclass(frozen=True)
class Majority:
    """The more common training label, 0 on an even draw, predicted for every test row."""

    label: int
    accuracy: float
    balanced_accuracy: float | None


@dataclass(frozen=True)
class CategoryIdentity:
    """The more common training label of each row's category; the majority label for a category not seen."""

    accuracy: float
    balanced_accuracy: float | None
    categories_seen: int


def majority(train: Rows, test: Rows) -> Majority:
    n0, n1 = train.label_counts
    label = int(n1 > n0)
    return Majority(label, *_scores(test, np.full(test.n, label == 1)))


def category_identity(train: Rows, test: Rows) -> CategoryIdentity | NotAvailable:
    """The baseline to beat when categories are in both files; not available when none is."""
    cells = {name: tuple(counts) for name, counts in zip(train.categories, train.cells().tolist(), strict=True)}
    seen = [name for name in test.categories if name in cells]
    if not seen:
        return NotAvailable("no category is in both files")
    fallback = majority(train, test).label == 1
    calls = np.array([cells[name][1] > cells[name][0] if name in cells else fallback for name in test.categories])
    return CategoryIdentity(*_scores(test, calls[test.code]), len(seen))


def _scores(test: Rows, calls: np.ndarray) -> tuple[float, float | None]:
    correct, counts = correct_cells(test, calls).sum(0), test.cells().sum(0)
    return float(correct.sum() / test.n), balanced_accuracy(correct, counts)
