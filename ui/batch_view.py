"""The Batch view of the Playground: inputs, the work under way, the last good result."""

from __future__ import annotations

import streamlit as st

from refusal_core import limits
from refusal_core.errors import InputError, RefusalCoreError
from ui import batch as logic
from ui import batch_answer, batch_inputs, batch_rows, cache, compare, show, state
from ui.batch_inputs import PENDING, PROBLEM, RUNNING, SHOWN
from ui.batches import SAMPLE, Task
from ui.feedback import Keeper
from ui.frame import Shared
from ui.state import View

GONE = "The batch of this link is no longer in memory: upload its file again."


def draw(shared: Shared, keeper: Keeper) -> None:
    """The whole view. `keeper` takes corrections."""
    if shared.arrival and shared.arrival.batch:
        _arrive(shared.arrival.batch)
    batch_inputs.draw(demo=shared.demo)
    if st.session_state.get(PENDING):
        _start(shared)
    if running := cache.batches().get(st.session_state.get(RUNNING)):
        batch_inputs.watch(running)
        if not running.running:
            _settle(running)
    task = cache.batches().get(st.session_state.get(SHOWN))
    problem = st.session_state.get(PROBLEM)
    show.refused("Not scored", problem, earlier=task is not None)
    if task:
        _draw(task, shared, keeper)
    elif not problem and not st.session_state.get(RUNNING):
        st.markdown("Use the sample, upload a file of exchanges, or pick one. It is read in memory and nowhere stored.")
    token = st.session_state.get(RUNNING) or st.session_state.get(SHOWN)
    # In the demo a link must not show one visitor's file to another.
    batch = state.NEW_BATCH if shared.demo or not token else token
    state.show_in_address(View(shared.choice.link_name if shared.choice else None, shared.fold.key, batch=batch))


def _arrive(batch: str) -> None:
    """Show the batch that a link names."""
    if batch == state.NEW_BATCH or batch in (st.session_state.get(RUNNING), st.session_state.get(SHOWN)):
        return
    if batch == state.SAMPLE_BATCH:
        st.session_state[PENDING] = batch_inputs.sample_source()
    elif found := cache.batches().get(batch):
        st.session_state[RUNNING if found.running else SHOWN] = batch
    else:
        st.session_state[PROBLEM] = GONE


def _start(shared: Shared) -> None:
    """Start what is pending; the batch before goes on to its end unless it is this session's own."""
    source = st.session_state[PENDING]
    try:
        if shared.choice is None:
            raise InputError(shared.choice_problem or "no checkpoint is named", fix="choose one in the sidebar")
        classifier = cache.load_classifier(shared.choice).classifier
        if before := cache.batches().get(st.session_state.get(RUNNING)):
            before.stop()
        most = limits.DEMO_BATCH_ROWS if shared.demo else limits.BATCH_ROWS
        task = cache.batches().start(source, shared.choice, classifier, most)
        st.session_state[RUNNING], st.session_state[PROBLEM] = task.token, None
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = str(error)
    st.session_state[PENDING] = None


def _settle(task: Task) -> None:
    """The work has ended: show its result, or why there is none beside the last one."""
    st.session_state[RUNNING] = None
    st.session_state[PROBLEM] = task.problem
    if task.batch:
        st.session_state[SHOWN] = task.token


def _draw(task: Task, shared: Shared, keeper: Keeper) -> None:
    if task.choice != shared.choice:
        batch_answer.draw_other_choice(task, shared.choice, batch_inputs.ask_again)
    fold, threshold = shared.fold, st.session_state[state.BATCH_THRESHOLD]
    batch, summary = logic.view_of(task, fold, batch_answer.group_of(task.batch), threshold)
    batch_answer.draw_answer(task, batch, summary, fold)
    batch_answer.draw_shares(batch, summary, fold)
    rows, scores, errors, second, downloads, link = st.tabs(
        ["Rows", "Scores", "Not classified", "Compare", "Downloads", "Link"]
    )
    with rows:
        batch_rows.draw(task, batch, summary, fold, keeper)
    with scores:
        batch_answer.draw_scores(summary)
    with errors:
        batch_answer.draw_errors(batch)
    with second:
        compare.draw_over(task, fold, demo=shared.demo)
    with downloads:
        batch_answer.draw_downloads(task, batch, summary, fold)
    with link:
        _link(task, shared)


def _link(task: Task, shared: Shared) -> None:
    checkpoint = task.choice.link_name
    if task.kind == SAMPLE:
        st.markdown("This link scores the sample anew:")
        show.code(state.link(View(checkpoint, shared.fold.key, batch=state.SAMPLE_BATCH), st.context.url))
    elif shared.demo:
        st.markdown("A file that was uploaded to the demo has no link: nobody else is to see it.")
    else:
        st.markdown(
            "Whoever has this link sees the batch with its texts, for as long as this server holds it in memory:"
        )
        show.code(state.link(View(checkpoint, shared.fold.key, batch=task.token), st.context.url))
