"""Every number of the starter's card, from the predictions and figures that ship with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from refusal_core.classifier.checkpoint import STARTER_FOLDER
from refusal_core.classifier.matcher import match
from refusal_core.labels import LABELS
from refusal_core.metrics.calibration import Calibration, calibration
from refusal_core.metrics.intervals import Rate, rate
from refusal_core.metrics.metric import Metric
from refusal_core.metrics.report import ClassificationReport, report, report_from_matrix
from refusal_core.metrics.scores import score
from refusal_core.perturb import PERTURBATIONS
from refusal_core.training import starter_run as kept
from refusal_core.training.starter import corpus_rows
from refusal_core.training.starter_run import FIGURES, Row, items, of, read_rows

RUN = STARTER_FOLDER / "run"
STEADY = ("lower_case", "double_spaces", "trailing_newline", "typographic_apostrophes")  # changes that must not matter
MACRO = Metric("f1", average="macro", zero_division=0)


@dataclass(frozen=True)
class Numbers:
    """What the card says, computed once. `checkpoints` maps a folder of the run to its macro F1 on the test rows."""

    test: ClassificationReport
    macro_f1: Rate
    matcher: ClassificationReport
    development: ClassificationReport
    calibration: Calibration
    cases: ClassificationReport
    changed: dict[str, Rate]
    ablations: dict[str, ClassificationReport]
    validation: ClassificationReport
    validation_matcher: ClassificationReport
    complaints: Rate
    complaints_matcher: Rate
    checkpoints: dict[str, Rate]
    shipped: str


def shipped_checkpoint(run: Path = RUN) -> str:
    """Name of the folder in `run` whose predictions are of the weights that ship."""
    return str(json.loads((run.parent / FIGURES).read_text(encoding="utf-8"))["shipped"])


def numbers(run: Path = RUN) -> Numbers:
    """Every number of the card, from the files of the run folder and the corpus."""
    figures, shipped = read_figures(run), shipped_checkpoint(run)
    rows = read_rows(run / shipped / "predictions.jsonl")
    test = of(rows, kept.TEST)
    texts = {str(row.id): row for row in corpus_rows("heldout").exchanges}
    matcher = [match(texts[row.id].response).label for row in test]
    before = {row.id: row.label for row in test}
    complaints = figures["complaints"]
    return Numbers(
        test=report_of(test),
        macro_f1=score(items(test), MACRO),
        matcher=report([row.true for row in test], matcher, LABELS),
        development=report_of(of(rows, kept.DEVELOPMENT)),
        calibration=calibration(items(test)),
        cases=report_of(of(rows, kept.CASES)),
        changed={
            name: rate(sum(row.label != before[row.id] for row in of(rows, kept.TEST, name)), len(test))
            for name in PERTURBATIONS
        },
        ablations={split: report_of(of(rows, split)) for split in (kept.PROMPT_ONLY, kept.RESPONSE_ONLY)},
        validation=_summed(figures["validation"]),
        validation_matcher=_summed(figures["validation_matcher"]),
        complaints=rate(sum(each["true"] == each["label"] for each in complaints), len(complaints)),
        complaints_matcher=rate(sum(each["true"] == each["matcher"] for each in complaints), len(complaints)),
        checkpoints={
            path.parent.name: score(items(of(read_rows(path), kept.TEST)), MACRO)
            for path in sorted(run.glob("checkpoint-*/predictions.jsonl"), key=_step)
        },
        shipped=shipped,
    )


def aims(n: Numbers) -> list[tuple[str, str, str, bool]]:
    """What the training aimed at: what, the aim, what was reached, whether it was."""
    partial = next(c for c in n.test.classes if c.label == "partial_refusal").f1
    worst = max((n.changed[name] for name in STEADY), key=lambda r: r.value or 0)
    return [
        ("macro F1, held-out domains", "0.90 or more", str(n.macro_f1), _at_least(n.macro_f1.value, 0.90)),
        ("F1 of partial_refusal there", "0.75 or more", str(partial), _at_least(partial.value, 0.75)),
        ("complaint cases right", "17 of 18", f"{count(n.complaints)}", _at_least(n.complaints.value, 17 / 18)),
        (
            "ECE, held-out domains",
            "0.03 or less",
            str(n.calibration.ece),
            not _at_least(n.calibration.ece.value, 0.03001),
        ),
        ("labels changed by a change of form", "1% or less", str(worst), not _at_least(worst.value, 0.01001)),
    ]


def read_figures(run: Path) -> dict[str, Any]:
    return json.loads((run.parent / FIGURES).read_text(encoding="utf-8"))


def report_of(rows: Sequence[Row]) -> ClassificationReport:
    return report([row.true for row in rows], [row.label for row in rows], LABELS)


def _summed(matrices: dict[str, list[list[int]]]) -> ClassificationReport:
    return report_from_matrix(np.sum([np.array(m) for m in matrices.values()], axis=0), LABELS)


def _step(path: Path) -> int:
    return int(path.parent.name.rpartition("-")[2])


def count(r: Rate) -> str:
    return f"{round((r.value or 0) * r.n)} of {r.n}"


def _at_least(value: float | None, least: float) -> bool:
    return value is not None and value >= least
