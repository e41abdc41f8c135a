"""The app under Streamlit's AppTest, with a small checkpoint below a data root and nothing cached from another test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.checkpoints import make_checkpoint
from ui import state

ROOT = Path(__file__).resolve().parents[2]
PLAYGROUND = "pages/1_Playground.py"
HOSTILE_LABELS = ("safe", "![x](http://x.example/p.png) <script> :red[x] $y$", "<b>c</b>")


@pytest.fixture(scope="session")
def own_labels_checkpoint(tiny_checkpoint) -> Path:
    """A checkpoint beside the tiny one whose classes are its own, with names nobody should trust."""
    return make_checkpoint(tiny_checkpoint.parent / "own-labels", labels=HOSTILE_LABELS)


@pytest.fixture(autouse=True)
def app_settings(monkeypatch, tiny_checkpoint, own_labels_checkpoint, tmp_path):
    monkeypatch.setenv("REFUSAL_STORE", f"sqlite:///{tmp_path / 'store.sqlite'}")
    monkeypatch.setenv("REFUSAL_DATA", str(tiny_checkpoint.parent))
    monkeypatch.delenv("REFUSAL_DEMO", raising=False)
    monkeypatch.chdir(ROOT)
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def overview() -> Callable[..., AppTest]:
    """Opens the Overview page, with query parameters when given."""

    def opened(**params: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.query_params.update(params)
        app.run()
        assert not app.exception
        return app

    return opened


def visit(app: AppTest, page: str, **params: str) -> AppTest:
    """Go to a page, by a link when parameters are given."""
    app.switch_page(page)
    app.query_params.clear()
    app.query_params.update(params)
    app.run()
    assert not app.exception
    return app


@pytest.fixture
def playground(overview) -> Callable[..., AppTest]:
    """Opens the Playground by a link with `params`, or without any and with the option given of the picker chosen."""

    def opened(option: str = "folder:tiny-bert", **params: str) -> AppTest:
        app = visit(overview(), PLAYGROUND, **params)
        if not params:
            app.selectbox(key=state.CHECKPOINT).set_value(option)
            app.run()
        assert not app.exception
        return app

    return opened


@pytest.fixture
def page(overview) -> Callable[..., AppTest]:
    """Opens the Direction study, by a link when parameters are given."""
    from tests.app.study_cases import STUDY, finish

    return lambda **params: finish(visit(overview(), STUDY, **params))


@pytest.fixture
def batch(playground) -> Callable[..., AppTest]:
    """Opens the Batch view with the checkpoint given of the picker."""

    def opened(option: str = "folder:tiny-bert", **params: str) -> AppTest:
        app = playground(option, **params)
        if not params:
            app.get_by_key(state.VIEW).set_value(state.BATCH).run()
        assert not app.exception
        return app

    return opened


def classify(app: AppTest, prompt: str, response: str) -> AppTest:
    """Type both texts and press the button."""
    app.text_area(key=state.PROMPT).set_value(prompt)
    app.text_area(key=state.RESPONSE).set_value(response)
    return press_classify(app)


def press_classify(app: AppTest) -> AppTest:
    """Press the button under the boxes."""
    next(button for button in app.button if button.label == "**Classify**").click()
    app.run()
    assert not app.exception
    return app


def words(app: AppTest) -> str:
    """All that a reader finds on the page as text, one element a line."""
    kinds = (app.title, app.header, app.subheader, app.markdown, app.text, app.code)
    return "\n".join(element.value for kind in kinds for element in kind)
