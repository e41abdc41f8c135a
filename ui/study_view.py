"""The Direction study: inputs, the work under way, the last good result."""

from __future__ import annotations

import streamlit as st

from refusal_core.direction.record import Record
from refusal_core.direction.scores import TestScores
from refusal_core.errors import RefusalCoreError
from ui import cache, show, state, study_answer, study_beyond, study_detail, study_inputs, study_keep
from ui import study as logic
from ui.frame import Shared
from ui.studies import Task
from ui.study import Asked
from ui.study_keep import STORED, Keeper

# What the view remembers beside its widgets: the study on screen, the one under way, why there is no newer one, what is
# to be started, and the tokens of studies of the sample.
SHOWN, RUNNING, PROBLEM, PENDING, SAMPLES = (
    f"study_{name}" for name in ("shown", "running", "problem", "pending", "samples")
)
GONE = "The study of this link is no longer in memory: run it again. A stored study has a longer link."


def draw(shared: Shared, keeper: Keeper) -> None:
    """The whole view. `keeper` stores studies."""
    if "study" in shared.params:
        _arrive(shared, keeper)
    if digest := st.session_state.pop(study_keep.OPEN, None):
        _restore(digest, keeper)
    offered = study_inputs.draw(_ask, _ask_sample, demo=shared.demo)
    if asked := st.session_state.get(PENDING):
        _start(asked)
    if running := cache.studies().get(st.session_state.get(RUNNING)):
        study_inputs.watch(running)
        if not running.running:
            _settle(running)
    task = cache.studies().get(st.session_state.get(SHOWN))
    problem = st.session_state.get(PROBLEM)
    show.refused("Not studied", problem, earlier=task is not None)
    if task:
        _draw(task, offered, shared, keeper)
    elif not problem and not st.session_state.get(RUNNING):
        st.markdown(
            "Use the sample, or give two activation exports: one to fit the direction on, one of other examples to "
            "test it on. They are read in memory and nowhere stored."
        )
    state.put_in_address(_params(task, shared))


def _params(task: Task | None, shared: Shared) -> dict[str, str]:
    if task is None:
        return {}
    if task.token in st.session_state.get(SAMPLES, ()):
        return {"study": logic.SAMPLE}
    # In the demo a link must not show one visitor's file to another.
    if shared.demo:
        return {}
    return {"study": task.result.sha256 if task.token in st.session_state.get(STORED, ()) else task.token}


def _arrive(shared: Shared, keeper: Keeper) -> None:
    """Show the study that a link names."""
    value, ignored = logic.named(shared.params)
    if ignored:
        show.note(ignored)
    elif value == logic.SAMPLE:
        _ask_sample()
    elif logic.is_digest(value):
        _restore(value, keeper)
    elif value in (st.session_state.get(RUNNING), st.session_state.get(SHOWN)):
        return
    elif not shared.demo and (found := cache.studies().get(value)):
        st.session_state[RUNNING if found.running else SHOWN] = value
    else:
        st.session_state[PROBLEM] = GONE


def _restore(digest: str, keeper: Keeper) -> None:
    """Show a stored study."""
    try:
        record = keeper.record(digest)
        _show(cache.studies().keep(record.title, record))
        study_keep.remember(st.session_state[SHOWN])
        st.session_state[PROBLEM] = None
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = str(error)


def _ask(asked: Asked) -> None:
    """Have `asked` studied at the next run."""
    st.session_state[PENDING] = asked


def _ask_sample() -> None:
    try:
        _ask(logic.sample())
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = str(error)


def _start(asked: Asked) -> None:
    """Start what is pending; this session's own study before it is stopped."""
    st.session_state[PENDING] = None
    try:
        if before := cache.studies().get(st.session_state.get(RUNNING)):
            before.stop()
        task = cache.studies().start(asked.title, lambda job: logic.run(asked, job))
        st.session_state[RUNNING], st.session_state[PROBLEM] = task.token, None
        if asked.files[0].kind == logic.SAMPLE:
            st.session_state[SAMPLES] = (*st.session_state.get(SAMPLES, ()), task.token)
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = str(error)


def _settle(task: Task) -> None:
    """The work has ended: show its result, or why there is none beside the last one."""
    st.session_state[RUNNING] = None
    st.session_state[PROBLEM] = task.problem
    if task.result:
        _show(task)


def _show(task: Task) -> None:
    st.session_state[SHOWN] = task.token
    seen = st.session_state.get(study_beyond.HISTORY, ())
    st.session_state[study_beyond.HISTORY] = (*(token for token in seen if token != task.token), task.token)


def _draw(task: Task, offered: Asked | None, shared: Shared, keeper: Keeper) -> None:
    record: Record = task.result
    is_sample = task.token in st.session_state.get(SAMPLES, ())
    study_answer.draw_answer(record)
    if is_sample:
        show.text(logic.SAMPLE_SAYS)
        offered = offered or logic.sample()
    study_answer.draw_figures(record)
    if isinstance(record.study.test, TestScores):
        _draw_evidence(record, shared, is_sample)
    study_answer.draw_not_shown(record)
    numbers, downloads, command, keep = st.tabs(["Numbers", "Downloads", "Command", "Store and share"])
    with numbers:
        study_detail.draw_numbers(record)
    with downloads:
        study_detail.draw_downloads(record, is_sample=is_sample)
    with command:
        study_detail.draw_command(record)
    with keep:
        study_keep.draw(record, task, keeper, is_sample=is_sample)
    study_beyond.draw(record, offered, keeper)


def _draw_evidence(record: Record, shared: Shared, is_sample: bool) -> None:
    """What a test file makes possible."""
    wrong, roc, left_out, splits, geometry, plan = st.tabs(
        ["Wrong calls", "ROC", "One category out", "Splits", "Geometry", "Interval and plan"]
    )
    with wrong:
        study_detail.draw_wrong(record, demo=shared.demo, is_sample=is_sample)
    with roc:
        study_answer.draw_roc(record)
    with left_out:
        study_answer.draw_left_out(record)
    with splits:
        study_answer.draw_splits(record)
    with geometry:
        study_answer.draw_geometry(record)
    with plan:
        study_detail.draw_plan(record)
