"""Figures of the scorecard: rows -> (figure, text for screen readers)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from refusal_core.labels import OTHER_COLOUR
from refusal_core.plots import theme
from refusal_core.plots.climb import ACCENT
from refusal_core.scorecard.report import short_value
from refusal_core.scorecard.result import Row
from refusal_core.scorecard.verdicts import SYMBOL

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

DRAWN = 16  # checkpoints of one figure
ROW_PIXELS, AXIS_PIXELS, TOP_PIXELS, TREND_PIXELS = 34, 60, 26, 300
NAME_CHARACTERS = 20
MARKER = {"pass": "circle", "fail": "x", "inconclusive": "diamond-open"}  # verdicts by shape


def bound_of(row: Row) -> float | None:
    """What the value is held against: the threshold, or the margin of a change."""
    return row.threshold if row.threshold is not None else row.margin


def needs(row: Row) -> str:
    """The bound in words, "" where there is none."""
    bound = bound_of(row)
    if bound is None:
        return ""
    words = f"at {'least' if row.comparison == '>=' else 'most'} {bound:.4g}"
    if row.type.startswith("not-") and row.type not in ("not-equals", "not-label-in", "not-is-refusal"):
        words = f"not {words}"
    return f"change {words}" if row.margin is not None else words


def against_bound(chosen: Row, rows: Sequence[Row]) -> tuple[Figure, str] | None:
    """The interval of each checkpoint against its bound, the chosen one in colour; None without a number to draw.

    `rows` are those of one assertion, `chosen` among them.
    """
    from plotly import graph_objects as go

    drawn = [row for row in rows if row.value is not None and bound_of(row) is not None]
    if chosen not in drawn:
        return None
    if len(drawn) > DRAWN:
        at = max(0, min(drawn.index(chosen) - DRAWN // 2, len(drawn) - DRAWN))
        drawn = drawn[at : at + DRAWN]
    figure = go.Figure()
    for place, row in enumerate(drawn):
        colour, bound = (ACCENT if row is chosen else OTHER_COLOUR), bound_of(row)
        rim = {"color": OTHER_COLOUR, "width": 1.5, "dash": "dash"}
        figure.add_scatter(x=[bound, bound], y=[place - 0.5, place + 0.5], mode="lines", line=rim)
        if row.interval is not None:
            ends = [row.interval.low, row.interval.high]
            figure.add_scatter(x=ends, y=[place, place], mode="lines", line={"color": colour, "width": 3})
        marker = {"color": colour, "size": 10, "symbol": MARKER.get(row.verdict, "circle")}
        figure.add_scatter(x=[row.value], y=[place], mode="markers", marker=marker)
    theme.dress(figure, height=AXIS_PIXELS + TOP_PIXELS + ROW_PIXELS * len(drawn))
    figure.update_layout(margin={"t": TOP_PIXELS})
    place = {"x": bound_of(chosen), "y": -0.5, "yanchor": "bottom", "showarrow": False}
    figure.add_annotation(text=theme.plain(f"needs {needs(chosen)}"), xanchor=_anchor(figure, chosen), **place)
    figure.update_xaxes(title=theme.plain(chosen.subject or chosen.assertion, 80), zeroline=chosen.margin is not None)
    names = [f"{SYMBOL[row.verdict]} {theme.plain(row.checkpoint, NAME_CHARACTERS)}  " for row in drawn]
    rim = [len(drawn) - 0.5, -0.5]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, range=rim, showgrid=False)
    listed = "; ".join(f"{row.checkpoint} {row.verdict} {short_value(row)}" for row in drawn)
    return figure, f"Intervals of {chosen.subject or chosen.assertion}, which needs {needs(chosen)}: {listed}."


def trend(points: Sequence[tuple[str, Row]]) -> tuple[Figure, str] | None:
    """One assertion on one checkpoint over runs, the oldest first: value with interval, the bound dashed.

    A point is the name of its run with the row there. None when no row has a value.
    """
    from plotly import graph_objects as go

    drawn = [(at, name, row) for at, (name, row) in enumerate(points) if row.value is not None]
    if not drawn:
        return None
    figure = go.Figure()
    bounds = [(at, bound_of(row)) for at, _, row in drawn if bound_of(row) is not None]
    if bounds:
        x = [bounds[0][0] - 0.3, *(at for at, _ in bounds), bounds[-1][0] + 0.3]
        y = [bounds[0][1], *(bound for _, bound in bounds), bounds[-1][1]]
        line = {"color": OTHER_COLOUR, "width": 1.5, "dash": "dash", "shape": "hvh"}
        figure.add_scatter(x=x, y=y, mode="lines", line=line)
    for at, _, row in drawn:
        if row.interval is not None:
            ends = [row.interval.low, row.interval.high]
            figure.add_scatter(x=[at, at], y=ends, mode="lines", line={"color": ACCENT, "width": 2})
    figure.add_scatter(
        x=[at for at, _, _ in drawn],
        y=[row.value for _, _, row in drawn],
        mode="lines+markers",
        line={"color": ACCENT, "width": 1},
        marker={"color": ACCENT, "size": 10, "symbol": [MARKER.get(row.verdict, "circle") for _, _, row in drawn]},
    )
    theme.dress(figure, height=TREND_PIXELS)
    last = drawn[-1][2]
    shown = range(len(points)) if len(points) <= 8 else sorted({0, len(points) // 2, len(points) - 1})
    names = [theme.plain(points[at][0], 24) for at in shown]
    if bounds:
        place = {"x": bounds[-1][0] + 0.3, "y": bounds[-1][1], "xanchor": "right", "yanchor": "bottom"}
        figure.add_annotation(text=theme.plain(f"needs {needs(last)}"), showarrow=False, **place)
    figure.update_xaxes(title="run, the oldest first", tickvals=list(shown), ticktext=names, showgrid=False)
    figure.update_xaxes(range=[-0.5, len(points) - 0.5])
    figure.update_yaxes(title=theme.plain(last.subject or last.assertion, 60), zeroline=last.margin is not None)
    listed = "; ".join(f"{name} {row.verdict} {short_value(row)}" for _, name, row in drawn)
    return figure, f"{last.subject or last.assertion} of {last.checkpoint} over {len(points)} runs: {listed}."


def _anchor(figure: Figure, chosen: Row) -> str:
    """The side of the bound on which its words have room."""
    numbers = [float(x) for trace in figure.data for x in trace.x]
    return "left" if bound_of(chosen) - min(numbers) < max(numbers) - bound_of(chosen) else "right"
