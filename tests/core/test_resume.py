"""`classify --resume`: killed at any moment and resumed, it writes the bytes of an uninterrupted run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from refusal_core import cli
from refusal_core.classifier.predict import Classifier

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """In this process and in those it starts: quick where other work runs too, and the same sums in both."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory) -> Path:
    """2,100 rows of many lengths: repeats near and far, rows that cannot be read and rows without an answer."""
    path = tmp_path_factory.mktemp("resume") / "rows.jsonl"
    with path.open("w") as file:
        for i in range(2_100):
            row = {
                "id": f"row {i}",
                "prompt": f"what is lima {i % 1_500}",
                "response": "sorry i cannot help " * (i % 9),
            }
            file.write("no json\n" if i % 501 == 500 else json.dumps(row) + "\n")
    return path


def words(rows_file: Path, output: Path, checkpoint: Path, *more: str) -> list[str]:
    return ["classify", str(rows_file), "--output", str(output), "--checkpoint", str(checkpoint), *more]


@pytest.fixture(scope="module")
def uninterrupted(rows_file, tiny_checkpoint, tmp_path_factory) -> bytes:
    output = tmp_path_factory.mktemp("whole") / "out.jsonl"
    assert cli.main(words(rows_file, output, tiny_checkpoint)) == 0
    assert os.listdir(output.parent) == ["out.jsonl"]
    return output.read_bytes()


def kill_after(lines: int, command: list[str], journal: Path, how: int) -> int:
    """Start the command and send it `how` once its journal has `lines` lines; its exit code."""
    process = subprocess.Popen(
        [sys.executable, "-m", "refusal_core.cli", *command], cwd=REPOSITORY, stderr=subprocess.PIPE
    )
    begun = time.monotonic()
    try:
        while not journal.exists() or journal.read_bytes().count(b"\n") < lines:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() - begun < 120
            time.sleep(0.005)
        process.send_signal(how)
        return process.wait(timeout=60)
    finally:
        process.kill()
        process.stderr.close()


def test_killed_twice_and_resumed_gives_the_same_bytes(rows_file, tiny_checkpoint, tmp_path, uninterrupted, capsys):
    output, journal = tmp_path / "out.jsonl", tmp_path / "out.jsonl.unfinished"
    output.write_text("old\n")
    command = words(rows_file, output, tiny_checkpoint)
    assert kill_after(2, command, journal, signal.SIGKILL) == -signal.SIGKILL
    assert kill_after(3, [*command, "--resume"], journal, signal.SIGINT) == 130
    assert output.read_text() == "old\n"
    assert sorted(os.listdir(tmp_path)) == ["out.jsonl", "out.jsonl.unfinished"]
    with journal.open("ab") as file:  # a kill in the middle of a line
        file.write(b'{"rows": [{"id": "row')
    assert cli.main([*command, "--resume"]) == 0
    message = capsys.readouterr().err
    assert "Going on after" in message
    assert "Going on after 0 rows" not in message
    assert output.read_bytes() == uninterrupted
    assert os.listdir(tmp_path) == ["out.jsonl"]


@pytest.fixture
def stopped(rows_file, tiny_checkpoint, tmp_path) -> tuple[list[str], Path]:
    """The command line of a run that was stopped after two lists of rows, and its journal."""
    command, journal = words(rows_file, tmp_path / "out.jsonl", tiny_checkpoint), tmp_path / "out.jsonl.unfinished"
    answer, calls = Classifier.answer, iter(range(3))

    def stopping(self, encoded, **options):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return answer(self, encoded, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Classifier, "answer", stopping)
        assert cli.main(command) == 130
    return command, journal


def test_what_is_finished_is_not_computed_again(stopped, monkeypatch, uninterrupted):
    command, journal = stopped
    lines = journal.read_bytes().splitlines()
    done = {row["id"] for line in lines[1:] for row in json.loads(line)["rows"]}
    computed = set()
    answer = Classifier.answer

    def counting(self, encoded, **options):
        computed.update(exchange.id for exchange in encoded.exchanges)
        return answer(self, encoded, **options)

    monkeypatch.setattr(Classifier, "answer", counting)
    assert cli.main([*command, "--resume"]) == 0
    assert len(done) == 1_024
    assert computed
    assert not computed & done
    assert Path(command[3]).read_bytes() == uninterrupted


def test_other_settings_are_refused_and_nothing_is_lost(stopped, capsys):
    command, journal = stopped
    before = journal.read_bytes()
    assert cli.main([*command, "--resume", "--batch-size", "7"]) == 2
    assert "other settings" in capsys.readouterr().err
    Path(command[1]).write_bytes(Path(command[1]).read_bytes())  # another time, the same bytes
    assert journal.read_bytes() == before
    assert not Path(command[3]).exists()


def test_without_resume_it_begins_anew_and_says_so(stopped, capsys, uninterrupted):
    command, journal = stopped
    assert cli.main(command) == 0
    assert "Beginning anew" in capsys.readouterr().err
    assert Path(command[3]).read_bytes() == uninterrupted
    assert not journal.exists()


def test_resume_without_an_earlier_run_begins(rows_file, tiny_checkpoint, tmp_path, uninterrupted):
    output = tmp_path / "out.jsonl"
    assert cli.main([*words(rows_file, output, tiny_checkpoint), "--resume"]) == 0
    assert output.read_bytes() == uninterrupted


@pytest.mark.parametrize("places", [["-", "--output", "{folder}/out"], ["{rows}"], ["{rows}", "--output", "/dev/null"]])
def test_resume_needs_files(places, rows_file, tiny_checkpoint, tmp_path, capsys):
    places = [place.format(folder=tmp_path, rows=rows_file) for place in places]
    assert cli.main(["classify", *places, "--checkpoint", str(tiny_checkpoint), "--resume"]) == 2
    assert "--resume" in capsys.readouterr().err


def test_an_input_that_breaks_off_leaves_nothing(tiny_checkpoint, tmp_path, capsys):
    path, output = tmp_path / "rows.csv", tmp_path / "out.jsonl"
    good = "".join(f"what,lima {i}\n" for i in range(600))
    path.write_bytes(b"prompt,response\n" + good.encode() + b'what,"never closed ' + b"x" * 17_000_000)
    code = cli.main(words(path, output, tiny_checkpoint))
    capsys.readouterr()
    if code == 2:
        assert os.listdir(tmp_path) == ["rows.csv"]
    else:  # read as one bad row
        assert json.loads(output.read_text().splitlines()[-1])["label"] is None
