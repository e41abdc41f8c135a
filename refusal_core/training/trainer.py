"""The Trainer of transformers, set up so that a training can be stopped, resumed with the same curve, and watched."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from refusal_core.classifier.checkpoint import one_sentence
from refusal_core.classifier.texts import clean, plain_quotes, split_reasoning
from refusal_core.jobs import Job
from refusal_core.labels import LABELS
from refusal_core.metrics.report import report
from refusal_core.training.averaging import WeightMean
from refusal_core.training.data import TrainingData
from refusal_core.training.settings import Settings

if TYPE_CHECKING:
    from transformers import Trainer, TrainerCallback

COMPLETE = "complete"  # written into a checkpoint once all of it is there
METRIC = "macro_f1"
_AVERAGE_EVERY = 10  # steps
_MEGABATCH = 50  # batches among which rows are sorted by length


def set_up(
    train_data: TrainingData, validation: TrainingData, model: Path, folder: Path, settings: Settings
) -> tuple[Trainer, Any, Settings]:
    """Trainer, tokenizer and the settings as they apply to this model, whose own longest input is a limit.

    Checkpoints go to `folder`. No code of `model` is run; raises InputError when it cannot be loaded.
    """
    import torch
    from transformers import PrinterCallback, TrainingArguments, set_seed

    set_seed(settings.seed)
    tokenizer, classifier = _load(model)
    settings = replace(settings, max_length=min(settings.max_length, _longest(classifier, tokenizer)))
    if settings.freeze_embeddings:
        classifier.get_input_embeddings().weight.requires_grad_(False)
    rows, counts = len(train_data.exchanges), Counter(row.label for row in train_data.exchanges)
    weights = torch.tensor([(rows / (len(LABELS) * counts[label])) ** settings.weight_power for label in LABELS])
    steps = -(-rows // settings.batch_size)
    every = -(-steps // settings.evaluations)
    arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=64,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=round(settings.warmup_share * steps * settings.epochs),
        lr_scheduler_type="linear",
        max_grad_norm=1.0,
        bf16=settings.bfloat16,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=max(settings.keep, 1),
        load_best_model_at_end=True,
        metric_for_best_model=METRIC,
        logging_steps=min(20, every),
        report_to=[],
        disable_tqdm=True,
        seed=settings.seed,
        data_seed=settings.seed,
        dataloader_num_workers=0,
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = _trainer_class()(
        model=classifier,
        args=arguments,
        train_dataset=features(train_data, tokenizer, settings.max_length),
        eval_dataset=features(validation, tokenizer, settings.max_length),
        data_collator=_padding(tokenizer),
        compute_loss_func=_weighted_loss(weights, settings.label_smoothing),
        compute_metrics=_scores,
    )
    trainer.remove_callback(PrinterCallback)  # it prints to standard output, where results belong
    return trainer, tokenizer, settings


def _load(model: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    trusted_with_nothing = {"local_files_only": True, "trust_remote_code": False}
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}}
    with one_sentence(model.name):
        tokenizer = AutoTokenizer.from_pretrained(model, **trusted_with_nothing)
        classifier = AutoModelForSequenceClassification.from_pretrained(
            model, use_safetensors=True, dtype=torch.float32, num_labels=len(LABELS),
            ignore_mismatched_sizes=True, **names, **trusted_with_nothing,
        )  # fmt: skip
    return tokenizer, classifier


def _longest(classifier: Any, tokenizer: Any) -> int:
    positions = getattr(classifier.config, "max_position_embeddings", None)
    if isinstance(positions, int) and classifier.config.model_type in ("roberta", "xlm-roberta", "camembert"):
        positions -= (classifier.config.pad_token_id or 0) + 1  # they count positions from their padding index on
    allowed = [tokenizer.model_max_length, *([positions] if isinstance(positions, int) and positions > 0 else [])]
    return int(min(allowed))


def _trainer_class() -> type:
    from torch.utils.data import Sampler
    from transformers import Trainer

    class ByLength(Sampler):
        """Rows of similar length side by side. The order follows from seed and epoch alone, so that a resumed
        training sees the same batches."""

        def __init__(self, trainer: Trainer) -> None:
            self._trainer = trainer
            self._lengths = np.array([len(row["input_ids"]) for row in trainer.train_dataset])

        def __len__(self) -> int:
            return len(self._lengths)

        def __iter__(self) -> Any:
            size = self._trainer.args.per_device_train_batch_size
            epoch = self._trainer.state.global_step // -(-len(self) // size)
            draw = np.random.default_rng([self._trainer.args.seed, epoch])
            order = draw.permutation(len(self))
            heaps = np.split(order, range(_MEGABATCH * size, len(self), _MEGABATCH * size))
            order = np.concatenate([heap[np.argsort(-self._lengths[heap], kind="stable")] for heap in heaps])
            batches = [order[at : at + size] for at in range(0, len(order), size)]
            last = (
                [batches.pop()] if len(batches[-1]) < size else []
            )  # a short batch in the middle would shift the rest
            draw.shuffle(batches)
            return iter(np.concatenate([*batches, *last]).tolist())

    class ReproducibleTrainer(Trainer):
        def _get_train_sampler(self, *_: Any) -> Any:
            return ByLength(self)

    return ReproducibleTrainer


def watcher(settings: Settings, mean: WeightMean, job: Job) -> TrainerCallback:
    """Counts steps (and stops when the job is cancelled), averages the last weights, ends a training that gets no
    better, and marks checkpoints that are whole."""
    from transformers import TrainerCallback

    class Watcher(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            job.start(state.max_steps, "steps")
            job.advance(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            late = state.global_step > (1 - settings.average_share) * state.max_steps
            if late and (state.global_step % _AVERAGE_EVERY == 0 or state.global_step == state.max_steps):
                mean.take(model)
            job.advance()

        def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            scores = [row[f"eval_{METRIC}"] for row in state.log_history if f"eval_{METRIC}" in row]
            if settings.patience and len(scores) - 1 - int(np.argmax(scores)) >= settings.patience:
                control.should_training_stop = True

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
            mean.save(folder)
            (folder / COMPLETE).touch()

    return Watcher()


def last_checkpoint(folder: Path) -> Path | None:
    """The latest checkpoint of `folder` that is whole."""
    whole = [path.parent for path in folder.glob(f"checkpoint-*/{COMPLETE}")]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def logits_of(trainer: Any, rows: list[dict]) -> np.ndarray:
    """The model's outputs for `rows` (features) in their order, [rows, classes]; computed by length to pad little."""
    import torch

    model, found = trainer.model.eval(), np.zeros((len(rows), len(LABELS)))
    order = sorted(range(len(rows)), key=lambda at: len(rows[at]["input_ids"]))
    with torch.inference_mode():
        for start in range(0, len(order), 32):
            at = order[start : start + 32]
            batch = trainer.data_collator([rows[i] for i in at])
            batch.pop("labels", None)
            found[at] = model(**{name: tensor.to(model.device) for name, tensor in batch.items()}).logits.cpu().numpy()
    return found


