"""The inputs of the Training runs page: a sample, uploads, or a folder below a data root; and following a folder."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from refusal_core import limits
from refusal_core.errors import RefusalCoreError
from refusal_core.jobs import Job, Progress
from refusal_core.roots import DataRoots
from refusal_core.runs.files import fingerprint
from refusal_core.runs.samples import samples
from ui import cache, inputs, runs, show
from ui.runs import Reading, Source
from ui.runs_state import PENDING, PROBLEM, SHOWN, key, open_view

FOLLOW_SECONDS = 5.0
QUICK_SECONDS = 0.4  # reading that is shorter needs no progress


def draw(*, demo: bool) -> None:
    """The three ways in."""
    left, middle, right = st.columns([3, 4, 4], vertical_alignment="top")
    with left:
        st.markdown(":small[Samples]")
        there = {sample.key for sample in samples()}
        if "starter" in there:
            st.button("**The starter’s training**", on_click=_ask_sample, args=("starter",), key="runs_sample_starter")
        if "card" in there:
            st.button("**A published card**", on_click=_ask_sample, args=("card",), key="runs_sample_card")
    with middle:
        st.file_uploader(
            "Upload files of a run, or a zip of its folder",
            accept_multiple_files=True,
            key="runs_upload",
            max_upload_size=inputs.most_megabytes(demo=demo),
            on_change=_uploaded,
            args=(demo,),
        )
    with right:
        _pick(demo=demo)


def read_pending(*, demo: bool) -> None:
    """Read what was asked for. It stays pending when a click interrupts; a failure leaves the last reading as it is."""
    source: Source | None = st.session_state.get(PENDING)
    if source is None:
        return
    place = st.empty()

    def progress(now: Progress) -> None:
        if now.seconds > QUICK_SECONDS:
            place.progress(now.done / now.total if now.total else 0.0, f"Reading: {show.plain(str(now))}")

    try:
        reading = runs.read(source, Job(show=progress))
        cache.readings().put(reading)
        open_view(reading)
        st.session_state[SHOWN], st.session_state[PROBLEM] = reading.token, None
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = str(error)
    except MemoryError:
        st.session_state[PROBLEM] = "There is not enough memory to read these runs."
    st.session_state[PENDING] = None
    place.empty()


def arrive(token: str, *, demo: bool) -> None:
    """Have what a link names read, or shown when it is in memory."""
    found = cache.readings().get(token)
    if found and not (demo and not token.startswith(f"{runs.SAMPLE}:")):
        open_view(found)
        st.session_state[SHOWN] = token
        return
    kind, _, name = token.partition(":")
    try:
        if kind == runs.SAMPLE and (source := runs.sample_source(name)):
            st.session_state[PENDING] = source
        elif kind == runs.FOLDER and not demo:
            st.session_state[PENDING] = runs.folder_source(name, DataRoots.from_environment())
        else:
            st.session_state[PROBLEM] = "The runs of this link are no longer in memory: upload their files again."
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = str(error)


def follow(reading: Reading) -> None:
    """A switch that reads the folder again whenever it changes."""
    if reading.source.kind != runs.FOLDER:
        return
    if st.toggle("Follow this folder while it is written", key=key("watch"), persist_state="session"):
        st.fragment(_look, run_every=FOLLOW_SECONDS)(reading)


def _look(reading: Reading) -> None:
    try:
        now = fingerprint(reading.source.folder)
    except RefusalCoreError as error:
        show.note(str(error))
        return
    if now != reading.stamp:
        st.session_state[PENDING] = reading.source
        st.rerun()
    show.sentence(":small[:gray[Looked at every {n} seconds; no change since it was read.]]", n=int(FOLLOW_SECONDS))


def _pick(*, demo: bool) -> None:
    names = inputs.below(cache.run_folders, demo=demo)
    inputs.pick("Or pick a folder below a data root", "folder", names, key("folder"), _picked)
    if demo:
        show.sentence(
            ":small[Demo: at most {size}; what you upload stays in memory, for this visit only.]",
            size=limits.show_bytes(limits.DEMO_UPLOAD_BYTES),
        )


def _picked() -> None:
    if name := st.session_state[key("folder")]:
        _ask(lambda: runs.folder_source(name, DataRoots.from_environment()))


def _uploaded(demo: bool) -> None:
    files = st.session_state.get("runs_upload") or []
    if not files:
        return

    def source() -> Source:
        size = sum(file.size for file in files)
        fix = "put the folder below a data root and pick it there"
        limits.check_size(size, inputs.most_bytes(demo=demo), what="all of it", where=files[0].name, fix=fix)
        return runs.upload_source([(file.name, file.getvalue()) for file in files])

    _ask(source)


def _ask_sample(name: str) -> None:
    _ask(lambda: runs.sample_source(name))


def _ask(make: Callable[[], Source | None]) -> None:
    """Have the source that `make` gives read at the next run."""
    try:
        st.session_state[PENDING] = make()
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = str(error)
