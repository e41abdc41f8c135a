"""Work beside the study on screen, a sweep or a cosine: one of a kind under way, the last good one on screen."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from refusal_core.errors import RefusalCoreError
from refusal_core.jobs import Job
from ui import cache, show, study_inputs
from ui.study import Asked

LAYERS, COSINE = "layers", "cosine"


def options_of(asked: Asked) -> dict:
    """How a second file of the same export is read."""
    reading = asked.reading
    return {"columns": reading.columns, "labels": reading.labels, "bits": reading.bits}


def start(kind: str, title: str, work: Callable[[Job], object]) -> None:
    """Start `work`; this session's own of that kind before it is stopped."""
    try:
        if before := cache.studies().get(st.session_state.get(_key(kind, "running"))):
            before.stop()
        task = cache.studies().start(title, work)
        st.session_state[_key(kind, "running")], st.session_state[_key(kind, "problem")] = task.token, None
    except RefusalCoreError as error:
        st.session_state[_key(kind, "problem")] = str(error)


def latest(kind: str) -> object | None:
    """What was found last, after the progress of what is under way; None when there is nothing yet."""
    if running := cache.studies().get(st.session_state.get(_key(kind, "running"))):
        study_inputs.watch(running)
        if not running.running:
            st.session_state[_key(kind, "running")] = None
            st.session_state[_key(kind, "problem")] = running.problem
            if running.result:
                st.session_state[_key(kind, "shown")] = running.token
    if problem := st.session_state.get(_key(kind, "problem")):
        show.problem("Not compared", problem)
    shown = cache.studies().get(st.session_state.get(_key(kind, "shown")))
    return shown.result if shown else None


def _key(kind: str, what: str) -> str:
    return f"study_{kind}_{what}"
