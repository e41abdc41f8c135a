"""The frame of every page: set-up, menu, and what pages share (checkpoint, meaning of refused).

A new page is one entry in PAGES and one file that ends with `frame("its key", its_function)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from refusal_core.errors import InputError, RefusalCoreError
from refusal_core.labels import FOLDS, Fold
from refusal_core.roots import DataRoots
from ui import cache, checkpoints, show, state
from ui.checkpoints import Choice, Folders
from ui.state import View

APP_NAME = "Refusal workbench"
ICON = str(Path(__file__).with_name("icon.png"))
SIDEBAR_WIDTH = 300
WIDTH = 1080  # of the content; wider lines are hard to read
LONG_NAME = 28  # characters of a checkpoint's name that its box surely shows


@dataclass(frozen=True)
class Page:
    """One page: `question` is what it answers, in one line."""

    key: str
    file: str  # relative to app.py
    title: str
    question: str


PAGES = {
    page.key: page
    for page in (
        Page("overview", "app.py", "Overview", "What kinds of answer does a model give, and how sure is that?"),
        Page("playground", "pages/1_Playground.py", "Playground", "What kind of answer is this response?"),
        Page(
            "runs", "pages/2_Training_runs.py", "Training runs", "Which checkpoint is the best, and how sure is that?"
        ),
        Page("scorecard", "pages/3_Scorecard.py", "Scorecard", "Is a checkpoint good enough, and how sure is that?"),
        Page(
            "study",
            "pages/4_Direction_study.py",
            "Direction study",
            "Is there a refusal direction in these activations, and does it hold on categories that it has not seen?",
        ),
        Page(
            "search",
            "pages/5_Search_demonstration.py",
            "Search demonstration",
            "How close does a local search come to the optimum, and how much does its report flatter it?",
        ),
    )
}


@dataclass(frozen=True)
class Shared:
    """What every page gets: the chosen checkpoint (None while it is not named, or cannot be), and the fold."""

    choice: Choice | None
    choice_problem: str | None  # why there is no choice, one sentence
    fold: Fold
    demo: bool
    arrival: View | None  # the link by which the visitor has just come to this page
    params: Mapping[str, str]  # all query parameters of that link, for what only one page knows; untrusted


def frame(key: str, body: Callable[[Shared], None]) -> None:
    """Set the page up and draw `body` in it."""
    page = PAGES[key]
    st.set_page_config(
        page_title=f"{page.title} · {APP_NAME}", page_icon=ICON, layout="wide", initial_sidebar_state=SIDEBAR_WIDTH
    )
    state.prepare()
    demo = checkpoints.in_demo()
    params = state.arrived(key) or {}
    arrival, ignored = _read_link(params, demo=demo)
    st.logo(ICON)
    with st.sidebar:
        _menu()
        choice, problem = _checkpoint_picker(demo)
        fold = _fold_picker()
    with st.container(width=WIDTH):
        st.title(page.title, anchor=False)
        st.markdown(page.question)
        for sentence in ignored:
            show.note(sentence)
        try:
            body(Shared(choice, problem, fold, demo, arrival, params))
        except RefusalCoreError as error:
            show.problem("This page could not be drawn to its end.", str(error))


def _read_link(params: Mapping[str, str], *, demo: bool) -> tuple[View | None, list[str]]:
    if not params:
        return None, []
    view, ignored = state.from_params(params)
    return view, ignored + state.restore_shared(view, demo=demo)


def _menu() -> None:
    with st.container(gap="xsmall"):
        for page in PAGES.values():
            st.page_link(page.file, label=page.title, width="stretch")


def _checkpoint_picker(demo: bool) -> tuple[Choice | None, str | None]:
    try:
        roots, problem = DataRoots.from_environment(), None
    except InputError as error:
        roots, problem = DataRoots(()), str(error)
    folders = Folders([], False) if demo else cache.checkpoint_folders(roots)
    options = checkpoints.offered(folders.names, roots=bool(roots.roots), demo=demo)
    if (gone := st.session_state[state.CHECKPOINT]) not in options:
        st.session_state[state.CHECKPOINT] = options[0]
        if not demo:
            show.note(f"{checkpoints.option_name(gone)} is not there any more; the starter is chosen.")
    option = st.selectbox(
        "Checkpoint",
        options,
        format_func=checkpoints.option_name,
        key=state.CHECKPOINT,
        persist_state="session",
        disabled=demo,
    )
    if len(checkpoints.option_name(option)) > LONG_NAME:
        show.text(checkpoints.option_name(option))
    if demo:
        st.markdown(":small[Demo: the starter checkpoint only. Nothing that you type is stored.]")
    if problem:
        show.note(problem)
    if folders.cut:
        show.note("There is too much below the data roots to list: a folder that is not offered can be named by path.")
    path = hub_name = ""
    if option == checkpoints.TYPED_PATH:
        path = st.text_input(
            "Path below a data root",
            key=state.CHECKPOINT_PATH,
            persist_state="session",
            placeholder="runs/detector/checkpoint-300",
        )
    if option == checkpoints.HUB:
        hub_name = st.text_input(
            "Name on the hub",
            key=state.CHECKPOINT_HUB,
            persist_state="session",
            placeholder="VINAY-UMRETHE/refusal-detector",
        )
        st.markdown(":small[Classifying with it asks the hub over the network. Nothing else here does.]")
    try:
        return checkpoints.choose(option, path, hub_name, roots, demo=demo), None
    except InputError as error:
        show.note(str(error))
        return None, str(error)


def _fold_picker() -> Fold:
    key = st.radio(
        "Refused means",
        list(FOLDS),
        format_func=lambda key: FOLDS[key].name,
        key=state.FOLD,
        persist_state="session",
    )
    return FOLDS[key]
