"""Curves of runs as a figure shows them: over one axis, smoothed, thinned without losing an extreme.

Pure functions from `model.Run` to arrays. What cannot be drawn is counted and said, never left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from refusal_core.runs.group import step_of
from refusal_core.runs.model import Curve, Run
from refusal_core.runs.view_lines import broken, smoothed, thin

XAxis = Literal["step", "epoch", "time"]
AXES: tuple[XAxis, ...] = ("step", "epoch", "time")
POINTS_OF_LINE = 2_000
POINTS_OF_FIGURE = 40_000  # of all lines; 2 MB of a figure are about 90,000 numbers
FEWEST_POINTS = 60
MARKS_OF_LINE = 200
LINES_OF_FIGURE = 48

# The order of panels; other metrics follow by name.
METRICS = (
    "loss", "accuracy", "balanced_accuracy", "macro_f1", "weighted_f1", "micro_f1", "f1", "macro_precision",
    "weighted_precision", "precision", "macro_recall", "weighted_recall", "recall", "mcc", "kappa", "roc_auc",
    "log_loss", "ece", "brier", "perplexity", "learning_rate", "grad_norm",
)  # fmt: skip
FIRST_SHOWN = ("loss", "macro_f1", "f1", "weighted_f1", "accuracy", "grad_norm")
_SPOKEN = {
    "macro_f1": "macro F1", "weighted_f1": "weighted F1", "micro_f1": "micro F1", "f1": "F1", "mcc": "MCC",
    "roc_auc": "ROC AUC", "ece": "ECE", "kappa": "Cohen's kappa", "grad_norm": "gradient norm",
}  # fmt: skip
_TIMING = ("runtime", "samples_per_second", "steps_per_second", "samples", "total_flos")


@dataclass(frozen=True)
class Panel:
    """One figure: a metric over the training; `by_class` holds the curves of single classes."""

    metric: str
    by_class: bool = False

    @property
    def key(self) -> str:
        """Stable, for links."""
        return self.metric + (".by_class" if self.by_class else "")

    @property
    def title(self) -> str:
        return spoken(self.metric) + (" by class" if self.by_class else "")


@dataclass(frozen=True, eq=False)
class Marks:
    """Where a value is no number that can be drawn: `x` of at most MARKS_OF_LINE of them, `count` of all."""

    x: NDArray[np.float64]
    count: int


@dataclass(frozen=True, eq=False)
class Line:
    """One curve as it is drawn. Arrays of one length, `x` never falling; NaN in `y` breaks the line."""

    run: str
    run_place: int
    """Place of the run among those that are shown."""
    curve: Curve
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    smooth: NDArray[np.float64] | None
    """None without smoothing; `y` is the raw line then too."""
    dots: tuple[NDArray[np.float64], NDArray[np.float64]]
    """Points without a neighbour to draw a line to."""
    nan: Marks
    above: Marks
    """Plus infinity."""
    below: Marks
    """Minus infinity."""
    tails: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]
    """What a resume replaced, one line for each attempt."""
    resumed: tuple[tuple[float, float], ...]
    """(x, last step before it) of each resume."""
    best: tuple[float, float] | None
    """Where the best checkpoint lies on it."""
    rows: int
    """Current rows of the curve, drawn or not."""

    @property
    def thinned(self) -> bool:
        return int(np.isfinite(self.y).sum()) < self.rows - self.nan.count - self.above.count - self.below.count


@dataclass(frozen=True)
class Drawing:
    """The lines of one panel, and what is not among them."""

    panel: Panel
    axis: XAxis
    unit: str
    """Of the x axis: "step", "epoch", "minutes" …"""
    lines: tuple[Line, ...]
    left_out: tuple[str, ...]
    """A sentence for each kind of curve that cannot be drawn."""


def spoken(metric: str) -> str:
    """The metric as words: macro F1, learning rate."""
    return _SPOKEN.get(metric, metric.replace("_", " "))


def panels(runs: Sequence[Run]) -> tuple[Panel, ...]:
    """What can be drawn of `runs`, the usual metrics first; timings are left out."""
    found = {
        Panel(curve.metric, curve.label is not None)
        for run in runs
        for curve in run.curves
        if curve.metric not in _TIMING and len(curve)
    }
    return tuple(sorted(found, key=lambda p: (p.by_class, _place(p.metric), p.metric)))


def first_panels(found: Sequence[Panel], at_most: int = 4) -> tuple[Panel, ...]:
    """The panels that a page opens with."""
    by_metric = {panel.metric: panel for panel in found if not panel.by_class}
    wanted = [by_metric[name] for name in FIRST_SHOWN if name in by_metric]
    return tuple((wanted or list(found))[:at_most])


def axes(runs: Sequence[Run]) -> tuple[XAxis, ...]:
    """The axes that at least one curve has numbers for."""
    return tuple(
        axis for axis in AXES if any(np.isfinite(_numbers(curve, axis)).any() for run in runs for curve in run.curves)
    )


def draw(
    runs: Sequence[Run],
    panel: Panel,
    *,
    axis: XAxis = "step",
    smoothing: float = 0.0,
    log: bool = False,
    between: tuple[float | None, float | None] = (None, None),
    points: int = POINTS_OF_FIGURE,
) -> Drawing:
    """The curves of `panel` of all `runs` over one axis.

    `smoothing` is 0 (none) to below 1; with `log` what is not above 0 breaks the line and is counted. Times are of each
    run's own start, in the unit that suits the longest. `between` is the part of the axis that is wanted: a line is
    thinned within it, so that a closer look shows more.
    """
    chosen, left_out = _curves(runs, panel, axis)
    scale, unit = _time_unit(runs) if axis == "time" else (1.0, axis)
    room = min(POINTS_OF_LINE, max(FEWEST_POINTS, points // max(1, len(chosen))))
    lines, hidden = [], 0
    for place, run, curve in chosen:
        start = _start(run) if axis == "time" else 0.0
        line, not_positive = _line(run, place, curve, axis, start, scale, smoothing, log, between, room)
        lines.append(line)
        hidden += not_positive
    if hidden:
        left_out.append(f"{hidden:,} values at or below 0 have no place on a log scale.")
    return Drawing(panel, axis, unit, tuple(lines), tuple(left_out))


def _line(
    run: Run,
    place: int,
    curve: Curve,
    axis: XAxis,
    start: float,
    scale: float,
    smoothing: float,
    log: bool,
    between: tuple[float | None, float | None],
    room: int,
) -> tuple[Line, int]:
    x = (_numbers(curve, axis) - start) / scale
    placed = np.isfinite(x)
    current = np.flatnonzero(placed & ~curve.superseded)
    current = current[np.argsort(x[current], kind="stable")]
    at, values = x[current], curve.values[current]
    drawable = np.isfinite(values) & (values > 0 if log else True)
    raw = np.where(drawable, values, np.nan)
    smooth = smoothed(raw, smoothing) if smoothing else None
    low, high = (np.inf * side if end is None else end for end, side in zip(between, (-1, 1), strict=True))
    first, last = np.searchsorted(at, low, side="left"), np.searchsorted(at, high, side="right")
    part = slice(max(0, first - 1), last + 1)  # a neighbour on each side, so that the line goes to the edge
    at, values, raw, drawable = at[part], values[part], raw[part], drawable[part]
    smooth = None if smooth is None else smooth[part]
    marks = [
        _marks(at[which]) for which in (np.isnan(values), np.isposinf(values), np.isneginf(values))
    ]  # fmt: skip
    kept = thin([raw] if smooth is None else [raw, smooth], room)
    kept = kept[drawable[kept]]
    line_x, line_y, line_smooth, alone = broken(at, raw, smooth, drawable, kept)
    return (
        Line(
            run=run.name,
            run_place=place,
            curve=curve,
            x=line_x,
            y=line_y,
            smooth=line_smooth,
            dots=(line_x[alone], line_y[alone]),
            nan=marks[0],
            above=marks[1],
            below=marks[2],
            tails=tuple(_tails(curve, x, placed, log, room)),
            resumed=tuple(_resumed(run, curve, x)),
            best=_best(run, curve, x, log),
            rows=len(at),
        ),
        int((np.isfinite(values) & ~drawable).sum()),
    )


def _marks(x: NDArray[np.float64]) -> Marks:
    if len(x) <= MARKS_OF_LINE:
        return Marks(x, len(x))
    return Marks(x[np.linspace(0, len(x) - 1, MARKS_OF_LINE).astype(np.int64)], len(x))


def _tails(curve: Curve, x: NDArray, placed: NDArray, log: bool, room: int) -> Iterator[tuple[NDArray, NDArray]]:
    for attempt in np.unique(curve.attempt[curve.superseded]):
        rows = np.flatnonzero(placed & curve.superseded & (curve.attempt == attempt) & np.isfinite(curve.values))
        if log:
            rows = rows[curve.values[rows] > 0]
        rows = rows[np.argsort(x[rows], kind="stable")]
        if len(rows):
            rows = rows[thin([curve.values[rows]], max(FEWEST_POINTS, room // 4))]
            yield x[rows], curve.values[rows]


def _resumed(run: Run, curve: Curve, x: NDArray) -> Iterator[tuple[float, float]]:
    for step in run.resumed_at:
        before = np.flatnonzero((curve.steps <= step) & ~curve.superseded & np.isfinite(x))
        if len(before):
            yield float(x[before].max()), float(step)


def _best(run: Run, curve: Curve, x: NDArray, log: bool) -> tuple[float, float] | None:
    if run.best is None or curve.split == "train":
        return None
    step = next((c.step for c in run.checkpoints if c.name == run.best.checkpoint), step_of(run.best.checkpoint))
    if step is None:
        return None
    rows = np.flatnonzero((curve.steps == step) & ~curve.superseded & np.isfinite(x) & np.isfinite(curve.values))
    if not len(rows) or (log and curve.values[rows[-1]] <= 0):
        return None
    return float(x[rows[-1]]), float(curve.values[rows[-1]])


def _curves(runs: Sequence[Run], panel: Panel, axis: XAxis) -> tuple[list[tuple[int, Run, Curve]], list[str]]:
    chosen, without, left_out = [], 0, []
    for place, run in enumerate(runs):
        for curve in run.curves:
            if Panel(curve.metric, curve.label is not None) == panel and len(curve):
                if np.isfinite(_numbers(curve, axis)).any():
                    chosen.append((place, run, curve))
                else:
                    without += 1
    if without:
        left_out.append(f"{without:,} curves state no {axis} and are not drawn." if without > 1 else
                        f"One curve states no {axis} and is not drawn.")  # fmt: skip
    if len(chosen) > LINES_OF_FIGURE:
        left_out.append(f"The first {LINES_OF_FIGURE} of {len(chosen):,} lines are drawn: choose fewer runs.")
    return chosen[:LINES_OF_FIGURE], left_out


def _numbers(curve: Curve, axis: XAxis) -> NDArray[np.float64]:
    return {"step": curve.steps, "epoch": curve.epochs, "time": curve.times}[axis]


def _start(run: Run) -> float:
    firsts = [float(np.nanmin(c.times)) for c in run.curves if np.isfinite(c.times).any()]
    return min(firsts, default=0.0)


def _time_unit(runs: Sequence[Run]) -> tuple[float, str]:
    spans = [float(np.nanmax(c.times)) - _start(run) for run in runs for c in run.curves if np.isfinite(c.times).any()]
    longest = max(spans, default=0.0)
    units = ((86_400 * 2, 86_400.0, "days"), (7_200, 3_600.0, "hours"), (180, 60.0, "minutes"))
    return next(((scale, unit) for least, scale, unit in units if longest > least), (1.0, "seconds"))


def _place(metric: str) -> int:
    return METRICS.index(metric) if metric in METRICS else len(METRICS)
