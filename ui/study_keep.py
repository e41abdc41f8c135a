"""Stored studies: kept under the digest of study.json, listed, opened, deleted, and shared by link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from refusal_core.direction.record import Record, unpack
from refusal_core.errors import InputError, RefusalCoreError, one_line
from refusal_core.limits import NAME_CHARACTERS, TABLE_ROWS
from ui import show, state
from ui.studies import Task

if TYPE_CHECKING:
    from refusal_core.store import Store

# The last note; how often the list was changed; the stored study to show next; tokens whose study is stored.
SAID, LISTED, OPEN, STORED = (f"study_{name}" for name in ("said", "listed", "open_digest", "stored"))


@dataclass(frozen=True)
class Keeper:
    """Where studies are stored: `open` gives the store. In demo mode there is none and nothing is opened."""

    open: Callable[[], Store]
    demo: bool

    def record(self, digest: str) -> Record:
        """The stored study. Raises InputError where there is none of that digest, or none at all (demo)."""
        packed = None if self.demo else self.open().studies.get(digest)
        if packed is None:
            raise InputError("the study of this link is not stored here", fix="run it again, or ask who shared it")
        return unpack(packed)


def draw(record: Record, task: Task, keeper: Keeper, *, is_sample: bool) -> None:
    """The button that keeps the study, its link, and the list of those kept."""
    if is_sample:
        st.markdown("This link runs the sample anew:")
        show.code(state.address({"study": "sample"}, st.context.url))
    if keeper.demo:
        if not is_sample:
            st.markdown("Demo: nothing is stored, so a study of your own files has no link. Download study.json.")
        return
    try:
        store = keeper.open()
        kept = store.studies.get(record.sha256) is not None
        if kept:
            st.markdown("This study is stored. Whoever has this link and reaches this server sees it:")
            show.code(state.address({"study": record.sha256}, st.context.url))
        else:
            st.markdown(
                "Storing keeps the result, the settings, the direction and, for each test example, its id, category, "
                "label and projection. No activations and no prompts."
            )
            name, button = st.columns([2, 1], vertical_alignment="bottom")
            name.text_input(
                "Your name, kept with it",
                key=state.WHO,
                persist_state="session",
                max_chars=NAME_CHARACTERS,
                placeholder="may stay empty",
            )
            button.button(
                "Store this study", key="study_keep", on_click=_keep, args=(keeper, record, task.token), width="stretch"
            )
            st.markdown("Until then this link shows it for as long as this server holds it in memory:")
            show.code(state.address({"study": task.token}, st.context.url))
        if words := st.session_state.pop(SAID, None):
            show.note(words)
        _list(store)
    except RefusalCoreError as error:
        show.problem("The stored studies cannot be read", str(error))


def remember(token: str) -> None:
    """The study of this token is stored, so its address is its digest."""
    st.session_state[STORED] = (*st.session_state.get(STORED, ()), token)


def _keep(keeper: Keeper, record: Record, token: str) -> None:
    try:
        keeper.open().studies.add(
            record.sha256,
            record.packed(),
            title=record.title,
            headline=record.study.headline,
            who=st.session_state[state.WHO],
        )
        remember(token)
    except RefusalCoreError as error:
        st.session_state[SAID] = f"Not stored. {error}"


def _list(store: Store) -> None:
    found = store.studies.latest(TABLE_ROWS)
    if not found:
        return
    show.sentence("Stored studies: {n}, the latest first. Choose one to open or delete it.", n=f"{len(found):,}")
    event = st.dataframe(
        [
            {
                "when": one.when.strftime("%Y-%m-%d %H:%M UTC"),
                "who": one_line(one.who, 40),
                "files": one_line(one.title, 80),
                "answer": one.headline,
            }
            for one in found
        ],
        hide_index=True,
        key=f"study_table_{st.session_state.get(LISTED, 0)}",
        on_select="rerun",
        selection_mode="single-row",
        height=min(300, 38 + 35 * len(found)),
        alt="Stored studies with time, name, files and answer.",
    )
    chosen = [found[row].digest for row in event["selection"]["rows"] if row < len(found)]
    with st.container(horizontal=True):
        st.button("Open it", key="study_open", disabled=not chosen, on_click=_open, args=(chosen,))
        st.button("Delete it", key="study_delete", disabled=not chosen, on_click=_delete, args=(store, chosen))
    show.text(f"They are kept in {store.where}")


def _open(chosen: list[str]) -> None:
    st.session_state[OPEN] = chosen[0]


def _delete(store: Store, chosen: list[str]) -> None:
    store.studies.delete(chosen[0])
    st.session_state[LISTED] = st.session_state.get(LISTED, 0) + 1
