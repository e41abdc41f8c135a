"""The inputs of the Direction study: files, how they are read, settings, the estimate, and the work under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from refusal_core import limits
from refusal_core.activations.peek import Peek
from refusal_core.activations.reading import Reading
from refusal_core.direction.meaning import MEANINGS
from refusal_core.direction.planning import estimated_seconds
from refusal_core.direction.result import Settings
from refusal_core.errors import RefusalCoreError
from refusal_core.jobs import show_seconds
from ui import inputs, show, state, study_files, study_reading
from ui.studies import Task
from ui.study import Asked, Offered

TWO, ONE = "two", "one"
WAYS = {TWO: "A training and a test file", ONE: "One pooled file"}
MEANT = "study_meant"  # the files whose own word on label 1 was taken over
TITLES = {"model": "Model and revision", "layer": "Layer, and how it is counted", "pooling": "Token position"}


def draw(ask: Callable[[Asked], None], ask_sample: Callable[[], None], *, demo: bool) -> Asked | None:
    """All ways in, and for sound files the settings with the button that runs; what is offered now, if it is sound."""
    with st.container(border=True, gap="small"):
        left, right = st.columns([3, 1], vertical_alignment="bottom")
        way = left.segmented_control(
            "What to study",
            list(WAYS),
            format_func=WAYS.get,
            key=state.STUDY_WAY,
            persist_state="session",
            required=True,
            label_visibility="collapsed",
        )
        right.button("**Use the sample**", on_click=ask_sample, key="study_sample", width="stretch")
        roles = ("train", "test") if way == TWO else ("pool",)
        try:
            found = []
            for place, role in zip(st.columns(2), roles, strict=False):
                with place:
                    found.append(study_files.draw(role, demo=demo))
            if demo:
                show.sentence(
                    ":small[Demo: at most {size} a file; what you upload stays in memory, for this visit only.]",
                    size=limits.show_bytes(limits.DEMO_STUDY_BYTES),
                )
            if None in found:
                return None
            return _draw_settings(tuple(found), ask, demo=demo)
        except RefusalCoreError as error:
            show.problem("These files cannot be studied", str(error))
            return None


def watch(task: Task) -> None:
    """Progress of the work under way with a stop button; draws the page anew when it ends."""

    def begins() -> str:
        return "Waiting for another study" if task.waiting else "Reading"

    inputs.watch("Stop", task, f"Studying {task.title}", begins, "Stopping.")


def _draw_settings(files: tuple[Offered, ...], ask: Callable[[Asked], None], *, demo: bool) -> Asked | None:
    suffix = study_files.suffix(files)
    peeks = [study_files.looked_into(file) for file in files]
    with st.container(gap="xsmall"):
        for file, peek in zip(files, peeks, strict=True):
            study_files.draw_line(file, peek, peek.guess().get("activations"))
    reading = study_reading.draw(peeks, suffix, pooled=len(files) == 1)
    if reading is None:
        return None
    _take_meaning(peeks, suffix)
    means = st.radio(
        "Label 1 says that",
        list(MEANINGS),
        format_func=lambda key: MEANINGS[key].title,
        key=state.STUDY_MEANS,
        persist_state="session",
        horizontal=True,
    )
    described = _extraction(peeks, reading, suffix)
    most = limits.DEMO_STUDY_REPEATS if demo else limits.STUDY_REPEATS
    repeats_place, seed_place, go = st.columns([1, 1, 2], vertical_alignment="bottom")
    repeats = repeats_place.number_input(
        "Shuffles", 1, most, step=100, key=state.STUDY_REPEATS, persist_state="session"
    )
    seed = seed_place.number_input("Seed", 0, 2**53 - 1, key=state.STUDY_SEED, persist_state="session")
    settings = Settings(repeats=repeats, seed=seed, label_means=means, **described)
    asked = Asked(files, reading, settings)
    if go.button("**Run the study**", key="study_go", width="stretch"):
        ask(asked)  # here and not in a callback, which would get what was asked before the last change
    show.sentence(":small[:gray[{words}]]", words=_estimate(files, peeks, reading, settings))
    return asked


def _take_meaning(peeks: Sequence[Peek], suffix: str) -> None:
    """What the files say that label 1 means is chosen when they come; a later choice stays."""
    if st.session_state.get(MEANT) == suffix:
        return
    st.session_state[MEANT] = suffix
    said = next((said for peek in peeks if (said := peek.metadata().get("label_means")) in MEANINGS), None)
    if said:
        st.session_state[state.STUDY_MEANS] = said


def _extraction(peeks: Sequence[Peek], reading: Reading, suffix: str) -> dict[str, str | None]:
    """What the visitor says of the export, filled from the first file that says it."""
    stated: dict[str, str] = {}
    for peek in reversed(peeks):
        stated |= peek.metadata()
    activations = reading.columns.get("activations", "activations")
    if reading.layer_index is not None and (names := peeks[0].layer_names(activations)):
        stated["layer"] = names[reading.layer_index]
    found = {}
    for place, name in zip(st.columns(len(TITLES)), TITLES, strict=True):
        given = place.text_input(
            TITLES[name],
            stated.get(name, ""),
            max_chars=limits.NAME_CHARACTERS,
            placeholder="not stated",
            key=f"study_{name}_{suffix}_{reading.layer_index}",
        )
        found[name] = given.strip() or None
    return found


def _estimate(files: Sequence[Offered], peeks: Sequence[Peek], reading: Reading, settings: Settings) -> str:
    shapes = []
    for peek in peeks:
        shape = peek.members[reading.columns.get("activations", "activations")].shape
        shapes.append((shape[0], shape[-1]))
    if len(shapes) == 1 and (reading.held_out or reading.held_out_share):
        n, d = shapes[0]
        test = max(1, round(n * (reading.held_out_share or 0.3)))
        shapes = [(n - test, d), (test, d)]
    seconds = estimated_seconds(
        shapes[0],
        shapes[1] if len(shapes) > 1 else None,
        repeats=settings.repeats,
        split_repeats=settings.split_repeats,
        shared=True,
        size=sum(file.size for file in files),
    )
    about = "under a second" if seconds < 1 else f"about {show_seconds(seconds)}"
    if len(shapes) == 1:
        return f"{about} on this machine; one file without a part held out is not shuffled"
    least = 1 / (settings.repeats + 1)
    return f"{about} on this machine; the smallest p-value of {settings.repeats:,} shuffles is {least:.2g}"
