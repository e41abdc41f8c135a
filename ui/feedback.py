"""Corrections of labels: kept in the store, listed, exported and deleted. The page opens the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

import streamlit as st

from refusal_core.classifier.stream import Answered
from refusal_core.errors import RefusalCoreError, one_line
from refusal_core.labels import LABELS, MEANING
from refusal_core.limits import NAME_CHARACTERS, TABLE_ROWS
from refusal_core.store import Feedback
from ui import show, state
from ui.batches import Task
from ui.playground import Result

if TYPE_CHECKING:
    from refusal_core.store import Store

NOTE_CHARACTERS = 2_000
SAID, LISTED = "feedback_said", "feedback_listed"  # the last note; how often the list was changed
DEMO = "Demo: nothing is stored. Corrections last for this visit only, and only in the batch table."


@dataclass(frozen=True)
class Keeper:
    """Where corrections go: `open` gives the store. In demo mode there is none and nothing is opened."""

    open: Callable[[], Store]
    demo: bool

    def keep(self, entry: Callable[[], Feedback]) -> str:
        """Store an entry; a sentence that says so, or why not."""
        if self.demo:
            return DEMO
        try:
            store = self.open()
            store.add_feedback(entry())
        except RefusalCoreError as error:
            return f"Not saved. {error}"
        st.session_state[LISTED] = st.session_state.get(LISTED, 0) + 1
        return "Saved among the corrections."


def keep_row(keeper: Keeper, task: Task, row: Answered, right: str) -> str:
    """Keep the right label of a row of a batch."""
    answer, info = row.answer, task.batch.checkpoint
    return keeper.keep(
        lambda: Feedback(
            prompt=row.row.prompt,
            response=row.row.response,
            right=right,
            label=answer.label,
            probabilities=answer.probabilities or {},
            checkpoint=task.choice.shown,
            digest=info.digest,
            item=row.row.id,
            source=one_line(task.name, NAME_CHARACTERS),
            who=st.session_state[state.WHO],
        )
    )


def draw_name(*, demo: bool) -> None:
    """The field for who corrects, once for the session."""
    if not demo:
        st.text_input(
            "Your name, kept with the correction",
            key=state.WHO,
            persist_state="session",
            max_chars=NAME_CHARACTERS,
            placeholder="may stay empty",
        )


def draw_one(keeper: Keeper, result: Result) -> None:
    """ "This is wrong" for the exchange on screen."""
    with st.expander("This is wrong"):
        if keeper.demo:
            st.markdown("Demo: nothing is stored, so a correction cannot be saved here.")
            return
        key = f"feedback_right_{hash((result.turn.exchange.prompt, result.turn.exchange.response))}"
        right = st.pills("Right label", LABELS, key=key, wrap=True)
        if right:
            show.sentence(":small[:gray[{meaning}]]", meaning=MEANING[right])
        name, note = st.columns(2)
        with name:
            draw_name(demo=keeper.demo)
        said = note.text_input("Why, if it is not plain", key=f"{key}_note", max_chars=NOTE_CHARACTERS)
        st.button(
            "Save this correction",
            key="feedback_save",
            disabled=right is None,
            on_click=_save,
            args=(keeper, result, right, said),
        )
        if words := st.session_state.pop(SAID, None):
            show.note(words)


def _save(keeper: Keeper, result: Result, right: str, note: str) -> None:
    turn = result.turn
    st.session_state[SAID] = keeper.keep(
        lambda: Feedback(
            prompt=turn.exchange.prompt,
            response=turn.exchange.response,
            right=right,
            label=turn.said.label,
            probabilities=turn.said.probabilities or {},
            checkpoint=result.choice.shown,
            digest=result.info.digest,
            who=st.session_state[state.WHO],
            note=note,
        )
    )


def draw_kept(keeper: Keeper) -> None:
    """The corrections that are kept, with export and deletion; read from the store only when asked for."""
    if keeper.demo:
        return
    if not st.toggle("Show the corrections kept so far", key=state.KEPT, persist_state="session"):
        return
    try:
        _kept(keeper.open())
    except RefusalCoreError as error:
        show.problem("The corrections cannot be read", str(error))


def _kept(store: Store) -> None:
    entries, count = store.feedback(limit=TABLE_ROWS), store.count()
    if not entries:
        st.markdown("None yet. Correct a label, and it appears here.")
        show.text(f"They are kept in {store.where}")
        return
    show.sentence("Corrections: {n}, the latest first.", n=f"{count:,}")
    event = st.dataframe(
        [_listed(entry) for entry in entries],
        hide_index=True,
        key=f"feedback_table_{st.session_state.get(LISTED, 0)}",
        on_select="rerun",
        selection_mode="multi-row",
        height=min(320, 38 + 35 * len(entries)),
        alt="Corrections with right label, the model's answer, who, when and the start of the response.",
    )
    chosen = [entries[i].id for i in event["selection"]["rows"] if i < len(entries)]
    with st.container(horizontal=True):
        show.download("Export JSONL", lambda: _export(store), "corrections.jsonl", key="feedback_export")
        st.button(
            "Delete the selected", key="feedback_delete", disabled=not chosen, on_click=_delete, args=(store, chosen)
        )
    show.text(
        f"They are kept in {store.where}. The export is a file that evaluate reads, and train with --any-licence."
    )


def _delete(store: Store, numbers: list[int]) -> None:
    store.delete(numbers)
    st.session_state[LISTED] = st.session_state.get(LISTED, 0) + 1


def _export(store: Store) -> str:
    file = StringIO()
    store.export(file)
    return file.getvalue()


def _listed(entry: Feedback) -> dict[str, object]:
    return {
        "right label": entry.right,
        "model": entry.label or "none",
        "who": one_line(entry.who, 40),
        "when": entry.when.strftime("%Y-%m-%d %H:%M UTC"),
        "source": one_line(entry.source, 40),
        "response": one_line(entry.response[:161], 160),
        "note": one_line(entry.note, 80),
    }
