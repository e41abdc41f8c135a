"""The Scorecard page in each of its states."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from refusal_core.cli import main
from refusal_core.scorecard import evaluate
from tests.app.conftest import visit, words
from tests.app.scorecard_cases import (
    BAD,
    HOSTILE,
    SUITE,
    files,
    finish,
    predictions,
    press,
    problem_of,
    table,
    task_of,
    upload,
    value_of,
    write,
    write_suite,
)  # fmt: skip
from ui import scorecard as logic
from ui import scorecards, state
from ui.scorecard_inputs import RUNNING
from ui.scorecard_view import PRESS_RUN

PAGE = "pages/3_Scorecard.py"
BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 8))


@pytest.fixture
def scorecard(overview, monkeypatch, tmp_path) -> Callable[..., AppTest]:
    """Opens the page, by a link when parameters are given; the suite lies below a data root and is a sample too."""
    write_suite(tmp_path / "root" / "suites")
    write_suite(tmp_path / "package" / "samples")
    monkeypatch.setenv("REFUSAL_DATA", str(tmp_path / "root"))
    monkeypatch.setenv("REFUSAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(scorecards, "PACKAGE", tmp_path / "package")
    monkeypatch.setattr(scorecards, "SAMPLES", tmp_path / "package" / "samples")

    def opened(**params: str) -> AppTest:
        return finish(visit(overview(), PAGE, **params))

    return opened


def picked(app: AppTest) -> AppTest:
    app.selectbox(key=state.SC_FILE).set_value("suites/gate.yaml").run()
    return finish(app)


def sampled(app: AppTest) -> AppTest:
    app.get_by_key(state.SC_SAMPLE).set_value("gate").run()
    return finish(app)


def heading(app: AppTest) -> str:
    return app.header[0].value.replace("\\", "")


def test_the_empty_page_says_what_to_do(scorecard):
    app = scorecard()
    assert app.title[0].value == "Scorecard" and not app.header
    assert "Run a sample, or bring a suite" in words(app)
    press(app, "**Run**")
    assert "there is no suite yet" in problem_of(app) and "Not run" in words(app)


def test_the_sample_at_one_click(scorecard):
    app = sampled(scorecard())
    task = task_of(app)
    assert heading(app) == f"✕ Fail: {logic.counts_words(task.scorecard.counts)}; exit code 100"
    matrix = table(app)
    assert list(matrix["assertion"]) == ["acc", "macro", "acc-change", "equals"]
    assert list(matrix["severity"]) == ["required", "advisory", "required", "required"]
    assert list(matrix["test"]) == ["quality", "quality", "change", "cases"]
    assert matrix["c0"][0] == "✓ pass  0.92 (0.85 to 0.96, n = 100)" and matrix["c2"][0].startswith("✕ fail  0.60 (")
    assert matrix["c0"][2] == "– not run" and matrix["c1"][3] == "! error"
    assert f"✕ {BAD}: fail" in words(app)
    assert not [m.value for m in app.markdown if "x.example" in m.value], "untrusted text in Markdown"
    before = heading(app)
    app.switch_page("app.py").run()
    app.switch_page(PAGE)
    app.query_params.clear()
    app.run()
    assert heading(app) == before and app.text_area(key=state.SC_TEXT).value == SUITE


def test_a_picked_suite_waits_for_run_and_gives_the_files_of_the_command(scorecard, tmp_path, capsys):
    app = picked(scorecard())
    assert "4 assertions in 3 tests over 3 checkpoints" in words(app) and not app.header
    press(app, "**Run**")
    [command] = [code.value for code in app.code if code.value.startswith("python -m")]
    import shlex

    arguments = shlex.split(command)[3:]
    places = {name: str(tmp_path / name) for name in arguments if name.startswith("scorecard.")}
    assert main([places.get(word, word) for word in arguments]) == 100
    task = task_of(app)
    shown = {
        "json": task.text, "csv": logic.csv_text(task.scorecard), "xml": logic.junit_text(task.scorecard),
        "html": logic.html_text(task),
    }  # fmt: skip
    for kind, text in shown.items():
        assert (tmp_path / f"scorecard.{kind}").read_bytes() == text.encode(), kind
    assert task.scorecard.sentence in capsys.readouterr().out
    assert {button.key for button in app.get("download_button")} >= {f"scorecard_{k}" for k in ("json", "csv", "junit")}


def test_filters_and_the_chosen_cell(scorecard):
    app = sampled(scorecard())
    app.get_by_key(state.SC_VERDICTS).set_value(["fail"]).run()
    assert list(table(app)["assertion"]) == ["acc", "macro", "acc-change"]
    app.get_by_key(state.SC_SEVERITIES).set_value(["advisory"]).run()
    assert list(table(app)["assertion"]) == ["macro"]
    app.get_by_key(state.SC_SEVERITIES).set_value([]).run()
    app.multiselect(key=state.SC_TESTS).set_value(["change"]).run()
    assert list(table(app)["assertion"]) == ["acc-change"]
    assert app.selectbox(key=state.SC_ROW).value == 2 and app.selectbox(key=state.SC_COLUMN).value == 2
    text = words(app)
    assert "Flips against the baseline" in text and "**32** right there, wrong here" in text
    assert "**0** wrong there, right here" in text and f"Response 8 {HOSTILE}" in text
    [figure] = [chart.proto.alt for chart in app.get("plotly_chart")]
    assert "which needs change at least -0.02" in figure and f"{BAD} fail -0.32" in figure
    assert app.query_params["show"] in ("fail", ["fail"]) and app.query_params["cell"] in ("2.2", ["2.2"])


def test_a_click_chooses_and_an_undecided_cell_says_what_would_decide(scorecard):
    app = sampled(scorecard())
    [key] = [frame.key for frame in app.dataframe if (frame.key or "").startswith("scorecard_matrix")]
    app.session_state[key] = {"selection": {"rows": [], "columns": [], "cells": [[2, "c1"]]}}
    app.run()
    assert (app.selectbox(key=state.SC_ROW).value, app.selectbox(key=state.SC_COLUMN).value) == (2, 1)
    assert "**~ inconclusive**" in words(app).replace(
        "\\", ""
    ) and "more items would decide, if the value stays at" in words(app)
    app.selectbox(key=state.SC_ROW).set_value(0).run()
    assert "✓ pass" in words(app), "an old click must not win over the box"


def test_uploads_are_the_only_files_that_a_suite_may_name(scorecard, tmp_path):
    (tmp_path / "secret.jsonl").write_bytes(predictions(90))
    app = upload(scorecard(), {"gate.yaml": SUITE.encode(), **files()})
    press(app, "**Run**")
    assert task_of(app).scorecard.exit_code == 100
    press(write(app, SUITE.replace("0.8}", "0.9}")), "Check")
    upload(app, {"gate.yaml": SUITE.encode(), **files(), "more.jsonl": b"{}"})
    assert "0.9}" in app.text_area(key=state.SC_TEXT).value, "a data file must not undo what was typed"
    for path in (str(tmp_path / "secret.jsonl"), "../secret.jsonl", "suites/../../secret.jsonl"):
        write(app, SUITE.replace("bad.jsonl", path))
        press(app, "**Run**")
        said = task_of(app).scorecard.checkpoints[2].error
        assert "not below a data root" in said or '".." is not followed' in said
    hub = SUITE.replace("predictions: bad.jsonl", f"path: 'hub:{tmp_path}/secret'")
    press(write(app, hub), "**Run**")
    assert "this is no hub name" in task_of(app).scorecard.checkpoints[2].error


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("version: 1\ntests: [", "line 3, column 1"),
        (BOMB, "gate.yaml, line"),
        ("!!python/object/apply:os.system ['x']", "gate.yaml, line 1"),
        (SUITE.replace("threshold: 0.8}", "treshold: 0.8}"), '"threshold" may be meant'),
        (SUITE.replace("baseline: prod", "baseline: nobody"), "line 7, column 1:"),
    ],
    ids=["cut", "alias", "tag", "key", "name"],
)
def test_a_hostile_or_mistaken_suite_is_one_sentence_and_the_last_result_stays(scorecard, text, part):
    app = sampled(scorecard())
    before = heading(app)
    press(write(app, text), "Check")
    said = problem_of(app)
    assert part in said and "\n" not in said
    press(app, "**Run**")
    assert problem_of(app) == said and "The last result stays below" in words(app) and heading(app) == before


def test_draft_edit_and_run(scorecard):
    app = upload(scorecard(), {"mine.jsonl": predictions(90)})
    assert app.selectbox(key=state.SC_DRAFT).value == "mine.jsonl"
    app.button(key="scorecard_draft_go").click().run()
    text = app.text_area(key=state.SC_TEXT).value
    assert "Drafted from mine.jsonl" in text and "The suite is valid" in words(app)
    press(app, "**Run**")
    assert task_of(app).scorecard.exit_code == 0 and heading(app).startswith("✓ Pass")
    press(write(app, text.replace("metric: accuracy, threshold", "metric: accuracy, threshold: 0.99 #")), "Check")
    assert "valid YAML" in problem_of(app)


def test_a_part_of_a_suite(scorecard):
    app = picked(scorecard())
    app.text_input(key=state.SC_COLUMNS).set_value("g*")
    app.text_input(key=state.SC_ONLY).set_value("quality/acc")
    app.checkbox(key=state.SC_KEEP).set_value(False)
    press(app, "**Run**")
    found = task_of(app).scorecard
    assert [column.id for column in found.checkpoints] == ["good"] and found.exit_code == 0
    assert "--checkpoints 'g*' --filter quality/acc" in words(app)
    app.toggle(key=state.SC_HISTORY).set_value(True).run()
    assert "No run of this suite is kept yet" in words(app)
    app.text_input(key=state.SC_BASELINE).set_value("nobody")
    press(app, "**Run**")
    assert 'there is no checkpoint "nobody"' in problem_of(app) and task_of(app).scorecard is found


def test_history_trend_and_sign_off_of_one_result(scorecard):
    app = press(picked(scorecard()), "**Run**")
    first = task_of(app).digest
    app.text_input(key=state.WHO).set_value("Ana <b>")
    app.text_input(key="scorecard_note").set_value(f"Fine {HOSTILE}")
    press(app, "Sign off this result")
    assert "Signed off by Ana <b>, " in words(app) and HOSTILE in words(app)
    press(write(app, SUITE.replace("threshold: 0.8}", "threshold: 0.5}")), "**Run**")
    assert task_of(app).digest != first and "Signed off by" not in words(app)
    app.toggle(key=state.SC_HISTORY).set_value(True).run()
    runs = table(app, "conclusion")
    assert list(runs["signed by"]) == ["", "Ana <b>"] and runs["conclusion"][0].startswith("(on screen) FAIL")
    app.selectbox(key=state.SC_ROW).set_value(0).run()
    assert "over 2 runs" in [chart.proto.alt for chart in app.get("plotly_chart")][-1]
    [key] = [frame.key for frame in app.dataframe if (frame.key or "").startswith("scorecard_runs")]
    app.session_state[key] = {"selection": {"rows": [1], "columns": [], "cells": []}}
    app.run()
    app.button(key="scorecard_open").click().run()
    assert task_of(app).digest == first and "no texts of exchanges" in words(app) and "Signed off by" in words(app)
    press(app, "Take back")
    assert "Signed off by" not in words(app)


def test_a_store_that_cannot_be_opened_hinders_nothing(scorecard, monkeypatch, tmp_path):
    monkeypatch.setenv("REFUSAL_STORE", f"sqlite:///{tmp_path / 'nowhere' / 'store.sqlite'}")
    app = sampled(scorecard())
    assert heading(app).startswith("✕ Fail") and "Not kept in the history" in words(app)


def test_links_show_a_result_a_sample_and_a_suite_that_waits(scorecard, monkeypatch):
    app = press(picked(scorecard()), "**Run**")
    app.get_by_key(state.SC_VERDICTS).set_value(["fail", "not run"]).run()
    params = {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}
    other = scorecard(**params)
    assert heading(other) == heading(app) and task_of(other) is task_of(app)
    assert other.get_by_key(state.SC_VERDICTS).value == ["fail", "not run"]
    from ui import cache

    cache.scorecards.clear()
    again = scorecard(**params)
    assert heading(again) == heading(app) and "no texts of exchanges" in words(again)
    assert heading(scorecard(suite="sample:gate", cell="2.1")) == heading(app)
    waiting = scorecard(suite="suites/gate.yaml")
    assert PRESS_RUN in words(waiting) and not waiting.header
    assert "no longer in memory" in problem_of(scorecard(run="x" * 22))
    assert "not below a data root" in problem_of(scorecard(suite="/etc/passwd"))
    assert not scorecard(suite="sample:nowhere").header


@pytest.mark.parametrize(
    "params",
    [{"cell": "9999.99"}, {"cell": "<b>"}, {"show": "x-y"}, {"run": "![x](y)"}, {"suite": "a\nb"}, {"result": "0"}],
    ids=lambda params: next(iter(params)),
)
def test_garbage_in_a_link_is_said_or_harmless(scorecard, params):
    app = scorecard(**({"suite": "sample:gate"} | params))
    assert not app.exception and (app.header or "was left out" in words(app))


def test_stop_and_a_rerun(scorecard, monkeypatch):
    reached, go_on, metric = threading.Event(), threading.Event(), evaluate.COMPUTE["metric"]

    def held(cell):
        reached.set()
        go_on.wait(60)
        return metric(cell)

    monkeypatch.setattr(evaluate, "COMPUTE", {**evaluate.COMPUTE, "metric": held})
    app = picked(scorecard())
    next(button for button in app.button if button.label == "**Run**").click().run()
    assert reached.wait(60) and value_of(app, RUNNING)
    app.button(key=f"stop_{value_of(app, RUNNING)}").click().run()
    go_on.set()
    finish(app)
    assert problem_of(app).startswith("Stopped.") and not app.header
    press(app, "**Run**")
    assert heading(app).startswith("✕ Fail")


def test_demo_stores_nothing_and_loads_the_starter_only(scorecard, monkeypatch, tmp_path):
    monkeypatch.setenv("REFUSAL_DEMO", "1")
    app = sampled(scorecard())
    assert app.selectbox(key=state.SC_FILE).disabled and heading(app).startswith("✕ Fail")
    assert "so a result cannot be signed off here" in words(app) and "so there is no history" in words(app)
    assert "run" not in app.query_params and "result" not in app.query_params
    text = SUITE.replace("predictions: bad.jsonl", f"path: {json.dumps(str(tmp_path))}")
    press(upload(app, {"mine.yaml": text.encode(), **files()}), "**Run**")
    assert "only the starter can be loaded here" in task_of(app).scorecard.checkpoints[2].error
    assert "has no link" in words(app)
    assert not (tmp_path / "store.sqlite").exists() and not (tmp_path / "cache").exists()
    monkeypatch.setattr("refusal_core.limits.DEMO_SUITE_ROWS", 5)
    press(app, "**Run**")
    assert "the demo takes at most 5" in problem_of(app)


def test_a_checkpoint_that_is_run(scorecard, monkeypatch, tiny_checkpoint, tmp_path):
    """It is loaded once, answers each case once, and the cache answers the second run."""
    monkeypatch.setenv("REFUSAL_DATA", str(tiny_checkpoint.parent))
    suite = f"""version: 1
checkpoints: [{{id: tiny, path: {tiny_checkpoint.name}}}]
tests:
  - id: cases
    vars: {{prompt: "How?", response: "No."}}
    assert: [{{type: label-in, value: [compliant, full_refusal]}}, {{type: equals, value: compliant}}]
"""
    app = press(write(scorecard(), suite), "**Run**")
    found = task_of(app).scorecard
    assert found.counts["error"] == 0 and found.checkpoints[0].digest
    monkeypatch.setattr("ui.cache.classifier_for_work", lambda name: pytest.fail("loaded again"))
    press(app, "**Run**")
    assert task_of(app).scorecard == found
