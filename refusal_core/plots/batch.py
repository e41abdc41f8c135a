"""Figures of a batch: result -> (figure, text for screen readers)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from refusal_core.limits import GROUPS_SHOWN
from refusal_core.metrics.intervals import Rate, format_rate
from refusal_core.plots import theme

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from refusal_core.classifier.attribution import Attribution
    from refusal_core.metrics.report import ClassificationReport
    from refusal_core.metrics.shares import GroupShare, Share

ROW_PIXELS, AXIS_PIXELS, NOTE_PIXELS, CELL_PIXELS = 30, 56, 52, 46
SPANS_SHOWN = 12
DOT = "#5c7ea6"  # neutral: a refused share is of no class
SHADES = [[0.0, "rgba(92,126,166,0.0)"], [1.0, "rgba(92,126,166,0.55)"]]


def class_shares(shares: Sequence[Share]) -> tuple[Figure, str]:
    """A bar for each class with its interval and count, from 0 to 1."""
    from plotly import graph_objects as go

    rates = [share.rate for share in shares]
    bars = go.Bar(
        x=[rate.value or 0.0 for rate in rates],
        y=list(range(len(shares))),
        orientation="h",
        marker={"color": [theme.class_colour(share.label) for share in shares], "line": {"width": 0}},
        error_x=_whiskers(rates),
        hoverinfo="skip",
    )
    figure = _rows(go.Figure(bars), [theme.plain(share.label, 28) for share in shares], "share of the answers")
    _notes(figure, [f"{share.count:,}" for share in shares])
    listed = "; ".join(f"{share.label} {format_rate(share.rate)}" for share in shares)
    return figure, f"Bar chart of the share of each class with its 95% interval: {listed}."


def refused_by_group(groups: Sequence[GroupShare], column: str, fold_name: str) -> tuple[Figure, str]:
    """A dot for each group with its interval and n; the largest GROUPS_SHOWN groups."""
    from plotly import graph_objects as go

    shown = groups[:GROUPS_SHOWN]
    rates = [group.refused for group in shown]
    dots = go.Scatter(
        x=[rate.value for rate in rates],
        y=list(range(len(shown))),
        mode="markers",
        marker={"color": DOT, "size": 10},
        error_x=_whiskers(rates, colour=DOT),
        hoverinfo="skip",
    )
    figure = _rows(go.Figure(dots), [theme.plain(group.group, 28) for group in shown], "refused share")
    _notes(figure, [f"n = {rate.n:,}" for rate in rates])
    listed = "; ".join(f"{group.group} {format_rate(group.refused)}" for group in shown)
    more = f" The other {len(groups) - len(shown):,} groups are in the table." if len(groups) > len(shown) else ""
    return figure, f"Refused share ({fold_name}) by {column}, with 95% intervals: {listed}.{more}"


def confusion(report: ClassificationReport) -> tuple[Figure, str]:
    """True classes down, answers across; a cell is shaded by its part of the true class."""
    from plotly import graph_objects as go

    names = [theme.plain(label, 24) for label in report.labels]
    parts = [[count / (sum(row) or 1) for count in row] for row in report.matrix]
    places = list(range(len(names)))
    cells = go.Heatmap(
        z=parts,
        x=places,
        y=places,
        zmin=0,
        zmax=1,
        colorscale=SHADES,
        showscale=False,
        hoverinfo="skip",
        xgap=2,
        ygap=2,
    )
    figure = theme.dress(go.Figure(cells), height=AXIS_PIXELS + 90 + CELL_PIXELS * len(names))
    figure.update_xaxes(tickvals=places, ticktext=names, title="answer", showgrid=False, tickangle=-35)
    figure.update_yaxes(
        tickvals=places, ticktext=names, title="label", showgrid=False, range=[len(names) - 0.5, -0.5], zeroline=False
    )
    for down, row in enumerate(report.matrix):  # written apart, since Plotly would write white on some shades
        for across, count in enumerate(row):
            figure.add_annotation(x=across, y=down, text=f"{count:,}", showarrow=False)
    listed = "; ".join(
        f"{label}: " + ", ".join(f"{count:,} {name}" for name, count in zip(report.labels, row, strict=True) if count)
        for label, row in zip(report.labels, report.matrix, strict=True)
        if sum(row)
    )
    return figure, f"Confusion matrix, each label with the answers to its rows. {listed}."


def spans(found: Attribution) -> tuple[Figure, str]:
    """A bar for each of the strongest SPANS_SHOWN spans, in text order: the drop in probability without it."""
    from plotly import graph_objects as go

    strongest = sorted(found.strongest[:SPANS_SHOWN], key=lambda span: span.start)
    numbers = {span.start: place for place, span in enumerate(found.spans, start=1)}
    drops = [span.drop for span in strongest]
    bars = go.Bar(
        x=drops,
        y=list(range(len(strongest))),
        orientation="h",
        marker={"color": [theme.class_colour(found.answer.label) if d > 0 else theme.OTHER_COLOUR for d in drops]},
        text=[f"{drop:+.3f}" for drop in drops],
        textposition="outside",
        cliponaxis=False,
        hoverinfo="skip",
    )
    names = [f"{numbers[span.start]}: {theme.plain(span.text, 26)}" for span in strongest]
    figure = _rows(go.Figure(bars), names, "drop in probability")
    most = max(0.1, *(abs(drop) for drop in drops)) * 1.1
    figure.update_xaxes(range=[min(0.0, *drops) * 1.3, most], tickvals=None, zeroline=True)
    listed = "; ".join(f"part {numbers[span.start]} {span.drop:+.3f}" for span in strongest)
    return figure, f"Drop in the probability of {found.answer.label} when a part is left out: {listed}."


def _whiskers(rates: Sequence[Rate], *, colour: str = "#7A7F87") -> dict:
    """Plotly's error bars for the intervals."""
    ends = [(rate.value or 0.0, rate.interval) for rate in rates]
    return {
        "type": "data",
        "symmetric": False,
        "array": [interval.high - value if interval else 0.0 for value, interval in ends],
        "arrayminus": [value - interval.low if interval else 0.0 for value, interval in ends],
        "color": colour,
        "thickness": 2,
        "width": 4,
    }


def _rows(figure: Figure, names: Sequence[str], title: str) -> Figure:
    """Named rows, the first on top, over an axis from 0 to 1."""
    figure = theme.dress(figure, height=AXIS_PIXELS + ROW_PIXELS * len(names), right=NOTE_PIXELS)
    figure.update_xaxes(range=[0, 1], tickvals=[0, 0.25, 0.5, 0.75, 1], title=title)
    figure.update_yaxes(
        tickvals=list(range(len(names))), ticktext=list(names), range=[len(names) - 0.5, -0.5], showgrid=False
    )
    return figure


def _notes(figure: Figure, notes: Sequence[str]) -> None:
    """A word at the right of each row."""
    for place, note in enumerate(notes):
        figure.add_annotation(
            x=1.0, y=place, xref="paper", yref="y", text=note, showarrow=False, xanchor="left", xshift=6
        )
