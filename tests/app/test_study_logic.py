"""The words, links and commands of the Direction study, without a page."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys

import pytest

from refusal_core.activations.reading import Reading
from refusal_core.cli import parser
from refusal_core.direction.meaning import MEANINGS
from refusal_core.direction.result import Settings
from refusal_core.jobs import Job
from tests.app.conftest import ROOT
from tests.app.study_cases import TEST, TRAIN, npz
from ui import state
from ui import study as logic
from ui.study import Asked, Offered
from ui.study_layers import sweep_command
from ui.study_reading import _likely_one


def offered(name: str, content: bytes) -> Offered:
    return Offered(logic.UPLOAD, name, name, io.BytesIO(content), len(content), (name,))


@pytest.fixture(scope="module")
def done():
    files = offered("train file.npz", npz(TRAIN)), offered("$(rm).npz", npz(TEST))
    settings = Settings(repeats=19, seed=3, model="a b; rm", label_means="harmful")
    return logic.run(Asked(files, Reading(), settings), Job())


def test_the_command_survives_a_shell(done):
    words = shlex.split(done.command)
    assert words[3:5] == ["train file.npz", "$(rm).npz"] and "--model=a b; rm" in words
    assert words[-1] == "--output=study.json" and "--repeats=19" in words and "--seed=3" in words


def test_the_command_of_a_sweep_names_the_same_settings():
    files = offered("a b.npz", b""), offered("$(rm).npz", b"")
    reading = Reading({"activations": "my acts"}, ("no", "yes"), "bfloat16", 2)
    asked = Asked(files, reading, Settings(repeats=19, seed=3))
    words = shlex.split(sweep_command(asked, files[:1], files[1:]))
    assert words[:3] == ["python", "-m", "refusal_core.cli"]
    args = parser(["sweep"]).parse_args(words[3:])
    assert (args.train, args.test, args.layers) == (["a b.npz"], ["$(rm).npz"], None)
    assert (args.repeats, args.seed, args.threads, args.output) == (19, 3, 1, "sweep.json")
    assert (args.map, args.zero, args.one, args.bits) == (["activations=my acts"], "no", "yes", "bfloat16")
    plain = parser(["sweep"]).parse_args(shlex.split(sweep_command(None, files, ()))[3:])
    assert (plain.train, plain.test, plain.repeats) == (["a b.npz", "$(rm).npz"], None, Settings.repeats)


@pytest.mark.parametrize(
    ("value", "named"),
    [(None, None), ("sample", "sample"), ("a" * 64, "a" * 64), ("A-_9" * 5 + "ab", "A-_9" * 5 + "ab"), ("x", None)],
)
def test_what_a_link_names(value, named):
    found, why = logic.named({} if value is None else {"study": value})
    assert found == named and (why is None) == (value is None or named is not None)


@pytest.mark.parametrize(
    ("labels", "one"),
    [
        (["-1", "1"], "1"),
        (["complied", "refused"], "refused"),
        (["harmful", "harmless"], "harmful"),
        (["not refused", "refusal"], "refusal"),
        (["1", "2"], "2"),
        (["a", "b"], "b"),
    ],
)
def test_the_likelier_label_for_1(labels, one):
    assert _likely_one(labels) == one


def test_words_follow_what_the_labels_mean(done):
    said = logic.rests_on(done.study)
    assert said.startswith("Fitted on 48 examples (24 harmful, 24 harmless), scored on 48")
    assert said.endswith("none of the 8 test categories is in training.")
    assert any(MEANINGS["harmful"].false_rate.lower() == name for name, _ in logic.scores_line(done.study))
    assert any("Anything about refusing" in line for line in logic.does_not_show(done.study))
    rows = logic.plan_rows(done.study)
    assert [row[0].split()[0] for row in rows] == ["0.3", "0.2", "0.1"]
    assert "cluster t over categories" in logic.interval_words(done.study)


def test_wrong_rows_are_the_farthest_first(done):
    words = MEANINGS["harmful"]
    rows = logic.wrong_rows(done.examples, words, {}, (0, 1), 1_000)
    scores = done.study.test.confusion
    assert len(rows) == scores.fp + scores.fn
    distances = [abs(row["from the threshold"]) for row in rows]
    assert distances == sorted(distances, reverse=True)
    assert all((row["label"], row["called"]) in {("harmful", "harmless"), ("harmless", "harmful")} for row in rows)
    assert len(logic.wrong_rows(done.examples, words, {}, (0, 1), 1)) == min(1, len(rows))


def test_the_sample_is_what_its_readme_shows():
    record = logic.run(logic.sample(), Job())
    assert record.study.split == "categories held out" and record.study.extraction["layer"] == "20"
    assert set(record.examples.ids) <= logic.sample_prompts().keys()


def test_the_boxes_start_at_the_defaults_of_the_command():
    assert state.DEFAULTS[state.STUDY_REPEATS] == Settings.repeats and state.DEFAULTS[state.STUDY_SEED] == Settings.seed


def test_other_pages_do_not_pay_for_the_study():
    code = "import sys, ui.frame, ui.state; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["False"]
