"""Figures of the search demonstration: result -> (figure, text for screen readers)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from refusal_core.climb.demonstration import Demonstration
from refusal_core.climb.policy import in_logits
from refusal_core.labels import OTHER_COLOUR
from refusal_core.metrics.intervals import Rate
from refusal_core.plots import theme
from refusal_core.plots.svg import apart, log_ticks

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HEIGHT, ROW_PIXELS, AXIS_PIXELS = 300, 34, 56
LABEL_PIXELS, LABEL_ROW = 96, 15
ACCENT = "#2f8fd8"  # 3:1 and more on the light and the dark page
RAMP = (0.3, 0.45, 0.6, 0.75, 0.9, 1.0)  # opacity by fan-out, in ascending order
DRAWN_SEEDS, DOTS = 50, 200


def searches(d: Demonstration) -> tuple[Figure, str]:
    """The exact logit of the best so far against evaluations, a line for each of the first seeds, and the optimum."""
    from plotly import graph_objects as go

    runs, shown = d.runs["climb"], min(d.settings.seeds, DRAWN_SEEDS)
    x: list[float | None] = []
    y: list[float | None] = []
    for place in range(shown):  # one trace for all: a break between two seeds
        rows = runs.rows(place)
        values = in_logits(runs.value[rows.start : rows.stop]).tolist()
        x += [*runs.at[rows.start : rows.stop].tolist(), d.settings.budget, None]
        y += [*values, values[-1], None]
    line = {"color": ACCENT, "width": 1, "shape": "hv"}
    figure = go.Figure(go.Scatter(x=x, y=y, mode="lines", line=line, opacity=0.55 if shown > 1 else 1))
    optimum = float(in_logits(d.optimum.value))
    _level(figure, optimum)
    _dress(figure, "evaluations", "exact logit of the best so far", [(optimum, "optimum")])
    spread = d.summaries["climb"].spread
    quartiles = f"{spread.lower_quartile:.3f}, {spread.median:.3f} and {spread.upper_quartile:.3f}"
    return figure, (
        f"Lines of {shown} seeds rising towards the optimum {optimum:.3f}; at the end the quartiles of regret are "
        f"{quartiles}."
    )


def methods(d: Demonstration) -> tuple[Figure, str]:
    """Regret of every method: the mean with its interval above, each of the first seeds as a dot below."""
    dots = {m: in_logits(d.regret(runs.best))[:DOTS].tolist() for m, runs in d.runs.items()}
    rates = {m: s.regret for m, s in d.summaries.items()}
    return _intervals(rates, "regret, logits", dots), "Mean regret in logits: " + _listed(rates)


def paired(d: Demonstration) -> tuple[Figure, str]:
    """The baselines' regret less the climb's, seed by seed: means with intervals, and 0."""
    rates = {f"{p.method} less climb": p.difference for p in d.paired}
    verdicts = "; ".join(f"{p.method}: {p.verdict}" for p in d.paired)
    return _intervals(rates, "difference in regret, logits"), f"Paired differences: {_listed(rates)} {verdicts}."


def fanouts(d: Demonstration) -> tuple[Figure, str]:
    """Mean regret against budget, on a log scale, a line for each fan-out; the chosen one with its interval."""
    from plotly import graph_objects as go

    figure, ends = go.Figure(), []
    for (fanout, summary), opacity in zip(d.fanouts.items(), RAMP[-len(d.fanouts) :], strict=True):
        curve, chosen = summary.curve, fanout == d.settings.fanout
        if chosen:
            _band(figure, curve.budgets, curve.low, curve.high)
        line = {"color": ACCENT, "width": 3 if chosen else 1.8}
        figure.add_scatter(x=curve.budgets, y=curve.regret, mode="lines", line=line, opacity=opacity)
        ends.append((float(curve.regret[-1]), f"fan-out {fanout}"))
    _dress(figure, "budget, evaluations a seed", "mean regret, logits", ends, log_x=True)
    ended = "; ".join(f"fan-out {fanout} {summary.regret}" for fanout, summary in d.fanouts.items())
    return figure, f"Mean regret falls with the budget; at {d.settings.budget:,} evaluations a seed: {ended}."


def reported(d: Demonstration) -> tuple[Figure, str]:
    """The score that the climb would report and the exact logit behind it, means over seeds, against evaluations."""
    from plotly import graph_objects as go

    curve, optimum = d.summaries["climb"].curve, float(in_logits(d.optimum.value))
    figure = go.Figure()
    for values, style in ((curve.reported, {"color": OTHER_COLOUR, "dash": "dash"}), (curve.exact, {"color": ACCENT})):
        figure.add_scatter(x=curve.budgets, y=values, mode="lines", line={"width": 2, **style})
    _level(figure, optimum)
    ends = [(optimum, "optimum"), (float(curve.reported[-1]), "reported"), (float(curve.exact[-1]), "exact")]
    _dress(figure, "evaluations", "logit, mean over seeds", ends, log_x=True)
    return figure, (
        f"Mean over seeds at the end: reported score {curve.reported[-1]:.3f}, exact logit of the same sequence "
        f"{curve.exact[-1]:.3f}, optimum {optimum:.3f}."
    )


def flattery(d: Demonstration) -> tuple[Figure, str]:
    """How much better the reported score looks than a fresh evaluation, by method. Needs noise: ValueError without."""
    rates = {m: s.flattery for m, s in d.summaries.items()}
    if None in rates.values():
        raise ValueError("without noise there is no flattery to draw")
    return _intervals(rates, "flattery, logits"), "Mean flattery in logits: " + _listed(rates)


def _intervals(rates: Mapping[str, Rate], title: str, dots: Mapping[str, Sequence[float]] | None = None) -> Figure:
    """A row for each rate, from above; what is not of the climb is grey."""
    from plotly import graph_objects as go

    figure = go.Figure()
    for place, (name, rate) in enumerate(rates.items()):
        colour = ACCENT if "climb" in name else OTHER_COLOUR
        if dots:
            marker = {"color": colour, "size": 4, "opacity": 0.35}
            figure.add_scatter(x=dots[name], y=[place + 0.28] * len(dots[name]), mode="markers", marker=marker)
        if rate.interval:
            ends = [rate.interval.low, rate.interval.high]
            figure.add_scatter(x=ends, y=[place, place], mode="lines", line={"color": colour, "width": 3})
        figure.add_scatter(x=[rate.value], y=[place], mode="markers", marker={"color": colour, "size": 9})
    theme.dress(figure, height=AXIS_PIXELS + ROW_PIXELS * len(rates))
    figure.update_xaxes(title=title, rangemode="tozero", zeroline=True, zerolinecolor=OTHER_COLOUR)
    names = [f"{name}  " for name in rates]
    figure.update_yaxes(
        tickvals=list(range(len(names))), ticktext=names, range=[len(names) - 0.5, -0.5], showgrid=False
    )
    return figure


def _level(figure: Figure, value: float) -> None:
    figure.add_hline(y=value, line={"color": OTHER_COLOUR, "width": 1.5, "dash": "dash"})


def _band(figure: Figure, x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> None:
    edge = {"mode": "lines", "line": {"width": 0}}
    figure.add_scatter(x=x, y=high, **edge)
    figure.add_scatter(x=x, y=low, fill="tonexty", fillcolor="rgba(47, 143, 216, 0.15)", **edge)


def _dress(
    figure: Figure, x_title: str, y_title: str, ends: Sequence[tuple[float, str]], *, log_x: bool = False
) -> None:
    """The common layout, with a name at the right end of each line."""
    theme.dress(figure, height=HEIGHT)
    numbers = [y for trace in figure.data for y in trace.y if y is not None and y == y] + [end for end, _ in ends]
    low, high = min(numbers), max(numbers)
    margin = 0.05 * ((high - low) or 1.0)
    low, high = low - margin, high + margin
    figure.update_layout(margin={"r": LABEL_PIXELS})
    figure.update_xaxes(title=x_title, type="log" if log_x else "linear", zeroline=False)
    if log_x:
        marks = log_ticks(1, max(figure.data[0].x))
        figure.update_xaxes(tickvals=marks, ticktext=[f"{mark:,.0f}" for mark in marks])
    figure.update_yaxes(title=y_title, range=[low, high])
    gap = LABEL_ROW * (high - low) / (HEIGHT - AXIS_PIXELS)
    for at, (_, name) in zip(apart([end for end, _ in ends], gap, high), ends, strict=True):
        place = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": 6, "y": at, "yanchor": "middle"}
        figure.add_annotation(text=theme.plain(name), showarrow=False, **place)


def _listed(rates: Mapping[str, Rate]) -> str:
    return "; ".join(f"{name} {rate}" for name, rate in rates.items()) + "."
