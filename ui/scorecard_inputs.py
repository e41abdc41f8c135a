"""The inputs of the Scorecard page: sample, upload or a suite below the data roots, a draft, its text, and the run."""

from __future__ import annotations

import io
import posixpath
from dataclasses import replace

import streamlit as st

from refusal_core import limits
from refusal_core.errors import InputError, RefusalCoreError
from refusal_core.roots import DataRoots
from refusal_core.scorecard import Choice, read_suite
from refusal_core.scorecard.draft import draft
from ui import cache, inputs, scorecards, show, state
from ui import scorecard as logic
from ui.scorecards import Source, Task

# What the page remembers beside its widgets: the suite in the text area, the result on screen, the run under way, why
# there is no newer one, what is to be run, and the last word on the text.
ORIGIN, SHOWN, RUNNING, PROBLEM, PENDING, CHECKED = (
    f"scorecard_{name}" for name in ("origin", "shown", "running", "problem", "pending", "checked")
)
TEXT_PIXELS = 320


def draw(*, demo: bool) -> None:
    """The ways in, and the suite's text with the buttons that check and run it."""
    left, middle, right = st.columns(3, vertical_alignment="top")
    with left:
        _samples()
    with middle:
        st.file_uploader(
            "Upload a suite with its data files",
            key=state.SC_UPLOAD,
            accept_multiple_files=True,
            max_upload_size=inputs.most_megabytes(demo=demo),
            on_change=_take_upload,
            args=(demo,),
        )
    with right:
        _pick(demo)
    _draft(demo)
    _text(demo)


def watch(task: Task) -> None:
    """Progress of the run with a stop button; draws the page anew when it ends."""
    title, stops = f"Running {task.source.shown}", "Stopping; what is classified stays known."
    inputs.watch("Stop", task, title, lambda: "Reading the files", stops)


def load(source: Source) -> None:
    """Put a suite into the text area; it is not run."""
    st.session_state[ORIGIN], st.session_state[state.SC_TEXT] = source, source.text
    st.session_state[PROBLEM] = None
    _check(source)


def load_sample(name: str) -> None:
    """Run a sample that comes with the app."""
    if source := scorecards.sample(name):
        st.session_state[state.SC_SAMPLE] = name
        load(source)
        st.session_state[PENDING] = source


def load_file(name: str) -> None:
    """Read a suite below a data root. Raises InputError."""
    path = DataRoots.from_environment().resolve(name)
    if not path.is_file():
        raise InputError("it is a folder", where=name, fix="name the suite in it")
    limits.check_size(path.stat().st_size, limits.SUITE_BYTES, what="the suite", where=name, fix="split it")
    folder = posixpath.dirname(name)
    load(Source(scorecards.FILE, path.name, name, path.read_bytes(), folder, path))


def _samples() -> None:
    names = scorecards.sample_names()
    if not names:
        st.markdown(":gray[No sample comes with this installation.]")
        return
    st.pills(
        "Samples, run at one click",
        names,
        format_func=scorecards.sample_title,
        key=state.SC_SAMPLE,
        wrap=True,
        persist_state="session",
        on_change=_take_sample,
    )


def _take_sample() -> None:
    if name := st.session_state[state.SC_SAMPLE]:
        load_sample(name)


def _take_upload(demo: bool) -> None:
    """A suite among the uploaded files goes into the text area; data files alone are offered for a draft."""
    try:
        found = _uploads(demo)
        suites = [name for name in found if name.lower().endswith(scorecards.ALLOWED)]
        if len(suites) > 1:
            raise InputError(
                f"{len(suites)} of the files are suites", where=suites[1], fix="upload one YAML file with its data"
            )
        if suites:
            name, origin = suites[0], st.session_state.get(ORIGIN)
            if origin and (origin.kind, origin.name, origin.content) == (scorecards.UPLOAD, name, found[name]):
                return  # only data files came or went: what was typed into the text stays
            limits.check_size(len(found[name]), limits.SUITE_BYTES, what="the suite", where=name, fix="split it")
            load(Source(scorecards.UPLOAD, name, f"upload {name}", found[name]))
        elif found:
            st.session_state[state.SC_DRAFT] = next(iter(found))
    except RefusalCoreError as error:
        st.session_state[PROBLEM] = str(error)


def _uploads(demo: bool) -> dict[str, bytes]:
    """The uploaded files by name. Raises InputError when they are too large together."""
    files = st.session_state.get(state.SC_UPLOAD) or []
    total = sum(file.size for file in files)
    fix = "put them below a data root and pick the suite there"
    limits.check_size(total, inputs.most_bytes(demo=demo), what="all of it", where="the upload", fix=fix)
    if len({file.name for file in files}) < len(files):
        raise InputError("two of the files have the same name", where="the upload", fix="rename one of them")
    return {file.name: file.getvalue() for file in files}


