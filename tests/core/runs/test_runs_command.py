"""The command `runs`: exit 0 whenever the folder opens, strict JSON, readable text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from refusal_core import cli

FILES = Path(__file__).parent / "files"


def strict(text: str) -> dict:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def folder(tmp_path) -> Path:
    for name, to in {
        "not_finite_state.json": "checkpoint-8/trainer_state.json",
        "cut_state.json": "other/trainer_state.json",
        "nan_results.json": "eval_results.json",
        "report_micro_avg.json": "classification_report.json",
        "matrix_judges.csv": "matrix.csv",
        "predictions.jsonl": "checkpoint-8/predictions.jsonl",
        "lfs_pointer.json": "pointer.json",
    }.items():
        (tmp_path / to).parent.mkdir(exist_ok=True)
        shutil.copy(FILES / name, tmp_path / to)
    return tmp_path


def test_the_json_is_strict_and_has_the_promised_keys(folder, capsys):
    assert cli.main(["runs", str(folder), "--json"]) == 0
    found = strict(capsys.readouterr().out)
    assert found.keys() >= {"runs", "problems", "findings"}
    for run in found["runs"]:
        assert run.keys() >= {"name", "checkpoints", "curves", "tables", "scores", "settings", "best", "sources"}
    said = {p["file"]: p["read"] for p in found["problems"]}
    assert (said["pointer.json"], said["other/trainer_state.json"]) == ("no", "in part")
    curves = [c for run in found["runs"] for c in run["curves"] if c["metric"] == "grad_norm" and c["not_finite"]]
    assert curves[0]["values"] == [2.5, None, None, None]
    assert curves[0]["not_finite"] == {"1": "NaN", "2": "Infinity", "3": "Infinity"}


def test_the_text_says_what_there_is(folder, capsys):
    assert cli.main(["runs", str(folder)]) == 0
    out = capsys.readouterr().out
    for part in (
        "grad_norm: 4 values, steps 2 to 8",
        "3 not finite",
        "rows and columns not stated",
        "run git lfs pull",
    ):
        assert part in out, part


def test_an_empty_folder_opens_and_a_missing_one_does_not(tmp_path, capsys):
    assert cli.main(["runs", str(tmp_path), "--json"]) == 0
    assert strict(capsys.readouterr().out)["runs"] == []
    assert cli.main(["runs", str(tmp_path / "gone")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert cli.main(["runs", str(tmp_path / "file")]) == 2
    assert "a folder is expected" in capsys.readouterr().err
