"""Figures of training runs: what a panel holds -> (figure, text for screen readers)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from refusal_core.errors import one_line
from refusal_core.labels import LABELS
from refusal_core.plots import theme
from refusal_core.runs.view import Drawing, Line

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HEIGHT, LEGEND_ROW = 300, 19
NAME_CHARACTERS = 40
# Apart from the hues of the five classes as far as eight colours can be, and 3:1 on both pages.
RUN_COLOURS = ("#2f8fd8", "#8b6fd0", "#7a8a1e", "#b0722c", "#868c93", "#c2556e", "#3d9a9a", "#9a6a9a")
SUPERSEDED, RAW = 0.35, 0.3  # opacity of what a resume replaced, and of the raw line under its smoothed one
DOTS_UP_TO = 60  # points of an evaluation that are drawn one by one
NOT_A_NUMBER, INFINITE = 0.04, 0.96  # heights of the marks, as a part of the figure


def curves(
    drawing: Drawing, *, log: bool = False, between: tuple[float | None, float | None] = (None, None)
) -> tuple[Figure, str]:
    """Lines of one metric over the training, with what is no number as marks at the edge; `between` are ends of x."""
    from plotly import graph_objects as go

    figure = go.Figure()
    many_runs = len({line.run_place for line in drawing.lines}) > 1
    names = []
    for place, line in enumerate(drawing.lines):
        name, colour = _name(line, many_runs), _colour(line, place, many_runs)
        names.append(name)
        _draw_line(figure, line, name, colour, many_runs=many_runs)
    _resumes(figure, drawing)
    theme.dress(figure, height=HEIGHT + LEGEND_ROW * _legend_rows(names))
    figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font_size": 12, "itemwidth": 30},
        hovermode="closest",
        yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
        dragmode="zoom",
    )
    figure.update_xaxes(title=_x_title(drawing), zeroline=False, fixedrange=False)
    figure.update_layout(yaxis={"title": drawing.panel.title, "type": "log" if log else "linear", "fixedrange": False})
    if between != (None, None):
        figure.update_xaxes(range=list(between))
    if level := _flat(drawing):
        figure.update_layout(yaxis_range=level if not log else None)
    return figure, _alt(drawing, names)


def _flat(drawing: Drawing) -> list[float] | None:
    """Room around values that are one but for rounding, which would fill the figure otherwise."""
    finite = [line.y[np.isfinite(line.y)] for line in drawing.lines]
    values = np.concatenate(finite) if finite else np.empty(0)
    if not len(values) or np.ptp(values) > 1e-9 * np.abs(values).max():
        return None
    middle = float(values[0])
    return [middle - (abs(middle) or 1.0) / 2, middle + (abs(middle) or 1.0) / 2]


def _draw_line(figure: Figure, line: Line, name: str, colour: str, *, many_runs: bool) -> None:
    evaluated = line.curve.split != "train"
    width = 2 if evaluated else 1.3
    dash = "dot" if many_runs and not evaluated else "solid"
    style = {"color": colour, "width": width, "dash": dash}
    shown = theme.plain(name, 200)
    hover = f"{shown}<br>%{{x:,.6g}}: %{{y:.4g}}<extra></extra>"
    common = {"legendgroup": name, "hovertemplate": hover}
    few = evaluated and len(line.x) <= DOTS_UP_TO
    for x, y in line.tails:
        figure.add_scatter(
            x=x, y=y, mode="lines", line={**style, "dash": "solid", "width": 1.3}, opacity=SUPERSEDED, showlegend=False,
            legendgroup=name, hovertemplate=f"{shown}, replaced<br>%{{x:,.6g}}: %{{y:.4g}}<extra></extra>",
        )  # fmt: skip
    if line.smooth is not None:
        figure.add_scatter(x=line.x, y=line.y, mode="lines", line=style, opacity=RAW, showlegend=False, **common)
        figure.add_scatter(x=line.x, y=line.smooth, mode="lines", line=style, name=shown, **common)
    else:
        marker = {"color": colour, "size": 5}
        mode = "lines+markers" if few else "lines"
        figure.add_scatter(x=line.x, y=line.y, mode=mode, line=style, marker=marker, name=shown, **common)
    if len(line.dots[0]) and not (few and line.smooth is None):
        marker = {"color": colour, "size": 6}
        figure.add_scatter(
            x=line.dots[0], y=line.dots[1], mode="markers", marker=marker, showlegend=False, **common
        )  # fmt: skip
    marks = (
        (line.nan, "x-thin-open", NOT_A_NUMBER, "not a number"),
        (line.above, "triangle-up", INFINITE, "infinite"),
        (line.below, "triangle-down", NOT_A_NUMBER, "minus infinity"),
    )
    for found, symbol, height, word in marks:
        if found.count:
            figure.add_scatter(
                x=found.x,
                y=[height] * len(found.x),
                yaxis="y2",
                mode="markers",
                marker={"symbol": symbol, "size": 9, "color": colour, "line": {"color": colour, "width": 1.5}},
                showlegend=False,
                legendgroup=name,
                hovertemplate=f"{shown}: {word}<br>%{{x:,.6g}}<extra></extra>",
            )
    if line.best:
        figure.add_scatter(
            x=[line.best[0]],
            y=[line.best[1]],
            mode="markers",
            marker={"symbol": "circle-open", "size": 14, "color": colour, "line": {"color": colour, "width": 2}},
            showlegend=False,
            legendgroup=name,
            hovertemplate=f"{shown}, best checkpoint<br>%{{x:,.6g}}: %{{y:.4g}}<extra></extra>",
        )


def _resumes(figure: Figure, drawing: Drawing) -> None:
    """A thin upright where a training was taken up again, named once for each place."""
    seen: dict[float, str] = {}
    for line in drawing.lines:
        for x, step in line.resumed:
            seen.setdefault(x, f"resumed at {step:,.0f}")
    for x, word in list(seen.items())[:12]:
        figure.add_vline(x=x, line={"color": "#7A7F87", "width": 1, "dash": "dot"})
        figure.add_annotation(
            x=x, y=1, yref="paper", text=word, showarrow=False, xanchor="left", xshift=3, font_size=11, yanchor="top"
        )


def _name(line: Line, many_runs: bool) -> str:
    """What the legend says of a line: which it is, and how many of its values are no numbers."""
    curve = line.curve
    words = [curve.label] if curve.label is not None else []
    words += [" ".join(filter(None, (curve.split, curve.dataset)))] if curve.split or curve.dataset else []
    if not words:
        words = [one_line(curve.key, NAME_CHARACTERS) or curve.metric]
    name = " ".join(words)
    if many_runs:
        name = f"{one_line(line.run, NAME_CHARACTERS)}: {name}"
    counts = ((line.nan.count, "not a number"), (line.above.count + line.below.count, "infinite"))
    said = [f"{count:,} {word}" for count, word in counts if count]
    if line.best:
        said.append("○ best")
    return f"{one_line(name, 2 * NAME_CHARACTERS)} ({', '.join(said)})" if said else one_line(name, 2 * NAME_CHARACTERS)


def _colour(line: Line, place: int, many_runs: bool) -> str:
    if line.curve.label in LABELS and not many_runs:
        return theme.class_colour(line.curve.label)
    if many_runs:
        return RUN_COLOURS[line.run_place % len(RUN_COLOURS)]
    if line.curve.label is None and not line.curve.dataset:
        return {"train": RUN_COLOURS[4], "eval": RUN_COLOURS[0], "test": RUN_COLOURS[1]}.get(
            line.curve.split, RUN_COLOURS[place % len(RUN_COLOURS)]
        )
    return RUN_COLOURS[place % len(RUN_COLOURS)]


def _legend_rows(names: Sequence[str]) -> int:
    """Rows that the legend may take on a narrow page."""
    return max(1, min(12, sum(1 + len(name) // 45 for name in names if name) if len(names) > 1 else 1))


def _x_title(drawing: Drawing) -> str:
    return f"{drawing.unit} since the run began" if drawing.axis == "time" else drawing.unit


def _alt(drawing: Drawing, names: Sequence[str]) -> str:
    said = "; ".join(_spoken(line, name) for line, name in zip(drawing.lines, names, strict=True))
    axis = "time" if drawing.axis == "time" else drawing.axis
    return f"{drawing.panel.title} by {axis}. {said or 'Nothing to draw'}."


def _spoken(line: Line, name: str) -> str:
    finite = np.flatnonzero(np.isfinite(line.y))
    if not len(finite):
        return f"{name}: no value that can be drawn"
    y = line.y[finite]
    words = f"{name}: from {y[0]:.4g} to {y[-1]:.4g}, least {y.min():.4g}, largest {y.max():.4g}"
    return words + "".join(_afterwards(line))


def _afterwards(line: Line) -> Iterator[str]:
    for _, step in line.resumed:
        yield f", resumed at step {step:,.0f}"
    if line.best:
        yield f", best checkpoint at {line.best[0]:,.6g} with {line.best[1]:.4g}"
