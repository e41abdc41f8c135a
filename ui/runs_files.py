"""Other results, downloads, the command and the link of the Training runs page."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from refusal_core.limits import TABLE_ROWS
from refusal_core.plots.runs_report import runs_report
from refusal_core.runs.tables import ResultsTable
from ui import runs as logic
from ui import runs_link, show, state
from ui.runs import UPLOAD, Reading
from ui.runs_state import view_of


def results_of(reading: Reading) -> list[ResultsTable]:
    """Tables of other tools, of all runs and checkpoints."""

    def tables() -> Iterator[object]:
        for run in reading.runs:
            yield from run.tables
            for checkpoint in run.checkpoints:
                yield from checkpoint.tables

    return [table for table in tables() if isinstance(table, ResultsTable)]


def draw_results(reading: Reading) -> None:
    """Metric, value, n and status of promptfoo, Inspect, lm-eval and home-made results, and of evaluations by file."""
    found = results_of(reading)
    if not found:
        st.markdown("No results of promptfoo, Inspect, lm-eval or another tool are among these files.")
    for place, table in enumerate(found):
        show.text(f"{table.file}: {table.tool}, {table.status}" + (f", {table.name}" if table.name else ""))
        if table.facts:
            show.text("  ".join(f"{name}: {fact}" for name, fact in list(table.facts.items())[:8]))
        st.dataframe(
            [
                {
                    "of": row.group,
                    "metric": row.metric,
                    "value": "–" if row.value is None else f"{row.value:.4f}",
                    "standard error": "" if row.error is None else f"{row.error:.4f}",
                    "n": row.n,
                    "status": row.status,
                }
                for row in table.rows[:TABLE_ROWS]
            ],
            hide_index=True,
            key=f"runs_results_{place}",
            alt=f"{len(table.rows):,} results of {table.tool}, with value, n and status.",
        )
        if len(table.rows) > TABLE_ROWS:
            show.sentence("The first {n} of {all} are shown.", n=TABLE_ROWS, all=f"{len(table.rows):,}")


def draw_downloads(reading: Reading) -> None:
    """Three files, made when they are clicked, and the command that gives the JSON."""
    with st.container(horizontal=True):
        show.download("Download JSON", lambda: logic.as_json(reading), "runs.json", key="runs_json")
        show.download("Download CSV of the curves", lambda: logic.as_csv(reading), "curves.csv", key="runs_csv")
        show.download(
            "Download HTML report",
            lambda: runs_report(reading.result, reading.runs, name=reading.source.name, command=logic.command(reading)),
            "runs.html",
            key="runs_html",
        )
    if reading.source.folder is None:
        st.markdown("The JSON is what this command prints, with the uploaded files in a folder:")
    else:
        st.markdown("The JSON is the same as this command prints, in the app’s folder:")
    show.code(logic.command(reading), "bash")


def draw_link(reading: Reading, *, demo: bool) -> None:
    """The address that restores the view."""
    if reading.source.kind == UPLOAD and demo:
        st.markdown("Files that were uploaded to the demo have no link: nobody else is to see them.")
        return
    if reading.source.kind == UPLOAD:
        st.markdown("Whoever has this link sees the uploaded files, for as long as this server holds them in memory:")
    else:
        st.markdown("This link shows the same view:")
    show.code(state.address(params(reading), st.context.url))


def params(reading: Reading) -> dict[str, str]:
    """The query parameters of the present view."""
    return runs_link.to_params(reading.token, view_of())
