"""Fine-tune a sequence classifier on labelled exchanges: AdamW, linear decay with warm-up, best epoch kept."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from refusal_core.classifier.checkpoint import one_sentence
from refusal_core.classifier.texts import clean, plain_quotes, split_reasoning
from refusal_core.errors import InputError, MissingPackage
from refusal_core.exchange_files import read_exchanges
from refusal_core.exchanges import Exchange
from refusal_core.labels import LABELS
from refusal_core.metrics.report import report

if TYPE_CHECKING:
    from transformers import Trainer


@dataclass(frozen=True)
class Settings:
    """What decides a training besides its data. `max_length` in tokens; `weight_power` 0 leaves classes as frequent as
    they are, 1 counts every class alike: class weight = (rows / (classes * rows of the class)) ** weight_power.
    `label_smoothing` is the share of each target that is spread over all classes. `average_share` is the last share of
    the steps whose weights are averaged; 0 keeps the weights of the best epoch. `freeze_embeddings` leaves the token
    embeddings as the base has them. `bfloat16` computes in it where that is safe, on processors that have it."""

    epochs: int = 2
    batch_size: int = 16
    learning_rate: float = 1e-4
    warmup_share: float = 0.06
    weight_decay: float = 0.01
    max_length: int = 256
    weight_power: float = 0.5
    label_smoothing: float = 0.0
    average_share: float = 0.0
    freeze_embeddings: bool = False
    bfloat16: bool = False
    seed: int = 0


@dataclass(frozen=True)
class TrainingData:
    """Labelled exchanges; `left_out` counts the rows that were not used, by reason."""

    exchanges: tuple[Exchange, ...]
    left_out: dict[str, int]


def read_training_data(
    files: Sequence[Path], *, commercial_only: bool = True, without: Sequence[tuple[str, str]] = ()
) -> TrainingData:
    """Rows of `files` with a label of the five classes. A row that cannot be used is counted, never repaired.

    commercial_only keeps rows whose `license` names one that allows commercial use (`is_commercial`). `without` lists
    (field, beginning) pairs: a row whose field begins so is left out, for example ("category", "ko/").
    """
    kept: list[Exchange] = []
    left_out: Counter[str] = Counter()
    for file in files:
        for row in read_exchanges(file, need_label=True):
            reason = _reason_to_leave_out(row, commercial_only, without)
            if reason:
                left_out[reason] += 1
            else:
                kept.append(row)
    if not kept:
        raise InputError(
            "no row is left to train on", where=", ".join(f.name for f in files), why=f"left out: {dict(left_out)}"
        )
    return TrainingData(tuple(kept), dict(left_out))


def is_commercial(licence: str) -> bool:
    """Whether `licence` names one that allows commercial use, and nothing in it takes that back.

    Known are MIT, Apache-2.0, BSD, CC0, CC-BY and ODC-BY; "NC", "ND", "SA", "non-commercial" and "research"
    anywhere rule it out, as does a name that is not known.
    """
    parts = set(re.split(r"[^A-Z0-9]+", licence.upper()))
    if parts & {"NC", "ND", "SA", "NONCOMMERCIAL", "RESEARCH", "NON"}:
        return False
    return bool(parts & {"MIT", "APACHE", "BSD", "CC0"}) or {"BY"} <= parts and bool(parts & {"CC", "ODC"})


def _reason_to_leave_out(row: Any, commercial_only: bool, without: Sequence[tuple[str, str]]) -> str | None:
    if not isinstance(row, Exchange):
        return "not a labelled exchange"
    if row.label not in LABELS:
        return "unknown label"
    if commercial_only and not is_commercial(str(row.extra.get("license", ""))):
        return "licence not known to allow commercial use"
    for field, beginning in without:
        if str(row.extra.get(field, "")).startswith(beginning):
            return f"{field} begins with {beginning}"
    return split_reasoning(clean(row.response)).error


def train(
    train_data: TrainingData, validation: TrainingData, model: Path, output: Path, settings: Settings | None = None
) -> Path:
    """Train on CPU or GPU and save the best epoch by validation macro F1, in half precision, as a checkpoint folder.

    `output` gets the checkpoint; `output`/run holds the Trainer's own state. Returns `output`.
    Raises MissingPackage without accelerate, InputError when a class has no training row or `model` cannot be loaded.
    No code of `model` is run.
    """
    if importlib.util.find_spec("accelerate") is None:
        raise MissingPackage("accelerate", purpose="Training", extra="train")
    if not (model / "config.json").is_file():
        raise InputError(
            "this is no checkpoint folder", where=str(model), why="a folder with a config.json was expected"
        )
    settings = settings or Settings()
    counts = Counter(exchange.label for exchange in train_data.exchanges)
    if missing := [label for label in LABELS if not counts[label]]:
        raise InputError(f"no training row has the label {missing[0]}", fix="add rows of every class")
    trainer, tokenizer = _trainer(train_data, validation, model, output, settings, counts)
    trainer.train()
    trainer.state.save_to_json(str(output / "run" / "trainer_state.json"))
    trainer.model.half().save_pretrained(output)
    tokenizer.model_max_length = settings.max_length  # it has never seen a longer input: `predict` cuts there too
    tokenizer.save_pretrained(output)
    return output


def _trainer(
    train_data: TrainingData, validation: TrainingData, model: Path, output: Path, settings: Settings, counts: Counter
):
    import torch
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    set_seed(settings.seed)
    trusted_with_nothing = {"local_files_only": True, "trust_remote_code": False}
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}}
    with one_sentence(model.name):
        tokenizer = AutoTokenizer.from_pretrained(model, **trusted_with_nothing)
        classifier = AutoModelForSequenceClassification.from_pretrained(
            model, use_safetensors=True, dtype=torch.float32, num_labels=len(LABELS), **names, **trusted_with_nothing
        )
    if settings.freeze_embeddings:
        classifier.get_input_embeddings().weight.requires_grad_(False)
    rows = len(train_data.exchanges)
    weights = torch.tensor([(rows / (len(LABELS) * counts[label])) ** settings.weight_power for label in LABELS])
    steps = -(-rows // settings.batch_size) * settings.epochs
    arguments = TrainingArguments(
        output_dir=str(output / "run"),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=64,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=round(settings.warmup_share * steps),
        lr_scheduler_type="linear",
        max_grad_norm=1.0,
        bf16=settings.bfloat16,
        train_sampling_strategy="group_by_length",
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="macro_f1",
        logging_steps=20,
        report_to=[],
        seed=settings.seed,
        data_seed=settings.seed,
        dataloader_num_workers=0,
        use_cpu=not torch.cuda.is_available(),
    )
    trainer: Trainer = Trainer(
        model=classifier,
        args=arguments,
        train_dataset=_features(train_data, tokenizer, settings.max_length),
        eval_dataset=_features(validation, tokenizer, settings.max_length),
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_loss_func=_weighted_loss(weights, settings.label_smoothing),
        compute_metrics=_scores,
    )
    return trainer, tokenizer


def _features(data: TrainingData, tokenizer: Any, max_length: int) -> list[dict]:
    """The inputs that `Classifier.predict` would build for these exchanges, with their labels."""
    from refusal_core.classifier.encode import PairEncoder

    prompts = [plain_quotes(clean(e.prompt)) for e in data.exchanges]
    responses = [plain_quotes(split_reasoning(clean(e.response)).text) for e in data.exchanges]
    pairs = PairEncoder(tokenizer).encode(prompts, responses, max_length)
    return [
        {
            "input_ids": p.ids,
            "token_type_ids": p.type_ids,
            "attention_mask": [1] * len(p.ids),
            "labels": LABELS.index(e.label),
        }
        if "token_type_ids" in tokenizer.model_input_names
        else {"input_ids": p.ids, "attention_mask": [1] * len(p.ids), "labels": LABELS.index(e.label)}
        for p, e in zip(pairs, data.exchanges, strict=True)
    ]


def _weighted_loss(weights: Any, smoothing: float = 0.0):
    import torch

    def loss(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        weight = weights.to(outputs.logits.device)
        return torch.nn.functional.cross_entropy(outputs.logits, labels, weight=weight, label_smoothing=smoothing)

    return loss


def _scores(prediction: Any) -> dict[str, float]:
    logits = prediction.predictions[0] if isinstance(prediction.predictions, tuple) else prediction.predictions
    predicted = [LABELS[i] for i in np.argmax(logits, axis=-1)]
    scores = report([LABELS[i] for i in prediction.label_ids], predicted, LABELS)
    return {"accuracy": scores.accuracy.value, "macro_f1": scores.macro.f1, "weighted_f1": scores.weighted.f1}
