"""The Playground in each of its states."""

import json

import pytest

from refusal_core.classifier.hub import fetch
from refusal_core.errors import WorkError
from refusal_core.labels import LABELS, MEANING
from refusal_core.samples import SAMPLES
from tests.app.conftest import HOSTILE_LABELS, PLAYGROUND, classify, words
from ui import state
from ui.playground import ERROR_WORDS
from ui.state import View, to_params

HOSTILE = [
    "<script>alert(1)</script>", "![x](http://x.example/a.png)", "$x^2$", ":red[x] :material/home: :smile:",
    "[x](javascript:alert(1))", "<img src=x onerror=alert(1)>", "# heading\n\n- list\n\n| a | b |\n|---|---|",
]  # fmt: skip


def row(app) -> dict:
    """The JSON row on the page."""
    return next(json.loads(code.value) for code in app.code if code.language == "json")


def test_empty_page_says_what_to_do(playground):
    app = playground()
    assert app.title[0].value == "Playground"
    assert "Pick a sample above" in words(app)
    assert not app.header and not app.code


def test_a_sample_fills_the_boxes_and_is_classified_at_one_click(playground):
    app = playground()
    app.get_by_key(state.SAMPLE).set_value("fix-it").run()
    assert not app.exception
    assert app.text_area(key=state.PROMPT).value == SAMPLES["fix-it"].prompt
    assert app.text_area(key=state.RESPONSE).value == SAMPLES["fix-it"].response
    assert len(app.header) == 1
    assert "This sample was written as :green[■] clarification" in words(app)


def test_every_number_is_the_one_of_the_json(playground):
    app = classify(playground(), "What is it?", "I cannot help with that.")
    found = row(app)
    best = found["probabilities"][found["label"]]
    assert app.header[0].value.endswith(f"{best:.3f}")
    assert MEANING[found["label"]] in words(app).replace("\\", "")
    refused = found["probabilities"]["full_refusal"] + found["probabilities"]["partial_refusal"]
    assert f"{refused:.3f}" in words(app)
    figure = app.get("plotly_chart")[0].proto
    bars = json.loads(figure.spec)["data"][0]
    assert bars["text"] == [f"{found['probabilities'][label]:.3f}" for label in LABELS]
    assert all(f"{label} {found['probabilities'][label]:.3f}" in figure.alt for label in LABELS)
    assert found["matcher"] == "full_refusal" and "i cannot help" in words(app)


def test_the_fold_is_applied_without_classifying_again(playground, monkeypatch):
    app = classify(playground(), "What is it?", "I cannot help with that.")
    found = row(app)
    app.radio(key=state.FOLD).set_value("not-compliant").run()
    assert f"{1 - found['probabilities']['compliant']:.3f}" in words(app)
    assert "anything but compliant" in words(app)
    assert row(app) == found


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_reaches_text_and_code_only(playground, text):
    app = classify(playground(), text, f"{text} and more")
    in_markdown = [e.value for kind in (app.title, app.header, app.subheader, app.markdown) for e in kind]
    assert not any(text in value or text[:12] in value for value in in_markdown)
    assert text in [code.value for code in app.code]


def test_hostile_reasoning_is_shown_apart_as_code(playground):
    app = classify(playground(), "Hi", "<think>![x](http://x.example)</think>Hello")
    assert app.expander[0].label == "Reasoning, set aside and not classified"
    assert "![x](http://x.example)" in [code.value for code in app.expander[0].code]


def test_classes_of_its_own_are_shown_by_name_with_a_warning(playground):
    app = classify(playground("folder:own-labels"), "Hi", "Hello")
    assert "Its classes are not this project's five" in words(app)
    assert "Refused is not defined" in words(app)
    assert any(label in [t.value for t in app.text] for label in HOSTILE_LABELS)
    assert not any("http://x.example" in e.value for kind in (app.header, app.markdown) for e in kind)
    spec = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert set(spec["data"][0]["marker"]["color"]) == {"#7A7F87"}
    assert "<b>" not in json.dumps(spec["layout"]["yaxis"]["ticktext"])


@pytest.mark.parametrize(
    ("response", "why"), [("  \n", "empty response"), ("<think>still thinking", "unfinished reasoning")]
)
def test_nothing_to_classify_is_said_in_words_and_the_last_result_stays(playground, response, why):
    app = classify(playground(), "Hi", response)
    assert ERROR_WORDS[why] in words(app) and not app.header
    classify(app, "Hi", "Hello")
    good = row(app)
    assert ERROR_WORDS[why] not in words(app)
    classify(app, "Hi", response)
    assert ERROR_WORDS[why] in words(app) and "The last result stays below" in words(app)
    assert row(app) == good


def test_a_chat_that_cannot_be_read_is_one_sentence(playground):
    app = classify(playground(), "", '[{"role": "judge", "content": "x"}]')
    assert 'the role "judge" is not known' in words(app)


def test_a_pasted_chat_is_split_and_every_turn_can_be_classified(playground):
    chat = [{"role": r, "content": f"{r} {n}"} for n in (1, 2, 3) for r in ("user", "assistant")]
    app = classify(playground(), "", json.dumps(chat))
    assert app.text_area(key=state.RESPONSE).value == "assistant 3"
    assert app.text_area(key=state.PROMPT).value.endswith("User: user 3")
    assert "3 assistant turns" in words(app)
    app.button(key="playground_every_turn").click().run()
    assert not app.exception
    table = app.dataframe[0].value
    assert list(table["turn"]) == [1, 2, 3] and list(table["response"]) == ["assistant 1", "assistant 2", "assistant 3"]


