"""The two commands, the file that they write, and the exports of real models."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from refusal_core import heldout
from refusal_core import study as study_command
from refusal_core.activations.npz import read_export
from refusal_core.commands import entry
from refusal_core.direction.study import Settings, study
from refusal_core.errors import Cancelled, InputError
from refusal_core.jobs import Job
from tests.activation_files import npz_bytes, pair, planted, write

ROOT = Path(__file__).resolve().parents[2]
RATE = {"low": float, "high": float, "level": float, "method": str}
NULL = {"repeats": int, "scores": list, "mean": float, "sd": float, "tail_fraction": float, "p_value": float}
INPUT = {
    "sha256": str,
    "examples": int,
    "dimensions": int,
    "dtype": str,
    "label_counts": {"0": int, "1": int},
    "categories": dict,
}
INTERVAL = {
    "method": str,
    "level": float,
    "low": float,
    "high": float,
    "categories_per_class": {"0": int, "1": int},
}
CONTRACT = {
    "schema": str,
    "inputs": {"train": INPUT, "test": INPUT},
    "extraction": {"model": str, "layer": str, "pooling": str},
    "seen_categories": list,
    "split": str,
    "direction": {"norm": float, "threshold": float, "sha256": str},
    "test": {
        "accuracy": float,
        "balanced_accuracy": float,
        "auroc": float,
        "false_refusal_rate": float,
        "missed_refusal_rate": float,
        "confusion": {"tn": int, "fp": int, "fn": int, "tp": int},
        "by_category": list,
    },
    "baselines": {
        "majority": {"label": int, "accuracy": float, "balanced_accuracy": float},
        "random_directions": {"repeats": int, "scores": list, "mean": float, "sd": float},
    },
    "nulls": {"shuffled_labels": NULL, "shuffled_categories": NULL, "within_categories": {"not_available": str}},
    "interval": INTERVAL,
    "auroc_interval": INTERVAL,
    "seed": int,
    "repeats": int,
    "warnings": list,
}


def check(found: object, wanted: object, where: str = "study.json") -> None:
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            assert key in found, f"{where} lacks {key}"
            check(found[key], value, f"{where}: {key}")
        return
    assert type(found) is wanted, f"{where} is {found!r}"


@pytest.fixture
def paths(tmp_path) -> list[str]:
    made = (planted(60, signal=1.0), planted(60, seed=5, signal=1.0, prefix="test"))
    return [str(write(tmp_path, f"{name}.npz", npz_bytes(m))) for name, m in zip(("train", "test"), made, strict=True)]


def test_study_json_keeps_the_contract(paths, tmp_path, capsys):
    output = tmp_path / "study.json"
    code = study_command.main(
        [
            *paths,
            "--model",
            "m@1",
            "--layer",
            "16",
            "--pooling",
            "last-token",
            "--repeats",
            "49",
            "--seed",
            "3",
            "--output",
            str(output),
        ]
    )
    captured = capsys.readouterr()
    found = json.loads(output.read_text())
    assert (code, captured.out) == (0, "")
    check(found, CONTRACT)
    assert (found["schema"], found["seed"], found["repeats"]) == ("refusal-study/1", 3, 49)
    assert {key: found["extraction"][key] for key in ("model", "layer", "pooling")} == {
        "model": "m@1",
        "layer": "16",
        "pooling": "last-token",
    }
    category = found["test"]["by_category"][0]
    assert category["missed_refusal_rate"] is None and category["missed_refusal_rate_interval"] is None
    check(
        category,
        {
            "category": str,
            "n": int,
            "label_counts": {"0": int, "1": int},
            "seen_in_train": bool,
            "false_refusal_rate": float,
            "false_refusal_rate_interval": RATE,
        },
    )
    assert len(found["nulls"]["shuffled_labels"]["scores"]) == 49
    assert found["inputs"]["train"]["categories"] == {f"train topic {k}": 15 for k in range(4)}
    assert str(tmp_path) not in output.read_text()
    assert list(found["versions"]) == ["python", "refusal-core", "numpy", "scipy"]
    first = captured.err.splitlines()[0]
    assert first.startswith("Balanced accuracy 0.") and "categories held out" in first and "p = " in first
    ranking = f"AUROC {found['test']['auroc']:.2f} ({found['auroc_interval']['low']:.2f} to "
    assert ranking in captured.err and "over 2 + 2 categories, n = 60)" in captured.err


def test_the_held_out_command_writes_the_same_without_draws(paths, capsys):
    assert heldout.main(paths) == 0
    found = json.loads(capsys.readouterr().out)
    assert study_command.main([*paths, "--repeats", "9"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert "auroc_interval" in whole and "auroc_interval" not in found
    assert "nulls" not in found and "interval" not in found and "random_directions" not in found["baselines"]
    for key in (
        "schema",
        "inputs",
        "extraction",
        "seen_categories",
        "split",
        "direction",
        "test",
        "macro_average",
        "leakage",
        "geometry",
        "variants",
    ):
        assert found[key] == whole[key], key
    assert found["baselines"]["majority"] == whole["baselines"]["majority"]


def test_the_same_seed_and_files_give_the_same_bytes_in_another_process(paths, tmp_path):
    outputs = []
    for run in range(2):
        output = tmp_path / f"{run}.json"
        done = subprocess.run(
            [sys.executable, "-m", "refusal_core.study", *paths, "--repeats", "29", "--output", str(output)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": str(run + 1)},
        )
        assert done.returncode == 0, done.stderr
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1], "the command sets the threads, not the environment"


def test_one_pooled_file_compares_splits(paths, capsys):
    assert study_command.main([paths[0], "--split-repeats", "3"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["split"] == "one pooled file" and found["inputs"]["test"] is None
    assert found["split_comparison"]["repeats"] == 3 and found["split_comparison"]["categories"] == 4
    assert found["test"] == {"not_available": "one pooled file was given, so there is no test file"}
    assert "on categories left out and" in captured.err.splitlines()[0]


def test_one_pooled_file_that_cannot_be_split(tmp_path, capsys):
    path = write(tmp_path, "a.npz", npz_bytes(planted(20, categories=2)))
    assert study_command.main([str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 'without the category "train topic 0" one class is missing' in found["split_comparison"]["not_available"]


def test_both_labels_in_the_categories_of_both_files(capsys, tmp_path):
    made = []
    for k in range(2):
        members = planted(60, seed=k, signal=1.0, prefix=f"p{k}")
        members["labels"] = np.random.default_rng(k).permutation(members["labels"])
        members["categories"] = np.array([f"topic {i % 5}" for i in range(60)])
        made.append(str(write(tmp_path, f"{k}.npz", npz_bytes(members))))
    assert study_command.main([*made, "--repeats", "19", "--split-repeats", "2"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["split"] == "categories shared"
    assert found["seen_categories"] == [f"topic {k}" for k in range(5)]
    check(found["nulls"]["within_categories"], NULL)
    assert "cannot move as a whole" in found["nulls"]["shuffled_categories"]["not_available"]
    assert "shuffles within categories" in captured.err.splitlines()[0]
    assert found["split_comparison"]["examples"] == 120
    assert found["interval"]["degrees_of_freedom"] == 4


def test_no_file_is_written_over_its_input(paths, capsys):
    before = Path(paths[0]).read_bytes()
    assert study_command.main([*paths, "--output", paths[0]]) == 2
    assert capsys.readouterr().err == "--output: the output is the input file; name another file.\n"
    assert Path(paths[0]).read_bytes() == before


@pytest.mark.parametrize("main", [study_command.main, heldout.main])
def test_a_place_that_cannot_be_written_is_found_before_the_work(main, paths, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("refusal_core.commands.activation_files.read", lambda *_: pytest.fail("the files were read"))
    assert main([*paths, "--output", str(tmp_path / "none" / "study.json")]) == 2
    assert "the folder to write in does not exist" in capsys.readouterr().err
    assert main([*paths, "--output", str(tmp_path)]) == 2


@pytest.mark.parametrize("main", [study_command.main, heldout.main])
def test_an_older_result_stays_when_an_input_is_refused(main, paths, tmp_path, capsys):
    output = tmp_path / "study.json"
    output.write_text("older")
    assert main([paths[0], paths[0], "--output", str(output)]) == 2
    assert "the same file" in capsys.readouterr().err
    assert output.read_text() == "older"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--repeats", "0"], "--repeats: it is 0; 1 to 100,000"),
        (["--seed", "-1"], "--seed: it is -1"),
        (["--repeats", "x"], "invalid int value"),
        (["--nope"], "unrecognized arguments: --nope"),
        (["--threads", "0"], "--threads: it is 0"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(paths, options, said, capsys):
    try:
        code = study_command.main([*paths, *options])
    except SystemExit as left:
        code = left.code
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "") and said in captured.err and captured.err.count("\n") == 1


def test_an_option_that_contradicts_the_file_is_warned_about(tmp_path, capsys):
    made = [
        write(tmp_path, f"{k}.npz", npz_bytes({**planted(40, seed=k, prefix=f"p{k}"), "layer": "[12]", "model": "m"}))
        for k in range(2)
    ]
    assert study_command.main([*map(str, made), "--repeats", "9", "--layer", "13", "--model", " m"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["extraction"]["test_file"] == {"model": "m", "layer": "12", "pooling": "not stated"}
    assert "warning: 0.npz states layer 12, but --layer says 13." in captured.err
    assert "states model" not in captured.err


def test_what_label_1_means_is_taken_from_the_file_where_nobody_says_it(tmp_path, capsys):
    def made(name, **more):
        return str(write(tmp_path, name, npz_bytes({**planted(40, seed=len(name), prefix=name), **more})))

    train, test = made("train.npz", label_means="harmful"), made("test.npz")
    cases = {
        "false alarms": [train, test],
        "but --label-means says refused": [train, test, "--label-means=refused"],
        "different values of label_means": [train, made("other-test.npz", label_means="refused")],
        'label 1 means "odd", which is none of refused, harmful': [made("odd-train.npz", label_means="odd"), test],
    }
    for sentence, arguments in cases.items():
        assert study_command.main([*arguments, "--repeats", "9"]) == 0
        assert sentence in capsys.readouterr().err


_BEGUN = """
import sys
from refusal_core.commands import study
from refusal_core.study import main
work = study.run_study
def begun(*args):
    print("begun", file=sys.stderr, flush=True)
    return work(*args)
