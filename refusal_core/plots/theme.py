"""What all figures share: colours by class, one quiet layout on a transparent ground, and safe text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refusal_core.errors import one_line
from refusal_core.labels import COLOUR, OTHER_COLOUR

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

# 4.5:1 and more on their own page; still legible on the other one, where a figure stands while a reader switches.
INK_ON_LIGHT, INK_ON_DARK = "#5b6168", "#a9aeb4"
GRID = "rgba(122, 127, 135, 0.25)"
FONT = "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Liberation Sans, sans-serif"


def class_colour(label: str) -> str:
    """The colour of one of the five classes, grey for a class that a checkpoint named itself."""
    return COLOUR.get(label, OTHER_COLOUR)


def plain(text: str, limit: int = 60) -> str:
    """`text` of any origin as Plotly shows it unchanged: one line, without its HTML subset and without TeX."""
    shown = one_line(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace("$", "&#36;")


def dress(figure: Figure, *, height: int, right: int = 8) -> Figure:
    """The common layout for a light page; `right` is room in pixels for numbers that stand after bars."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": right, "t": 8, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": FONT, "size": 13},
        showlegend=False,
        bargap=0.35,
    )
    figure.update_xaxes(gridcolor=GRID, zerolinecolor=GRID, automargin=True, fixedrange=True)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, automargin=True, fixedrange=True)
    return ink(figure, dark=False)


def ink(figure: Figure, *, dark: bool) -> Figure:
    """Colour the text for a light or a dark page; returns `figure`."""
    colour = INK_ON_DARK if dark else INK_ON_LIGHT
    figure.update_layout(font_color=colour)
    figure.update_xaxes(tickfont_color=colour, title_font_color=colour)
    figure.update_yaxes(tickfont_color=colour, title_font_color=colour)
    return figure
