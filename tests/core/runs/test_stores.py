"""Trackio, MLflow and TensorBoard: what their stores really hold, also while a run is being written."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

from refusal_core.runs.model import Curve
from refusal_core.runs.read import read_files, read_folder

HUGE = sys.float_info.max  # how MLflow's SQL store writes infinity


def curve(artefact, key: str) -> Curve:
    [found] = [c for c in artefact.curves if c.key == key]
    return found


def trackio_store(path: Path, rows: list[tuple[str, str, int, dict]], old: bool = False) -> sqlite3.Connection:
    """A store as Trackio makes it; `old` is the schema without run ids. The connection stays open, in WAL mode."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    by_id = "" if old else "run_id TEXT, "
    connection.execute(
        f"CREATE TABLE metrics (id INTEGER PRIMARY KEY, {by_id}timestamp TEXT, run_name TEXT, step INT, metrics TEXT)"
    )
    connection.execute(f"CREATE TABLE configs (id INTEGER PRIMARY KEY, {by_id}run_name TEXT, config TEXT)")
    for run_id, name, step, metrics in rows:
        given = {} if old else {"run_id": run_id}
        given |= {"timestamp": "2026-11-30T10:00:00+00:00", "run_name": name, "step": step}
        given["metrics"] = json.dumps(metrics).encode()
        marks = ", ".join("?" * len(given))
        connection.execute(f"INSERT INTO metrics ({', '.join(given)}) VALUES ({marks})", list(given.values()))
    config = json.dumps({"learning_rate": 5e-5, "output_dir": "/home/someone/out", "_Username": "someone"})
    names = ("run_id, " if not old else "") + "run_name, config"
    values = ([rows[0][0]] if not old else []) + [rows[0][1], config.encode()]
    connection.execute(f"INSERT INTO configs ({names}) VALUES ({', '.join('?' * len(values))})", values)
    connection.commit()
    return connection


def trainer_rows(run: str) -> list[tuple[str, str, int, dict]]:
    """Rows of the Trainer's callback: `step` counts them, and a resume falls back to an earlier global step."""
    steps = [2, 4, 6, 4, 6, 8]
    rows = [{"train/loss": 1 / s, "train/global_step": s, "train/epoch": s / 4} for s in steps]
    rows.insert(3, {"eval/loss": "NaN", "eval/f1_macro": 0.5, "train/global_step": 6})
    rows.append({"my/note": 1.0})
    return [(run, "run", place, row) for place, row in enumerate(rows)]


@pytest.mark.parametrize("old", [False, True])
def test_the_step_of_a_trainer_run_is_its_global_step(tmp_path, old):
    trackio_store(tmp_path / "project.db", trainer_rows("id1"), old).close()
    [run], problems = read_folder(tmp_path)
    loss = curve(run, "train/loss")
    assert loss.steps.tolist() == [2, 4, 6, 4, 6, 8] and not problems
    assert loss.superseded.tolist() == [False, True, True, False, False, False]
    assert np.isnan(curve(run, "eval/loss").values[0]) and curve(run, "eval/f1_macro").metric == "macro_f1"
    assert curve(run, "my/note").steps.tolist() == [8]
    assert run.settings == {"learning_rate": 5e-5} and run.name == "run"
    assert curve(run, "train/loss").times[0] == 1796032800


def test_two_runs_of_one_name_stay_two(tmp_path):
    rows = [("a", "same", 1, {"train/loss": 1.0}), ("b", "same", 1, {"train/loss": 2.0})]
    trackio_store(tmp_path / "p.db", rows).close()
    runs, _ = read_folder(tmp_path)
    assert [(r.name, r.part, r.curves[0].values[0]) for r in runs] == [("same", "a", 1.0), ("same", "b", 2.0)]


def test_the_newest_rows_of_a_run_that_is_being_written_are_seen(tmp_path):
    live = trackio_store(tmp_path / "p.db", [("a", "r", 1, {"train/loss": 1.0})])
    assert (tmp_path / "p.db-wal").stat().st_size
    [run], _ = read_folder(tmp_path)
    assert run.curves[0].values.tolist() == [1.0]
    live.execute(
        "INSERT INTO metrics (run_id, run_name, step, metrics) VALUES ('a', 'r', 2, ?)", [b'{"train/loss": 0.5}']
    )
    live.commit()
    [run], _ = read_folder(tmp_path)
    assert run.curves[0].values.tolist() == [1.0, 0.5]
    live.close()
    before = sorted(os.listdir(tmp_path))
    data = (tmp_path / "p.db").read_bytes()
    [uploaded], _ = read_files([("p.db", data)])
    assert uploaded.curves[0].values.tolist() == [1.0, 0.5] and sorted(os.listdir(tmp_path)) == before