def features(data: TrainingData, tokenizer: Any, max_length: int) -> list[dict]:
    """The inputs that `Classifier.predict` would build for these exchanges, with their labels."""
    from refusal_core.classifier.encode import PairEncoder

    prompts = [plain_quotes(clean(e.prompt)) for e in data.exchanges]
    responses = [plain_quotes(split_reasoning(clean(e.response)).text) for e in data.exchanges]
    pairs = PairEncoder(tokenizer).encode(prompts, responses, max_length)
    with_segments = "token_type_ids" in tokenizer.model_input_names
    return [
        {
            "input_ids": pair.ids,
            **({"token_type_ids": pair.type_ids} if with_segments else {}),
            "attention_mask": [1] * len(pair.ids),
            "labels": LABELS.index(row.label),
        }
        for pair, row in zip(pairs, data.exchanges, strict=True)
    ]


def _padding(tokenizer: Any) -> Any:
    from transformers import DataCollatorWithPadding

    return DataCollatorWithPadding(tokenizer)


def _weighted_loss(weights: Any, smoothing: float) -> Any:
    import torch

    def loss(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        weight = weights.to(outputs.logits.device)
        return torch.nn.functional.cross_entropy(outputs.logits, labels, weight=weight, label_smoothing=smoothing)

    return loss


def _scores(prediction: Any) -> dict[str, float]:
    logits = prediction.predictions[0] if isinstance(prediction.predictions, tuple) else prediction.predictions
    predicted = [LABELS[i] for i in np.argmax(logits, axis=-1)]
    scores = report([LABELS[i] for i in prediction.label_ids], predicted, LABELS)
    return {"accuracy": scores.accuracy.value, METRIC: scores.macro.f1, "weighted_f1": scores.weighted.f1}
