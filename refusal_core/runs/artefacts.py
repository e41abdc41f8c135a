"""What the readers make: one artefact for each file, or for each run and each table in one.

This is the seam between reading and sense. `read.read_folder` gives artefacts and problems, and knows nothing of runs;
`discover.discover` makes runs of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from refusal_core.runs.model import Curve, Scores
from refusal_core.runs.predictions import Predictions
from refusal_core.runs.tables import Table

Kind = Literal["state", "history", "scores", "table", "predictions", "config"]


@dataclass(frozen=True)
class Stated:
    """What a trainer state says of the best checkpoint; paths by their last part only."""

    value: float | None
    checkpoint: str | None
    step: int | None


@dataclass(frozen=True, eq=False)
class Artefact:
    """What one file says, or one run of a store."""

    kind: Kind
    """"state": a Hugging Face trainer state. "history": curves from elsewhere (event files, Trackio, MLflow, CSV,
    logs). "scores": flat results. "table": a report, matrix or results file. "config": a checkpoint's config.json."""
    format: str
    """What the file is, in words: "Hugging Face trainer state"."""
    file: str
    """Below the folder that was read, with "/"."""
    part: str = ""
    """Which run of a store, or which heading of a file with several tables."""
    digest: str = ""
    """SHA-256 of the whole file."""
    name: str = ""
    """The run's name, where the file has one."""
    step: int | None = None
    """Of a state its global_step; of other files the step that they state."""
    epoch: float | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    """Of a state max_steps, num_train_epochs, train_batch_size and other plain values; of a store the run's config."""
    curves: tuple[Curve, ...] = ()
    """Of a state: the rows of the training itself; see `after_training`."""
    rows: int = 0
    """Log rows that were read."""
    replaced: int = 0
    """Log rows that a later one of the same step and family stands for."""
    summary: Mapping[str, float] = field(default_factory=dict)
    """The row at the end of a training: train_runtime, train_loss, total_flos."""
    after_training: tuple[Scores, ...] = ()
    """Evaluations logged after that row. With load_best_model_at_end they are of the best weights, stamped with the
    last step: they are no point of a curve, and belong to a checkpoint by value."""
    scores: Scores | None = None
    table: Table | None = None
    predictions: Predictions | None = None
    best: Stated | None = None
    labels: tuple[str, ...] = ()
    """Of a config: id2label in the order of the ids."""
    alerts: tuple[str, ...] = ()
    """Of a store: what the training warned of."""
    notes: tuple[str, ...] = ()
    """What was repaired or assumed: "3 values that were text were read as numbers"."""

    @property
    def folder(self) -> str:
        """The folder of the file, "" for the one that was read."""
        return self.file.rpartition("/")[0]
