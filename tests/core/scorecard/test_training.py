"""Is the training behind a checkpoint sound? From the files that the Trainer leaves."""

from __future__ import annotations

import json

import pytest

from tests.core.scorecard.cases import assertion, only, score, write_predictions

STEPS = (100, 200, 300)


def train(folder, *, loss=(0.9, 0.5, 0.4), grad=(1.0, 1.0, 1.0), evaluated=STEPS):
    """A run with a checkpoint every 100 steps, its history, and predictions of each."""
    history = []
    for step, value, norm in zip(STEPS, loss, grad, strict=True):
        history.append({"step": step, "epoch": step / 100, "loss": value, "grad_norm": norm, "learning_rate": 1e-5})
        if step in evaluated:
            history.append({"step": step, "epoch": step / 100, "eval_loss": value, "eval_accuracy": 0.8})
    for step in STEPS:
        state = {"global_step": step, "max_steps": 300, "num_train_epochs": 3, "train_batch_size": 8}
        state |= {"epoch": step / 100, "log_history": [row for row in history if row["step"] <= step]}
        write_predictions(folder / f"checkpoint-{step}" / "predictions.jsonl", [1] * 40, [1] * 40)
        (folder / f"checkpoint-{step}" / "trainer_state.json").write_text(json.dumps(state))
    (folder / "trainer_state.json").write_text(json.dumps(state))


def verdict(folder, check: str, step: int = 200, more: str = ""):
    column = f"{{id: c, predictions: run/checkpoint-{step}/predictions.jsonl{more}}}"
    return only(score(folder, assertion(f"{{type: training, check: {check}}}", columns=column)))


def test_a_sound_training(tmp_path):
    train(tmp_path / "run")
    assert verdict(tmp_path, "finite").verdict == "pass"
    assert verdict(tmp_path, "has_eval_row").verdict == "pass"
    assert verdict(tmp_path, "finite", more=", run: run").verdict == "pass"


def test_a_divergence_that_the_loss_hides(tmp_path):
    """The Trainer logs 0.0 for a loss that is not finite; the gradient norm tells."""
    train(tmp_path / "run", loss=(0.9, 0.0, 0.0), grad=(1.0, float("nan"), float("nan")))
    row = verdict(tmp_path, "finite")
    assert (row.verdict, row.value) == ("fail", 2.0)
    assert any("grad_norm is not finite from step 200" in note for note in row.evidence.notes)


def test_a_checkpoint_without_its_own_evaluation(tmp_path):
    train(tmp_path / "run", evaluated=(100, 300))
    assert verdict(tmp_path, "has_eval_row", 300).verdict == "pass"
    assert verdict(tmp_path, "has_eval_row", 200).verdict == "fail"


@pytest.mark.parametrize("check", ["finite", "has_eval_row"])
def test_without_a_history_nothing_is_claimed(tmp_path, check):
    write_predictions(tmp_path / "run" / "checkpoint-200" / "predictions.jsonl", [1], [1])
    row = verdict(tmp_path, check)
    assert row.verdict == "error" and "no training history" in row.reason
