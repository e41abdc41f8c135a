"""Playground: what kind of answer is this response?"""

from __future__ import annotations

import streamlit as st

from refusal_core.errors import InputError, RefusalCoreError
from refusal_core.jobs import Job
from refusal_core.samples import SAMPLES
from refusal_core.store import Store, default_url
from ui import answer, batch_view, cache, compare, explain, feedback, playground, show, state
from ui.checkpoints import HUB, Choice
from ui.feedback import Keeper
from ui.frame import Shared, frame
from ui.playground import Asked, Problem, Result
from ui.state import View

# What the page remembers beside its widgets: the last good result, why there is no newer one, and what is to be done.
RESULT, PROBLEM, PENDING, PENDING_TURNS, PICKED = (
    f"playground_{name}" for name in ("result", "problem", "pending", "pending_turns", "picked")
)
VIEWS = {state.ONE: "One exchange", state.BATCH: "Batch"}


def page(shared: Shared) -> None:
    if shared.arrival and shared.arrival.batch:
        st.session_state[state.VIEW] = state.BATCH
    elif shared.arrival and (shared.arrival.texts or shared.arrival.sample):
        st.session_state[state.VIEW] = state.ONE
    keeper = Keeper(lambda: cache.store(default_url(), Store.open), shared.demo)
    view = st.segmented_control(
        "What to classify",
        list(VIEWS),
        format_func=VIEWS.get,
        key=state.VIEW,
        persist_state="session",
        required=True,
        label_visibility="collapsed",
    )
    if view == state.BATCH:
        batch_view.draw(shared, keeper)
    else:
        _one_exchange(shared, keeper)
    feedback.draw_kept(keeper)


def _one_exchange(shared: Shared, keeper: Keeper) -> None:
    if shared.arrival:
        _restore(shared.arrival)
    _inputs()
    if asked := st.session_state.get(PENDING):
        _classify(asked, shared)
    if st.session_state.get(PENDING_TURNS):
        _classify_turns()
    if state.waits():
        show.note("The link names a checkpoint on the hub. Press Classify to have it fetched and used.")
    problem, result = st.session_state.get(PROBLEM), st.session_state.get(RESULT)
    if problem:
        answer.draw_problem(problem, earlier=result is not None)
    if result:
        _draw(result, shared, keeper)
    elif "batch" in st.query_params:
        del st.query_params["batch"]
    if not result and not problem and not state.waits():
        st.markdown("Pick a sample above, or paste a prompt and a response and classify them (Ctrl+Enter in a box).")


def _inputs() -> None:
    st.pills(
        "Samples",
        list(SAMPLES),
        format_func=lambda key: SAMPLES[key].title,
        key=state.SAMPLE,
        persist_state="session",
        on_change=_take_sample,
    )
    with st.form("exchange", border=False):
        left, right = st.columns([2, 3])
        left.text_area(
            "Prompt", key=state.PROMPT, persist_state="session", height=132, placeholder="What the model was asked"
        )
        right.text_area(
            "Response",
            key=state.RESPONSE,
            persist_state="session",
            height=132,
            placeholder="What it answered. Or a whole chat: JSON messages, or User: … Assistant: …",
        )
        st.form_submit_button("**Classify**", on_click=_press_classify)


def _draw(result: Result, shared: Shared, keeper: Keeper) -> None:
    sample = playground.sample_of(result)
    if result.choice != shared.choice:
        answer.draw_other_choice(result, shared.choice, _ask_again)
    answer.draw_answer(result, sample, shared.fold)
    if result.asked.assistant_turns > 1:
        answer.draw_every_turn(result, shared.fold, _ask_turns)
    explain.draw(result)
    compare.draw_one(result, shared.fold, demo=shared.demo)
    feedback.draw_one(keeper, result)
    answer.draw_detail(result, sample, shared.fold)
    state.show_in_address(answer.link_view(result, sample, shared.fold))


def _take_sample() -> None:
    """Fill the boxes with the sample that was clicked; a second click on it restores its text."""
    if key := st.session_state[state.SAMPLE] or st.session_state.get(PICKED):
        _fill(SAMPLES[key].prompt, SAMPLES[key].response, key)
        if not state.waits():
            _take_boxes()


def _press_classify() -> None:
    state.wait_no_longer()
    _take_boxes()


def _take_boxes() -> None:
    """Read the boxes; a chat found in one of them is split over both."""
    prompt, response = st.session_state[state.PROMPT], st.session_state[state.RESPONSE]
    try:
        asked = playground.read_boxes(prompt, response)
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = Problem(str(error))
        return
    sample = SAMPLES.get(st.session_state.get(PICKED))
    unchanged = sample is not None and (sample.prompt, sample.response) == (prompt, response)
    _fill(asked.exchange.prompt, asked.exchange.response, sample.key if unchanged else None)
    st.session_state[PENDING] = asked


def _fill(prompt: str, response: str, sample: str | None = None) -> None:
    st.session_state[state.PROMPT], st.session_state[state.RESPONSE] = prompt, response
    st.session_state[state.SAMPLE] = st.session_state[PICKED] = sample


def _restore(link: View) -> None:
    """Show what a link holds. A hub checkpoint is not fetched for it: that is for the visitor to decide."""
    if link.texts:
        _fill(*link.texts)
    elif link.sample:
        _fill(SAMPLES[link.sample].prompt, SAMPLES[link.sample].response, link.sample)
    else:
        return
    if st.session_state[state.CHECKPOINT] == HUB:
        st.session_state[state.LINK_WAITS] = True
    else:
        _take_boxes()


def _ask_again() -> None:
    state.wait_no_longer()
    st.session_state[PENDING] = st.session_state[RESULT].asked


def _ask_turns() -> None:
    st.session_state[PENDING_TURNS] = True


def _classify(asked: Asked, shared: Shared) -> None:
    """Answer `asked`. It stays pending when a click interrupts the run; a failure leaves the last result as it is."""
    try:
        if shared.choice is None:
            raise InputError(shared.choice_problem or "no checkpoint is named", fix="choose one in the sidebar")
        loaded, loading = _load(shared.choice)
        with st.spinner("Classifying", show_time=True):
            result = playground.answer(loaded.classifier, asked, shared.choice, loading)
        problem = playground.problem_of(result)
        if problem is None:
            st.session_state[RESULT] = result
    except RefusalCoreError as error:
        problem = Problem(str(error))
    st.session_state[PROBLEM], st.session_state[PENDING] = problem, None


def _classify_turns() -> None:
    """Answer every turn of the chat on screen, by the checkpoint that answered its last one."""
    result: Result = st.session_state[RESULT]
    bar = st.progress(0.0, "Classifying every assistant turn")
    job = Job(show=lambda now: bar.progress(now.done / (now.total or 1), f"Classifying every assistant turn: {now}"))
    try:
        loaded, _ = _load(result.choice)
        st.session_state[RESULT] = playground.answer_every_turn(loaded.classifier, result, job)
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = Problem(str(error))
    st.session_state[PENDING_TURNS] = False
    bar.empty()


def _load(choice: Choice) -> tuple[cache.Loaded, float | None]:
    """The classifier, and the seconds of loading when it was not in memory."""
    ready = cache.loaded_info(choice) is not None
    loaded = cache.load_classifier(choice)
    return loaded, None if ready else loaded.seconds


frame("playground", page)
