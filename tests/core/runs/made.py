"""Small run folders, written for tests."""

from __future__ import annotations

import json
from pathlib import Path

from refusal_core.runs.discover import discover
from refusal_core.runs.findings import findings_of
from refusal_core.runs.model import Finding, Run

SETTINGS = {"max_steps": 40, "num_train_epochs": 4, "train_batch_size": 8}


def loss(step: int, value: float, **more) -> dict:
    return {"step": step, "epoch": step / 10, "loss": value, "learning_rate": 1e-4, **more}


def evaluation(step: int, value: float, f1: float, epoch: float | None = None, **more) -> dict:
    stamp = step / 10 if epoch is None else epoch
    return {"step": step, "epoch": stamp, "eval_loss": value, "eval_f1_macro": f1, **more}


def rows(until: int, seed: float = 0.0, start: int = 0, every: int = 10) -> list[dict]:
    """A training: a loss each 5 steps, an evaluation each `every`."""
    found = []
    for step in range(start + 5, until + 1, 5):
        found.append(loss(step, round(2 / (1 + step / 10) + seed, 6), grad_norm=1.5 + seed + step / 100))
        if step % every == 0:
            found.append(evaluation(step, round(2.1 / (1 + step / 10) + seed, 6), round(0.5 + step / 100 + seed, 6)))
    return found


def write_state(folder: Path, history: list[dict], step: int | None = None, **more) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    last = max((row["step"] for row in history), default=0) if step is None else step
    state = {**SETTINGS, "global_step": last, "epoch": last / 10, "logging_steps": 5, **more, "log_history": history}
    (folder / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def write_lines(path: Path, lines: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def seen(folder: Path) -> tuple[list[Run], list[Finding]]:
    runs, _ = discover(folder)
    return runs, findings_of(runs)


def only(folder: Path) -> Run:
    [run], _ = seen(folder)
    return run


def kinds(findings: list[Finding]) -> list[str]:
    return sorted(finding.kind for finding in findings)


def of_kind(findings: list[Finding], kind: str) -> Finding:
    [found] = [finding for finding in findings if finding.kind == kind]
    return found


def curve(run: Run, key: str):
    return next(c for c in run.curves if c.key == key)
