"""The Direction study in each of its states: empty, result, refused files, names, labels, layers, pooled files."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from refusal_core import study as command
from refusal_core.direction.findings import auroc_words
from refusal_core.direction.meaning import MEANINGS
from tests.activation_files import planted
from tests.app.conftest import words
from tests.app.study_cases import (
    SIZES,
    TEST,
    TRAIN,
    few,
    has_button,
    npz,
    press,
    problem_of,
    record,
    studied,
    textual,
    upload,
)
from ui import state, study_answer, study_beyond, study_view
from ui import study as logic


def shown(app: AppTest) -> str:
    """The text of the page without the marks that keep Markdown from reading it."""
    return words(app).replace("\\", "")


def by_command(app: AppTest, tmp_path, **files: bytes) -> str:
    """What the printed command writes over `files`."""
    for name, content in files.items():
        (tmp_path / f"{name}.npz").write_bytes(content)
    [line] = [code.value for code in app.code if "refusal_core.study" in code.value]
    arguments = shlex.split(line)[3:]
    output = tmp_path / "study.json"
    arguments = [str(tmp_path / word) if word.endswith(".npz") else word for word in arguments[:-1]]
    assert command.main([*arguments, f"--output={output}"]) == 0
    return output.read_text()


def test_the_empty_page_says_what_to_do(page):
    app = page()
    assert app.title[0].value == "Direction study" and "Use the sample" in words(app)
    assert not app.header and not app.get("plotly_chart") and not has_button(app, "study_go")


def test_the_sample_is_one_click(page):
    app = press(page(), "study_sample")
    assert problem_of(app) is None and app.header[0].value.startswith("Balanced accuracy")
    assert app.query_params["study"] in ("sample", ["sample"])
    assert "Label 1 is what their author thinks of the prompt" in shown(app)
    assert "72 of 72 test examples have a prompt" in shown(app)
    by_link = page(study="sample")
    assert by_link.header[0].value == app.header[0].value
    assert any("refusal_core.cli sweep --train refusal_core/direction/sample/train.npz" in c.value for c in app.code)
    app.button(key="study_sweep").click().run()
    finish_side(app, "layers")
    assert "is the best of 4" in shown(app) and "study_layers_figure" in [c.key for c in app.get("plotly_chart")]


def test_page_and_command_write_the_same_bytes(page, tmp_path):
    train = npz(TRAIN, model=np.array("m 1"), layer=np.array(12), label_means=np.array("harmful"))
    app = upload(page(), train, npz(TEST))
    few(app, 29).number_input(key=state.STUDY_SEED).set_value(5)
    assert app.radio(key=state.STUDY_MEANS).value == "harmful"  # as the file says
    press(app)
    found = record(app)
    written = by_command(app, tmp_path, train=train, test=npz(TEST))
    assert written == found.text
    report, text = json.loads(written), shown(app)
    assert report["extraction"]["model"] == "m 1" and report["extraction"]["layer"] == "12"
    assert app.header[0].value.replace("\\", "") == report["headline"]
    assert report["seed"] == 5 and report["repeats"] == 29
    assert "Label 1 says that the prompt is harmful" in text and f"AUROC {auroc_words(vars(found.study))}" in text
    assert logic.auroc_interval_words(found.study) in text
    assert MEANINGS["harmful"].false_rate.lower() in text and "refusal rate" not in text.lower()
    for warning in report["warnings"]:
        assert warning in text
    texts = " ".join(chart.proto.alt for chart in app.get("plotly_chart"))
    for null in ("shuffled_labels", "shuffled_categories"):
        assert f"p = {report['nulls'][null]['p_value']:.2g}" in texts
    for kind in ("false", "missed"):
        rates = [c[f"{kind}_refusal_rate"] for c in report["test"]["by_category"]]
        assert all(f"{rate:.2f} (" in texts for rate in rates if rate is not None)


def test_wrong_calls_with_their_prompts(page):
    app = studied(page())
    confusion = record(app).study.test.confusion
    table = next(frame.value for frame in app.dataframe if "from the threshold" in frame.value)
    assert len(table) == confusion.fp + confusion.fn and "prompt" not in table
    name = table["id"].iloc[0]
    prompts = json.dumps({"id": name, "prompt": "![x](http://x.example/p.png)"}).encode()
    app.file_uploader(key=state.STUDY_UPLOAD["prompts"]).upload("p.jsonl", prompts, "text/plain").run()
    assert "1 of 48 test examples have a prompt" in shown(app)
    table = next(frame.value for frame in app.dataframe if "prompt" in frame.value)
    assert table["prompt"].iloc[0] == "![x](http://x.example/p.png)" and table["prompt"].iloc[1] == ""
    assert "x.example" not in words(app)
    app.get_by_key(state.STUDY_KINDS).set_value([0]).run()
    table = next(frame.value for frame in app.dataframe if "from the threshold" in frame.value)
    assert len(table) == confusion.fp
    app.file_uploader(key=state.STUDY_UPLOAD["prompts"]).upload("p.csv", b"id,text\n1,2\n", "text/csv").run()
    assert "These prompts cannot be read" in words(app) and 'it has no "prompt"' in words(app)


NAN = np.where(np.eye(48, 8) > 0, np.nan, TEST["activations"])
BAD = {
    "a web page": (b"<!doctype html><p>", "the file is a web page"),
    "empty": (b"", "the file is empty"),
    "pickled ids": (npz(TEST, ids=TEST["ids"].astype(object)), "pickled"),
    "cut short": (npz(TEST)[:-80], "damaged or cut short"),
    "not finite": (npz(TEST, activations=NAN), 'row 0 (id "test-0000")'),
    "three labels": (npz(TEST, labels=np.arange(48) % 3), "two labels are needed"),
    "one id twice": (npz(TEST, ids=np.array(["a"] * 48)), "stands in row 0 already"),
    "ids of training": (npz(TEST, ids=TRAIN["ids"]), "48 ids are in the training file too"),
    "the same file": (npz(TRAIN), "train and test are the same file"),
    "other dimensions": (npz(TEST, activations=TEST["activations"][:, :5]), "the same number of dimensions"),
    "a blank category": (npz(TEST, categories=np.array([""] * 48)), "the value is blank"),
    "one label too few": (npz(TEST, labels=TEST["labels"][:-1]), "it has shape [47]"),
    "integers": (npz(TEST, activations=TEST["activations"].astype(int)), "integers are usually quantised"),
}  # fmt: skip


def test_each_bad_upload_is_one_sentence_and_the_last_good_result_stays(page, monkeypatch):
    for module, name in ((study_answer, "draw_figures"), (study_view, "_draw_evidence"), (study_beyond, "draw")):
        monkeypatch.setattr(module, name, lambda *args: None)  # the answer is enough to look at
    app = studied(page())
    good = record(app)
    for name, (content, said) in BAD.items():
        upload(app, test=content, names=("train.npz", "bad.npz"))
        if has_button(app, "study_go"):
            press(app)
            assert "Not studied" in words(app) and "The last result stays below" in words(app), name
            assert "\n" not in problem_of(app) and problem_of(app).endswith("."), name
        else:
            assert "These files cannot be studied" in words(app), name
        assert said in shown(app) and "bad.npz" in words(app), name
        assert record(app) is good and app.header[0].value.replace("\\", "") == good.study.headline, name
    upload(app, test=npz(TEST))
    press(app)
    assert problem_of(app) is None and record(app).text == good.text


def test_other_names_labels_and_layers_are_mapped(page, tmp_path):
    def other(members: dict, scale: int) -> bytes:
        stacked = np.stack([members["activations"] * k for k in (0.1, 1, scale)], axis=1)
        own = {"acts": stacked, "y": textual(members["labels"]), "uid": members["ids"], "topic": members["categories"]}
        return npz({**own, "layers": np.array(["8", "16", "24"])})

    train, test = other(TRAIN, 3), other(TEST, 3)
    app = upload(page(), train, test)
    assert "say which is which" in words(app) and not has_button(app, "study_go")
    boxes = {box.label: box for box in app.selectbox}
    assert (boxes["Activations"].value, boxes["Labels"].value, boxes["Categories"].value) == ("acts", "y", "topic")
    boxes["Ids"].set_value("uid").run()
    boxes = {box.label: box for box in app.selectbox}
    assert boxes["The label that means 1"].value == "refused" and boxes["Layer"].value == 1
    boxes["Layer"].set_value(2).run()
    press(few(app))
    found = record(app)
    assert found.text == by_command(app, tmp_path, train=train, test=test)
    assert found.study.inputs["train"]["layer_index"] == 2 and found.study.extraction["layer"] == "24"
    straight = press(few(upload(page(), npz(TRAIN), npz(TEST))))
    assert found.study.test == record(straight).study.test


def finish_side(app: AppTest, kind: str) -> None:
    for _ in range(500):
        key = f"study_{kind}_running"
        if key not in app.session_state or app.session_state[key] is None:
            break
        app.run()
    assert not app.exception


def test_bits_are_asked_for_and_not_guessed(page):
    half = {"activations": TRAIN["activations"].astype("f2").view("i2")}
    app = upload(page(), npz(TRAIN, **half), npz(TEST, activations=TEST["activations"].astype("f2").view("i2")))
    assert "It is not guessed" in words(app) and not has_button(app, "study_go")
    next(box for box in app.get("button_group") if box.label == "Two bytes are").set_value("float16").run()
    press(few(app))
    assert record(app).study.inputs["train"]["dtype"] == "float16"


@pytest.mark.parametrize("split", ["each", "categories", "rows"])
def test_a_pooled_file_with_each_split(page, tmp_path, split):
    pool = npz(planted(n=60, d=8, categories=6, signal=1.0))
    app = page()
    app.get_by_key(state.STUDY_WAY).set_value("one").run()
    app.file_uploader(key=state.STUDY_UPLOAD["pool"]).upload("pool.npz", pool, "application/zip").run()
    app.selectbox(key=state.STUDY_SPLIT).set_value(split).run()
    if split == "categories":
        assert not has_button(app, "study_go")
        next(box for box in app.multiselect if box.label == "Categories").set_value(["train topic 0", "train topic 3"])
        app.run()
    press(few(app))
    found = record(app)
    assert found.text == by_command(app, tmp_path, pool=pool)
    expected = {"each": "one pooled file", "categories": "categories held out", "rows": "categories shared"}
    assert found.study.split == expected[split]
    assert (len(app.get("plotly_chart")) == 1) == (split == "each")
    assert "What this does not show" in words(app)


def test_a_test_file_of_one_label(page):
    keep = TEST["labels"] == 0
    app = studied(page(), test=npz({key: value[keep] for key, value in TEST.items()}))
    assert app.header[0].value.startswith("False-refusal rate")
    assert "A ROC needs test examples of both labels" in words(
        app
    ) and "AUROC undefined (n = 24; no interval: " in shown(app)


def test_hostile_names_stay_text(page):
    hostile = "![x](http://x.example/p.png) <script> :red[x] $y$ =1+1"
    categories = np.array([f"{hostile} {k % 4}" for k in range(48)])
    app = studied(page(), npz(TRAIN, categories=categories), npz(TEST, categories=categories))
    assert problem_of(app) is None
    for element in (*app.markdown, *app.header, *app.subheader):
        assert "x.example" not in element.value
    for chart in app.get("plotly_chart"):
        spec = json.loads(chart.proto.spec)
        assert "<script>" not in json.dumps(spec["layout"])


def test_more_shuffles_take_longer_and_reach_smaller_p_values(page):
    app = upload(page(), npz(TRAIN), npz(TEST))
    assert "under a second" in shown(app)
    few(app, 100_000).run()
    assert "smallest p-value of 100,000 shuffles is 1e-05" in shown(app)


def test_sizes_above_the_limit(page, monkeypatch):
    monkeypatch.setattr("refusal_core.limits.UPLOAD_BYTES", 2_000_000)
    big = npz(planted(n=4_000, d=140))
    app = upload(page(), big, npz(TEST))
    assert "put it below a data root" in words(app) and SIZES["n"] == 48
