"""The Scorecard page: inputs, the run under way, the last good result, and links to it."""

from __future__ import annotations

import streamlit as st

from refusal_core.errors import RefusalCoreError
from ui import cache, scorecard_answer, scorecard_cell, scorecard_inputs, scorecard_keep, show, state
from ui import scorecard as logic
from ui.frame import Shared
from ui.scorecard import Link
from ui.scorecard_inputs import PENDING, PROBLEM, RUNNING, SHOWN
from ui.scorecard_keep import Keeper
from ui.scorecards import SAMPLE, Task

SAMPLE_PREFIX = "sample:"
GONE = "The result of this link is no longer in memory, and no history has it: run its suite again."
PRESS_RUN = "The link names a suite below a data root: it is read below, and nothing has been run. Press Run."
WANTED = "scorecard_wanted"  # the cell that a link names, until its result is there


def draw(shared: Shared, keeper: Keeper) -> None:
    """The whole page."""
    if shared.params:
        _arrive(shared, keeper)
    scorecard_inputs.draw(demo=shared.demo)
    if st.session_state.get(PENDING):
        _start(shared)
    if running := cache.scorecards().get(st.session_state.get(RUNNING)):
        scorecard_inputs.watch(running)
        if not running.running:
            _settle(running, keeper)
            st.rerun()  # the inputs above fold, now that there is an answer
    task = cache.scorecards().get(st.session_state.get(SHOWN))
    problem = st.session_state.get(PROBLEM)
    show.refused("Not run", problem, earlier=task is not None)
    if task:
        _draw(task, shared, keeper)
    elif not problem and not st.session_state.get(RUNNING):
        st.markdown(
            "Run a sample, or bring a suite: upload its YAML with the data files that it names, pick one below a data "
            "root, or draft one from a predictions file."
        )


def _arrive(shared: Shared, keeper: Keeper) -> None:
    """Show what a link names: a result in memory, a stored one, a sample, or a suite that waits for Run."""
    link, ignored = logic.from_params(shared.params)
    for sentence in ignored:
        show.note(sentence)
    if link.verdicts:
        st.session_state[state.SC_VERDICTS] = link.verdicts
    st.session_state[WANTED] = link.cell
    try:
        if link.run and cache.scorecards().get(link.run):
            st.session_state[RUNNING if cache.scorecards().get(link.run).running else SHOWN] = link.run
            _take_cell(cache.scorecards().get(link.run))
        elif link.suite and link.suite.startswith(SAMPLE_PREFIX):
            _run_sample(link.suite.removeprefix(SAMPLE_PREFIX))
        elif link.result and scorecard_keep.show_stored(keeper, link.result):
            _take_cell(cache.scorecards().get(st.session_state[SHOWN]))
        elif link.suite and not shared.demo:
            scorecard_inputs.load_file(link.suite)
            show.note(PRESS_RUN)
        elif link.run or link.result:
            st.session_state[PROBLEM] = GONE
    except (RefusalCoreError, OSError) as error:
        st.session_state[PROBLEM] = str(error)


def _run_sample(name: str) -> None:
    shown = cache.scorecards().get(st.session_state.get(SHOWN))
    if shown and shown.source.shown == f"the sample {name}" and not shown.source.edited:
        return  # a reload of what this session has on screen
    scorecard_inputs.load_sample(name)
    if not st.session_state.get(PENDING):
        show.note("The link names a sample that is not known here.")


def _start(shared: Shared) -> None:
    """Start what is pending; the run before goes on to its end unless it is this session's own."""
    source = st.session_state[PENDING]
    st.session_state[PENDING] = None
    try:
        if before := cache.scorecards().get(st.session_state.get(RUNNING)):
            before.stop()
        answers = cache.demo_answers() if shared.demo else None
        task = cache.scorecards().start(source, cache.classifier_for_work, demo=shared.demo, answers=answers)
        st.session_state[RUNNING], st.session_state[PROBLEM] = task.token, None
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = str(error)


def _settle(task: Task, keeper: Keeper) -> None:
    """The run has ended: show its result, or why there is none beside the last one."""
    st.session_state[RUNNING] = None
    st.session_state[PROBLEM] = task.problem
    if task.scorecard:
        st.session_state[SHOWN] = task.token
        _take_cell(task)
        if st.session_state[state.SC_KEEP]:
            scorecard_keep.keep(keeper, task)


def _take_cell(task: Task | None) -> None:
    """Look at the cell that the link names, else at the one that matters first."""
    if task is None or task.scorecard is None:
        return
    wanted = st.session_state.pop(WANTED, None) or logic.first_cell(task.scorecard)
    st.session_state[state.SC_ROW], st.session_state[state.SC_COLUMN] = wanted


def _draw(task: Task, shared: Shared, keeper: Keeper) -> None:
    scorecard = task.scorecard
    scorecard_answer.draw_answer(task)
    scorecard_keep.draw_signed(keeper, task)
    lines = scorecard_answer.draw_matrix(task)
    st.subheader("One cell", anchor=False)
    place = scorecard_cell.choose(scorecard, lines)
    if place:
        scorecard_cell.draw(scorecard, place)
    files, sign, history, columns, link = st.tabs(["Downloads", "Sign-off", "History", "Checkpoints", "Link"])
    with files:
        scorecard_answer.draw_downloads(task)
    with sign:
        scorecard_keep.draw_sign_off(keeper, task)
    with history:
        scorecard_keep.draw_history(keeper, task, place)
    with columns:
        scorecard_answer.draw_checkpoints(scorecard)
    found = _link(task, place, demo=shared.demo)
    with link:
        _draw_link(task, found, demo=shared.demo)
    state.put_in_address(logic.to_params(found))


def _link(task: Task, place: tuple[int, int] | None, *, demo: bool) -> Link:
    verdicts = tuple(st.session_state[state.SC_VERDICTS])
    suite = logic.suite_in_link(task.source)
    if demo:  # a link must not show one visitor's files to another
        return Link(suite, verdicts=verdicts, cell=place)
    return Link(suite, task.token, task.digest, verdicts, place)


def _draw_link(task: Task, link: Link, *, demo: bool) -> None:
    if demo and link.suite is None:
        st.markdown("What was uploaded to the demo has no link: nobody else is to see it.")
        return
    if task.source.kind == SAMPLE and link.suite:
        st.markdown("Whoever opens this address sees the same view; where the result is gone, the sample runs anew:")
    else:
        st.markdown(
            "Whoever opens this address sees the same view, with its texts for as long as this server holds the result "
            "in memory, and without them from the history:"
        )
    show.code(state.address(logic.to_params(link), st.context.url))
