"""Parts of the inputs that several pages have: files below a data root, sizes of uploads, the work under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from refusal_core import limits
from refusal_core.errors import InputError
from refusal_core.roots import DataRoots
from ui import show
from ui.shelf import Task

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

POLL_SECONDS = 1.0
QUICK_SECONDS = 0.6  # work that is shorter needs no progress


def most_bytes(*, demo: bool, in_demo: int = limits.DEMO_UPLOAD_BYTES) -> int:
    """How large an upload may be."""
    return in_demo if demo else limits.UPLOAD_BYTES


def most_megabytes(*, demo: bool, in_demo: int = limits.DEMO_UPLOAD_BYTES) -> int:
    """The same as Streamlit's boxes take it."""
    return most_bytes(demo=demo, in_demo=in_demo) // limits.MB


def check_upload(file: UploadedFile, *, demo: bool, in_demo: int = limits.DEMO_UPLOAD_BYTES) -> None:
    """Raise InputError for one that is too large, whatever its box let pass."""
    most, fix = most_bytes(demo=demo, in_demo=in_demo), "put it below a data root and pick it there"
    limits.check_size(file.size, most, what="the file", where=file.name, fix=fix)


def below(listing: Callable[[DataRoots], list[str]], *, demo: bool) -> list[str]:
    """What `listing` finds below the data roots; nothing in the demo."""
    try:
        return [] if demo else listing(DataRoots.from_environment())
    except InputError:
        return []  # the sidebar says why


def pick(label: str, what: str, names: Sequence[str], key: str, on_change: Callable, *args: object) -> None:
    """A list of what lies below the data roots; `what` is one of them."""
    if st.session_state[key] not in names:
        st.session_state[key] = None
    st.selectbox(
        label,
        names,
        key=key,
        persist_state="session",
        placeholder=f"Choose a {what}" if names else f"No {what} there",
        disabled=not names,
        on_change=on_change,
        args=args,
    )


def watch(button: str, task: Task, title: str, begins: Callable[[], str], stops: str) -> None:
    """Progress of the work under way with a button that stops it; draws the page anew when it ends.

    `begins` says what it does while no progress is known, `stops` what becomes of what is done.
    """
    if not task.watch(QUICK_SECONDS):
        st.fragment(_progress, run_every=POLL_SECONDS)(button, task, title, begins, stops)


def _progress(button: str, task: Task, title: str, begins: Callable[[], str], stops: str) -> None:
    if task.watch():
        st.rerun()
    now = task.progress
    with st.container(border=True, gap="xsmall"):
        show.text(title)
        share = min(1.0, now.done / now.total) if now and now.total else 0.0
        st.progress(share, show.plain(begins() if now is None else now))
        if task.stopping:
            show.sentence("{stops}", stops=stops)
        else:
            st.button(button, on_click=task.stop, key=f"stop_{task.token}")
