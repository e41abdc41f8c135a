"""The answer of the Training runs page, what does not add up, and the curves that carry it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from refusal_core.plots import runs as plots
from refusal_core.plots import theme
from refusal_core.runs import view
from refusal_core.runs.model import Finding, Run
from ui import show
from ui.runs import Reading
from ui.runs_link import MOST_SMOOTHING
from ui.runs_state import choose, key, picked_panels, value

FINDINGS_SHOWN, PROBLEMS_SHOWN = 3, 50
FIRST = ("diverged", "contradiction", "suspicious_copy", "constant_metric", "one_class_predicted", "overfitting")
LAST = ("missing_evaluation", "resumed", "epoch_mismatch", "empty_history", "alert")
RUNS_OFFERED, BESIDE_SHOWN = 24, 3
ZOOMABLE = {
    "displayModeBar": False,
    "displaylogo": False,
    "doubleClick": "reset",
    "scrollZoom": False,
    "showTips": False,
}


def draw_answer(reading: Reading) -> None:
    """The answer in the largest type, then every finding, then what was not read."""
    show.headline("{answer}", answer=reading.headline.sentence)
    checkpoints = sum(len(run.checkpoints) for run in reading.runs)
    points = sum(len(curve) for run in reading.runs for curve in run.curves)
    counted = (
        _count(len(reading.runs), "run"), _count(checkpoints, "checkpoint"), _count(points, "logged value"),
        f"read in {reading.seconds:.1f} s",
    )  # fmt: skip
    show.text(f"{reading.source.name}: {', '.join(counted)}")
    beside = reading.headline.beside
    for sentence in beside[:BESIDE_SHOWN]:
        show.text(sentence)
    if len(beside) > BESIDE_SHOWN:
        with st.expander("The answer of each run"):
            for sentence in beside[BESIDE_SHOWN:]:
                show.text(sentence)


def draw_findings(reading: Reading) -> None:
    """What does not add up, the first ones open."""
    findings = sorted(reading.result.findings, key=_weight)
    named = len(reading.runs) > 1
    for finding in findings[:FINDINGS_SHOWN]:
        _finding(finding, named=named)
    if len(findings) > FINDINGS_SHOWN:
        with st.expander("More findings"):
            for finding in findings[FINDINGS_SHOWN:]:
                _finding(finding, named=named)
    if problems := reading.problems:
        with st.expander("Files that were not read, or not as they are"):
            for problem in problems[:PROBLEMS_SHOWN]:
                show.text(f"{problem.file}: {problem.what}" + (f"; {problem.fix}" if problem.fix else ""))
            if len(problems) > PROBLEMS_SHOWN:
                show.sentence("{n} more are in the JSON.", n=f"{len(problems) - PROBLEMS_SHOWN:,}")


def pick_runs(reading: Reading) -> None:
    """Which runs the curves are of, when there are several; of many those whose names hold a text are offered."""
    names = [run.name for run in reading.runs]
    if len(names) > RUNS_OFFERED:
        st.text_input("Offer runs whose name holds", key=key("filter"), persist_state="session", width=300)
        wanted = str(value("filter")).strip().casefold()
        offered = [name for name in names if wanted in name.casefold() and name not in value("pick")]
        names = [name for name in names if name in value("pick") or name in offered[:RUNS_OFFERED]]
        if len(offered) > RUNS_OFFERED:
            show.sentence(":small[:gray[The first {n} of {all} runs are offered.]]", n=RUNS_OFFERED, all=len(offered))
    st.session_state[key("pick")] = [name for name in value("pick") if name in names] or names[:1]
    if len(names) > 1:
        labels = dict(zip(names, map(show.plain, names), strict=True))
        st.pills(
            "Runs",
            names,
            format_func=labels.get,
            selection_mode="multi",
            key=key("pick"),
            persist_state="session",
            wrap=True,
        )


def draw_curves(reading: Reading, runs: Sequence[Run]) -> None:
    """One figure for each chosen metric, two side by side, under one line of controls."""
    found = view.panels(runs)
    axes = view.axes(runs)
    if not found or not axes:
        st.markdown(":gray[These files hold no values by step, epoch or time, so there are no curves.]")
        return
    _controls(found, axes)
    chosen = picked_panels(found)
    smoothing, log, axis = float(value("smoothing")), bool(value("log")), value("axis")
    between = (value("from"), value("to"))
    columns = st.columns(2, gap="medium") if len(chosen) > 1 else [st.container()]
    for place, panel in enumerate(chosen):
        asked = (tuple(run.name for run in runs), panel, axis, smoothing, log, between)
        options = {"axis": axis, "smoothing": smoothing, "log": log, "between": between}
        drawing = reading.once(asked, lambda p=panel, o=options: view.draw(runs, p, **o))
        with columns[place % len(columns)]:
            if drawing.lines:
                zoomable(plots.curves(drawing, log=log, between=between), key=f"runs_curve_{panel.key}")
            for sentence in drawing.left_out:
                show.text(f"{panel.title}: {sentence}")
    st.markdown(
        ":small[:gray[Drag in a figure to zoom, double-click for the whole; From and To do the same for all of them. "
        "× is a value that is no number, ▲ an infinite one; a faint line is raw, or was replaced by a resume.]]"
    )


def _controls(found: Sequence[view.Panel], axes: Sequence[view.XAxis]) -> None:
    titles = {panel.key: panel.title for panel in found}
    st.session_state[key("panels")] = [panel.key for panel in picked_panels(found)]
    choose("axis", axes)
    st.pills(
        "Metrics",
        list(titles),
        format_func=lambda name: show.plain(titles[name]),
        selection_mode="multi",
        key=key("panels"),
        persist_state="session",
        wrap=True,
    )
    axis, start, end, smooth, log = st.columns([5, 3, 3, 3, 3], vertical_alignment="bottom")
    ends = {"step": 1.0, "format": "%g", "persist_state": "session", "placeholder": "all"}
    start.number_input("From", value=None, key=key("from"), **ends)
    end.number_input("To", value=None, key=key("to"), **ends)
    axis.segmented_control("Along", axes, key=key("axis"), persist_state="session", required=True)
    smooth.number_input(
        "Smoothing", 0.0, MOST_SMOOTHING, step=0.1, format="%g", key=key("smoothing"), persist_state="session"
    )
    log.toggle("Log scale", key=key("log"), persist_state="session")


def zoomable(drawn: tuple, *, key: str) -> None:
    """A figure that can be zoomed, with its text for screen readers."""
    chart, alt = drawn
    theme.ink(chart, dark=st.context.theme.type == "dark")
    st.plotly_chart(chart, theme="streamlit", key=key, config=ZOOMABLE, alt=alt)


def _weight(finding: Finding) -> int:
    """What a decision hangs on first, what only explains a file last."""
    kind = finding.kind
    return FIRST.index(kind) if kind in FIRST else len(FIRST) + (LAST.index(kind) + 1 if kind in LAST else 0)


def _finding(finding: Finding, *, named: bool) -> None:
    with st.container(border=True, gap="xsmall"):
        show.sentence("**! {kind}**", kind=finding.kind.replace("_", " "))
        where = f"{finding.run}, {finding.where}" if named else finding.where
        show.text(f"{where}: found {finding.found}; expected {finding.expected}.")
        if finding.fix:
            show.text(f"To do: {finding.fix}.")


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"
