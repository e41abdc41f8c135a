"""Small charts as inline SVG for HTML reports. Colours are CSS classes of the report, so they follow its theme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 680, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 116, 12, 44
TEXT_ROW = 14  # pixels between two labels
ROW, AXIS = 40, 44  # of an interval chart
NAMES, NOTES = 130, 190
_MOST = 1e300  # of an axis: the span between two ends is finite, and so is a hundredth of the least one


@dataclass(frozen=True)
class Line:
    """A curve: `x` and `y` of one length, `low` and `high` of its band or empty; `style` is CSS classes of the report.

    `step` draws it as staircase, the value at each x holding until the next. `name` is written at its end, if any.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    style: str = "accent"
    step: bool = False


@dataclass(frozen=True)
class Row:
    """One row of an interval chart: a value, its interval or None twice, the single values, and a note at the right."""

    name: str
    value: float
    low: float | None
    high: float | None
    note: str = ""
    dots: Sequence[float] = ()
    style: str = "accent"


def line_chart(
    lines: Sequence[Line], *, x_title: str, y_title: str, log_x: bool = False, level: tuple[float, str] | None = None
) -> str:
    """Curves over one pair of axes; `level` is a value with a name, a dashed line across. x > 0 where `log_x`."""
    x_low, x_high = _range([x for line in lines for x in line.x])
    ys = [y for line in lines for part in (line.y, line.low, line.high) for y in part if math.isfinite(y)]
    y_ticks = ticks(*_range(ys + ([level[0]] if level else [])))
    y_low, y_high = _range([*y_ticks, *ys])
    along = math.log10 if log_x else float
    x = _scale(along(x_low), along(x_high), LEFT, WIDTH - RIGHT)
    y = _scale(y_low, y_high, HEIGHT - BOTTOM, TOP)
    parts = [_open(WIDTH, HEIGHT)]
    for tick in y_ticks:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(_label(LEFT - 6, y(tick) + 4, _number(tick, y_ticks), "end"))
    within = log_ticks(x_low, x_high) if log_x else [t for t in ticks(x_low, x_high) if x_low <= t <= x_high]
    for tick in within:
        at = x(along(tick))
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(_label(at, HEIGHT - BOTTOM + 16, f"{tick:,g}", "middle"))
    parts.append(_label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_title, "middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 12 {middle})" x="12" y="{middle}" text-anchor="middle"'
    parts.append(f"<text {turned}>{escape(y_title)}</text>")
    names = []
    for line in lines:
        points = [(x(along(a)), y(b)) for a, b in zip(line.x, line.y, strict=True)]
        if any(map(math.isfinite, line.low)):
            band = [(p[0], y(b)) for p, b in zip(points, line.high, strict=True) if math.isfinite(b)]
            band += [(p[0], y(b)) for p, b in zip(points, line.low, strict=True) if math.isfinite(b)][::-1]
            parts.append(f'<polygon class="{line.style} band" points="{_points(band)}"/>')
        if line.step:
            points = _staircase(points)
        parts.append(f'<polyline class="{line.style} line" points="{_points(points)}"/>')
        if line.name:
            names.append((points[-1][1], line.name))
    if level:
        at = y(level[0])
        parts.append(f'<line class="ink dash" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        names.append((at, level[1]))
    heights = apart([at for at, _ in names], TEXT_ROW, HEIGHT - BOTTOM)
    parts += [_label(WIDTH - RIGHT + 6, at + 4, name) for at, (_, name) in zip(heights, names, strict=True)]
    return "".join([*parts, "</svg>"])


def interval_chart(rows: Sequence[Row], *, x_title: str) -> str:
    """A row for each value with its interval as a bar, single values as faint dots, and 0 on the axis."""
    numbers = [0.0] + [v for row in rows for v in (row.value, row.low, row.high, *row.dots) if v is not None]
    marks = ticks(*_range(numbers))
    x = _scale(*_range([*marks, *numbers]), NAMES, WIDTH - NOTES)
    bottom = 8 + ROW * len(rows)
    parts = [_open(WIDTH, bottom + AXIS)]
    for tick in marks:
        kind = "axis" if tick == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="4" y2="{bottom}"/>')
        parts.append(_label(x(tick), bottom + 16, _number(tick, marks), "middle"))
    parts.append(_label((NAMES + WIDTH - NOTES) / 2, bottom + 36, x_title, "middle"))
    for number, row in enumerate(rows):
        at = 8 + ROW * number + ROW / 2
        parts.append(_label(NAMES - 10, at + 4, row.name, "end"))
        parts += [
            f'<circle class="{row.style} dot" opacity=".3" cx="{x(d):.1f}" cy="{at + 9:.1f}" r="2"/>' for d in row.dots
        ]
        if row.low is not None and row.high is not None:
            ends = f'x1="{x(row.low):.1f}" x2="{x(row.high):.1f}" y1="{at:.1f}" y2="{at:.1f}"'
            parts.append(f'<line class="{row.style}" stroke-width="3" {ends}/>')
        parts.append(f'<circle class="{row.style} dot" cx="{x(row.value):.1f}" cy="{at:.1f}" r="4.5"/>')
        parts.append(_label(WIDTH - NOTES + 12, at + 4, row.note))
    return "".join([*parts, "</svg>"])


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`, about so many; `low` < `high`."""
    rough = (high - low) / about
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * m for m in (1, 2, 2.5, 5, 10) if size * m >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(k * step, 10) + 0.0 for k in range(first, last + 1)]


def apart(positions: Sequence[float], gap: float, most: float) -> list[float]:
    """`positions` pushed up from the least one until they are `gap` apart, then all down when the last is over `most`.

    In the order given, so that labels keep their place beside their lines.
    """
    order = sorted(range(len(positions)), key=lambda k: positions[k])
    placed: list[float] = []
    for k in order:
        placed.append(max(positions[k], placed[-1] + gap) if placed else positions[k])
    over = max(0.0, placed[-1] - most) if placed else 0.0
    return [at - over for _, at in sorted(zip(order, placed, strict=True))]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, 20, ... within `low` to `high`, above 0; powers of ten only when there would be many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    return [m * 10.0**d for d in decades for m in steps if low <= m * 10.0**d <= high]


def _range(numbers: Sequence[float]) -> tuple[float, float]:
    """Least and largest, pulled apart when they are one; what lies beyond the largest axis is drawn outside of it."""
    low, high = (min(max(end, -_MOST), _MOST) for end in (min(numbers), max(numbers)))
    return (low, high) if high - low > 1 / _MOST else (low, low + (abs(low) if abs(low) > 1 / _MOST else 1.0))


def _scale(low: float, high: float, start: float, end: float):
    return lambda number: start + (number - low) / (high - low) * (end - start)


def _staircase(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    stairs = points[:1]
    for (_, before), (across, here) in zip(points, points[1:], strict=False):
        stairs += [(across, before), (across, here)]
    return stairs


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{across:.1f},{down:.1f}" for across, down in points)


def _number(number: float, among: Sequence[float]) -> str:
    """With as many decimals as the steps `among` ticks need."""
    step = among[1] - among[0]
    digits = next((d for d in range(6) if abs(step * 10**d - round(step * 10**d)) < 1e-6), 6)
    return f"{number:,.{digits}f}"


def _label(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _open(width: float, height: float) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" aria-hidden="true">'
