"""A small run folder as the Trainer leaves it, with predictions beside each checkpoint; and a state of any rows."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from refusal_core.labels import LABELS

STEPS = (100, 200, 300)
RIGHT = {100: 0.55, 200: 0.82, 300: 0.8}  # share of right answers
ITEMS = 120


def make_run(folder: Path, *, seed: int = 0, learning_rate: float = 2e-5, broken: bool = False) -> Path:
    """Write three checkpoints; `broken` gives the loss NaN and infinite values on the way."""
    rng = np.random.default_rng(seed)
    rows = []
    for step in range(10, STEPS[-1] + 1, 10):
        loss = 1.6 * math.exp(-step / 120) + 0.02 * rng.normal()
        bad = broken and step in (150, 160)
        rows.append(
            {
                "step": step,
                "epoch": step / 100,
                "loss": math.nan if bad else loss,
                "grad_norm": math.inf if bad else 1.0,
            }
            | {"learning_rate": learning_rate * (1 - step / 300)}
        )
        if step in STEPS:
            share = RIGHT[step] - 0.004 * seed
            rows.append(
                {"step": step, "epoch": step / 100, "eval_loss": 1.5 - share, "eval_accuracy": share}
                | {"eval_macro_f1": share - 0.01, "eval_runtime": 1.0}
            )
            write_state(folder / f"checkpoint-{step}", rows, best=200)
            write_predictions(folder / f"checkpoint-{step}", share, seed)
    write_state(folder, rows, best=200)
    return folder


def write_state(folder: Path, rows: list[dict], *, best: int | None = None) -> None:
    """A trainer_state.json with these log rows."""
    folder.mkdir(parents=True, exist_ok=True)
    scores = [row["eval_macro_f1"] for row in rows if row.get("step") == best and "eval_macro_f1" in row]
    state = {
        "log_history": rows,
        "global_step": int(max((row["step"] for row in rows), default=0)),
        "max_steps": 300,
        "num_train_epochs": 3,
        "train_batch_size": 8,
        "best_metric": scores[0] if scores else None,
        "best_model_checkpoint": f"{folder.parent}/checkpoint-{best}" if scores else None,
    }
    (folder / "trainer_state.json").write_text(json.dumps(state))


def write_predictions(folder: Path, share: float, seed: int = 0) -> None:
    """ITEMS rows over the five classes, the same items at every checkpoint, each with its texts."""
    draws = np.random.default_rng(seed + 7).random(ITEMS)  # the same for every checkpoint: fewer flips
    lines = []
    for item in range(ITEMS):
        true = LABELS[item % len(LABELS)]
        right = draws[item] < share
        label = true if right else LABELS[(item + 1 + item // 40) % len(LABELS)]
        sure = 0.9 if right else 0.6
        probabilities = {name: sure if name == label else (1 - sure) / (len(LABELS) - 1) for name in LABELS}
        lines.append(
            {"id": f"item-{item}", "label": label, "true": true, "probabilities": probabilities, "split": "test"}
            | {"prompt": f"Prompt {item}", "response": f"Response {item} <b>bold</b>"}
        )
    (folder / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