study.run_study = begun
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    path = write(tmp_path, "pooled.npz", npz_bytes(planted(4_000, 600)))
    options = [str(path), "--split-repeats", "1000", "--output", str(tmp_path / "study.json")]
    running = subprocess.Popen([sys.executable, "-c", _BEGUN, *options], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert running.stderr.readline() == "begun\n"
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130 and err.strip().splitlines()[-1] == "Stopped by the user.", err
    assert [p.name for p in tmp_path.iterdir()] == ["pooled.npz"]


def test_a_job_can_be_cancelled_at_any_block():
    train, test = pair(n=40)
    total = []
    study(train, test, Settings(repeats=9), Job(show=lambda p: total.append((p.done, p.total)), every=0))
    assert total[-1][0] == total[-1][1], "the progress ends at its total"
    for stop in range(1, total[-1][1], 3):
        job = Job(every=0)
        job.show = lambda p, job=job, stop=stop: job.cancel.set() if p.done >= stop else None
        with pytest.raises(Cancelled):
            study(train, test, Settings(repeats=9), job)


@pytest.mark.parametrize("shared", [False, True])
def test_progress_ends_at_its_total_whatever_is_drawn(shared):
    train = read_export(npz_bytes(planted(40)), name="a")
    test = planted(40, seed=1, prefix="test")
    test["categories"] = np.array(train.categories) if shared else test["categories"]
    test["labels"] = np.random.default_rng(0).permutation(test["labels"])
    ends = []
    study(
        train,
        read_export(npz_bytes(test), name="b"),
        Settings(repeats=9, split_repeats=2),
        Job(show=lambda p: ends.append((p.done, p.total)), every=0),
    )
    assert ends[-1][0] == ends[-1][1]


def test_memory_that_does_not_suffice_is_one_sentence(capsys):
    def run(_):
        raise MemoryError

    assert entry.guarded(run, None) == 1
    assert capsys.readouterr().err.startswith("Not enough memory")


def exports(folder: Path) -> list[tuple[Path, Path]]:
    return [
        (p, p.with_name(p.name.replace("train.npz", "test.npz")))
        for p in sorted((folder / "activations").glob("*_train.npz"))
    ]


def test_the_real_exports_run(shared_data):
    pairs = exports(shared_data)
    assert len(pairs) == 7
    for train, test in pairs:
        found = study(read_export(train), read_export(test), Settings(repeats=49, split_repeats=2))
        check(json.loads(found.to_json()), {key: CONTRACT[key] for key in ("inputs", "direction", "test", "baselines")})
        held_out = "heldout" in train.name or "refdir" in train.name
        assert found.split == ("categories held out" if held_out else "categories shared")
        assert not found.leakage.equal_rows
        assert 0.5 < found.test.balanced_accuracy < 0.85


def test_the_float16_export_agrees_with_its_float32_twin(shared_data):
    twins = [pair_ for pair_ in exports(shared_data) if "L15_heldout" in pair_[0].name]
    found = [study(read_export(train), read_export(test), Settings(repeats=49)) for train, test in twins]
    assert [f.inputs["train"]["dtype"] for f in found] == ["float16", "float32"]
    assert found[0].unit @ found[1].unit > 1 - 1e-6
    assert found[0].test.confusion == found[1].test.confusion


def test_a_study_refuses_its_own_training_file(shared_data):
    train, _ = exports(shared_data)[0]
    with pytest.raises(InputError, match="train and test are the same file"):
        study(read_export(train), read_export(train))
