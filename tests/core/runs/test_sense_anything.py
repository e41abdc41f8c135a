"""Whatever lies in a folder, runs are made of it, and what is told of them is strict JSON."""

import json
import math
import random
import warnings
from pathlib import Path

from refusal_core.reports import to_json
from refusal_core.runs.answer import answer
from refusal_core.runs.by_class import class_scores
from refusal_core.runs.discover import discover
from refusal_core.runs.findings import findings_of
from refusal_core.runs.json_form import to_json as as_json
from refusal_core.runs.tables import ReportTable

NUMBERS = [0, 0.0, 1, 0.5, -1, 1e308, -1e308, math.nan, math.inf, -math.inf, None, "0.5", "x", True, [], {}, 10**30]
STEPS = [None, 0, 1, 2, 3, 5, 5, 10, 10.5, -3, math.nan, math.inf, "7", 1e18, 10**25]
KEYS = [
    *("loss", "grad_norm", "learning_rate", "epoch", "train_runtime", "train_loss", "odd", "test_accuracy"),
    *("eval_loss", "eval_accuracy", "eval_f1_macro", "eval_f1_x", "eval_precision_x", "eval_runtime", "eval_samples"),
    *("eval_samples_per_second", "eval_a_loss", "eval_a_runtime", "eval_b_loss", "eval_b_runtime"),
]
FOLDERS = ["", "a", "a/logs", "b/checkpoint-5", "b/checkpoint-10", "b/checkpoint-best", "b", "results", "checkpoint-3"]


def row(draw: random.Random) -> dict:
    step = draw.choice(STEPS)
    found = {} if step is None else {"step": step}
    for key in draw.sample(KEYS, draw.randint(0, 6)):
        found[key] = draw.choice(NUMBERS) if draw.random() < 0.6 else draw.random()
    return found


def state(draw: random.Random, rows: list[dict]) -> dict:
    return {
        "global_step": draw.choice(STEPS),
        "max_steps": draw.choice([10, 20]),
        "best_metric": draw.choice(NUMBERS),
        "best_model_checkpoint": draw.choice([None, "checkpoint-5", "x/y", "checkpoint-99999999999999999999"]),
        "best_global_step": draw.choice([None, 5, "a", 3.5]),
        "log_history": rows,
    }


def report(draw: random.Random) -> dict:
    scores = [0, 1, 0.5, math.nan, None]
    return {
        name: {
            "precision": draw.choice(scores),
            "recall": draw.choice(scores),
            "f1-score": draw.choice(scores),
            "support": draw.choice([0, 5, 3.0, 2.5, 1e300]),
        }
        for name in ["a", "b", "macro avg", "weighted avg"][: draw.randint(1, 4)]
    }


def matrix(draw: random.Random) -> dict:
    n = draw.randint(1, 3)
    rows = [[draw.choice([0, 1, 5, 0.5]) for _ in range(n)] for _ in range(n)]
    axes = {"rows": draw.choice(["true", "predicted", "?"]), "columns": draw.choice(["true", "predicted"])}
    return {"labels": list("abc")[:n], "matrix": rows, **axes}


def predictions(draw: random.Random) -> list[dict]:
    return [
        {
            "id": str(i),
            "label": draw.choice("ab"),
            "true": draw.choice(["a", None]),
            "split": draw.choice(["", "test", "x"]),
        }
        for i in range(draw.randint(0, 5))
    ]


def write(folder: Path, draw: random.Random, begun: list[dict]) -> None:
    rows = begun[: draw.randint(0, len(begun))] + [row(draw) for _ in range(draw.randint(0, 4))]
    kind = draw.choice(["state"] * 5 + ["log", "results", "matrix", "report", "predictions"])
    if kind in ("log", "predictions"):
        lines = rows if kind == "log" else predictions(draw)
        (folder / f"{kind}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return
    value = {"state": lambda: state(draw, rows), "results": lambda: row(draw)}.get(
        kind, lambda: report(draw) if kind == "report" else matrix(draw)
    )()
    name = {"state": "trainer_state", "results": "eval_results"}.get(kind, kind)
    (folder / f"{name}.json").write_text(json.dumps(value))


def test_whatever_lies_in_a_folder(tmp_path):
    for seed in range(70):
        draw = random.Random(seed)
        begun = [row(draw) for _ in range(draw.randint(0, 8))]
        for _ in range(draw.randint(1, 5)):
            folder = tmp_path / str(seed) / draw.choice(FOLDERS)
            folder.mkdir(parents=True, exist_ok=True)
            write(folder, draw, begun)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numpy, over infinite steps
            runs, problems = discover(tmp_path / str(seed))
            found = findings_of(runs)
            text = to_json(as_json(runs, problems, found))
            for run in runs:
                assert answer(run) == answer(run)
                for table in run.tables:
                    if isinstance(table, ReportTable):
                        class_scores(table)
        assert len(json.loads(text)["runs"]) == len(runs)
        assert all(f.run in {run.name for run in runs} and f.where and f.expected and f.found and f.fix for f in found)
        assert {s for run in runs for s in run.sources}.isdisjoint({p.file for p in problems if p.read == "no"})
