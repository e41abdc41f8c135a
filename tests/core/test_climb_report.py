import csv
import hashlib
import json
import os
import platform
import re
import socket
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from refusal_core.cli import main
from refusal_core.climb import Settings, demonstrate
from refusal_core.climb.policy import TOKENS, UNIT
from refusal_core.climb.report import FILES, SCHEMA, files, output_folder
from refusal_core.climb.search import BASELINES, METHODS
from refusal_core.errors import InputError
from refusal_core.plots.climb_report import climb_report

SMALL = ["run", "--seeds", "4", "--budget", "60", "--fanout", "3", "--noise", "0.2"]


def all_files(settings):
    demonstration = demonstrate(settings)
    return demonstration, files(demonstration, climb_report(demonstration))


@pytest.fixture(scope="module")
def written():
    return all_files(Settings(seeds=6, budget=150, noise=0.3))


@pytest.fixture(scope="module")
def loaded(written):
    def strict(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(written[1]["report.json"], parse_constant=strict)


# report.json


def test_it_holds_configuration_hash_and_versions(loaded):
    assert loaded["schema"] == SCHEMA
    assert loaded["configuration"] == {
        "seeds": 6, "budget": 150, "fanout": 4, "length": 8, "vocabulary": 12,
        "interactions": 1.0, "noise": 0.3, "objective": "raise", "policy_seed": 0,
    }  # fmt: skip
    canonical = json.dumps(loaded["configuration"], sort_keys=True)
    assert loaded["configuration_sha256"] == hashlib.sha256(canonical.encode()).hexdigest()
    assert loaded["versions"]["numpy"] == np.__version__
    assert loaded["versions"]["python"] == platform.python_version()


def test_the_seeds_can_be_recomputed_from_the_policy_in_the_file(loaded):
    """A reader needs nothing but the file: tables, sequences and values agree."""
    policy = loaded["policy"]
    assert policy["tokens"] == list(TOKENS[:12])

    def logit(words):
        x = [policy["tokens"].index(word) for word in words.split()]
        parts = [policy["weights"][place][token] for place, token in enumerate(x)]
        parts += [policy["interactions"][a][b] for a, b in zip(x, x[1:], strict=False)]
        return pytest.approx(policy["bias"] + sum(parts), abs=1e-9)

    assert policy["optimum"]["value"] == logit(policy["optimum"]["sequence"])
    assert [seed["seed"] for seed in loaded["seeds"]] == list(range(6))
    for seed in loaded["seeds"]:
        assert seed["best"] == logit(seed["sequence"])
        assert seed["optimum"] == policy["optimum"]["value"]
        assert seed["regret"] == pytest.approx(seed["optimum"] - seed["best"], abs=1e-9)
        assert seed["regret"] >= 0
        assert seed["evaluations"] == 150
        last = seed["trajectory"][-1]
        assert (last["value"], last["score"], last["sequence"]) == (seed["best"], seed["reported"], seed["sequence"])
        for step in seed["trajectory"]:
            assert step["value"] == logit(step["sequence"])


def test_summary_and_comparisons_are_those_of_the_demonstration(written, loaded):
    d = written[0]
    summary = loaded["summary"]
    assert summary["regret"]["mean"] == pytest.approx(np.mean([s["regret"] for s in loaded["seeds"]]), abs=1e-9)
    assert summary["regret"]["n"] == 6
    assert summary["regret"]["interval"]["low"] == d.summaries["climb"].regret.interval.low
    assert summary["flattery"]["mean"] == d.summaries["climb"].flattery.value
    assert summary["curve"]["mean_regret"][-1] == summary["regret"]["mean"]
    assert [b["method"] for b in loaded["baselines"]] == list(BASELINES)
    for baseline, paired in zip(loaded["baselines"], d.paired, strict=True):
        difference = baseline["paired"]["regret_less_climbs"]
        assert difference["mean"] == pytest.approx(baseline["regret"]["mean"] - summary["regret"]["mean"], abs=1e-9)
        assert sum(baseline["paired"]["seeds"].values()) == 6
        assert baseline["paired"]["verdict"] == paired.verdict
    assert [f["fanout"] for f in loaded["fanouts"]] == [1, 2, 4, 8, 16]


def test_what_is_undefined_is_null_with_a_reason():
    one = json.loads(all_files(Settings(seeds=1, budget=1, length=1, vocabulary=2))[1]["report.json"])
    assert "one seed" in one["summary"]["regret"]["interval"]["not_available"]
    assert "fresh" in one["summary"]["flattery"]["not_available"]
    assert one["summary"]["curve"]["low"] == [None]
    equal = json.loads(all_files(Settings(seeds=3, budget=300, length=1, vocabulary=2))[1]["report.json"])
    assert "same value" in equal["summary"]["regret"]["interval"]["not_available"]
    assert equal["summary"]["reached_optimum"]["share"] == 1


# Every file


def test_every_file_says_simulated(written):
    assert list(written[1]) == list(FILES)
    for name in ("report.json", "report.html", "README.txt"):
        assert "simulated" in written[1][name].lower(), name


def test_the_same_settings_give_the_same_bytes_in_a_new_process(tmp_path):
    """Under another hash seed, in another folder, with another name, at another time."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for name, seed in (("a/x", "1"), ("b/another name", "2")):
        subprocess.run(
            [sys.executable, "-m", "refusal_core.cli", *SMALL, "--out", str(tmp_path / name)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC+{seed}"},
            check=True,
            capture_output=True,
        )
    for name in FILES:
        assert (tmp_path / "a/x" / name).read_bytes() == (tmp_path / "b/another name" / name).read_bytes(), name


def test_no_time_host_or_path_is_in_them(written):
    for name, text in written[1].items():
        assert socket.gethostname() not in text
        assert str(Path.cwd()) not in text
        assert str(Path.home()) + "/" not in text
        assert not re.search(r"\b20\d\d-\d\d-\d\d|\b\d\d:\d\d:\d\d\b", text), name


def test_trajectories_have_a_line_for_each_improvement(written, loaded):
    rows = list(csv.DictReader(written[1]["trajectories.csv"].splitlines()))
    assert len(rows) == sum(len(runs.at) for runs in written[0].runs.values())
    assert {row["method"] for row in rows} == set(METHODS)
    climbs = [row for row in rows if row["method"] == "climb"]
    steps = [(seed["seed"], step) for seed in loaded["seeds"] for step in seed["trajectory"]]
    for row, (seed, step) in zip(climbs, steps, strict=True):
        assert (int(row["seed"]), int(row["evaluation"]), row["sequence"]) == (
            seed,
            step["evaluation"],
            step["sequence"],
        )
        assert (float(row["score"]), float(row["value"])) == (step["score"], step["value"])
        assert float(row["regret"]) == pytest.approx(loaded["policy"]["optimum"]["value"] - step["value"], abs=1e-9)


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.text.append(data)


def test_the_html_report_stands_alone(written):
    page = Page(written[1]["report.html"])
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(page.tags)
    for name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in ("href", "src", "action")
        assert "url(" not in value
        assert "http" not in value or name in ("xmlns", "http-equiv")
    assert "url(" not in written[1]["report.html"]
    assert ("http-equiv", "Content-Security-Policy") in page.attributes


def test_the_html_report_shows_the_numbers_of_the_json(written, loaded):
    d, text = written[0], " ".join(Page(written[1]["report.html"]).text)
    assert d.sentence() in text
    assert loaded["configuration_sha256"] in text
    assert d.settings.command() in text
    for summary in (*d.summaries.values(), *d.fanouts.values()):
        assert str(summary.regret) in text
        assert str(summary.reached) in text
    for paired in d.paired:
        assert str(paired.difference) in text
    for seed in loaded["seeds"]:
        assert seed["sequence"] in text


@pytest.mark.parametrize(
    "chosen",
    [
        Settings(seeds=10_000, budget=60, noise=0.3),
        Settings(seeds=60, budget=20_000, length=64, vocabulary=64, noise=1.0, fanout=5),
    ],
    ids=["many seeds", "long runs"],
)
def test_the_html_report_stays_small(chosen):
    assert len(climb_report(demonstrate(chosen)).encode()) < 300_000


@pytest.mark.parametrize(
    "chosen",
    [
        Settings(seeds=1, budget=1, length=1, vocabulary=2),
        Settings(seeds=2, budget=2, length=1, vocabulary=2, noise=0.5, objective="lower"),
        Settings(seeds=3, budget=300, length=1, vocabulary=2),
        Settings(seeds=5, budget=30, noise=100.0, interactions=100.0),
    ],
    ids=["least", "two", "all optimal", "largest"],
)
def test_extreme_settings_are_drawn(chosen):
    page = Page(climb_report(demonstrate(chosen)))
    assert page.tags.count("svg") >= 3
    for name, value in page.attributes:
        assert not re.search(r"\b(nan|inf)\b", value), (name, value)


def test_readme_explains_what_is_there(written):
    text = written[1]["README.txt"]
    for name in FILES:
        assert name in text
    assert written[0].settings.command() in text
    assert f"{written[0].optimum.value / UNIT:.6f}" in text
    assert max(map(len, text.splitlines())) <= 110


# The folder


def test_a_folder_of_an_earlier_run_is_replaced_as_a_whole(tmp_path):
    out = tmp_path / "r"
    assert main([*SMALL, "--out", str(out)]) == 0
    assert sorted(p.name for p in out.iterdir()) == sorted(FILES)
    before = (out / "report.json").read_bytes()
    assert main([*SMALL, "--policy-seed", "1", "--out", str(out)]) == 0
    assert (out / "report.json").read_bytes() != before
    assert [p.name for p in tmp_path.iterdir()] == ["r"]


def test_an_empty_folder_is_filled(tmp_path):
    assert main([*SMALL, "--out", str(tmp_path / "new")]) == 0
    (tmp_path / "empty").mkdir()
    assert main([*SMALL, "--out", str(tmp_path / "empty")]) == 0
    assert (tmp_path / "empty" / "report.json").read_bytes() == (tmp_path / "new" / "report.json").read_bytes()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("thesis.tex", "mine"),
        ("README.txt", "mine"),
        ("report.json", '{"schema": "another/1"}'),
        ("report.json", "[1]"),
        ("report.json", "not JSON"),
        ("report.html", "mine"),
    ],
)
def test_a_folder_that_holds_something_else_is_refused_before_the_work(tmp_path, capsys, monkeypatch, name, text):
    monkeypatch.setattr("refusal_core.commands.climb.demonstrate", lambda *a: pytest.fail("the work was begun"))
    (tmp_path / name).write_text(text)
    assert main([*SMALL, "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert name in said
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == text


def test_force_leaves_other_files_where_they_are(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "README.txt").write_text("mine")
    assert main([*SMALL, "--force", "--out", str(tmp_path)]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*FILES, "thesis.tex"])
    assert (tmp_path / "thesis.tex").read_text() == "mine"
    assert "SIMULATED" in (tmp_path / "README.txt").read_text()
    assert main([*SMALL, "--force", "--out", str(tmp_path / "new")]) == 0


def test_a_run_that_fails_leaves_the_old_report(tmp_path, monkeypatch):
    out = tmp_path / "r"
    assert main([*SMALL, "--out", str(out)]) == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("refusal_core.commands.climb.climb_report", stopped)
    for more in ([], ["--force"]):
        assert main([*SMALL, "--policy-seed", "9", *more, "--out", str(out)]) == 130
        assert {p.name: p.read_bytes() for p in out.iterdir()} == before
        assert [p.name for p in tmp_path.iterdir()] == ["r"]


def test_a_file_in_its_place_is_refused(tmp_path):
    (tmp_path / "r").write_text("mine")
    for force in (False, True):
        with pytest.raises(InputError, match="it is a file"), output_folder(str(tmp_path / "r"), force=force):
            pass


# The command


def test_the_command_says_what_it_found(tmp_path, capsys):
    assert main([*SMALL, "--out", str(tmp_path / "r")]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    demonstration = demonstrate(Settings(seeds=4, budget=60, fanout=3, noise=0.2))
    assert "imulated" in captured.err
    assert demonstration.sentence() in captured.err
    for paired in demonstration.paired:
        assert f"{paired.difference}, {paired.verdict}" in captured.err


def test_the_command_writes_what_the_functions_give(tmp_path):
    options = [
        "--length",
        "5",
        "--vocabulary",
        "6",
        "--interactions",
        "0.5",
        "--policy-seed",
        "3",
        "--objective",
        "lower",
    ]
    assert main([*SMALL, *options, "--out", str(tmp_path / "r")]) == 0
    chosen = Settings(
        seeds=4,
        budget=60,
        fanout=3,
        noise=0.2,
        length=5,
        vocabulary=6,
        interactions=0.5,
        policy_seed=3,
        objective="lower",
    )
    for name, text in all_files(chosen)[1].items():
        assert (tmp_path / "r" / name).read_bytes().decode() == text


@pytest.mark.parametrize(
    "options",
    [
        ["--seeds", "0"],
        ["--seeds", "many"],
        ["--budget", "-5"],
        ["--fanout", "0"],
        ["--noise", "nan"],
        ["--noise", "-1"],
        ["--length", "0"],
        ["--vocabulary", "1"],
        ["--objective", "up"],
        ["--policy-seed", "-1"],
        ["--seeds", "10000", "--budget", "100000"],
        ["--unknown", "1"],
    ],
)
def test_bad_values_are_one_sentence_and_exit_2(tmp_path, capsys, options):
    try:
        code = main(["run", *options, "--out", str(tmp_path / "r")])
    except SystemExit as stopped:
        code = stopped.code
    said = capsys.readouterr().err
    assert code == 2
    assert said.count("\n") == 1
    assert options[-2].strip("-") in said
    assert not (tmp_path / "r").exists()


def test_out_is_required(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["run"])
    assert stopped.value.code == 2
    assert "--out" in capsys.readouterr().err
