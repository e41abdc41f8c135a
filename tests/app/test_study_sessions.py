"""The Direction study over time: store, links, two sessions at once, stop, demo, comparisons of two studies."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from refusal_core import limits
from refusal_core.errors import Cancelled, WorkError
from refusal_core.store import Store
from tests.activation_files import planted
from tests.app.batch_cases import value_of
from tests.app.conftest import PLAYGROUND, words
from tests.app.study_cases import (
    SIZES,
    STUDY,
    TEST,
    TRAIN,
    few,
    finish,
    has_button,
    npz,
    press,
    problem_of,
    record,
    studied,
    upload,
)
from ui import cache, state, studies, study_answer, study_view
from ui.shelf import UNWATCHED_SECONDS
from ui.studies import Shelf
from ui.study_view import RUNNING, SHOWN


@pytest.fixture
def quick(monkeypatch) -> None:
    """Draws the answer without its figures, where only what is shown matters."""
    monkeypatch.setattr(study_answer, "draw_figures", lambda *args: None)
    monkeypatch.setattr(study_view, "_draw_evidence", lambda *args: None)


def test_a_study_is_stored_on_request_and_its_link_restores_it(page, tmp_path):
    app = studied(page())
    good = record(app)
    assert value_of(app, SHOWN) in str(app.query_params["study"])
    with Store.open(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        assert store.studies.latest() == []
        app.text_input(key=state.WHO).set_value("ana")
        app.button(key="study_keep").click().run()
        [kept] = store.studies.latest()
        assert (kept.digest, kept.title, kept.headline, kept.who) == (
            good.sha256,
            good.title,
            good.study.headline,
            "ana",
        )
        packed = store.studies.get(good.sha256)
    assert good.sha256 in str(app.query_params["study"]) and not has_button(app, "study_keep")
    assert TRAIN["activations"][0].tobytes() not in packed and len(packed) < 40_000
    cache.studies().__init__()  # another day: nothing is in memory
    again = page(study=good.sha256)
    assert problem_of(again) is None and record(again).text == good.text
    assert again.header[0].value == app.header[0].value
    charts = [[chart.proto.spec for chart in one.get("plotly_chart")] for one in (app, again)]
    assert len(charts[0]) > 6 and charts[0] == charts[1]
    assert [code.value for code in again.code if "refusal_core.study" in code.value] == [good.command]


def test_the_list_opens_and_deletes(page, quick, tmp_path):
    app = studied(page())
    first = record(app).sha256
    app.button(key="study_keep").click().run()
    upload(app, test=npz(planted(seed=7, prefix="test", **SIZES)))
    press(app)
    assert record(app).sha256 != first
    table = next(frame.key for frame in app.dataframe if (frame.key or "").startswith("study_table_"))
    app.session_state[table] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    app.run()
    app.button(key="study_open").click().run()
    assert record(app).sha256 == first
    app.session_state[table] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    app.run()
    app.button(key="study_delete").click().run()
    with Store.open(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        assert store.studies.latest() == []


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("a" * 64, "is not stored here"),
        ("x" * 22, "no longer in memory"),
        ("../../etc/passwd", "names a study that cannot be"),
        ("<script>", "names a study that cannot be"),
    ],
)
def test_a_link_that_leads_nowhere_is_said(page, link, said):
    app = page(study=link)
    assert said in words(app) and not app.header and "script" not in words(app)


def test_two_sessions_at_once_each_see_their_own(page, quick):
    one, other = page(), page()
    upload(few(upload(one, npz(TRAIN), npz(TEST)), 200), None, None)
    mine = planted(seed=4, prefix="mine", **SIZES)
    few(upload(other, npz(mine), npz(TEST), names=("mine.npz", "test.npz")), 200)
    for app in (one, other):
        app.button(key="study_go").click().run()
    for app in (one, other):
        finish(app)
    assert value_of(one, SHOWN) != value_of(other, SHOWN)
    assert "mine.npz" in words(other) and "mine.npz" not in words(one)
    alone = [press(few(upload(page(), npz(train), npz(TEST), names=(name, "test.npz")), 200)) for train, name in
             ((TRAIN, "train.npz"), (mine, "mine.npz"))]  # fmt: skip
    assert [record(app).text for app in (one, other)] == [record(app).text for app in alone]


def test_stop_keeps_the_last_good_result(page, quick, monkeypatch):
    app = studied(page())
    good = record(app)
    reached = threading.Event()

    def endless(asked, job):
        reached.set()
        while True:
            job.advance()
            time.sleep(0.01)

    monkeypatch.setattr("ui.study.run", endless)
    app.button(key="study_go").click().run()
    assert reached.wait(30) and value_of(app, RUNNING)
    app.run()
    assert "Studying train.npz and test.npz" in words(app)
    next(button for button in app.button if button.label == "Stop").click().run()
    finish(app)
    assert problem_of(app) == "Stopped by the user." and record(app) is good
    assert "The last result stays below" in words(app)


def test_demo_stores_nothing_and_says_so(overview, monkeypatch, tmp_path):
    monkeypatch.setenv("REFUSAL_DEMO", "1")
    app = overview()
    app.switch_page(STUDY).run()
    assert "for this visit only" in words(app)
    assert state.STUDY_FILE["train"] not in [box.key for box in app.selectbox]
    studied(app)
    assert "Demo: nothing is stored" in words(app) and not has_button(app, "study_keep")
    assert "study" not in app.query_params and not (tmp_path / "store.sqlite").exists()
    token = value_of(app, SHOWN)
    other = overview()
    other.switch_page(STUDY)
    other.query_params.update(study=token)
    other.run()
    assert not other.header and "no longer in memory" in words(other)
    monkeypatch.setattr(limits, "DEMO_STUDY_BYTES", limits.MB)
    app.run()
    upload(app, npz(TRAIN), npz(planted(n=4_000, d=70)))
    assert "at most 1 MB is read" in words(app)


def test_files_below_a_data_root(page, tiny_checkpoint, quick):
    folder = tiny_checkpoint.parent / "exports"
    folder.mkdir(exist_ok=True)
    for name, members in (("train", TRAIN), ("test", TEST)):
        (folder / f"{name}.npz").write_bytes(npz(members))
    cache.activation_files.__globals__["_files"].clear()
    app = page()
    for role in ("train", "test"):
        app.selectbox(key=state.STUDY_FILE[role]).set_value(f"exports/{role}.npz").run()
    press(few(app))
    assert record(app).title == "exports/train.npz and exports/test.npz"
    uploaded = studied(page())
    assert record(app).text == record(uploaded).text
    (folder / "test.npz").unlink()
    app.run()
    assert "there is no such file" in words(app) and record(app).study.headline in words(app).replace("\\", "")


def test_two_studies_are_compared_and_two_directions(page):
    app = studied(page())
    assert "There is no other study yet" in words(app)
    moved = {**TRAIN, "activations": TRAIN["activations"] + np.eye(48, 8, dtype=np.float32)}
    studied(app, npz(moved))
    [other] = app.selectbox(key="study_other").options
    app.selectbox(key="study_other").select_index(0).run()
    assert "Balanced accuracy" in other and "A is the study above" in words(app)
    assert "study_differences" in [chart.key for chart in app.get("plotly_chart")]
    app.file_uploader(key=state.STUDY_UPLOAD["other"]).upload("second.npz", npz(TRAIN), "application/zip").run()
    app.button(key="study_cosine").click().run()
    for _ in range(400):
        if not value_of(app, "study_cosine_running"):
            break
        app.run()
    assert "Cosine 0.99" in words(app) or "Cosine 1.00" in words(app)
    assert any("cosine train.npz second.npz --repeats=19" in code.value for code in app.code)


def test_the_result_stays_over_pages(page, quick):
    app = studied(page())
    before = app.header[0].value
    app.switch_page(PLAYGROUND).run()
    app.switch_page(STUDY)
    app.query_params.clear()
    app.run()
    assert app.header[0].value == before


# --- the shelf itself


def test_work_waits_for_its_turn_and_the_shelf_is_bounded(monkeypatch):
    go, order = threading.Event(), []
    shelf = Shelf(kept=2, waiting=2)

    def held(job):
        go.wait(30)
        order.append(1)
        return "one"

    first = shelf.start("a", held)
    second = shelf.start("b", lambda job: order.append(2) or "two")
    with pytest.raises(WorkError, match="try again"):
        shelf.start("c", lambda job: None)
    assert second.waiting and not second.watch(0.15) and shelf.get(second.token) is second
    go.set()
    assert first.watch(30) and second.watch(30) and order == [1, 2] and second.result == "two"
    kept = [shelf.keep(str(n), n) for n in range(3)]
    assert shelf.get(first.token) is None and shelf.get(kept[-1].token).result == 2 and shelf.get(kept[0].token) is None


def test_a_waiting_task_can_be_stopped_and_an_unwatched_one_stops():
    now = [0.0]
    task = studies.Task("a", lambda job: [job.advance() for _ in iter(int, 1)], clock=lambda: now[0])
    now[0] = UNWATCHED_SECONDS + 1
    task._job.every = 0
    task.run()
    assert task.problem == "Stopped by the user." and not task.running
    with studies._TURN:
        waiting = Shelf().start("b", lambda job: "never")
        waiting.stop()
        assert waiting.watch(30) and waiting.problem == "Stopped by the user."
    failed = studies.Task("c", lambda job: 1 / 0)
    failed.run()
    assert failed.problem == studies.FAILED
    cancelled = studies.Task("d", lambda job: (_ for _ in ()).throw(Cancelled()))
    cancelled.run()
    assert cancelled.problem == studies.Task.stopped
