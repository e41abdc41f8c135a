"""What the Training runs page remembers, and how a link and a new reading set it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from refusal_core.runs.view import first_panels
from ui import state
from ui.runs import Reading
from ui.runs_link import View

# Beside the widgets: the token of what is on screen, why there is no newer one, what is to be read, a link's view.
SHOWN, PROBLEM, PENDING, LINKED = (f"runs_{name}" for name in ("shown", "problem", "pending", "linked"))
RUNS_FIRST_SHOWN = 6


def key(name: str) -> str:
    """The key of a widget in `state.RUNS`."""
    return f"runs_{name}"


def value(name: str) -> object:
    return st.session_state[key(name)]


def choose(name: str, options: Sequence, default: object = None) -> object:
    """The widget's value, `default` put in its place when it is none of `options`; to be called before the widget."""
    if value(name) not in options:
        st.session_state[key(name)] = default if default is not None else (options[0] if options else None)
    return value(name)


def open_view(reading: Reading) -> None:
    """A new reading: settings that are about the one before go back to their defaults, unless it is the same again."""
    if reading.token == st.session_state.get(SHOWN):
        return
    for name, default in state.RUNS.items():
        if name not in ("folder", "watch"):
            st.session_state[key(name)] = default
    st.session_state[key("watch")] = reading.live
    names = [run.name for run in reading.runs]
    with_curves = [run.name for run in reading.runs if run.curves]
    st.session_state[key("pick")] = (with_curves or names)[:RUNS_FIRST_SHOWN]


def take_link(reading: Reading) -> None:
    """Set the widgets as the link by which the visitor came says, once its runs are read."""
    view: View | None = st.session_state.pop(LINKED, None)
    if view is None:
        return
    names = {run.name for run in reading.runs}
    if picked := [name for name in view.runs if name in names]:
        st.session_state[key("pick")] = picked
    given = {
        "axis": view.axis, "smoothing": view.smoothing, "log": view.log, "tab": view.tab, "metric": view.metric,
        "baseline": view.baseline, "evaluation": view.evaluation, "shares": view.shares,
    }  # fmt: skip
    for name, found in given.items():
        if found:
            st.session_state[key(name)] = found
    st.session_state[key("from")], st.session_state[key("to")] = view.start, view.end
    if view.panels:
        st.session_state[key("panels")] = list(view.panels)
    if view.cell:
        st.session_state[key("true")], st.session_state[key("predicted")] = view.cell


def picked(reading: Reading) -> list:
    """The runs that are chosen, in their order."""
    chosen = set(value("pick"))
    return [run for run in reading.runs if run.name in chosen]


def picked_panels(found: Sequence) -> list:
    """The panels that are chosen, the first ones when none of the chosen is there."""
    chosen = [panel for panel in found if panel.key in value("panels")]
    return chosen or list(first_panels(found))


def view_of() -> View:
    """What a link to the present view holds."""
    cell = (value("true"), value("predicted"))
    return View(
        runs=tuple(value("pick")),
        panels=tuple(value("panels")),
        axis=value("axis") or "",
        smoothing=float(value("smoothing")),
        log=bool(value("log")),
        start=value("from"),
        end=value("to"),
        tab=value("tab") or "",
        metric=value("metric") or "",
        baseline=value("baseline") or "",
        evaluation=value("evaluation") or "",
        shares=value("shares") if value("shares") != "counts" else "",
        cell=cell if all(cell) else None,
    )