def test_a_broken_checkpoint_leaves_the_last_result(playground, tiny_checkpoint):
    broken = tiny_checkpoint.parent / "broken"
    broken.mkdir(exist_ok=True)
    (broken / "config.json").write_text("{}")
    app = classify(playground(), "Hi", "Hello")
    good = row(app)
    app.selectbox(key=state.CHECKPOINT).set_value("path").run()
    app.text_input(key=state.CHECKPOINT_PATH).set_value("broken").run()
    assert "This is the answer of the checkpoint tiny-bert" in words(app)
    classify(app, "Hi", "Hello again")
    assert "it holds no weights" in words(app) and "The last result stays below" in words(app)
    assert row(app) == good


def test_another_checkpoint_marks_the_result_until_it_is_classified_again(playground):
    app = classify(playground(), "Hi", "Hello")
    app.selectbox(key=state.CHECKPOINT).set_value("folder:own-labels").run()
    assert "This is the answer of the checkpoint tiny-bert" in words(app)
    app.button(key="playground_again").click().run()
    assert not app.exception
    assert row(app)["checkpoint"]["name"] == "own-labels" and "This is the answer of" not in words(app)


def test_an_unknown_hub_checkpoint_is_one_sentence(playground, monkeypatch):
    def offline(*_):
        raise WorkError("The hub could not be reached for owner/name.")

    monkeypatch.setattr(f"{fetch.__module__}.fetch", offline)
    app = playground("hub")
    app.text_input(key=state.CHECKPOINT_HUB).set_value("owner/name").run()
    classify(app, "Hi", "Hello")
    assert "The hub could not be reached" in words(app)


@pytest.mark.parametrize("path", ["/etc", "../..", "nowhere"])
def test_a_path_outside_the_roots_is_refused(playground, path):
    app = playground("path")
    app.text_input(key=state.CHECKPOINT_PATH).set_value(path).run()
    classify(app, "Hi", "Hello")
    assert "Not classified" in words(app) and not app.header


def test_a_link_restores_sample_and_fold(playground):
    app = playground(sample="bomb", fold="plus-capability")
    assert app.text_area(key=state.PROMPT).value == SAMPLES["bomb"].prompt
    assert app.radio(key=state.FOLD).value == "plus-capability"
    assert len(app.header) == 1


def test_a_link_restores_text(playground):
    app = playground(**to_params(View(texts=("Why **so**?", "Because $x$."))))
    assert app.text_area(key=state.RESPONSE).value == "Because $x$." and len(app.header) == 1


def test_a_link_never_fetches_from_the_hub_by_itself(playground, monkeypatch):
    asked = []
    monkeypatch.setattr(f"{fetch.__module__}.fetch", lambda *name: asked.append(name))
    app = playground(sample="bomb", checkpoint="owner/name@main")
    assert app.selectbox(key=state.CHECKPOINT).value == "hub"
    assert app.text_input(key=state.CHECKPOINT_HUB).value == "owner/name@main"
    assert "Press Classify" in words(app) and not asked and not app.header


def test_garbage_in_a_link_is_said_and_ignored(playground):
    app = playground(sample="<script>", fold="$x$", text="%%%", checkpoint="/etc/passwd")
    assert sum("The link" in t.value or "The text in the link" in t.value for t in app.text) == 4
    assert "script" not in words(app) and "passwd" not in words(app)


def test_the_link_holds_the_text_only_when_asked(playground):
    app = classify(playground("starter"), "Why?", "A secret answer.")
    shown = [code.value for code in app.code if code.value.startswith("?")]
    assert shown == ["?checkpoint=starter&fold=full-partial"]
    app.checkbox(key=state.SHARE_TEXT).check().run()
    [address] = [code.value for code in app.code if code.value.startswith("?")]
    assert "&text=" in address
    assert "text" not in app.query_params


def test_too_long_a_text_cannot_be_shared(playground):
    app = classify(playground(), "Why?", "word " * 500)
    assert app.checkbox(key=state.SHARE_TEXT).disabled
    assert "at most 2,000 characters" in words(app)


def test_settings_and_result_stay_over_pages(playground):
    app = classify(playground(), "Why?", "Because.")
    good = row(app)
    app.radio(key=state.FOLD).set_value("not-compliant").run()
    app.switch_page("app.py").run()
    app.switch_page(PLAYGROUND).run()
    app.run()  # AppTest hands persisted values over one run later than a browser
    assert not app.exception
    assert app.radio(key=state.FOLD).value == "not-compliant"
    assert app.text_area(key=state.RESPONSE).value == "Because." and row(app) == good


def test_demo_classifies_with_the_starter(overview, monkeypatch):
    monkeypatch.setenv("REFUSAL_DEMO", "1")
    app = overview()
    app.switch_page(PLAYGROUND).run()
    app.get_by_key(state.SAMPLE).set_value("fix-it").run()
    assert row(app)["checkpoint"]["name"] == "starter" and row(app)["label"] == "clarification"
