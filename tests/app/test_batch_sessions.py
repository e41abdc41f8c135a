"""The Batch view over time: reload, links, pages, two sessions, stop, demo, downloads."""

import csv
import io
import json
import threading

import pytest

from refusal_core import limits
from refusal_core.classifier import batch as scoring
from refusal_core.labels import FOLDS, LABELS
from tests.app.batch_cases import ROWS, finish, jsonl, problem_of, score, select, task_of, upload
from tests.app.conftest import PLAYGROUND, words
from ui import batch as logic
from ui import state
from ui.batch_inputs import RUNNING


def test_a_reload_shows_the_batch_again_and_a_gone_one_is_said(batch):
    app = score(batch(), jsonl(ROWS))
    token = task_of(app).token
    assert app.query_params["batch"] in (token, [token])
    again = batch(batch=token)
    assert again.header[0].value == app.header[0].value
    gone = batch(batch="x" * 22)
    assert "no longer in memory" in words(gone)


def test_the_sample_by_link(batch):
    app = finish(batch(batch="sample", checkpoint="starter"))
    assert app.header[0].value.startswith("Refused ")
    assert list(task_of(app).batch.checkpoint.labels) == list(LABELS)


def test_results_stay_over_views_and_pages(batch):
    app = score(batch(), jsonl(ROWS))
    good = task_of(app)
    app.get_by_key(state.VIEW).set_value(state.ONE).run()
    assert not app.header and "batch" not in app.query_params
    app.switch_page("app.py").run()
    app.switch_page(PLAYGROUND).run()
    app.get_by_key(state.VIEW).set_value(state.BATCH).run()
    assert task_of(app) is good and app.header


def test_two_sessions_keep_apart(batch):
    one, other = score(batch(), jsonl(ROWS)), score(batch(), jsonl(ROWS[:2]), "other.jsonl")
    one.run()
    assert task_of(one) is not task_of(other)
    assert "n = 4)" in one.header[0].value and "n = 2)" in other.header[0].value
    assert "other.jsonl" not in words(one)


def test_stop_keeps_what_is_done(batch, monkeypatch):
    """The classifier answers the first chunk, then waits until the visitor has stopped it."""
    reached, go_on, answer_rows = threading.Event(), threading.Event(), scoring.answer_rows

    def held(*args, **options):
        parts = answer_rows(*args, **options)
        yield next(parts)
        reached.set()
        go_on.wait(60)
        yield from parts

    monkeypatch.setattr(scoring, "CHUNK_ROWS", 2)
    monkeypatch.setattr(scoring, "answer_rows", held)
    app = upload(batch(), jsonl(ROWS))
    app.button(key="batch_go").click().run()
    assert reached.wait(60) and app.session_state[RUNNING]
    app.run()
    next(button for button in app.button if button.label.startswith("Stop and keep")).click().run()
    go_on.set()
    finish(app)
    found = task_of(app).batch
    assert found.stopped and len(found.rows) == 2
    assert "2 of 4 rows are classified" in words(app)


def test_demo_is_smaller_stores_nothing_and_says_so(overview, monkeypatch, tmp_path):
    monkeypatch.setenv("REFUSAL_DEMO", "1")
    monkeypatch.setattr(limits, "DEMO_BATCH_ROWS", 3)
    app = overview()
    app.switch_page(PLAYGROUND).run()
    app.get_by_key(state.VIEW).set_value(state.BATCH).run()
    assert "at most 3 rows" in words(app) and app.selectbox(key=state.BATCH_FILE).disabled
    score(app, jsonl(ROWS))
    assert "more than 3 rows" in problem_of(app)
    score(app, jsonl(ROWS[:3]), "three.jsonl")
    assert app.query_params["batch"] in ("new", ["new"])
    task = task_of(app)
    select(app, 0)
    app.get_by_key(f"batch_right_{task.token}_0").set_value("clarification").run()
    app.button(key="batch_keep").click().run()
    assert "Demo: nothing is stored" in words(app) and task.labels == {0: "clarification"}
    assert state.KEPT not in [toggle.key for toggle in app.toggle]
    assert not (tmp_path / "store.sqlite").exists()


@pytest.mark.parametrize("name", ["rows.jsonl", "rows"])
def test_downloads_hold_every_row(batch, name):
    app = score(batch(), jsonl([*ROWS, {"id": "=1+1", "prompt": "=2", "response": "@x", "team": "-3"}]), name)
    assert {button.key for button in app.get("download_button")} >= {"batch_csv", "batch_jsonl", "batch_html"}
    task = task_of(app)
    rows = list(csv.DictReader(io.StringIO(logic.as_csv(task.batch, {0: "compliant"}, FOLDS["full-partial"]))))
    assert [row["id"] for row in rows] == ["r0", "r1", "r2", "r3", "'=1+1"]
    assert rows[4]["prompt"] == "'=2" and rows[4]["response"] == "'@x" and rows[4]["team"] == "'-3"
    assert rows[0]["corrected to"] == "compliant" and rows[0]["label"] == "full_refusal"
    lines = [json.loads(line) for line in logic.as_jsonl(task.batch).splitlines()]
    assert [line["label"] for line in lines] == [row["class"] for row in rows]
