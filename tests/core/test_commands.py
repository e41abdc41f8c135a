"""The command line: contracts of `classify` and `evaluate`, exit codes, and that nothing is half-written."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from refusal_core import cli
from refusal_core.commands.evaluate import FILES
from refusal_core.labels import LABELS

REPOSITORY = Path(__file__).resolve().parents[2]
ROWS = [
    {"id": "a", "prompt": "what is lima", "response": "lima is a", "label": "compliant"},
    {"id": 7, "prompt": "help", "response": "sorry i cannot help " * 100, "label": "full_refusal"},
    {"prompt": "x", "response": "", "label": "compliant"},
    {"id": "t", "prompt": "x", "response": "<think>hm", "label": "compliant"},
]


@pytest.fixture
def rows_file(tmp_path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS) + "not json\n")
    return path


def run(*words: object, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "refusal_core.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=120, **options)


def read_lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_classify_keeps_the_contract(rows_file, tiny_checkpoint, tmp_path, capsys):
    output = tmp_path / "out.jsonl"
    assert cli.main(["classify", str(rows_file), "--output", str(output), "--checkpoint", str(tiny_checkpoint)]) == 0
    answers = read_lines(output.read_text())
    assert [a["id"] for a in answers] == ["a", 7, 3, "t", 5]
    assert all(
        set(a) >= {"id", "label", "probabilities", "tokens", "truncated", "warnings", "matcher"} for a in answers
    )
    first, long, empty, thinking, broken = answers
    assert first["label"] in LABELS
    assert tuple(first["probabilities"]) == LABELS
    assert sum(first["probabilities"].values()) == pytest.approx(1)
    assert first["truncated"] is False
    assert first["tokens"] == 3 + sum(first["tokens_read"][part]["read"] for part in ("prompt", "response"))
    assert long["truncated"] is True
    assert long["tokens_read"]["response"]["read"] < long["tokens_read"]["response"]["total"] == 400
    assert long["matcher"] == "full_refusal"
    assert (empty["label"], empty["error"]) == (None, "empty response")
    assert (thinking["label"], thinking["error"]) == (None, "unfinished reasoning")
    assert (empty["matcher"], thinking["matcher"], broken["matcher"]) == (None, None, None)
    assert broken["label"] is None
    assert broken["error"]
    assert "error" not in first
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "5 rows" in captured.err


def test_standard_input_to_standard_output(rows_file, tiny_checkpoint):
    done = run("classify", "-", "--checkpoint", tiny_checkpoint, input=rows_file.read_text())
    assert done.returncode == 0, done.stderr
    assert [a["id"] for a in read_lines(done.stdout)] == ["a", 7, 3, "t", 5]


def test_columns_are_mapped_and_turns_counted(tmp_path, tiny_checkpoint):
    table = tmp_path / "t.csv"
    table.write_text("question,answer\nhi,lima\n")
    done = run(
        "classify", table, "--checkpoint", tiny_checkpoint, "--map", "prompt=question", "--map", "response=answer"
    )
    assert [a["id"] for a in read_lines(done.stdout)] == [2]
    chat = [{"role": role, "content": "help"} for role in ("user", "assistant", "user", "assistant")]
    chats = tmp_path / "c.jsonl"
    chats.write_text(json.dumps({"id": "c", "messages": chat}) + "\n")
    done = run("classify", chats, "--checkpoint", tiny_checkpoint, "--every-turn")
    assert [a["id"] for a in read_lines(done.stdout)] == ["c#1", "c#2"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["classify", "missing.jsonl"], "missing.jsonl"),
        (["classify", "{rows}", "--checkpoint", "/no/such/folder"], "/no/such/folder"),
        (["classify", "{rows}", "--output", "{rows}"], "--output"),
        (["classify", "{rows}", "--map", "prompt"], "--map"),
        (["classify", "{rows}", "--checkpoint", "{tiny}", "--batch-size", "0"], "batch size"),
        (["classify", "{rows}", "--checkpoint", "{tiny}", "--max-length", "4000"], "128"),
        (["classify", "{rows}", "--checkpoint", "{tiny}", "--output", "/no/such/folder/out"], "/no/such/folder"),
        (["classify"], "IN"),
        (["unknown"], "unknown"),
        (["evaluate", "{rows}", "--output", "{tiny}", "--checkpoint", "{tiny}"], "holds"),
        (["train", "--train", "{rows}", "--validation", "{rows}", "--output", "{tiny}"], "not empty"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_2(words, part, rows_file, tiny_checkpoint, capsys):
    before = rows_file.read_bytes(), sorted(os.listdir(rows_file.parent)), sorted(os.listdir(tiny_checkpoint))
    words = [word.format(rows=rows_file, tiny=tiny_checkpoint) for word in words]
    try:
        code = cli.main(words)
    except SystemExit as stop:
        code = stop.code
    message = [line for line in capsys.readouterr().err.splitlines() if "classify:" not in line]
    assert code == 2
    assert len(message) == 1, message
    assert part in message[0]
    assert before == (
        rows_file.read_bytes(),
        sorted(os.listdir(rows_file.parent)),
        sorted(os.listdir(tiny_checkpoint)),
    )


def test_evaluate_writes_its_four_files(rows_file, tiny_checkpoint, tmp_path):
    output = tmp_path / "scores"
    assert cli.main(["evaluate", str(rows_file), "--output", str(output), "--checkpoint", str(tiny_checkpoint)]) == 0
    assert sorted(os.listdir(output)) == sorted(FILES)
    results = json.loads((output / "eval_results.json").read_text())
    assert results["split"] == "test"
    assert results["eval_samples"] == 2
    assert results["eval_unclassified"] == 3
    predictions = read_lines((output / "predictions.jsonl").read_text())
    right = sum(p["label"] == p.get("true") for p in predictions if p["label"])
    assert results["eval_accuracy"] == right / 2
    matrix = json.loads((output / "confusion_matrix.json").read_text())
    assert matrix["labels"] == list(LABELS)
    assert (matrix["rows"], matrix["columns"]) == ("true", "predicted")
    assert sum(map(sum, matrix["matrix"])) == 2
    assert "macro avg" in (output / "classification_report.txt").read_text()
    # again, over its own earlier output: same bytes
    first = {name: (output / name).read_bytes() for name in FILES}
    assert cli.main(["evaluate", str(rows_file), "--output", str(output), "--checkpoint", str(tiny_checkpoint)]) == 0
    assert {name: (output / name).read_bytes() for name in FILES} == first


def test_evaluate_names_the_row_of_an_unknown_label(tmp_path, tiny_checkpoint, capsys):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**ROWS[0], "label": "refusal"}) + "\n")
    words = ["evaluate", str(path), "--output", str(tmp_path / "scores"), "--checkpoint", str(tiny_checkpoint)]
    assert cli.main(words) == 2
    message = capsys.readouterr().err
    assert "'refusal'" in message
    assert "line 1" in message
    assert not (tmp_path / "scores").exists()


@pytest.mark.parametrize(("how", "lines"), [(signal.SIGKILL, 2_000), (signal.SIGINT, 2_000), (signal.SIGINT, 5)])
def test_a_killed_classify_leaves_the_old_output(how, lines, tiny_checkpoint, tmp_path):
    """The input is a pipe that stays open: the command is at work, or waits for rows, when the signal comes."""
    output = tmp_path / "out.jsonl"
    output.write_text("old\n")
    command = [sys.executable, "-m", "refusal_core.cli", "classify", "-", "--output", str(output)]
    process = subprocess.Popen(
        [*command, "--checkpoint", str(tiny_checkpoint)],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY,
    )  # fmt: skip
    try:
        line = (json.dumps(ROWS[0]) + "\n").encode()
        process.stdin.write(line * lines)
        process.stdin.flush()
        begun = time.monotonic()
        while len(os.listdir(tmp_path)) < 2:  # the file beside the old output: writing has begun
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() - begun < 90
            time.sleep(0.05)
        process.send_signal(how)
        code = process.wait(timeout=60)
    finally:
        process.kill()
        process.stdin.close()
        process.stderr.close()
    assert code == (-signal.SIGKILL if how == signal.SIGKILL else 130)
    assert output.read_text() == "old\n"
    if how == signal.SIGINT:
        assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_reader_that_goes_away_is_no_traceback(rows_file, tiny_checkpoint):
    command = f"{sys.executable} -m refusal_core.cli classify {rows_file} --checkpoint {tiny_checkpoint} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=REPOSITORY, timeout=120)
    assert "Traceback" not in done.stderr


def test_every_command_explains_itself(capsys):
    for name, module in cli.COMMANDS.items():
        with pytest.raises(SystemExit) as stop:
            cli.main([name, "--help"])
        assert stop.value.code == 0
        said = " ".join(capsys.readouterr().out.split())  # as wide as the terminal, so lines are broken anywhere
        module = import_module(f"refusal_core.commands.{module}")
        assert name == module.NAME and module.__doc__.split("\n")[0].split(":")[0] in said


def test_help_names_the_studies_that_are_modules_of_their_own(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    named = re.findall(r"python -m (refusal_core\.\w+) --help", capsys.readouterr().out)
    assert stop.value.code == 0 and named == ["refusal_core.heldout", "refusal_core.study"]
    for module in named:
        command = [sys.executable, "-m", module, "--help"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=120)
        assert done.returncode == 0 and f"python -m {module}" in done.stdout, done.stderr


def test_a_command_imports_no_other():
    code = "import sys; from refusal_core import cli; cli.main(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", code, "classify", "no such file", "--output", "no such folder/out.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=60)
    loaded = done.stdout.split()
    assert "refusal_core.commands.classify" in loaded and "refusal_core.commands.scorecard" not in loaded


def test_help_imports_no_torch():
    heavy = ("torch", "transformers", "streamlit", "pandas")
    code = f"import sys; from refusal_core import cli; cli.parser(); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


@pytest.mark.parametrize(("module", "imported"), [("cli", "classify"), ("study", "study"), ("heldout", "heldout")])
def test_ctrl_c_while_the_commands_are_imported_is_one_sentence(module, imported):
    code = f"""
import os, runpy, signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "refusal_core.commands.{imported}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
runpy.run_module("refusal_core.{module}", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, timeout=60)
    assert (done.returncode, done.stderr) == (130, "Stopped by the user.\n")
