"""Search demonstration: how close does a local search come to the optimum, and how much does its report flatter it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import streamlit as st

from refusal_core import limits
from refusal_core.climb import Settings
from refusal_core.climb.demonstration import SIMULATED
from refusal_core.climb.policy import OBJECTIVES
from refusal_core.climb.settings import WHOLE
from refusal_core.errors import RefusalCoreError
from refusal_core.jobs import Job, Progress
from ui import cache, search, search_answer, show, state
from ui.frame import Shared, frame
from ui.search import PRESETS

# What the page remembers beside its widgets: the settings of the last good result, why there is no newer one, and
# what is to be run.
RESULT, PROBLEM, PENDING = "search_result", "search_problem", "search_pending"
QUICK_SECONDS = 0.4  # a run that is shorter needs no progress


def page(shared: Shared) -> None:
    if shared.params:
        _restore(shared.params)
    show.note(SIMULATED)
    _inputs()
    if asked := st.session_state.get(PENDING):
        _run(asked)
    problem, result = st.session_state.get(PROBLEM), st.session_state.get(RESULT)
    show.refused("Not run", problem, earlier=result is not None)
    if result:
        _draw(result)
    elif not problem:
        st.markdown("Pick a preset above, or set the numbers and press Run.")


def _inputs() -> None:
    st.pills(
        "Presets",
        list(PRESETS),
        format_func=lambda key: PRESETS[key].title,
        key=state.SEARCH_PRESET,
        persist_state="session",
        on_change=_take_preset,
    )
    with st.form("search", border=False):
        seeds, budget, fanout, noise, objective = st.columns(5, vertical_alignment="bottom")
        seeds.number_input("Seeds", **_whole("seeds"))
        budget.number_input("Budget", **_whole("budget"))
        fanout.number_input("Fan-out", **_whole("fanout"))
        noise.number_input("Noise", **_real("noise"))
        objective.segmented_control(
            "Refusal logit",
            OBJECTIVES,
            key=state.SEARCH["objective"],
            persist_state="session",
            required=True,
        )
        with st.expander("The simulated policy"):
            length, vocabulary, interactions, policy_seed = st.columns(4)
            length.number_input("Length", **_whole("length"))
            vocabulary.number_input("Vocabulary", **_whole("vocabulary"))
            interactions.number_input("Interactions", **_real("interactions"))
            policy_seed.number_input("Policy seed", **_whole("policy_seed"))
        st.form_submit_button("**Run**", on_click=_take_inputs)


def _whole(name: str) -> dict:
    low, high = WHOLE[name]
    return {"min_value": low, "max_value": high, **_kept(name)}


def _real(name: str) -> dict:
    return {"min_value": 0.0, "max_value": float(limits.CLIMB_SCALE), "step": 0.1, "format": "%g", **_kept(name)}


def _kept(name: str) -> dict:
    return {"key": state.SEARCH[name], "persist_state": "session"}


def _take_preset() -> None:
    """Fill the boxes with the preset that was clicked, and run it."""
    if key := st.session_state[state.SEARCH_PRESET]:
        _ask(PRESETS[key].settings)


def _take_inputs() -> None:
    try:
        _ask(Settings(**{name: st.session_state[key] for name, key in state.SEARCH.items()}))
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = str(error)


def _restore(params: Mapping[str, str]) -> None:
    """Run what a link describes; what it does not say is at its default."""
    settings, ignored = search.from_params(params)
    for sentence in ignored:
        show.note(sentence)
    if settings:
        _ask(settings)


def _ask(settings: Settings) -> None:
    """Have `settings` run, and the boxes and presets show them."""
    for name, value in asdict(settings).items():
        st.session_state[state.SEARCH[name]] = value
    preset = search.preset_of(settings)
    st.session_state[state.SEARCH_PRESET] = preset.key if preset else None
    st.session_state[PENDING] = settings


def _run(settings: Settings) -> None:
    """Run `settings`. They stay pending when a click interrupts the run; a failure leaves the last result as it is."""
    place = st.empty()

    def progress(now: Progress) -> None:
        if now.seconds > QUICK_SECONDS:
            place.progress(now.done / (now.total or 1), f"Searching: {now}")

    try:
        search.check(settings)
        cache.demonstration(settings, Job(show=progress))
        st.session_state[RESULT], st.session_state[PROBLEM] = settings, None
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = str(error)
    st.session_state[PENDING] = None
    place.empty()


def _draw(settings: Settings) -> None:
    with st.spinner("Searching", show_time=True):  # again, when others have pushed it out of memory
        demonstration = cache.demonstration(settings)
    search_answer.draw_answer(demonstration)
    search_answer.draw_figures(demonstration)
    search_answer.draw_detail(demonstration)
    state.put_in_address(search.to_params(settings))


frame("search", page)
