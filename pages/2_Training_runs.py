"""Training runs: which checkpoint is the best, how sure is that, and what does not add up?"""

from __future__ import annotations

import streamlit as st

from ui import (
    cache,
    runs_answer,
    runs_calibration,
    runs_classes,
    runs_compare,
    runs_files,
    runs_inputs,
    runs_link,
    show,
)
from ui import state as app_state
from ui.frame import Shared, frame
from ui.runs import UPLOAD, Reading
from ui.runs_state import LINKED, PROBLEM, SHOWN, choose, key, picked, take_link


def page(shared: Shared) -> None:
    if shared.params:
        _arrive(shared)
    runs_inputs.draw(demo=shared.demo)
    runs_inputs.read_pending(demo=shared.demo)
    reading = cache.readings().get(st.session_state.get(SHOWN))
    problem = st.session_state.get(PROBLEM)
    show.refused("Not read", problem, earlier=reading is not None)
    if reading:
        take_link(reading)
        _draw(reading, shared)
    elif not problem:
        st.markdown(
            "Open a sample above, upload the files of a training (or a zip of its folder), or pick a folder. Trainer "
            "states, results, reports, matrices, logs, event files and predictions are told apart by their content. "
            "They are read in memory and nowhere stored."
        )


def _arrive(shared: Shared) -> None:
    token, view, ignored = runs_link.from_params(shared.params)
    for sentence in ignored:
        show.note(sentence)
    if token:
        st.session_state[LINKED] = view
        runs_inputs.arrive(token, demo=shared.demo)


def _draw(reading: Reading, shared: Shared) -> None:
    runs_answer.draw_answer(reading)
    runs_inputs.follow(reading)
    runs_answer.draw_findings(reading)
    runs_answer.pick_runs(reading)
    runs = picked(reading)
    runs_answer.draw_curves(reading, runs)
    drawers = {
        "Checkpoints": lambda: runs_compare.draw_checkpoints(reading),
        "Classes": lambda: runs_classes.draw(reading),
        "Calibration": lambda: runs_calibration.draw(reading),
        "Settings": lambda: runs_compare.draw_settings(runs),
        "Other results": lambda: runs_files.draw_results(reading),
        "Downloads": lambda: runs_files.draw_downloads(reading),
        "Link": lambda: runs_files.draw_link(reading, demo=shared.demo),
    }
    choose("tab", list(drawers))
    tabs = st.tabs(
        ["Checkpoints", "Classes", "Calibration", "Settings", "Other results", "Downloads", "Link"],
        key=key("tab"),
        on_change="rerun",
    )
    for tab, draw in zip(tabs, drawers.values(), strict=True):
        if tab.open:  # only what is seen is computed
            with tab:
                draw()
    # In the demo a link must not show one visitor's files to another.
    app_state.put_in_address({} if reading.source.kind == UPLOAD and shared.demo else runs_files.params(reading))


frame("runs", page)
