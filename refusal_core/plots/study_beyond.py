"""Figures of what goes beyond one study: layers, two studies of the same examples, two directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from refusal_core.direction.compare import StudyComparison
from refusal_core.direction.cosine import DirectionCosine
from refusal_core.direction.intervals import CategoryInterval
from refusal_core.direction.sweep_result import LayerNull, Maximum, Sweep
from refusal_core.labels import OTHER_COLOUR
from refusal_core.limits import GROUPS_SHOWN
from refusal_core.plots import theme
from refusal_core.plots.study import ACCENT, ACCENT_FILL, NULL_BINS, OTHER_FILL
from refusal_core.plots.study_categories import AXIS_PIXELS, NAME_CHARACTERS, ROW_PIXELS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HEIGHT = 320
NAMED_LAYERS = 16  # on the axis


def layers(found: Sweep) -> tuple[Figure, str]:
    """Balanced accuracy at each layer with its interval, the band of the shuffles, and the bound for the best layer."""
    from plotly import graph_objects as go

    shown = [one for one in found.layers if one.balanced_accuracy is not None]
    places = [one.place for one in shown]
    figure = go.Figure()
    nulls = [(one.place, one.nulls[found.null]) for one in shown if isinstance(one.nulls.get(found.null), LayerNull)]
    if nulls:
        _band(figure, [p for p, _ in nulls], [n.low for _, n in nulls], [n.high for _, n in nulls], OTHER_FILL, 0.3)
    ends = [(one.place, one.interval) for one in shown if isinstance(one.interval, CategoryInterval)]
    if ends:
        _band(figure, [p for p, _ in ends], [i.low for _, i in ends], [i.high for _, i in ends], ACCENT_FILL, 0.15)
    left_out = [(one.place, one.left_out_balanced_accuracy) for one in shown]
    left_out = [(place, value) for place, value in left_out if value is not None]
    if left_out and any(one.left_out_balanced_accuracy != one.balanced_accuracy for one in shown):
        line = {"color": OTHER_COLOUR, "width": 1.5, "dash": "dot"}
        figure.add_scatter(x=[p for p, _ in left_out], y=[v for _, v in left_out], mode="lines", line=line)
    line, marker = {"color": ACCENT, "width": 2}, {"color": ACCENT, "size": 6}
    scores = [one.balanced_accuracy for one in shown]
    figure.add_scatter(x=places, y=scores, mode="lines+markers", line=line, marker=marker)
    best = found.layers[found.best]
    figure.add_scatter(x=[best.place], y=[best.balanced_accuracy], mode="markers", marker={"color": ACCENT, "size": 13})
    theme.dress(figure, height=HEIGHT)
    maximum = found.maxima.get(found.null)
    if isinstance(maximum, Maximum):
        figure.add_hline(y=maximum.high, line={"color": OTHER_COLOUR, "width": 1.5, "dash": "dash"})
        figure.add_annotation(
            x=1, xref="paper", y=maximum.high, text="shuffled, best layer", showarrow=False,
            xanchor="right", yanchor="bottom",
        )  # fmt: skip
    step = max(1, len(found.layers) // NAMED_LAYERS)
    named = found.layers[::step]
    figure.update_xaxes(
        title="layer",
        tickvals=[one.place for one in named],
        ticktext=[theme.plain(one.layer, 10) for one in named],
        zeroline=False,
    )
    lowest = min(0.4, *scores, *(null.low for _, null in nulls))
    figure.update_yaxes(title="balanced accuracy", range=[lowest - 0.02, 1.02])
    listed = "; ".join(f"layer {one.layer} {one.balanced_accuracy:.3f}" for one in shown)
    return figure, f"Balanced accuracy by layer, the best is {best.layer}: {listed}."


def differences(found: StudyComparison) -> tuple[Figure, str]:
    """The difference of the shares called right in each category, A minus B; the largest GROUPS_SHOWN."""
    from plotly import graph_objects as go

    each = sorted(found.by_category, key=lambda one: (-one.n, one.category))[:GROUPS_SHOWN]
    each.sort(key=lambda one: (one.difference, one.category))
    values = [one.difference for one in each]
    colours = [ACCENT if value > 0 else OTHER_COLOUR for value in values]
    figure = go.Figure(
        go.Bar(x=values, y=list(range(len(each))), orientation="h", marker={"color": colours, "line": {"width": 0}})
    )
    theme.dress(figure, height=AXIS_PIXELS + ROW_PIXELS * len(each), right=60)
    most = max(0.1, *(abs(value) for value in values)) * 1.05
    figure.update_xaxes(
        title="share called right, A less B", range=[-most, most], zeroline=True, zerolinecolor=OTHER_COLOUR
    )
    figure.update_yaxes(
        tickvals=list(range(len(each))),
        ticktext=[f"{theme.plain(one.category, NAME_CHARACTERS)}  " for one in each],
        range=[len(each) - 0.5, -0.5],
        showgrid=False,
    )
    for place, one in enumerate(each):
        figure.add_annotation(
            x=1, xref="paper", y=place, text=f"n = {one.n:,}", showarrow=False, xanchor="left", xshift=6
        )
    listed = "; ".join(f"{one.category} {one.difference:+.2f}" for one in each)
    return figure, f"Difference of the shares called right by category, A less B: {listed}."


def cosines(found: DirectionCosine) -> tuple[Figure, str]:
    """The cosine between the cosines of shuffled labels and the ceiling of split halves."""
    from plotly import graph_objects as go

    scores, ceiling = np.array(found.floor.scores), found.ceiling.value
    marks = [(found.cosine, "cosine", ACCENT, "solid")]
    if ceiling is not None:
        marks.append((ceiling, "ceiling", OTHER_COLOUR, "dash"))
    edges = np.linspace(min(-0.2, scores.min()), max(1.0, *(mark[0] for mark in marks)), NULL_BINS + 1)
    counts = np.histogram(scores, edges)[0]
    figure = go.Figure(
        go.Bar(x=(edges[:-1] + edges[1:]) / 2, y=counts, width=edges[1] - edges[0],
               marker={"color": OTHER_FILL.format(0.6), "line": {"width": 0}})
    )  # fmt: skip
    theme.dress(figure, height=220)
    figure.update_xaxes(title="cosine of the two directions; grey: of shuffled labels", zeroline=False)
    figure.update_yaxes(title="shuffles", range=[0, max(int(counts.max()), 1) * 1.3])
    for k, (value, name, colour, dash) in enumerate(marks):
        figure.add_vline(x=value, line={"color": colour, "width": 2, "dash": dash})
        left = value > 0.6
        figure.add_annotation(
            x=value, y=1 - 0.13 * k, yref="paper", text=f"{name} {value:.2f}", showarrow=False,
            xanchor="right" if left else "left", xshift=-4 if left else 4,
        )  # fmt: skip
    return figure, f"{found.headline} The cosines of shuffled labels have a mean of {scores.mean():.2f}."


def _band(figure: Figure, x: list, low: list, high: list, fill: str, opacity: float) -> None:
    edge = {"mode": "lines", "line": {"width": 0}}
    figure.add_scatter(x=x, y=high, **edge)
    figure.add_scatter(x=x, y=low, fill="tonexty", fillcolor=fill.format(opacity), **edge)
