"""Figures of the Playground: result -> (figure, text for screen readers)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from refusal_core.labels import LABELS
from refusal_core.plots import theme

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW_PIXELS, AXIS_PIXELS, NUMBER_PIXELS = 30, 56, 48


def probabilities(found: Mapping[str, float]) -> tuple[Figure, str]:
    """A bar for each class with its number, from 0 to 1: our five in their order, others in the checkpoint's."""
    from plotly import graph_objects as go

    names = [*(label for label in LABELS if label in found), *(label for label in found if label not in LABELS)]
    values = [found[name] for name in names]
    bars = go.Bar(
        x=values,
        y=list(range(len(names))),  # places, since two long names may look the same once cut
        orientation="h",
        marker={"color": [theme.class_colour(name) for name in names], "line": {"width": 0}},
        text=[f"{value:.3f}" for value in values],
        textposition="outside",
        cliponaxis=False,
        hoverinfo="skip",
    )
    figure = theme.dress(go.Figure(bars), height=AXIS_PIXELS + ROW_PIXELS * len(names), right=NUMBER_PIXELS)
    figure.update_xaxes(range=[0, 1], tickvals=[0, 0.25, 0.5, 0.75, 1], title="probability")
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=[theme.plain(name, 28) for name in names],
        range=[len(names) - 0.5, -0.5],
        showgrid=False,
    )
    listed = ", ".join(f"{name} {value:.3f}" for name, value in zip(names, values, strict=True))
    return figure, f"Bar chart of the probability of each class: {listed}."
