"""Figures of checkpoints and classes: differences from a baseline, confusion matrices, calibration, thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from refusal_core.metrics.calibration import Calibration, ThresholdPoint
from refusal_core.metrics.matrices import share_difference, shares
from refusal_core.plots import theme
from refusal_core.runs.view import spoken
from refusal_core.runs.view_classes import Matrix
from refusal_core.runs.view_compare import Candidate, Entry, SideBySide

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Cells = Literal["counts", "row shares", "column shares"]
ROW, AXIS, CELL, EDGE = 30, 56, 50, 110
ROWS_SHOWN = 24
LABELLED_UP_TO, NUMBERED_UP_TO = 60, 25  # classes of a matrix whose names, and whose cells' numbers, are written
DOT, GREY = "#2f8fd8", "#7A7F87"
SHADES = [[0.0, "rgba(92,126,166,0.0)"], [1.0, "rgba(92,126,166,0.36)"]]  # the numbers stay 4:1 and more
APART = [[0.0, "rgba(176,114,44,0.4)"], [0.5, "rgba(127,127,127,0.0)"], [1.0, "rgba(47,143,216,0.4)"]]


def differences(table: SideBySide) -> tuple[Figure, str]:
    """A row for each checkpoint: its difference from the baseline with its interval, and 0; else its value."""
    from plotly import graph_objects as go

    against = [(one, e) for one, e in zip(table.candidates, table.entries, strict=True) if one is not table.baseline]
    known = [pair for pair in against if pair[1].difference is not None]
    shown = _most_telling(known, table)
    figure = go.Figure()
    for place, (_, entry) in enumerate(shown):
        interval = entry.compared.interval if entry.compared else None
        if interval:
            ends = [interval.low, interval.high]
            figure.add_scatter(x=ends, y=[place, place], mode="lines", line={"color": DOT, "width": 3})
        marker = {"color": DOT if interval else GREY, "size": 10, "symbol": "circle" if interval else "circle-open"}
        figure.add_scatter(x=[entry.difference], y=[place], mode="markers", marker=marker)
    names = [theme.plain(one.name, 34) for one, _ in shown]
    theme.dress(figure, height=AXIS + ROW * max(1, len(shown)))
    figure.add_vline(x=0, line={"color": GREY, "width": 1.5, "dash": "dash"})
    title = f"difference in {spoken(table.metric)} from {theme.plain(table.baseline.name, 40)}, above 0 is better"
    figure.update_xaxes(title=title, zeroline=False, range=_with_room(shown))
    _name_rows(figure, names)
    listed = "; ".join(f"{one.name} {_said(entry)}" for one, entry in shown)
    more = f" {len(known) - len(shown)} more are in the table." if len(known) > len(shown) else ""
    return figure, f"Difference in {spoken(table.metric)} from {table.baseline.name}: {listed or 'none'}.{more}"


def confusion(matrix: Matrix, cells: Cells = "counts", chosen: tuple[int, int] | None = None) -> tuple[Figure, str]:
    """True classes down, predicted ones across; shaded by the share of the row, or of the column where that is asked.

    Every cell holds an invisible marker that can be clicked: its x is the column, its y the row.
    """
    counts = matrix.counts
    parts = _values(shares(counts, "columns" if cells == "column shares" else "rows"))
    figure = _squares(matrix.labels, np.nan_to_num(parts), SHADES, 0.0, 1.0)
    words = (
        [[f"{n:,}" for n in row] for row in counts]
        if cells == "counts"
        else [["–" if math.isnan(p) else f"{100 * p:.0f}%" for p in row] for row in parts]
    )
    hover = [
        f"{theme.plain(t, 40)} predicted as {theme.plain(p, 40)}: {counts[i][j]:,} of {int(counts[i].sum()):,}"
        for i, t in enumerate(matrix.labels)
        for j, p in enumerate(matrix.labels)
    ]
    _write(figure, words, hover, chosen)
    return figure, f"Confusion matrix, {cells}, true classes down and predicted ones across. {_listed(matrix)}"


def matrix_difference(new: Matrix, old: Matrix, cells: Cells = "row shares") -> tuple[Figure, str]:
    """Share of each cell in `new` less that in `old`, in points; both over the same classes."""
    of = "columns" if cells == "column shares" else "rows"
    apart = np.array(
        [[math.nan if v is None else v for v in row] for row in share_difference(new.counts, old.counts, of)]
    )
    most = float(np.nanmax(np.abs(apart))) if np.isfinite(apart).any() else 0.0
    figure = _squares(new.labels, np.nan_to_num(apart), APART, -(most or 1.0), most or 1.0)
    words = [["–" if math.isnan(v) else f"{100 * v:+.0f}" for v in row] for row in apart]
    hover = [
        f"{theme.plain(t, 40)} predicted as {theme.plain(p, 40)}: {words[i][j]} points of the {of[:-1]}"
        for i, t in enumerate(new.labels)
        for j, p in enumerate(new.labels)
    ]
    _write(figure, words, hover, None)
    largest = sorted(zip(hover, np.nan_to_num(np.abs(apart)).ravel(), strict=True), key=lambda pair: -pair[1])[:8]
    said = "; ".join(text for text, size in largest if size > 0)
    return figure, f"Difference of two confusion matrices in points of the {of[:-1]}: {said or 'none'}."


def reliability(found: Calibration) -> tuple[Figure, str]:
    """How often answers of a confidence are right, with Wilson's intervals, against the diagonal of perfect ones."""
    from plotly import graph_objects as go

    bins = [b for b in found.bins if b.n]
    figure = go.Figure(
        go.Scatter(
            x=[0, 1], y=[0, 1], mode="lines", line={"color": GREY, "width": 1.5, "dash": "dash"}, hoverinfo="skip"
        )
    )
    figure.add_scatter(
        x=[b.confidence for b in bins],
        y=[b.right.value for b in bins],
        mode="markers",
        marker={"color": DOT, "size": 9},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [b.right.interval.high - b.right.value for b in bins],
            "arrayminus": [b.right.value - b.right.interval.low for b in bins],
            "color": DOT,
            "thickness": 2,
            "width": 0,
        },
        hovertemplate=[f"{b.n:,} items, confidence {b.confidence:.3f}, right {b.right}<extra></extra>" for b in bins],
    )
    theme.dress(figure, height=340)
    figure.update_xaxes(title="mean confidence", range=[0, 1.02], zeroline=False)
    figure.update_yaxes(title="share that is right", range=[0, 1.02])
    said = "; ".join(f"confidence {b.confidence:.2f}, right {b.right}" for b in bins)
    return figure, f"Reliability by confidence, ECE {found.ece}: {said}."


