"""Figures of a direction study, category by category: wrong calls, leaving one out, and two kinds of split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from refusal_core.direction.intervals import LeaveOneOut
from refusal_core.direction.meaning import Meaning
from refusal_core.direction.scores import CategoryScore, TestScores
from refusal_core.direction.splits import SplitComparison
from refusal_core.labels import OTHER_COLOUR
from refusal_core.limits import GROUPS_SHOWN
from refusal_core.metrics.intervals import Rate, format_rate
from refusal_core.plots import theme
from refusal_core.plots.study import ACCENT

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW_PIXELS, AXIS_PIXELS, NAME_CHARACTERS = 30, 56, 26
KINDS = {"false": ("0", OTHER_COLOUR, "square"), "missed": ("1", ACCENT, "circle")}


def rates_of(scores: TestScores, kind: str, most: int | None = None) -> list[tuple[CategoryScore, Rate]]:
    """The categories that have this rate ("false" or "missed"), the worst first, at most so many of the largest."""
    label = KINDS[kind][0]
    held = [one for one in scores.by_category if one.label_counts[label]]
    if most is not None:
        held = sorted(held, key=lambda one: (-one.label_counts[label], one.category))[:most]
    rates = [(one, _rate(one, kind, label)) for one in held]
    return sorted(rates, key=lambda pair: (-pair[1].value, pair[0].category))


def forest(scores: TestScores, kind: str, meaning: Meaning) -> tuple[Figure, str]:
    """The share of wrong calls of one kind in each category that has its label, and over all, with 95% intervals.

    Raises ValueError where no test example has the label.
    """
    from plotly import graph_objects as go

    label, colour, symbol = KINDS[kind]
    rates = rates_of(scores, kind, GROUPS_SHOWN)
    if not rates:
        raise ValueError("no example has the label")
    all_rows = sum(one.label_counts[label] for one in scores.by_category)
    overall = _rate(scores, kind, label, all_rows)
    rows = [(_named(one), rate) for one, rate in rates] + [("all test examples", overall)]
    figure = go.Figure()
    for place, (_, rate) in enumerate(rows):
        last = place == len(rows) - 1
        marker = {"color": colour, "size": 11 if last else 9, "symbol": "diamond" if last else symbol}
        if rate.interval:
            ends = [rate.interval.low, rate.interval.high]
            figure.add_scatter(
                x=ends, y=[place, place], mode="lines", line={"color": colour, "width": 3 if last else 2}
            )
        figure.add_scatter(x=[rate.value], y=[place], mode="markers", marker=marker)
    _dress(figure, [name for name, _ in rows], [f"n = {rate.n:,}" for _, rate in rows])
    title = getattr(meaning, f"{kind}_rate").lower()
    figure.update_xaxes(title=title, range=[-0.02, 1.02], tickvals=[0, 0.25, 0.5, 0.75, 1], zeroline=False)
    figure.add_hline(y=len(rows) - 1.5, line={"color": theme.GRID, "width": 1})
    listed = "; ".join(f"{name} {format_rate(rate)}" for name, rate in rows)
    return figure, f"{getattr(meaning, f'{kind}_rate')} by category with 95% intervals: {listed}."


def left_out(found: LeaveOneOut, overall: float) -> tuple[Figure, str]:
    """Balanced accuracy without each category's test rows, from the same fit; the most telling GROUPS_SHOWN."""
    from plotly import graph_objects as go

    each = [one for one in found.by_category if one.balanced_accuracy is not None]
    each = sorted(each, key=lambda one: -abs(one.balanced_accuracy - overall))[:GROUPS_SHOWN]
    each.sort(key=lambda one: (one.balanced_accuracy, one.category))
    if not each:
        raise ValueError("balanced accuracy is undefined without any one category")
    figure = go.Figure()
    for place, one in enumerate(each):
        figure.add_scatter(
            x=[overall, one.balanced_accuracy], y=[place, place], mode="lines", line={"color": OTHER_COLOUR, "width": 1}
        )
        figure.add_scatter(x=[one.balanced_accuracy], y=[place], mode="markers", marker={"color": ACCENT, "size": 9})
    _dress(figure, [one.category for one in each], [f"{one.balanced_accuracy:.3f}" for one in each])
    figure.update_xaxes(title="balanced accuracy without it", zeroline=False)
    figure.add_vline(x=overall, line={"color": OTHER_COLOUR, "width": 1.5, "dash": "dash"})
    listed = "; ".join(f"without {one.category} {one.balanced_accuracy:.3f}" for one in each)
    return figure, f"With all categories balanced accuracy is {overall:.3f}; {listed}."


def splits(found: SplitComparison) -> tuple[Figure, str]:
    """The share called right in each category when it is left out whole, and when random rows are."""
    from plotly import graph_objects as go

    each = sorted(found.by_category, key=lambda one: (-one.n, one.category))[:GROUPS_SHOWN]
    each.sort(key=lambda one: (one.left_out - one.random, one.category))
    figure = go.Figure()
    for place, one in enumerate(each):
        line = {"color": OTHER_COLOUR, "width": 1.5}
        figure.add_scatter(x=[one.random, one.left_out], y=[place, place], mode="lines", line=line)
    places = list(range(len(each)))
    grey = {"color": OTHER_COLOUR, "size": 9, "symbol": "square"}
    figure.add_scatter(x=[one.random for one in each], y=places, mode="markers", marker=grey)
    accent = {"color": ACCENT, "size": 9}
    figure.add_scatter(x=[one.left_out for one in each], y=places, mode="markers", marker=accent)
    _dress(figure, [one.category for one in each], [f"n = {one.n:,}" for one in each])
    figure.update_xaxes(title="share called right", range=[-0.02, 1.02], zeroline=False)
    listed = "; ".join(f"{one.category} {one.left_out:.2f} against {one.random:.2f}" for one in each)
    return figure, f"Share called right when the category is left out against random rows left out: {listed}."


def _rate(one: CategoryScore | TestScores, kind: str, label: str, n: int | None = None) -> Rate:
    count = one.label_counts[label] if n is None else n
    return Rate(getattr(one, f"{kind}_refusal_rate"), count, getattr(one, f"{kind}_refusal_rate_interval"))


def _named(one: CategoryScore) -> str:
    return one.category


def _dress(figure: Figure, names: Sequence[str], notes: Sequence[str]) -> None:
    theme.dress(figure, height=AXIS_PIXELS + ROW_PIXELS * len(names), right=60)
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=[f"{theme.plain(name, NAME_CHARACTERS)}  " for name in names],
        range=[len(names) - 0.5, -0.5],
        showgrid=False,
    )
    for place, note in enumerate(notes):
        figure.add_annotation(x=1, xref="paper", y=place, text=note, showarrow=False, xanchor="left", xshift=6)
