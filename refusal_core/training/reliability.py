"""The reliability figure of a model card: one small SVG that stands by itself, on its own white ground."""

from __future__ import annotations

from refusal_core.metrics.calibration import Calibration

_SIZE, _LEFT, _TOP, _SIDE = (360, 340), 52, 14, 270
_INK, _GRID, _POINT = "#333a44", "#d5d9df", "#0072B2"


def reliability_svg(c: Calibration) -> str:
    """Accuracy against mean confidence of each bin with Wilson's interval, the diagonal, and n beside each point.

    Both axes begin where the least confident bin or the lowest interval lies, rounded down to a tenth.
    """
    bins = [b for b in c.bins if b.n]
    lowest = min([b.confidence for b in bins] + [b.right.interval.low for b in bins if b.right.interval], default=0.0)
    low = min(int(lowest * 10) / 10, 0.9)

    def x(value: float) -> float:
        return round(_LEFT + (value - low) / (1 - low) * _SIDE, 1)

    def y(value: float) -> float:
        return round(_TOP + (1 - value) / (1 - low) * _SIDE, 1)

    width, height = _SIZE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="11" fill="{_INK}" role="img">',
        f"<title>Reliability: accuracy against confidence in {len(bins)} bins, n = {c.n}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for tenth in range(round(low * 10), 11, 1 if low >= 0.5 else 2):
        at = tenth / 10
        parts.append(f'<path d="M{x(at)} {y(low)}V{y(1)}M{x(low)} {y(at)}H{x(1)}" stroke="{_GRID}" fill="none"/>')
        parts.append(f'<text x="{x(at)}" y="{y(low) + 16}" text-anchor="middle">{at:.1f}</text>')
        parts.append(f'<text x="{x(low) - 6}" y="{y(at) + 4}" text-anchor="end">{at:.1f}</text>')
    parts.append(f'<path d="M{x(low)} {y(low)}L{x(1)} {y(1)}" stroke="{_INK}" stroke-dasharray="4 3" fill="none"/>')
    for b in bins:
        at = x(b.confidence)
        if b.right.interval:
            ends = y(max(b.right.interval.low, low)), y(b.right.interval.high)
            parts.append(f'<path d="M{at} {ends[0]}V{ends[1]}" stroke="{_POINT}" stroke-width="1.5" fill="none"/>')
        parts.append(f'<circle cx="{at}" cy="{y(b.right.value)}" r="3.5" fill="{_POINT}"/>')
    parts.append(f'<text x="{_LEFT + _SIDE / 2}" y="{height - 12}" text-anchor="middle">confidence (bin mean)</text>')
    middle = _TOP + _SIDE / 2
    parts.append(f'<text transform="rotate(-90 14 {middle})" x="14" y="{middle}" text-anchor="middle">accuracy</text>')
    parts.append(f'<text x="{x(1)}" y="{y(low) - 8}" text-anchor="end">n = {c.n}, ECE {c.ece.value:.3f}</text>')
    return "\n".join([*parts, "</svg>\n"])
