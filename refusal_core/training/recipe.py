"""Fine-tune a sequence classifier on labelled exchanges: AdamW, linear decay with warm-up, selection on validation."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refusal_core.classifier import load
from refusal_core.classifier.checkpoint import find_folder
from refusal_core.classifier.evaluation import Evaluation, evaluate, write_files
from refusal_core.errors import Cancelled, InputError, MissingPackage
from refusal_core.jobs import Job
from refusal_core.labels import LABELS
from refusal_core.reports import to_json
from refusal_core.training.averaging import WeightMean
from refusal_core.training.calibrate import fit_temperature, write_temperature
from refusal_core.training.card import TEST_REMARK, VALIDATION_REMARK, Scored, model_card
from refusal_core.training.data import Parts, TrainingData
from refusal_core.training.settings import Settings
from refusal_core.training.trainer import METRIC, features, last_checkpoint, logits_of, set_up, watcher
from refusal_core.training.workplace import SETTINGS, Workplace
from refusal_core.versions import versions

if TYPE_CHECKING:
    from transformers import Trainer


# Of macro F1. The best of several evaluations is a little lucky; a mean that comes this close is the better choice.
MEAN_MAY_LACK = 0.002
HOW = "training.json"  # settings as they applied, and which weights were kept


@dataclass(frozen=True)
class Trained:
    """A finished training. `settings` as they applied; `kept` says in words which weights these are; `test` is None
    without test rows."""

    folder: Path
    settings: Settings
    kept: str
    temperature: float
    validation: Evaluation
    test: Evaluation | None


def train(
    parts: Parts,
    model: str | Path,
    output: Path,
    settings: Settings | None = None,
    *,
    resume: bool = False,
    trackio: str | None = None,
    base_name: str | None = None,
    test_remark: str = TEST_REMARK,
    job: Job | None = None,
) -> Trained:
    """Train `model` (a checkpoint folder or hub id) on CPU or GPU into `output`, a new folder.

    `output` gets the checkpoint in half precision with its temperature, a model card, `trainer_state.json`, the files
    of an evaluation (of the test rows, which are scored once, or without them of the validation rows), and the
    checkpoints that `settings.keep` leaves. A stopped training leaves a folder that `resume` goes on with, on the
    same curve, or nothing. `trackio` names a project of a local Trackio store, `output`/trackio. Raises MissingPackage,
    InputError (settings, a class without training rows, a model that cannot be loaded, a folder that is not new) and
    Cancelled when `job` is cancelled. No code of `model` is run.
    """
    settings, job = settings or Settings(), job or Job()
    _check(parts, settings, trackio)
    base = find_folder(str(model))
    if not (base / "config.json").is_file():
        raise InputError(
            "this is no checkpoint folder", where=str(model), why="a folder with a config.json was expected"
        )
    decisive = {
        SETTINGS: asdict(settings),
        "set of training rows": parts.train.digest(),
        "set of validation rows": parts.validation.digest(),
        "base model": _digest(base),
    }
    place = Workplace(output, decisive)
    place.open(resume=resume)
    made = output / ".finished"
    try:
        trainer, tokenizer, settings, kept = _fit(parts, base, output, settings, trackio, job)
        shutil.rmtree(made, ignore_errors=True)
        temperature = _save(trainer, tokenizer, settings, made, parts.calibration)
        validation = evaluate(load(str(made)), parts.validation.exchanges, split="validation", job=job)
        test = evaluate(load(str(made)), parts.test.exchanges, split="test", job=job) if parts.test.exchanges else None
    except (Cancelled, KeyboardInterrupt) as stop:
        raise Cancelled(_say_how_to_go_on(output, place)) from stop
    except BaseException:
        if last_checkpoint(output) is None:
            place.clear()
        raise
    scored = [Scored("Scores on the validation rows", VALIDATION_REMARK, validation, parts.validation.exchanges)]
    if test:
        scored.append(Scored("Scores on the test rows", test_remark, test, parts.test.exchanges))
    card = model_card(output.name, base_name or base.name, parts.train, scored, settings, kept=kept)
    (made / "README.md").write_text(card, encoding="utf-8")
    how = {"settings": asdict(settings), "kept": kept, "temperature": temperature, "versions": versions()}
    (made / HOW).write_text(to_json(how, indent=2) + "\n", encoding="utf-8")
    write_files(test or validation, made)
    place.finish(made)
    return Trained(output, settings, kept, temperature, validation, test)


def _check(parts: Parts, settings: Settings, trackio: str | None) -> None:
    if importlib.util.find_spec("accelerate") is None:
        raise MissingPackage("accelerate", purpose="Training", extra="train")
    if trackio and importlib.util.find_spec("trackio") is None:
        raise MissingPackage("trackio", purpose="A Trackio store", extra="trackio")
    settings.check()
    counts = Counter(row.label for row in parts.train.exchanges)
    if missing := [label for label in LABELS if not counts[label]]:
        raise InputError(f"no training row has the label {missing[0]}", fix="add rows of every class")
    if not parts.validation.exchanges:
        raise InputError("there is no validation row", fix="add some: they choose the weights that are kept")


def _fit(
    parts: Parts, base: Path, output: Path, settings: Settings, trackio: str | None, job: Job
) -> tuple[Trainer, Any, Settings, str]:
    trainer, tokenizer, settings = set_up(parts.train, parts.validation, base, output, settings)
    mean = WeightMean()
    trainer.add_callback(watcher(settings, mean, job))
    if trackio:
        from refusal_core.training.tracking import tracker

        trainer.add_callback(tracker(trackio, output.name, output / "trackio", settings))
    checkpoint = last_checkpoint(output)
    for path in output.glob("checkpoint-*"):  # what a kill left half-written
        if checkpoint is None or int(path.name.rpartition("-")[2]) > int(checkpoint.name.rpartition("-")[2]):
            shutil.rmtree(path)
    if checkpoint:
        mean.load(checkpoint)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    return trainer, tokenizer, settings, _choose(trainer, mean)


def _choose(trainer: Trainer, mean: WeightMean) -> str:
    """Leave in the model the mean of late weights, or the best single ones where those are clearly better by validation
    macro F1, and say which they are."""
    best, step = trainer.state.best_metric, trainer.state.best_global_step
    kept = f"weights of step {step} (validation macro F1 {best:.4f})"
    if not mean.taken:
        return kept
    single = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
    mean.put(trainer.model)
    averaged = trainer.evaluate(metric_key_prefix="mean")[f"mean_{METRIC}"]
    if averaged >= best - MEAN_MAY_LACK:
        return f"mean of {mean.taken} late weights (validation macro F1 {averaged:.4f}; the best single {best:.4f})"
    for name, weight in trainer.model.named_parameters():
        weight.data.copy_(single[name])
    return f"{kept[:-1]}; the mean of {mean.taken} late ones had {averaged:.4f})"


def _save(trainer: Trainer, tokenizer: Any, settings: Settings, folder: Path, calibration: TrainingData) -> float:
    """The checkpoint into `folder`, in half precision, with the temperature that fits the calibration rows."""
    rows = features(calibration, tokenizer, settings.max_length) or list(trainer.eval_dataset)
    temperature = fit_temperature(logits_of(trainer, rows), [row["labels"] for row in rows])
    trainer.model.half().save_pretrained(folder)
    tokenizer.model_max_length = settings.max_length  # it has never seen a longer input: `predict` cuts there too
    tokenizer.save_pretrained(folder)
    write_temperature(folder, temperature)
    if best := trainer.state.best_model_checkpoint:
        trainer.state.best_model_checkpoint = Path(best).name  # where the folder lies is nobody's business
    trainer.state.save_to_json(str(folder / "trainer_state.json"))
    return temperature


def _say_how_to_go_on(output: Path, place: Workplace) -> str:
    if checkpoint := last_checkpoint(output):
        step = checkpoint.name.rpartition("-")[2]
        return f"Stopped by the user; the same command with --resume goes on from step {step} in {output}."
    place.clear()
    return "Stopped by the user before the first checkpoint; nothing was kept."


def _digest(base: Path) -> str:
    total = hashlib.sha256()
    for path in sorted([base / "config.json", *base.glob("*.safetensors")]):
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()