def thresholds(points: Sequence[ThresholdPoint], label: str | None, at: float) -> tuple[Figure, str]:
    """Accuracy, or precision and recall of a class, and the share that is withheld, by the least confidence."""
    from plotly import graph_objects as go

    lines = {"withheld": ([p.abstained.value for p in points], GREY, "dash")}
    if label is None:
        lines["accuracy of the rest"] = ([p.accuracy.value for p in points], DOT, "solid")
    else:
        lines["precision"] = ([p.precision.value for p in points], DOT, "solid")
        lines["recall"] = ([p.recall.value for p in points], "#8b6fd0", "solid")
    figure = go.Figure()
    x = [p.threshold for p in points]
    for name, (y, colour, dash) in lines.items():
        figure.add_scatter(x=x, y=y, mode="lines", name=name, line={"color": colour, "width": 2, "dash": dash})
    theme.dress(figure, height=340)
    figure.add_vline(x=at, line={"color": GREY, "width": 1, "dash": "dot"})
    figure.update_layout(
        showlegend=True, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font_size": 12}
    )
    figure.update_xaxes(title="least confidence of an answer", range=[0, 1.0], zeroline=False)
    figure.update_yaxes(title="share", range=[0, 1.02])
    here = min(points, key=lambda p: abs(p.threshold - at))
    kept = f"precision {here.precision}, recall {here.recall}" if label else f"accuracy of the rest {here.accuracy}"
    return figure, f"At a least confidence of {here.threshold:.2f}: withheld {here.abstained}, {kept}."


