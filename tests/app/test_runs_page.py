"""The Training runs page in each of its states."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from refusal_core.cli import main
from tests.app.conftest import PLAYGROUND, visit, words
from tests.run_folders import make_run, write_state
from ui import cache, runs, state
from ui.runs_state import key
from ui.shelf import Shelf

RUNS = "pages/2_Training_runs.py"


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data root with two runs below one folder, and one folder with nothing to read."""
    folder = tmp_path / "data"
    make_run(folder / "all" / "one")
    make_run(folder / "all" / "two", seed=3, learning_rate=5e-5, broken=True)
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("nothing of interest")
    monkeypatch.setenv("REFUSAL_DATA", str(folder))
    return folder


@pytest.fixture
def opened(overview, data) -> Callable[..., AppTest]:
    """Opens the page, by a link when parameters are given."""

    def page(**params: str) -> AppTest:
        return visit(overview(), RUNS, **{name.rstrip("_"): value for name, value in params.items()})

    return page


def reading(app: AppTest) -> runs.Reading:
    return cache.readings().get(app.session_state["runs_shown"])


def address(app: AppTest) -> dict[str, str]:
    """The query parameters; AppTest gives those that the page set as lists."""
    return {name: v if isinstance(v, str) else v[0] for name, v in app.query_params.items()}


def shown(app: AppTest) -> str:
    return words(app).replace("\\", "")


def test_the_empty_page_offers_samples_and_says_what_to_do(opened):
    app = opened()
    assert app.title[0].value == "Training runs" and not app.header
    assert "Open a sample above" in words(app)
    app.button(key="runs_sample_card").click().run()
    assert not app.exception
    assert address(app)["runs"] == "sample:card"
    assert "no curves" in words(app)
    [table] = [d.value for d in app.dataframe if "checkpoint" in d.value]
    assert list(table["macro F1"]) == ["0.8428"]


def test_the_published_table_has_intervals(opened):
    app = opened(runs="sample:card", tab="Classes")
    [table] = [d.value for d in app.dataframe if "class" in d.value]
    assert list(table["support"][:5]) == [178, 98, 47, 132, 25]
    assert table["F1"][2].startswith("0.73 (") and list(table["F1"][5:]) == ["0.8428", "0.8558"]
    assert "Accuracy 0.86 (0.82 to 0.88, n = 480)" in shown(app)


def test_a_folder_below_the_data_root_is_picked_and_drawn(opened):
    app = opened()
    assert app.selectbox(key=key("folder")).options == ["all", "all/one", "all/one/checkpoint-100",
        "all/one/checkpoint-200", "all/one/checkpoint-300", "all/two", "all/two/checkpoint-100",
        "all/two/checkpoint-200", "all/two/checkpoint-300", "notes"]  # fmt: skip
    app.selectbox(key=key("folder")).set_value("all").run()
    assert not app.exception
    figures = {chart.proto.alt.split(" by ")[0]: chart.proto.alt for chart in app.get("plotly_chart")}
    assert list(figures) == ["loss", "accuracy", "macro F1", "gradient norm"] or set(figures) >= {"loss", "macro F1"}
    assert "one: train: from" in figures["loss"] and "two: train (2 not a number)" in figures["loss"]
    assert address(app)["runs"] == "folder:all"


def test_another_baseline_changes_the_differences(opened):
    app = opened(runs="folder:all/one")
    table = app.dataframe[0].value
    assert list(table["difference"])[0] == "baseline" and table["verdict"][1] == "better"
    app.selectbox(key=key("baseline")).set_value("one|checkpoint-300").run()
    assert not app.exception
    table = app.dataframe[0].value
    assert list(table["difference"])[2] == "baseline" and table["verdict"][0] == "worse"
    assert address(app)["baseline"] == "one|checkpoint-300"
    app.selectbox(key=key("metric")).set_value("ece").run()
    assert not app.exception and "ECE" in app.dataframe[0].value


