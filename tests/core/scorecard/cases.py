"""Small suites and prediction files, written on the spot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from refusal_core.classifier.folder import read_folder
from refusal_core.classifier.result import CheckpointInfo, Classification
from refusal_core.exchanges import Exchange
from refusal_core.labels import LABELS
from refusal_core.scorecard import BesideSuite, Choice, Row, Scorecard, read_suite, run
from refusal_core.scorecard.cache import AnswerCache


def write_predictions(
    path: Path,
    true: Sequence[int | None],
    predicted: Sequence[int | None],
    *,
    labels: Sequence[str] = LABELS,
    ids: Sequence[str] | None = None,
    sure: float | None = None,
    **columns: Sequence[object],
) -> Path:
    """Places in `labels`; `sure` is the probability of every answer; `columns` are further keys, one value a row."""
    lines = []
    for i, (t, p) in enumerate(zip(true, predicted, strict=True)):
        row = {"id": ids[i] if ids else f"i{i}", "label": None if p is None else labels[p]}
        row |= {"true": labels[t]} if t is not None else {}
        if sure is not None and p is not None:
            rest = (1 - sure) / (len(labels) - 1)
            row["probabilities"] = {label: sure if k == p else rest for k, label in enumerate(labels)}
        row |= {name: values[i] for name, values in columns.items()}
        lines.append(json.dumps(row))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_jsonl(path: Path, rows: Sequence[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def flipped(n: int, wrong: int, *, label: int = 1, other: int = 0) -> tuple[list[int], list[int]]:
    """n items of one class, the first `wrong` of them answered as another."""
    return [label] * n, [other] * wrong + [label] * (n - wrong)


def score(folder: Path, text: str, *, cache: AnswerCache | None = None, load=None, **choice) -> Scorecard:
    """The scorecard of the suite `text`, whose paths start at `folder`."""
    file = read_suite(text.encode(), "suite.yaml")
    more = {"load": load} if load is not None else {}
    return run(file, BesideSuite(folder), choice=Choice(**choice), cache=cache or AnswerCache(None), **more)


def assertion(text: str, *, columns: str = "{id: a, predictions: a.jsonl}", more: str = "") -> str:
    """A suite of one test with one assertion, written in braces."""
    return f"version: 1\n{more}\ncheckpoints: [{columns}]\ntests:\n  - id: t\n    assert:\n      - {text}\n"


def only(scorecard: Scorecard, checkpoint: str | None = None) -> Row:
    """The single row of a scorecard, or of one of its checkpoints."""
    [row] = scorecard.rows if checkpoint is None else scorecard.of(checkpoint)
    return row


def noisy(seed: int, n: int, accuracy: float, k: int = 5) -> tuple[list[int], list[int]]:
    """n items, answered right with probability `accuracy`, else with any class."""
    rng = np.random.default_rng(seed)
    true = rng.integers(k, size=n)
    right = rng.random(n) < accuracy
    return true.tolist(), np.where(right, true, rng.integers(k, size=n)).tolist()


class Stub:
    """A classifier without a model: the class follows from the length of the response. Counts what it is asked."""

    asked: list[int] = []  # exchanges of each call, of all stubs

    def __init__(self, name: str) -> None:
        digest = read_folder(Path(name), name).digest()
        self.info = CheckpointInfo(name, "directory", None, digest, LABELS, 512, 512, "Stub", 0)

    def predict(self, exchanges: Sequence[Exchange], job=None) -> list[Classification]:
        Stub.asked.append(len(exchanges))
        if job is not None:
            job.advance(len(exchanges))
        return [self._answer(exchange) for exchange in exchanges]

    def _answer(self, exchange: Exchange) -> Classification:
        if not exchange.response:
            return Classification(exchange.id, None, None, None, error="empty response")
        label = LABELS[len(exchange.response) % 5]
        probabilities = {name: 0.6 if name == label else 0.1 for name in LABELS}
        return Classification(exchange.id, label, probabilities, None)


def stub_folder(path: Path, weights: bytes = b"weights") -> Path:
    """A folder that has a checkpoint's files, for Stub."""
    path.mkdir(parents=True)
    (path / "config.json").write_text('{"architectures": ["XForSequenceClassification"]}')
    (path / "tokenizer.json").write_text("{}")
    (path / "model.safetensors").write_bytes(weights)
    return path
