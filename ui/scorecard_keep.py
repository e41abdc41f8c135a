"""What the store keeps of scorecards: the runs of a suite with the trend of one assertion, and sign-offs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from refusal_core.errors import RefusalCoreError, one_line
from refusal_core.limits import NAME_CHARACTERS
from refusal_core.plots import scorecard as plots
from refusal_core.scorecard import Row, Scorecard
from refusal_core.scorecard.stored import from_json
from ui import cache, scorecard_cell, scorecards, show, state
from ui.scorecard_inputs import SHOWN
from ui.scorecards import Source, Task

if TYPE_CHECKING:
    from refusal_core.store import SignOff, Store, StoredRun

NOTE_CHARACTERS = 2_000
SAID, NOTE = "scorecard_said", "scorecard_note"


@dataclass(frozen=True)
class Keeper:
    """Where runs and sign-offs go: `open` gives the store. In demo mode nothing is opened."""

    open: Callable[[], Store]
    demo: bool


def keep(keeper: Keeper, task: Task) -> None:
    """Put a new result into the history; a store that cannot be used is said and hinders nothing."""
    if keeper.demo or task.kept or task.scorecard is None:
        return
    task.kept = True
    try:
        keeper.open().scorecards.add(task.source.shown, task.text, task.scorecard.sentence)
    except RefusalCoreError as error:
        st.session_state[SAID] = f"Not kept in the history. {error}"


def draw_signed(keeper: Keeper, task: Task) -> None:
    """Who signed this very result, near the top."""
    if words := st.session_state.pop(SAID, None):
        show.note(words)
    for one in _signed(keeper, task):
        note = f": {one_line(one.note, 300)}" if one.note.strip() else ""
        show.text(f"Signed off by {one.who}, {_when(one.when)}{note}")


def draw_sign_off(keeper: Keeper, task: Task) -> None:
    """The form that signs, and the sign-offs with a button to take one back."""
    if keeper.demo:
        st.markdown("Demo: nothing is stored, so a result cannot be signed off here.")
        return
    signed = _signed(keeper, task)
    show.sentence("A sign-off belongs to this very result, by the digest of its JSON: any change, and it is gone.")
    with st.form("scorecard_sign", border=False):
        name, note = st.columns([2, 5])
        name.text_input("Your name", key=state.WHO, persist_state="session", max_chars=NAME_CHARACTERS)
        note.text_input("Note", key=NOTE, max_chars=NOTE_CHARACTERS, placeholder="may stay empty")
        st.form_submit_button("Sign off this result", on_click=_sign, args=(keeper, task))
    for one in signed:
        left, right = st.columns([5, 1], vertical_alignment="center")
        with left:
            show.text(f"{one.who}, {_when(one.when)}" + (f"\n{one.note}" if one.note.strip() else ""))
        right.button("Take back", key=f"scorecard_withdraw_{one.number}", on_click=_withdraw, args=(keeper, one.number))


def draw_history(keeper: Keeper, task: Task, place: tuple[int, int] | None) -> None:
    """The runs of the suite and the trend of the chosen cell; read from the store only when asked for."""
    if keeper.demo:
        st.markdown("Demo: nothing is stored, so there is no history.")
        return
    if not st.toggle("Read the history of this suite", key=state.SC_HISTORY, persist_state="session"):
        return
    try:
        store = keeper.open()
        runs = store.scorecards.runs(task.source.shown)
        if not runs:
            st.markdown("No run of this suite is kept yet.")
            show.text(f"Runs are kept in {store.where}")
            return
        _trend(store, task, runs, place)
        _runs(store, task, runs)
    except RefusalCoreError as error:
        show.problem("The history cannot be read", str(error))


def _trend(store: Store, task: Task, runs: list[StoredRun], place: tuple[int, int] | None) -> None:
    row = scorecard_cell.row_at(task.scorecard, place) if place else None
    if row is None:
        return
    show.text(f"{row.test} / {row.name}, {row.checkpoint}")
    points: list[tuple[str, Row]] = []
    for one in reversed(runs):
        found = same_row(_result(store, task, one), row)
        if found is not None:
            points.append((_when(one.when), found))
    drawn = plots.trend(points)
    if drawn is None or len(points) < 2:
        st.markdown("One run has a value for this cell so far; a second one makes a trend.")
    if drawn is not None and len(points) > 1:
        show.figure(drawn, key="scorecard_trend")


def same_row(scorecard: Scorecard, row: Row) -> Row | None:
    """The row of another run that asks the same of the checkpoint of the same name."""
    return next((one for one in scorecard.of(row.checkpoint) if one.key == row.key), None)


def _result(store: Store, task: Task, one: StoredRun) -> Scorecard:
    """A result of the history, read once."""
    if one.digest == task.digest:
        return task.scorecard
    if one.digest not in task.earlier:
        task.earlier[one.digest] = from_json(store.scorecards.get(one.digest) or "", "the stored result")
    return task.earlier[one.digest]


def _runs(store: Store, task: Task, runs: list[StoredRun]) -> None:
    rows = [
        {
            "when": _when(one.when),
            "conclusion": ("(on screen) " if one.digest == task.digest else "") + one.sentence,
            "signed by": ", ".join(signed.who for signed in store.scorecards.sign_offs(one.digest)),
            "SHA-256": one.digest[:12],
        }
        for one in runs
    ]
    event = st.dataframe(
        rows,
        hide_index=True,
        key=f"scorecard_runs_{runs[0].number}_{len(runs)}",
        on_select="rerun",
        selection_mode="single-row",
        column_config={"conclusion": st.column_config.TextColumn(width="large")},
        height="content" if len(rows) <= 9 else 320,
        alt="Runs of the suite, the latest first, with time, conclusion, who signed and digest.",
    )
    chosen = [runs[at] for at in event["selection"]["rows"] if at < len(runs)]
    with st.container(horizontal=True):
        st.button(
            "Show the selected run",
            key="scorecard_open",
            disabled=not chosen,
            on_click=_open,
            args=(store, task, chosen[0] if chosen else None),
        )
        st.button(
            "Delete the selected run",
            key="scorecard_delete",
            disabled=not chosen,
            on_click=_delete,
            args=(store, chosen[0].number if chosen else 0),
        )
    show.text(f"They are kept in {store.where}")


def show_stored(keeper: Keeper, digest: str) -> bool:
    """Show a stored result; whether there is one. Raises as the store does."""
    if keeper.demo:
        return False
    text = keeper.open().scorecards.get(digest)
    if text is None:
        return False
    _put(from_json(text, "the stored result"), None)
    return True


def _put(scorecard: Scorecard, shown: str | None) -> None:
    name = one_line(scorecard.suite, 200)
    source = Source(scorecards.STORED, name, shown or name, b"")
    task = cache.scorecards().keep(source, scorecard)
    task.kept = True
    st.session_state[SHOWN] = task.token


def _open(store: Store, task: Task, one: StoredRun) -> None:
    try:
        _put(_result(store, task, one), one.suite)
    except RefusalCoreError as error:
        st.session_state[SAID] = str(error)


def _delete(store: Store, number: int) -> None:
    try:
        store.scorecards.delete(number)
    except RefusalCoreError as error:
        st.session_state[SAID] = f"Not deleted. {error}"


def _signed(keeper: Keeper, task: Task) -> list[SignOff]:
    if keeper.demo:
        return []
    try:
        return keeper.open().scorecards.sign_offs(task.digest)
    except RefusalCoreError as error:
        show.note(f"Sign-offs cannot be read. {error}")
        return []


def _sign(keeper: Keeper, task: Task) -> None:
    try:
        keeper.open().scorecards.sign(task.digest, who=st.session_state[state.WHO], note=st.session_state[NOTE])
        keep(keeper, task)  # what is signed is kept, also where runs are not
        st.session_state[NOTE] = ""
    except RefusalCoreError as error:
        st.session_state[SAID] = f"Not signed. {error}"


def _withdraw(keeper: Keeper, number: int) -> None:
    try:
        keeper.open().scorecards.withdraw(number)
    except RefusalCoreError as error:
        st.session_state[SAID] = f"Not taken back. {error}"


def _when(moment) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