def test_the_inbox_of_the_json_lines_mode(tmp_path):
    lines = [
        {"v": 1, "kind": "metric", "project": "p", "run": "r", "run_id": "a", "step": s, "timestamp": "2026-11-30",
         "metrics": {"train/loss": v}, "config": {"lr": 1}}
        for s, v in ((1, 1.0), (2, "Infinity"))
    ]  # fmt: skip
    (tmp_path / "00000000.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n{cut")
    [run], [problem] = read_folder(tmp_path)
    assert run.curves[0].values.tolist() == [1.0, math.inf] and run.settings == {"lr": 1} and problem.read == "in part"
    [single], _ = read_files([("one.jsonl", json.dumps(lines[0]).encode())])
    assert single.name == "r" and single.curves[0].steps.tolist() == [1]


def test_mlflow_hides_nan_and_infinity_in_its_database(tmp_path):
    with sqlite3.connect(tmp_path / "mlflow.db") as connection:
        connection.executescript(
            "CREATE TABLE runs (run_uuid TEXT, name TEXT, lifecycle_stage TEXT);"
            "CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);"
            "CREATE TABLE metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INT, is_nan INT);"
            "INSERT INTO runs VALUES ('u1', 'good', 'active'), ('u2', 'gone', 'deleted');"
            "INSERT INTO params VALUES ('lr', '5e-05', 'u1'), ('dir', '/home/x', 'u1');"
        )
        values = [(0.5, 0), (0.0, 1), (HUGE, 0), (-HUGE, 0)]
        rows = [("eval_f1_macro", v, 1000 * i, "u1", i, nan) for i, (v, nan) in enumerate(values)]
        connection.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", [*rows, ("loss", 1.0, 0, "u2", 0, 0)])
    [run], problems = read_folder(tmp_path)
    found = curve(run, "eval_f1_macro")
    assert np.array_equal(found.values, [0.5, math.nan, math.inf, -math.inf], equal_nan=True) and not problems
    assert found.times.tolist() == [0, 1, 2, 3] and run.name == "good" and run.settings == {"lr": 5e-05}


def test_mlflow_as_a_folder(tmp_path):
    run = tmp_path / "mlruns" / "0" / "abc"
    for name, text in {
        "meta.yaml": "artifact_uri: x\nrun_id: abc\nrun_name: first try\n",
        "metrics/loss": "1000 1.5 1\n2000 nan 2\n3000 0.5 3\n",
        "metrics/eval/accuracy": "2000 0.75 2\n",
        "metrics/broken": "one two\n",
        "params/epochs": "3",
        "tags/mlflow.user": "someone",
    }.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(text)
    (run / "artifacts").mkdir()
    (run / "artifacts" / "confusion_matrix.json").write_text("[[5, 1], [4, 90]]")
    artefacts, problems = read_folder(tmp_path)
    [found] = [a for a in artefacts if a.kind == "history"]
    assert found.name == "first try" and found.settings == {"epochs": 3.0}
    assert np.array_equal(curve(found, "loss").values, [1.5, math.nan, 0.5], equal_nan=True)
    assert (curve(found, "loss").split, curve(found, "eval/accuracy").split) == ("train", "eval")
    assert [p.file for p in problems if p.ours] == ["mlruns/0/abc/metrics/broken"]
    assert [a.file for a in artefacts if a.kind == "table"] == ["mlruns/0/abc/artifacts/confusion_matrix.json"]


def test_event_files_whole_and_cut(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path))
    for step, loss in ((2, 1.5), (4, float("nan")), (6, 0.5), (4, 0.75)):
        values = [summary_pb2.Summary.Value(tag="train/loss", simple_value=loss)]
        values += [summary_pb2.Summary.Value(tag="train/epoch", simple_value=step / 2)]
        event = event_pb2.Event(wall_time=100.0 + step, step=step, summary=summary_pb2.Summary(value=values))
        writer.add_event(event)
    writer.close()
    [path] = tmp_path.iterdir()
    [run], problems = read_folder(tmp_path)
    loss = curve(run, "train/loss")
    assert np.array_equal(loss.values, [1.5, math.nan, 0.5, 0.75], equal_nan=True) and not problems
    assert loss.epochs.tolist() == [1, 2, 3, 2] and loss.times[0] == 102
    assert loss.superseded.tolist() == [False, True, False, False] and len(run.curves) == 1
    [run], [problem] = read_files([("events", path.read_bytes()[:-20])])
    assert "middle of a record" in problem.what and len(curve(run, "train/loss")) == 3


def test_without_tensorboard_the_pip_line_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto", None)
    _, [problem] = read_files([("events", b"\x18\0\0\0\0\0\0\0\0\0\0\0\t\0\0\0\0\0\0\0\0\x1a\x0dbrain.Event:2")])
    assert 'pip install -e ".[tensorboard]"' in problem.what
