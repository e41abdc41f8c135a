"""The JSON of `runs DIR --json`: what the page shows of a folder, number for number."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from refusal_core.runs.answer import answer
from refusal_core.runs.model import Best, Checkpoint, Curve, Finding, Problem, Run, Scores
from refusal_core.runs.predictions import Predictions, variants_of
from refusal_core.runs.tables import MatrixTable, OneVsRestTable, ReportTable, ResultsTable, Table

_KINDS = {ReportTable: "report", MatrixTable: "matrix", OneVsRestTable: "one_vs_rest", ResultsTable: "results"}


def to_json(runs: Sequence[Run], problems: Sequence[Problem], findings: Sequence[Finding]) -> dict:
    """`runs`, `problems`, `findings`; ready for `reports.to_json`. A value that is not finite is null with its word in
    `not_finite`, by place."""
    return {
        "schema": "refusal-runs/1",
        "runs": [_run(run) for run in runs],
        "problems": [dataclasses.asdict(problem) for problem in problems],
        "findings": [dataclasses.asdict(finding) for finding in findings],
    }


def _run(run: Run) -> dict:
    return {
        "name": run.name,
        "folder": run.folder,
        "answer": answer(run).sentence,
        "checkpoints": [_checkpoint(checkpoint) for checkpoint in run.checkpoints],
        "curves": [_curve(curve) for curve in run.curves],
        "tables": [_table(table) for table in run.tables],
        "scores": [_scores(scores) for scores in run.scores],
        "predictions": [_predictions(found) for found in run.predictions],
        "best": _best(run.best),
        "resumed_at": [_number(step) for step in run.resumed_at],
        "settings": dict(run.settings),
        "sources": list(run.sources),
        "notes": list(run.notes),
    }


def _checkpoint(checkpoint: Checkpoint) -> dict:
    return {
        "name": checkpoint.name,
        "folder": checkpoint.folder,
        "step": checkpoint.step,
        "metrics": None if checkpoint.metrics is None else _scores(checkpoint.metrics),
        "tables": [_table(table) for table in checkpoint.tables],
        "predictions": [_predictions(found) for found in checkpoint.predictions],
        "notes": list(checkpoint.notes),
    }


def _curve(curve: Curve) -> dict:
    odd = np.flatnonzero(~np.isfinite(curve.values))
    return {
        "metric": curve.metric,
        "split": curve.split,
        "dataset": curve.dataset,
        "label": curve.label,
        "key": curve.key,
        "file": curve.file,
        "steps": _column(curve.steps),
        "epochs": _column(curve.epochs),
        "times": _column(curve.times),
        "values": curve.values,
        "not_finite": {str(int(place)): _word(curve.values[place]) for place in odd},
        "attempt": curve.attempt if curve.attempt.any() else None,
        "superseded": np.flatnonzero(curve.superseded),
    }


def _column(values: np.ndarray) -> np.ndarray | None:
    """None for a column that the file does not have."""
    return None if np.isnan(values).all() else values


def _scores(scores: Scores) -> dict:
    return {
        "file": scores.file,
        "step": _number(scores.step),
        "epoch": _number(scores.epoch),
        "n": scores.n,
        "scores": [
            {
                **dataclasses.asdict(score),
                "value": _number(score.value),
                **({} if math.isfinite(score.value) else {"not_finite": _word(score.value)}),
            }
            for score in scores.scores
        ],
    }


def _table(table: Table) -> dict:
    return {"kind": _KINDS[type(table)], **{f.name: getattr(table, f.name) for f in dataclasses.fields(table)}}


def _predictions(found: Predictions) -> dict:
    """What there is, without the rows."""
    parts = [{"split": split, "variant": variant or None} for split, variant in variants_of(found)]
    return {"file": found.file, "rows": len(found), "labels": list(found.labels), "parts": parts}


def _best(best: Best | None) -> dict | None:
    return None if best is None else dataclasses.asdict(best)


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
