"""The inputs of the Batch view: sample, upload or a file below the data roots, its columns, and the work under way."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from refusal_core import limits
from refusal_core.errors import RefusalCoreError
from refusal_core.exchange_files import columns_of
from refusal_core.exchange_formats.keys import Keys, likely_columns
from refusal_core.roots import DataRoots
from refusal_core.samples import BATCH_SAMPLE, batch_sample
from ui import batches, cache, inputs, show, state
from ui.batches import Source, Task

# What the view remembers beside its widgets: the batch on screen, the one under way, why there is no newer one, what
# is to be started, which of upload and picked file came last, and the columns of that file.
SHOWN, RUNNING, PROBLEM, PENDING, LATEST, COLUMNS = (
    f"batch_{name}" for name in ("shown", "running", "problem", "pending", "latest", "columns_found")
)
OURS = {"prompt": "Prompt", "response": "Response", "label": "Label", "id": "Id", "messages": "Chat"}


@dataclass(frozen=True)
class _Offered:
    """The file that is uploaded or picked, not read yet."""

    kind: str
    name: str
    stream: io.BytesIO | Path
    size: int
    key: tuple[str, ...]  # another key means another file

    def source(self, columns: Mapping[str, str], every_turn: bool) -> Source:
        content = self.stream if isinstance(self.stream, Path) else self.stream.getvalue()
        return Source(self.kind, self.name, content, columns, every_turn)


def sample_source() -> Source:
    return Source(batches.SAMPLE, BATCH_SAMPLE, batch_sample())


def draw(*, demo: bool) -> None:
    """The three ways in, and for a file the names of its columns with the button that starts the work."""
    left, middle, right = st.columns([2, 4, 4], vertical_alignment="top")
    with left:
        st.button("**Use the sample**", on_click=_ask, args=(sample_source,), key="batch_sample")
        st.markdown(":small[:gray[Labelled exchanges that the project wrote, in three domains]]")
    with middle:
        st.file_uploader(
            "Upload JSONL, CSV, Parquet, or chats",
            key=state.BATCH_UPLOAD,
            max_upload_size=inputs.most_megabytes(demo=demo),
            on_change=_came,
            args=(batches.UPLOAD,),
        )
    with right:
        _pick(demo=demo)
    try:
        if offered := _offered(demo=demo):
            _map_columns(offered)
    except RefusalCoreError as error:
        show.problem("This file cannot be scored", str(error))


def watch(task: Task) -> None:
    """Progress of the work under way with a stop button; draws the page anew when it ends."""
    title = f"Scoring {task.name} with {task.choice.shown}"
    stops = "Stopping; what is finished stays."
    inputs.watch("Stop and keep what is done", task, title, lambda: "Reading the file", stops)


def _pick(*, demo: bool) -> None:
    files = inputs.below(cache.exchange_files, demo=demo)
    inputs.pick("Or pick a file below a data root", "file", files, state.BATCH_FILE, _came, batches.FILE)
    if demo:
        show.sentence(
            ":small[Demo: at most {rows} rows and {size}; what you upload stays in memory, for this visit only.]",
            rows=f"{limits.DEMO_BATCH_ROWS:,}",
            size=limits.show_bytes(limits.DEMO_UPLOAD_BYTES),
        )


def _came(kind: str) -> None:
    st.session_state[LATEST] = kind


def _offered(*, demo: bool) -> _Offered | None:
    upload, picked = st.session_state.get(state.BATCH_UPLOAD), st.session_state[state.BATCH_FILE]
    latest = st.session_state.get(LATEST)
    if upload is not None and (latest != batches.FILE or picked is None):
        inputs.check_upload(upload, demo=demo)
        return _Offered(batches.UPLOAD, upload.name, upload, upload.size, (upload.file_id,))
    if picked is None or demo:
        return None
    path = DataRoots.from_environment().resolve(picked)
    status = path.stat()
    return _Offered(batches.FILE, picked, path, status.st_size, (str(path), str(status.st_mtime_ns)))


def _map_columns(offered: _Offered) -> None:
    known = st.session_state.get(COLUMNS)
    if known is None or known[0] != offered.key:
        known = (offered.key, columns_of(offered.stream, offered.name))
        st.session_state[COLUMNS] = known
    found = known[1]
    guess = likely_columns(found)
    ready = Keys().held_by(found)
    with st.container(border=True, gap="small"):
        show.text(f"{offered.name}, {limits.show_bytes(offered.size)}")
        if not ready:
            st.markdown("Its columns have other names than `prompt` and `response`: say which is which.")
        with st.expander("Columns", expanded=not ready):
            chosen = _choosers(offered, found, guess)
            every_turn = "messages" in chosen and st.checkbox(
                "Classify every assistant turn, not only the last", key=state.BATCH_EVERY_TURN, persist_state="session"
            )
        if not ({"prompt", "response"} <= chosen.keys() or "messages" in chosen):
            st.markdown("Choose a prompt and a response column, or one with chats.")
            return
        Keys.of(chosen)
        st.button(
            "**Classify the file**",
            key="batch_go",
            on_click=_ask,
            args=(lambda: offered.source(chosen, bool(every_turn)),),
        )


def _choosers(offered: _Offered, found: list[str], guess: Mapping[str, str]) -> dict[str, str]:
    """A box for each of our names; a chat column goes before prompt and response."""
    chosen = {}
    for place, ours in zip(st.columns(len(OURS)), OURS, strict=True):
        value = place.selectbox(
            OURS[ours],
            found,
            index=found.index(guess[ours]) if ours in guess else None,
            placeholder="none",
            key=f"batch_map_{ours}_{'_'.join(offered.key)}",
        )
        if value is not None:
            chosen[ours] = value
    if "messages" in chosen:
        chosen = {ours: key for ours, key in chosen.items() if ours not in ("prompt", "response")}
    return chosen


def _ask(make: Callable[[], Source]) -> None:
    """Have the source that `make` gives scored at the next run."""
    st.session_state[PENDING] = make()


def ask_again(task: Task) -> None:
    """Have the rows of a batch scored by the checkpoint that is chosen now."""
    st.session_state[PENDING] = task.again()
