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

from refusal_core.climb import Settings, demonstrate
from refusal_core.climb.policy import TOKENS, UNIT
from refusal_core.climb.report import FILES, SCHEMA, files
from refusal_core.climb.search import BASELINES, METHODS
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


def test_reported_scores_and_fresh_evaluations_are_those_of_the_runs(written, loaded):
    runs = written[0].runs["climb"]
    assert [seed["reported"] for seed in loaded["seeds"]] == [score / UNIT for score in runs.reported]
    assert [seed["fresh"] for seed in loaded["seeds"]] == [score / UNIT for score in runs.fresh]
    flattery = np.mean([seed["reported"] - seed["fresh"] for seed in loaded["seeds"]])
    assert loaded["summary"]["flattery"]["mean"] == pytest.approx(flattery, abs=1e-9)


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
