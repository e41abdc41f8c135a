"""The Playground in each of its states."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from refusal_core.classifier.hub import fetch
from refusal_core.errors import WorkError
from refusal_core.labels import LABELS, MEANING
from refusal_core.samples import SAMPLES
from tests.app.conftest import HOSTILE_LABELS, PLAYGROUND, classify, press_classify, words
from ui import playground as playground_module
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


HALF_CHAT = [{"role": role, "content": f"{role} \ud800"} for role in ("user", "assistant") * 2]


@pytest.mark.parametrize("pasted", [HALF_CHAT, {"messages": HALF_CHAT}, {"prompt": "\udfff", "response": "x\ud800"}])
def test_half_characters_in_pasted_json_leave_the_page_whole(playground, pasted):
    app = classify(playground(), "", json.dumps(pasted))
    assert "\ufffd" in app.text_area(key=state.RESPONSE).value and len(app.header) == 1
    if isinstance(pasted, list):
        app.button(key="playground_every_turn").click().run()
        assert not app.exception and len(app.dataframe[0].value) == 2
    classify(app, "Hi", "Hello")
    assert app.text_area(key=state.RESPONSE).value == "Hello"


def test_half_characters_in_a_link_leave_the_page_whole(playground):
    app = playground(**to_params(View(texts=("\ud800", "x \udfff"))))
    assert app.text_area(key=state.RESPONSE).value == "x \ufffd" and len(app.header) == 1
    assert not app.run().exception


def test_a_link_of_a_chat_opens_and_every_turn_can_be_classified(playground):
    chat = [{"role": r, "content": f"{r} {n}"} for n in (1, 2) for r in ("user", "assistant")]
    app = playground(**to_params(View(texts=("", json.dumps(chat)))))
    assert app.text_area(key=state.RESPONSE).value == "assistant 2"
    app.button(key="playground_every_turn").click().run()
    assert not app.exception and list(app.dataframe[0].value["turn"]) == [1, 2]


def test_the_link_of_a_chat_says_what_it_leaves_out(playground):
    app = classify(playground(), "", "User: a\nAssistant: b\nUser: c\nAssistant: d")
    assert "not the chat with its other turns" in words(app)
    assert "not the chat with its other turns" not in words(classify(app, "c", "d"))


def test_every_turn_is_never_rounded_to_certainty(playground, monkeypatch):
    monkeypatch.setattr("ui.playground.answer_every_turn", certain(playground_module.answer_every_turn))
    app = classify(playground(), "", "User: a\nAssistant: b\nUser: c\nAssistant: d")
    app.button(key="playground_every_turn").click().run()
    assert set(app.dataframe[0].value["probability"]) == {">0.999"}


def certain(answer):
    """`answer` with every answered turn all but sure of its class."""

    def answered(*args):
        result = answer(*args)
        odds = dict.fromkeys(LABELS, 0.00001) | {LABELS[0]: 0.99996}
        sure = replace(result.turn.said, label=LABELS[0], probabilities=odds)
        return replace(result, every_turn=tuple(replace(turn, said=sure) for turn in result.every_turn))

    return answered


def test_a_folder_that_may_not_be_read_is_one_sentence(playground, tiny_checkpoint, monkeypatch):
    app = classify(playground("path"), "Hi", "Hello")
    app.text_input(key=state.CHECKPOINT_PATH).set_value("tiny-bert").run()
    good = row(classify(app, "Hi", "Hello"))
    for owner, name in ((os, "scandir"), (Path, "is_file"), (Path, "iterdir")):
        monkeypatch.setattr(owner, name, guarded(getattr(owner, name), tiny_checkpoint))
    assert not app.run().exception
    classify(app, "Hi", "Hello again")
    assert "Permission denied" in words(app) and row(app) == good
    app.switch_page("app.py").run()
    app.run()  # AppTest hands persisted values over one run later than a browser
    assert not app.exception and "no files found" in words(app)


def guarded(call, folder):
    """`call` without the right to read `folder`, which a test that runs as root cannot take away."""

    def refusing(path, *args, **kwargs):
        if Path(path).is_relative_to(folder):
            raise PermissionError(13, "Permission denied")
        return call(path, *args, **kwargs)

    return refusing


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


@pytest.mark.parametrize("content", [{"sample": "bomb"}, to_params(View(texts=("Hi", "Hello"))), {}])
@pytest.mark.parametrize("by", ["playground", "overview"])
def test_only_classify_fetches_a_checkpoint_that_a_link_named(playground, overview, monkeypatch, content, by):
    asked = []

    def fetched(*name):
        asked.append(name)
        raise WorkError("The hub could not be reached for owner/name.")

    monkeypatch.setattr(f"{fetch.__module__}.fetch", fetched)
    if by == "playground":
        app = playground(checkpoint="owner/name@main", **content)
    else:
        app = overview(checkpoint="owner/name@main").switch_page(PLAYGROUND)
        app.query_params.clear()
        app.run()
    for sample in ("fix-it", "bomb", "fix-it"):
        app.get_by_key(state.SAMPLE).set_value(sample).run()
        assert app.text_area(key=state.PROMPT).value == SAMPLES[sample].prompt
        assert not app.exception and not app.header and "Press Classify" in words(app)
    assert not asked
    press_classify(app)
    assert asked and "The hub could not be reached" in words(app)


def test_another_checkpoint_ends_the_wait_for_the_one_of_a_link(playground, monkeypatch):
    asked = []
    monkeypatch.setattr(f"{fetch.__module__}.fetch", lambda *name: asked.append(name))
    app = playground(sample="bomb", checkpoint="owner/name@main")
    app.selectbox(key=state.CHECKPOINT).set_value("folder:tiny-bert").run()
    app.get_by_key(state.SAMPLE).set_value("fix-it").run()
    assert "Press Classify" not in words(app) and len(app.header) == 1
    press_classify(app)
    app.selectbox(key=state.CHECKPOINT).set_value("hub").run()
    app.get_by_key(state.SAMPLE).set_value("bomb").run()
    assert "Press Classify" in words(app) and not asked


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