def _pick(demo: bool) -> None:
    files = inputs.below(cache.suite_files, demo=demo)
    inputs.pick("Or pick a suite below a data root", "suite", files, state.SC_FILE, _take_file)
    if demo:
        st.markdown(":small[Demo: what you upload stays in memory, for this visit only; nothing is stored.]")


def _take_file() -> None:
    if name := st.session_state[state.SC_FILE]:
        try:
            load_file(name)
        except (RefusalCoreError, OSError) as error:
            st.session_state[PROBLEM] = str(error)


def _draft(demo: bool) -> None:
    """A first suite from a predictions file that is uploaded or below a data root."""
    uploaded = [file.name for file in st.session_state.get(state.SC_UPLOAD) or []]
    only_data = bool(uploaded) and not any(name.lower().endswith(scorecards.ALLOWED) for name in uploaded)
    with st.expander("Draft a suite from a predictions file", expanded=only_data):
        st.markdown(
            "Thresholds are what the file's own numbers promise today: tighten them, and add checkpoints to compare."
        )
        options = [name for name in uploaded if not name.lower().endswith(scorecards.ALLOWED)]
        options += [name for name in inputs.below(cache.exchange_files, demo=demo) if name.lower().endswith(".jsonl")]
        if st.session_state[state.SC_DRAFT] not in options:
            st.session_state[state.SC_DRAFT] = options[0] if options else None
        left, right = st.columns([4, 1], vertical_alignment="bottom")
        left.selectbox(
            "Predictions file",
            options,
            key=state.SC_DRAFT,
            persist_state="session",
            placeholder="Choose a file" if options else "Upload a predictions.jsonl, or put one below a data root",
            disabled=not options,
        )
        right.button(
            "Draft", key="scorecard_draft_go", disabled=not options, on_click=_take_draft, args=(demo,), width="stretch"
        )


def _take_draft(demo: bool) -> None:
    name = st.session_state[state.SC_DRAFT]
    try:
        uploads = _uploads(demo)
        file = io.BytesIO(uploads[name]) if name in uploads else DataRoots.from_environment().resolve(name)
        text = draft(file, name)
        load(Source(scorecards.DRAFT, "suite.yaml", f"draft of {name}", text.encode()))
    except (RefusalCoreError, OSError) as error:
        st.session_state[PROBLEM] = str(error)


def _text(demo: bool) -> None:
    """The suite's text, whether it is valid, and which part of it is run."""
    origin: Source | None = st.session_state.get(ORIGIN)
    opened = bool(origin) and not st.session_state.get(SHOWN)
    with st.expander("The suite: read, edit, check, run", expanded=opened), st.form("scorecard", border=False):
        if origin:
            show.text(origin.shown)
        st.text_area(
            "Text of the suite (YAML)",
            key=state.SC_TEXT,
            persist_state="session",
            height=TEXT_PIXELS,
            placeholder="version: 1 …",
        )
        columns, baseline, only = st.columns(3)
        box = {"persist_state": "session", "max_chars": limits.NAME_CHARACTERS}
        columns.text_input("Only these checkpoints", key=state.SC_COLUMNS, placeholder="all; cand-* for some", **box)
        baseline.text_input("Another baseline", key=state.SC_BASELINE, placeholder="the suite's own", **box)
        only.text_input("Only this test", key=state.SC_ONLY, placeholder="all; test/assertion for one", **box)
        st.checkbox("Keep the result in the history of the suite", key=state.SC_KEEP, persist_state="session")
        with st.container(horizontal=True):
            st.form_submit_button("**Run**", on_click=_press_run, args=(demo,))
            st.form_submit_button("Check", on_click=_press_check)
        if said := st.session_state.get(CHECKED):
            show.text(said)


def _current() -> Source:
    """The suite as it stands in the boxes."""
    text = st.session_state[state.SC_TEXT]
    if not text.strip():
        raise InputError("there is no suite yet", fix="pick, upload or draft one, or write it into the box")
    origin = st.session_state.get(ORIGIN) or Source(scorecards.TYPED, "suite.yaml", "a suite typed here", b"")
    return origin.with_text(text)


def _check(source: Source) -> bool:
    try:
        st.session_state[CHECKED] = logic.checked(read_suite(source.content, source.name))
    except InputError as error:
        st.session_state[CHECKED], st.session_state[PROBLEM] = None, str(error)
        return False
    return True


def _press_check() -> None:
    st.session_state[PROBLEM] = None
    try:
        _check(_current())
    except InputError as error:
        st.session_state[CHECKED], st.session_state[PROBLEM] = None, str(error)


def _press_run(demo: bool) -> None:
    """Have the suite in the box run, with the files that are uploaded now."""
    st.session_state[PROBLEM] = None
    try:
        source = _current()
        if not _check(source):
            return
        given = [st.session_state[key].strip() or None for key in (state.SC_COLUMNS, state.SC_BASELINE, state.SC_ONLY)]
        st.session_state[PENDING] = replace(source, choice=Choice(*given), uploads=_uploads(demo))
    except InputError as error:
        st.session_state[PROBLEM] = str(error)