def test_the_cell_of_a_matrix_shows_its_exchanges(opened):
    app = opened(runs="folder:all/one", tab="Classes", cell="full_refusal\npartial_refusal")
    [items] = [d.value for d in app.dataframe if "id" in d.value]
    assert address(app)["cell"] == "full_refusal\npartial_refusal"
    assert len(items) and items["response"][0].endswith("<b>bold</b>")
    assert f"{len(items)} of full_refusal predicted as partial_refusal" in shown(app)
    app.session_state["runs_cell"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    app.run()
    assert not app.exception and any("<b>bold</b>" in code.value for code in app.code)
    app.selectbox(key=key("predicted")).set_value("full_refusal").run()
    assert "of full_refusal predicted as full_refusal" in shown(app)
    others = app.selectbox(key=key("other")).options
    assert len(others) == 3
    app.selectbox(key=key("other")).set_value(next(iter(reading(app).kept["evaluations"]))).run()
    assert not app.exception
    assert any("points of the row" in c.proto.alt for c in app.get("plotly_chart"))


def test_calibration_and_threshold(opened):
    app = opened(runs="folder:all/one", tab="Calibration")
    assert "ECE" in words(app) and "Below 200 items" in words(app)
    app.number_input(key=key("threshold")).set_value(0.8).run()
    app.selectbox(key=key("label")).set_value("full_refusal").run()
    assert not app.exception and "Precision 1.0" in shown(app)


def test_settings_that_differ_and_controls(opened):
    app = opened(runs="folder:all", tab="Settings")
    assert "state the same settings" in words(app)
    app.number_input(key=key("smoothing")).set_value(0.6)
    app.toggle(key=key("log")).set_value(True)
    app.number_input(key=key("from")).set_value(100.0)
    app.run()
    assert not app.exception
    assert {name: address(app)[name] for name in ("smooth", "log", "from")} == {
        "smooth": "0.6", "log": "1", "from": "100"
    }  # fmt: skip
    spec = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert spec["layout"]["yaxis"]["type"] == "log" and spec["layout"]["xaxis"]["range"] == [100, None]


def test_uploads_and_a_zip_are_read_and_a_refused_one_keeps_the_last(opened, data):
    app = opened()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in (data / "all" / "one").rglob("*.json*"):
            archive.write(path, path.relative_to(data / "all" / "one").as_posix())
    app.file_uploader(key="runs_upload").set_value([("run.zip", packed.getvalue(), "application/zip")]).run()
    assert not app.exception
    assert len(reading(app).runs[0].checkpoints) == 3 and address(app)["runs"] == reading(app).token
    before = app.header[0].value
    app.file_uploader(key="runs_upload").set_value([("a.json", b"[1, 2", "application/json")]).run()
    assert not app.exception
    assert "Not read" in words(app) and "The last result stays below" in words(app)
    assert app.header[0].value == before
    app.file_uploader(key="runs_upload").set_value(
        [("trainer_state.json", (data / "all" / "two" / "trainer_state.json").read_bytes(), "application/json")]
    ).run()
    assert not app.exception and "✕ Not read" not in words(app)
    assert [c.folder for c in reading(app).runs[0].checkpoints] == [""]


def test_page_and_command_say_the_same(opened, data, capsys):
    app = opened(runs="folder:all", tab="Downloads")
    [line] = [code.value for code in app.code if code.value.startswith("python -m")]
    assert line.endswith("runs " + str(data / "all") + " --json")
    assert main(line.split()[3:]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(runs.as_json(reading(app)))
    csv = runs.as_csv(reading(app))
    assert csv.splitlines()[0].startswith("run,split") and ",NaN," in csv and len(csv.splitlines()) == 1 + sum(
        len(c) for r in reading(app).runs for c in r.curves
    )  # fmt: skip
    assert [b.proto.label for b in app.get("download_button")][:3] == [
        "Download JSON", "Download CSV of the curves", "Download HTML report"
    ]  # fmt: skip


def test_a_link_restores_the_view(opened):
    first = opened(
        runs="folder:all",
        tab="Checkpoints",
        by="accuracy",
        baseline="two|checkpoint-200",
        show="two",
        x="epoch",
        panels="loss",
    )
    app = opened(**{f"{name}_": value for name, value in address(first).items()})
    assert address(app) == address(first)
    assert app.selectbox(key=key("baseline")).value == "two|checkpoint-200"
    assert app.get_by_key(key("pick")).value == ["two"]
    assert [c.proto.alt.split(".")[0] for c in app.get("plotly_chart")][0] == "loss by epoch"


def test_garbage_in_a_link_is_said_and_ignored(opened):
    app = opened(runs="<script>", smooth="![x](http://x.example)", x="$x$", cell="a")
    assert sum("The link" in text.value for text in app.text) == 3 and "x.example" not in words(app)
    app = opened(
        runs="folder:../..", show="nobody", baseline="no", of="no", by="no", panels="no", tab="no", shares="no"
    )
    assert '".." is not followed' in words(app)
    app = opened(
        runs="folder:all/one", show="nobody", baseline="no", of="no", by="no", panels="no", tab="no", shares="no"
    )
    assert app.dataframe and address(app)["tab"] == "Checkpoints"
    assert "no longer in memory" in words(opened(runs="aaaaaaaaaaaaaaaaaaaaaa"))


def test_a_folder_without_runs_is_one_sentence(opened):
    app = opened(runs="folder:notes")
    assert "there is no training run in it" in words(app) and not app.header


def test_a_run_that_is_being_written_is_read_again(opened, data):
    app = opened(runs="folder:all/one")
    assert app.toggle(key=key("watch")).value and "no change since" in shown(app)  # its files are new
    state_file = data / "all" / "one" / "trainer_state.json"
    rows = json.loads(state_file.read_text())["log_history"]
    write_state(state_file.parent, [*rows, *({"step": step, "loss": 0.1} for step in range(310, 610, 10))], best=200)
    app.run()
    app.run()
    assert not app.exception
    steps = max(float(np.nanmax(c.steps)) for c in reading(app).runs[0].curves)
    assert steps == 600
    for path in (data / "all" / "two").rglob("*"):
        os.utime(path, (0, 0))
    assert not opened(runs="folder:all/two").toggle(key=key("watch")).value


def test_the_demo_reads_samples_and_small_uploads_only(opened, monkeypatch):
    monkeypatch.setenv("REFUSAL_DEMO", "1")
    app = opened(runs="folder:all")
    assert not app.header and app.selectbox(key=key("folder")).disabled
    app.file_uploader(key="runs_upload").set_value([("a.json", b" " * 3_000_000, "application/json")]).run()
    assert "at most 2 MB is read" in words(app)
    log = b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n'
    app.file_uploader(key="runs_upload").set_value([("log.jsonl", log, "application/jsonl")]).run()
    assert app.header and not address(app)
    app.session_state[key("tab")] = "Link"
    app.run()
    assert "have no link" in words(app)
    assert not opened(runs=app.session_state["runs_shown"]).header


def test_the_view_stays_over_pages(opened):
    app = opened(runs="folder:all/one", by="accuracy")
    app.switch_page(PLAYGROUND).run()
    app.switch_page(RUNS)
    app.query_params.clear()
    app.run()
    app.run()
    assert not app.exception and app.header
    assert app.selectbox(key=key("metric")).value == "accuracy"


def test_names_of_runs_are_no_markdown(opened, data):
    (data / "all" / "two").rename(data / "all" / "![x](y) :red[z] $w$")
    app = opened(runs="folder:all", tab="Settings")
    said = [option.content for option in app.get_by_key(key("pick")).proto.options]
    assert said == ["\\!\\[x\\]\\(y) \\:red\\[z\\] \\$w\\$".replace("\\(", "("), "one"]


def test_the_shelf_keeps_the_latest():
    shelf = Shelf(kept=2)
    made = [runs.Reading(str(k), None, None, (), None, "", 0.0) for k in range(3)]
    for one in made:
        shelf.put(one)
    assert shelf.get("0") is None and shelf.get("1") is made[1] and shelf.get(None) is None
    assert made[0].once("a", lambda: 1) == 1 == made[0].once("a", lambda: 2)
    assert set(state.RUNS) <= {name.removeprefix("runs_") for name in state.DEFAULTS}