def _most_telling(known: list[tuple[Candidate, Entry]], table: SideBySide) -> list[tuple[Candidate, Entry]]:
    if len(known) <= ROWS_SHOWN:
        return known
    kept = {one.key for one, _ in sorted(known, key=lambda pair: -pair[1].difference)[:ROWS_SHOWN]}
    return [pair for pair in known if pair[0].key in kept]


def _with_room(shown: Sequence[tuple[Candidate, Entry]]) -> list[float]:
    """Ends of the axis: all values and intervals, 0, and some room."""
    numbers = [0.0]
    for _, entry in shown:
        interval = entry.compared.interval if entry.compared else None
        numbers += [entry.difference, *((interval.low, interval.high) if interval else ())]
    low, high = min(numbers), max(numbers)
    room = 0.06 * ((high - low) or 1.0)
    return [low - room, high + room]


def _said(entry: Entry) -> str:
    interval = entry.compared.interval if entry.compared else None
    ends = f" ({interval.low:+.3f} to {interval.high:+.3f}), {entry.verdict}" if interval else ", no interval"
    return f"{entry.difference:+.3f}{ends}"


def _name_rows(figure: Figure, names: Sequence[str]) -> None:
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=[f"{name}  " for name in names],
        range=[max(1, len(names)) - 0.5, -0.5],
        showgrid=False,
    )


def _squares(labels: Sequence[str], z: NDArray, colours: list, low: float, high: float) -> Figure:
    from plotly import graph_objects as go

    k = len(labels)
    places = list(range(k))
    heat = go.Heatmap(
        z=z, x=places, y=places, zmin=low, zmax=high, colorscale=colours, showscale=False, hoverinfo="skip",
        xgap=2 if k <= NUMBERED_UP_TO else 0, ygap=2 if k <= NUMBERED_UP_TO else 0,
    )  # fmt: skip
    figure = theme.dress(go.Figure(heat), height=int(min(900, EDGE + AXIS + CELL * min(k, 14) + 8 * max(0, k - 14))))
    names = [theme.plain(label, 22) for label in labels] if k <= LABELLED_UP_TO else None
    ticks = {"tickvals": places, "ticktext": names} if names else {"showticklabels": False}
    figure.update_xaxes(title="predicted class", showgrid=False, tickangle=-35, zeroline=False, **ticks)
    figure.update_yaxes(title="true class", showgrid=False, range=[k - 0.5, -0.5], zeroline=False, **ticks)
    return figure


def _write(figure: Figure, words: Sequence[Sequence[str]], hover: list[str], chosen: tuple[int, int] | None) -> None:
    """Numbers in the cells, markers to click, and a frame round the chosen cell."""
    k = len(words)
    rows, columns = np.divmod(np.arange(k * k), k)
    size = max(4, min(CELL - 8, 600 // max(1, k)))
    text = [word for row in words for word in row] if k <= NUMBERED_UP_TO else None
    figure.add_scatter(
        x=columns,
        y=rows,
        mode="markers+text" if text else "markers",
        text=text,
        textposition="middle center",
        textfont={"size": 13},
        marker={"symbol": "square", "size": size, "color": "rgba(0,0,0,0)"},
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
        hovertext=hover,
        hoverinfo="text",
    )
    if chosen:
        i, j = chosen
        edge = {"color": DOT, "width": 2.5}
        figure.add_shape(type="rect", x0=j - 0.48, x1=j + 0.48, y0=i - 0.48, y1=i + 0.48, line=edge)


def _values(of: tuple) -> NDArray[np.float64]:
    return np.array([[math.nan if rate.value is None else rate.value for rate in row] for row in of])


def _listed(matrix: Matrix) -> str:
    rows = []
    for label, row in list(zip(matrix.labels, matrix.counts, strict=True))[:12]:
        if row.sum():
            told = ", ".join(f"{n:,} {name}" for name, n in zip(matrix.labels, row, strict=True) if n)
            rows.append(f"{label}: {told}")
    return "; ".join(rows) + "."
