"""What is known of trainings: runs with their checkpoints and curves, and what does not add up.

Readers make artefacts (`artefacts.py`, one for each file or each run of a store); sense is made of those: they become
the runs of this module. Names of files are relative to the folder that was read, with "/" between folders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from refusal_core.runs.predictions import Predictions
from refusal_core.runs.tables import Table

Read = Literal["no", "in part", "whole"]


@dataclass(frozen=True, eq=False)
class Curve:
    """One metric over a training. Arrays of one length, read-only, in the order of the file.

    NaN and infinite values are kept: a diverged training has them, and a figure marks them.
    """

    metric: str
    """House name: loss, accuracy, macro_f1, weighted_f1, f1 (average not stated), macro_precision, learning_rate,
    grad_norm, runtime …; a metric that we have no name for keeps the file's, lower case, without the split."""
    split: str
    """"train", "eval", "test", "predict", or "" for a custom row."""
    dataset: str
    """Evaluation set: "g0" of eval_g0_loss; "" when there is one only."""
    label: str | None
    """The class, of a metric by class ("f1", "precision", "recall", "support")."""
    key: str
    """As in the file: "eval_f1_macro"."""
    file: str
    steps: NDArray[np.float64]
    """Optimizer steps; NaN where the file states none."""
    values: NDArray[np.float64]
    epochs: NDArray[np.float64]
    """NaN where the file states none."""
    times: NDArray[np.float64]
    """Seconds since 1970, UTC; NaN where the file states none."""
    attempt: NDArray[np.int64]
    """0 for the first one, 1 after the first resume, and so on."""
    superseded: NDArray[np.bool_]
    """True where a later row stands for the same step: drawn faint, counted in nothing."""

    @classmethod
    def of(
        cls,
        metric: str,
        values: NDArray,
        steps: NDArray,
        *,
        split: str = "",
        dataset: str = "",
        label: str | None = None,
        key: str = "",
        file: str = "",
        epochs: NDArray | None = None,
        times: NDArray | None = None,
        superseded: NDArray | None = None,
    ) -> Curve:
        """A curve of one attempt; what is not given is NaN, and nothing is superseded."""
        n = len(values)
        unknown = np.full(n, np.nan)
        arrays = {
            "steps": np.asarray(steps, dtype=np.float64),
            "values": np.asarray(values, dtype=np.float64),
            "epochs": unknown if epochs is None else np.asarray(epochs, dtype=np.float64),
            "times": unknown if times is None else np.asarray(times, dtype=np.float64),
            "attempt": np.zeros(n, dtype=np.int64),
            "superseded": np.zeros(n, dtype=np.bool_) if superseded is None else np.asarray(superseded, dtype=np.bool_),
        }
        for array in arrays.values():
            if array.shape != (n,):
                raise ValueError(f"{array.shape} beside {n} values")
            array.setflags(write=False)
        return cls(metric=metric, split=split, dataset=dataset, label=label, key=key, file=file, **arrays)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def name(self) -> tuple[str, str, str, str | None]:
        """What makes two curves the same one: (split, dataset, metric, label)."""
        return self.split, self.dataset, self.metric, self.label

    def current(self) -> Curve:
        """Without the superseded rows."""
        return self.take(~self.superseded) if self.superseded.any() else self

    def take(self, rows: NDArray) -> Curve:
        """The rows of a mask, an index array or a slice."""
        names = ("steps", "values", "epochs", "times", "attempt", "superseded")
        arrays = {name: getattr(self, name)[rows] for name in names}
        for array in arrays.values():
            array.setflags(write=False)
        return replace(self, **arrays)


@dataclass(frozen=True)
class Score:
    """One number of one evaluation. NaN and infinities are kept."""

    metric: str
    """As `Curve.metric`."""
    split: str
    dataset: str
    label: str | None
    key: str
    """As in the file."""
    value: float
    n: int | None = None
    """Items behind it, where the file says it."""

    @property
    def name(self) -> tuple[str, str, str, str | None]:
        return self.split, self.dataset, self.metric, self.label


@dataclass(frozen=True)
class Scores:
    """The numbers of one evaluation, as one file or one row of a file states them."""

    file: str
    scores: tuple[Score, ...]
    step: float | None = None
    """As stated there, which may be of the last step while the weights are the best ones."""
    epoch: float | None = None
    n: int | None = None
    """Items of the evaluation, where the file says it."""
    split: str = ""
    """The split that the file names beside its numbers, whose keys may begin with eval_ nevertheless."""

    def find(
        self, metric: str, *, split: str | None = None, dataset: str | None = None, label: str | None = None
    ) -> Score | None:
        """The first score of that name; a split or data set that is not given may be any."""
        for score in self.scores:
            named = score.metric == metric and score.label == label
            if named and split in (None, score.split) and dataset in (None, score.dataset):
                return score
        return None


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Weights that a training saved."""

    name: str
    """Its folder's own name, "checkpoint-2600"."""
    folder: str
    """Below the folder that was read; "" for that folder itself."""
    step: int | None
    """None for a folder without a number, "checkpoint-best"."""
    metrics: Scores | None = None
    """Its own evaluation; None where no file holds one. `metrics.file` says which does."""
    tables: tuple[Table, ...] = ()
    predictions: tuple[Predictions, ...] = ()
    notes: tuple[str, ...] = ()
    """How what belongs to it was found, for example "by value, not by its epoch"."""


@dataclass(frozen=True)
class Best:
    """The best checkpoint, and why."""

    checkpoint: str
    metric: str
    """House name, with the split and data set: "eval macro_f1"."""
    greater_is_better: bool
    value: float
    ties: tuple[str, ...] = ()
    """Other checkpoints with the same value."""
    how: str = ""
    """"stated by the training", or how it was chosen here."""


@dataclass(frozen=True, eq=False)
class Run:
    """One training."""

    name: str
    folder: str
    checkpoints: tuple[Checkpoint, ...] = ()
    """By step; those without a number last."""
    curves: tuple[Curve, ...] = ()
    tables: tuple[Table, ...] = ()
    """Those that belong to no single checkpoint."""
    scores: tuple[Scores, ...] = ()
    """Evaluations that belong to no single checkpoint."""
    predictions: tuple[Predictions, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    """Numbers, text, booleans and None: max_steps, train_batch_size, learning_rate …"""
    sources: tuple[str, ...] = ()
    """Every file that says something about it."""
    resumed_at: tuple[float, ...] = ()
    """Last step before each resume."""
    best: Best | None = None
    notes: tuple[str, ...] = ()
    """What was repaired or assumed while reading."""
    findings: tuple[Finding, ...] = ()
    """What was found while its files were put together; `findings.findings_of` has all."""


@dataclass(frozen=True)
class Finding:
    """Something about a run that its reader should know."""

    kind: str
    """diverged, constant_metric, overfitting, resumed, empty_history, missing_evaluation, contradiction,
    epoch_mismatch, two_runs_in_one_folder, suspicious_copy, and more."""
    run: str
    where: str
    """File, and step or row."""
    expected: str
    found: str
    fix: str


@dataclass(frozen=True)
class Problem:
    """A file that was not read, or not as it is."""

    file: str
    what: str
    fix: str = ""
    read: Read = "no"
    """"in part" where the whole rows of a cut file were kept, "whole" where something was repaired on the way."""
    ours: bool = True
    """False for a file that is no run artefact at all: weights, pictures, source code."""
