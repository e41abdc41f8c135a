"""Which parts drove an answer, a second checkpoint, and "this is wrong", on one exchange and over a batch."""

import json

from refusal_core.classifier.attribution import attribute
from refusal_core.classifier.compare import compare
from refusal_core.exchanges import Exchange
from refusal_core.metrics.intervals import format_rate
from refusal_core.store import Store
from tests.app.batch_cases import ROWS, jsonl, score, task_of
from tests.app.conftest import PLAYGROUND, classify, words
from ui import cache, state
from ui.compare import OVER

RESPONSE = "I cannot help with that. <b>Which</b> version is it? Sorry, I can't do that."


def test_explain_shows_each_part_once_as_figure_and_table(playground):
    app = classify(playground(), "What is it?", RESPONSE)
    assert not app.dataframe
    app.button(key="explain_go").click().run()
    assert not app.exception
    loaded = next(iter(cache._shelf().values()))[1]
    found = attribute(loaded.classifier, Exchange("What is it?", RESPONSE))
    [table] = [frame.value for frame in app.dataframe]
    assert list(table["text"]) == [span.text for span in found.spans] and len(found.spans) == 3
    assert [round(drop, 5) for drop in table["drop"]] == [round(span.drop, 5) for span in found.spans]
    figure = app.get("plotly_chart")[1].proto
    assert "part 1" in figure.alt and "<b>" not in json.dumps(json.loads(figure.spec)["layout"]["yaxis"])
    classify(app, "What is it?", "Another response.")
    assert not app.dataframe


def test_two_checkpoints_on_one_exchange(playground):
    app = classify(playground(), "What is it?", RESPONSE)
    app.selectbox(key=state.SECOND).set_value("folder:own-labels").run()
    app.button(key="compare_go").click().run()
    assert not app.exception
    assert "tiny-bert and own-labels" in words(app) and "The first says" in words(app)
    assert not any("![x]" in m.value for m in app.markdown)
    app.selectbox(key=state.SECOND).set_value("folder:tiny-bert").run()
    app.button(key="compare_go").click().run()
    assert "Both say" in words(app)


def test_two_checkpoints_over_a_batch(batch):
    app = score(batch(), jsonl(ROWS))
    app.selectbox(key=state.SECOND).set_value("folder:own-labels").run()
    app.button(key="compare_batch").click().run()
    first = task_of(app)
    second = cache.batches().get(app.session_state[OVER][first.token])
    assert second.watch(60)
    app.run()
    assert not app.exception
    found = compare(first.batch, second.batch)
    assert f"Same class: {format_rate(found.agreement)}" in words(app)
    changed = next(frame.value for frame in app.dataframe if "flip" in frame.value)
    assert len(changed) == len(found.changed) == 4
    assert task_of(app) is first


def test_this_is_wrong_saves_exchange_answer_name_and_note(playground):
    app = classify(playground(), "What is it?", RESPONSE)
    app.text_input(key=state.WHO).set_value("ana").run()
    [pills] = [box for box in app.get("button_group") if box.label == "Right label"]
    pills.set_value("clarification").run()
    app.button(key="feedback_save").click().run()
    assert not app.exception and "Saved among the corrections" in words(app)
    with Store.open() as store:
        [entry] = store.feedback()
    assert (entry.prompt, entry.response, entry.right, entry.who) == ("What is it?", RESPONSE, "clarification", "ana")
    assert entry.label and entry.checkpoint == "tiny-bert" and len(entry.digest) == 64


def test_kept_corrections_can_be_deleted(playground):
    app = classify(playground(), "What is it?", RESPONSE)
    [pills] = [box for box in app.get("button_group") if box.label == "Right label"]
    pills.set_value("clarification").run()
    app.button(key="feedback_save").click().run()
    app.toggle(key=state.KEPT).set_value(True).run()
    assert "Corrections: 1" in words(app)
    assert app.button(key="feedback_delete").disabled
    [key] = [frame.key for frame in app.dataframe if (frame.key or "").startswith("feedback_table")]
    app.session_state[key] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    app.run()
    app.button(key="feedback_delete").click().run()
    assert not app.exception and "None yet" in words(app)


def test_a_store_that_cannot_be_opened_is_one_sentence(playground, monkeypatch, tmp_path):
    monkeypatch.setenv("REFUSAL_STORE", "mysql://somewhere/x")
    app = classify(playground(), "What is it?", RESPONSE)
    [pills] = [box for box in app.get("button_group") if box.label == "Right label"]
    pills.set_value("clarification").run()
    app.button(key="feedback_save").click().run()
    assert not app.exception and "Not saved." in words(app) and app.header
    app.toggle(key=state.KEPT).set_value(True).run()
    assert "The corrections cannot be read" in words(app)


def test_the_demo_has_no_second_checkpoint_and_saves_nothing(overview, monkeypatch):
    monkeypatch.setenv("REFUSAL_DEMO", "1")
    app = overview()
    app.switch_page(PLAYGROUND).run()
    classify(app, "What is it?", RESPONSE)
    assert "Demo: one checkpoint only" in words(app) and "Demo: nothing is stored" in words(app)
    keys = {button.key for button in app.button}
    assert not keys & {"compare_go", "feedback_save"} and "explain_go" in keys
