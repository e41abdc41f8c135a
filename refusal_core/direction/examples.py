"""The test rows one by one: how each was called, which are on the wrong side, the ROC, and the table of projections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO

import numpy as np

from refusal_core.activations.npz import Export
from refusal_core.direction.result import Study
from refusal_core.reports import write_csv

ROC_POINTS = 400  # of a drawn curve; its corners beyond are left out evenly


@dataclass(frozen=True, eq=False)
class Examples:
    """Test rows in file order: `labels` int8 [n], `categories` the sorted names, `code` [n] their index, `margins`
    float64 [n] above the threshold, at or above 0 for a call of 1. No activations.
    """

    ids: tuple[str, ...]
    labels: np.ndarray
    categories: tuple[str, ...]
    code: np.ndarray
    margins: np.ndarray
    threshold: float

    @property
    def n(self) -> int:
        return len(self.ids)

    @property
    def calls(self) -> np.ndarray:
        """bool [n]: called 1."""
        return self.margins >= 0

    @property
    def projections(self) -> np.ndarray:
        """float64 [n], in the file's own coordinates."""
        return self.margins + self.threshold

    def wrong(self, label: int) -> np.ndarray:
        """Rows of `label` that were called the other, the farthest from the threshold first."""
        rows = np.flatnonzero((self.labels == label) & (self.calls != (label == 1)))
        return rows[np.argsort(-np.abs(self.margins[rows]), kind="stable")]


def examples_of(test: Export | None, study: Study) -> Examples | None:
    """The rows that `study` scored, which `test` holds; None for a comparison of splits."""
    if test is None or not len(study.margins):
        return None
    names = sorted(set(test.categories))
    place = {name: code for code, name in enumerate(names)}
    return Examples(
        ids=test.ids,
        labels=test.labels,
        categories=tuple(names),
        code=np.array([place[name] for name in test.categories], np.intp),
        margins=study.margins,
        threshold=float(study.direction["threshold"]),
    )


def roc(examples: Examples, points: int = ROC_POINTS) -> tuple[np.ndarray, np.ndarray] | None:
    """False and true positive rates as the threshold falls, from (0, 0) to (1, 1), ties in one step; None without both
    labels. The area under all its corners is the AUROC of the study.
    """
    ones = examples.labels == 1
    n1, n0 = int(ones.sum()), int((~ones).sum())
    if not n1 or not n0:
        return None
    order = np.argsort(-examples.margins, kind="stable")
    last = np.flatnonzero(np.diff(examples.margins[order], append=np.nan) != 0)  # of each group of ties
    true = np.concatenate([[0], np.cumsum(ones[order])[last]]) / n1
    false = np.concatenate([[0], np.cumsum(~ones[order])[last]]) / n0
    if len(true) > points:
        kept = np.unique(np.linspace(0, len(true) - 1, points).astype(int))
        true, false = true[kept], false[kept]
    return false, true


def projections_csv(examples: Examples, prompts: Mapping[str, str] | None = None) -> str:
    """One line a test row: id, category, label, projection, margin, call, right or not, and the prompt where known."""
    file = StringIO(newline="")
    header = ["id", "category", "label", "projection", "margin", "call", "right"]
    rows = zip(
        examples.ids,
        (examples.categories[code] for code in examples.code),
        examples.labels.tolist(),
        examples.projections.tolist(),
        examples.margins.tolist(),
        examples.calls.astype(int).tolist(),
        (examples.calls == (examples.labels == 1)).tolist(),
        strict=True,
    )
    if prompts:
        header.append("prompt")
        rows = ((*row, prompts.get(row[0], "")) for row in rows)
    write_csv(file, header, rows)
    return file.getvalue()
