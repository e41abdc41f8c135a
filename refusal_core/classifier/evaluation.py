"""Score a classifier on labelled exchanges: one function, one frozen result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from refusal_core.classifier.predict import Classifier
from refusal_core.classifier.result import CheckpointInfo, Classification
from refusal_core.errors import InputError
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import Job
from refusal_core.limits import EVALUATE_ROWS
from refusal_core.metrics.report import ClassificationReport, log_loss, report
from refusal_core.reports import to_json
from refusal_core.versions import versions

FILES = ("eval_results.json", "classification_report.txt", "confusion_matrix.json", "predictions.jsonl")

# Columns of the input that say which item a prediction belongs to; they travel with it.
_CARRIED = ("group", "variant")


@dataclass(frozen=True)
class Prediction:
    """A labelled exchange and its answer; `true` is None for a row that could not be read."""

    answer: Classification
    true: str | None
    carried: dict[str, object]

    def as_row(self, split: str) -> dict:
        """The line of `predictions.jsonl`."""
        return {
            "id": self.answer.id,
            "label": self.answer.label,
            **({"true": self.true} if self.true is not None else {}),
            "probabilities": self.answer.probabilities and dict(self.answer.probabilities),
            "split": split,
            **self.carried,
            **({"error": self.answer.error} if self.answer.error is not None else {}),
        }


@dataclass(frozen=True)
class Evaluation:
    """Scores over the rows that were classified. `unclassified` rows count in no score. `loss` in nats."""

    checkpoint: CheckpointInfo
    split: str
    report: ClassificationReport
    loss: float | None
    predictions: tuple[Prediction, ...]
    options: dict[str, object]

    @property
    def unclassified(self) -> int:
        return len(self.predictions) - self.report.n

    def results(self) -> dict:
        """The contents of `eval_results.json`, without versions."""
        interval = self.report.accuracy.interval
        return {
            "split": self.split,
            "eval_loss": self.loss,
            "eval_accuracy": self.report.accuracy.value,
            "eval_accuracy_interval": interval and {
                "low": interval.low, "high": interval.high, "level": interval.level, "method": interval.method,
            },
            "eval_macro_f1": self.report.macro.f1,
            "eval_weighted_f1": self.report.weighted.f1,
            "eval_macro_precision": self.report.macro.precision,
            "eval_macro_recall": self.report.macro.recall,
            "eval_samples": self.report.n,
            "eval_unclassified": self.unclassified,
            "undefined_counted_as_zero": [f"{score} of {label}" for label, score in self.report.undefined_as_zero],
            "checkpoint": {
                "digest": self.checkpoint.digest,
                "revision": self.checkpoint.revision,
                "precision": self.checkpoint.precision,
            },
            "options": self.options,
        }  # fmt: skip


def evaluate(
    classifier: Classifier, rows: Iterable[Exchange | BadRow], *, split: str = "test", job: Job | None = None, **options
) -> Evaluation:
    """Classify `rows` and score the answers against their labels. `options` are those of `Classifier.predict`.

    Raises InputError when a label is none of the checkpoint's classes, when no row can be scored, or when there are
    more than `limits.EVALUATE_ROWS` rows.
    """
    kept: list[Exchange | BadRow] = []
    for row in rows:
        if isinstance(row, Exchange) and row.label not in classifier.info.labels:
            raise InputError(
                f"the label {row.label!r} is none of the checkpoint's classes",
                where=f"line {row.line}" if row.line is not None else f"row {row.id}",
                why=f"one of {', '.join(classifier.info.labels)} was expected",
            )
        kept.append(row)
        if len(kept) > EVALUATE_ROWS:
            raise InputError(f"there are more than {EVALUATE_ROWS:,} rows", fix="evaluate a part of the file")
    job = job or Job()
    job.start(sum(isinstance(row, Exchange) for row in kept), "rows")
    answers = list(classifier.predict_rows(kept, job=job, **options))
    predictions = tuple(
        Prediction(answer, row.label, {key: row.extra[key] for key in _CARRIED if key in row.extra})
        if isinstance(row, Exchange)
        else Prediction(answer, None, {})
        for row, answer in zip(kept, answers, strict=True)
    )
    scored = [p for p in predictions if p.answer.label is not None and p.true is not None]
    if not scored:
        raise InputError("no row could be classified", why=f"the first problem: {predictions[0].answer.error}")
    return Evaluation(
        checkpoint=classifier.info,
        split=split,
        report=report([p.true for p in scored], [p.answer.label for p in scored], classifier.info.labels),
        loss=log_loss([p.answer.probabilities[p.true] for p in scored]),
        predictions=predictions,
        options={key: value for key, value in options.items() if value is not None and key != "batch_size"},
    )


def write_files(result: Evaluation, folder: Path) -> None:
    """Write the four files of `FILES` into `folder`."""
    contents = {
        "eval_results.json": to_json({**result.results(), "versions": versions()}, indent=2) + "\n",
        "classification_report.txt": result.report.text(),
        "confusion_matrix.json": to_json(result.report.confusion_matrix(), indent=2) + "\n",
        "predictions.jsonl": "".join(to_json(p.as_row(result.split)) + "\n" for p in result.predictions),
    }
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8")
