"""Figures of a direction study, the scores: projections, nulls, ROC. Result -> (figure, text for screen readers)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from refusal_core.direction.examples import Examples, roc
from refusal_core.direction.findings import auroc_short, auroc_words
from refusal_core.direction.meaning import Meaning
from refusal_core.direction.nulls import Null, RandomDirections
from refusal_core.direction.result import Study
from refusal_core.labels import OTHER_COLOUR
from refusal_core.plots import theme

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ACCENT = "#2f8fd8"  # label 1; 3:1 and more on the light and the dark page
ACCENT_FILL, OTHER_FILL = "rgba(47, 143, 216, {})", "rgba(122, 127, 135, {})"
HEIGHT, ROW_PIXELS, AXIS_PIXELS = 300, 64, 56
BINS, NULL_BINS = 48, 60
NAMES = {
    "shuffled_labels": "labels shuffled",
    "shuffled_categories": "whole categories<br>shuffled",
    "within_categories": "shuffled within<br>categories",
    "random_directions": "random directions",
}


def binned(examples: Examples, rows: np.ndarray | None = None, bins: int = BINS) -> tuple[np.ndarray, np.ndarray]:
    """Edges [m + 1] of margins, 0 among them, so that no bar lies across the threshold, and counts [2, m] by label."""
    margins = examples.margins if rows is None else examples.margins[rows]
    labels = examples.labels if rows is None else examples.labels[rows]
    low, high = min(float(examples.margins.min()), 0.0), max(float(examples.margins.max()), 0.0)
    width = ((high - low) or 1.0) / bins
    below, above = max(int(np.ceil(-low / width - 1e-9)), int(low < 0)), int(np.floor(high / width + 1e-9)) + 1
    edges = np.arange(-below, above + 1) * width
    place = np.clip(np.floor(margins / width).astype(int) + below, 0, len(edges) - 2)
    place = np.where(margins >= 0, np.maximum(place, below), np.minimum(place, below - 1)) if below else place
    return edges, np.stack([np.bincount(place[labels == label], minlength=len(edges) - 1) for label in (0, 1)])


def projections(examples: Examples, meaning: Meaning, rows: np.ndarray | None = None) -> tuple[Figure, str]:
    """Counts of projections, label 1 upwards and label 0 downwards, with the threshold; stronger on the wrong side.

    `rows` keeps some of the examples, on the same axis.
    """
    from plotly import graph_objects as go

    edges, counts = binned(examples, rows)
    centres = (edges[:-1] + edges[1:]) / 2 + examples.threshold
    figure, parts = go.Figure(), []
    for label, sign, fill in ((1, 1, ACCENT_FILL), (0, -1, OTHER_FILL)):
        wrong = (edges[:-1] >= 0) != (label == 1)
        colours = [fill.format(1 if is_wrong else 0.5) for is_wrong in wrong]
        figure.add_bar(x=centres, y=sign * counts[label], width=edges[1] - edges[0], marker={"color": colours})
        parts.append(
            f"{int(counts[label].sum()):,} {getattr(meaning, 'one' if label else 'zero')}, of them "
            f"{int(counts[label][wrong].sum()):,} on the wrong side"
        )
    theme.dress(figure, height=HEIGHT)
    most = max(int(counts.max()), 1)
    ticks = _whole_ticks(most)
    figure.update_layout(barmode="overlay", bargap=0.06)
    figure.update_xaxes(title="projection on the direction, activation units", zeroline=False)
    figure.update_yaxes(
        title="test examples",
        range=[-most * 1.28, most * 1.28],
        tickvals=[*(-t for t in reversed(ticks)), 0, *ticks],
        ticktext=[f"{abs(t):,}" for t in (*reversed(ticks), 0, *ticks)],
        zeroline=True,
        zerolinecolor=OTHER_COLOUR,
    )
    figure.add_vline(x=examples.threshold, line={"color": OTHER_COLOUR, "width": 1.5, "dash": "dash"})
    _corner(figure, f"{meaning.one} ↑", top=True)
    _corner(figure, f"{meaning.zero} ↓", top=False)
    figure.add_annotation(
        x=examples.threshold, y=1, yref="paper", text="threshold", showarrow=False, xanchor="left", xshift=4
    )
    where = f"the threshold {examples.threshold:.4g}"
    return figure, f"Histogram of the projections with {where}: {'; '.join(parts)}."


def nulls(study: Study) -> tuple[Figure, str]:
    """The distributions of balanced accuracy when there is nothing to find, one a row, and the observed score."""
    from plotly import graph_objects as go

    observed = study.test.balanced_accuracy
    found = distributions(study)
    figure, said = go.Figure(), []
    every = np.concatenate([np.array(one.scores) for one in found.values()])
    low, high = min(float(every.min()), observed, 0.45), max(float(every.max()), observed, 0.55)
    edges = np.linspace(low - 0.01, high + 0.01, NULL_BINS + 1)
    for place, (name, one) in enumerate(found.items()):
        counts = np.histogram(one.scores, edges)[0]
        heights = place - 0.8 * counts / max(int(counts.max()), 1)
        x, y = np.repeat(edges, 2)[1:-1], np.repeat(heights, 2)
        figure.add_scatter(x=[edges[0], *x, edges[-1]], y=[place, *y, place], mode="lines", line={"width": 0},
                           fill="toself", fillcolor=OTHER_FILL.format(0.75))  # fmt: skip
        note = p_words(one)
        figure.add_annotation(
            x=1, xref="paper", y=place - 0.25, text=note, showarrow=False, xanchor="left", xshift=6, align="left"
        )
        said.append(f"{NAMES[name].replace('<br>', ' ')}: mean {one.mean:.3f}, {note}")
    theme.dress(figure, height=AXIS_PIXELS + ROW_PIXELS * len(found), right=104)
    figure.update_xaxes(title="balanced accuracy", range=[edges[0], edges[-1]], zeroline=False)
    figure.update_yaxes(
        tickvals=[place - 0.25 for place in range(len(found))],
        ticktext=[f"{NAMES[name]}  " for name in found],
        range=[len(found) - 0.85, -1.15],
        showgrid=False,
    )
    figure.add_vline(x=observed, line={"color": ACCENT, "width": 2})
    figure.add_annotation(
        x=observed, y=1, yref="paper", text=f"observed {observed:.3f}", showarrow=False,
        xanchor="right" if observed > (edges[0] + edges[-1]) / 2 else "left", xshift=-4 if observed > 0.5 else 4,
    )  # fmt: skip
    return figure, f"The observed balanced accuracy is {observed:.3f}. {'; '.join(said)}."


def distributions(study: Study) -> dict[str, Null | RandomDirections]:
    """The nulls and the random directions that were drawn; empty where balanced accuracy is undefined."""
    found = {name: one for name, one in study.nulls.items() if isinstance(one, Null)}
    if isinstance(random := study.baselines.get("random_directions"), RandomDirections):
        found["random_directions"] = random
    return found


def p_words(one: Null | RandomDirections) -> str:
    """What stands beside a distribution."""
    return f"p = {one.p_value:.2g}" if isinstance(one, Null) else "a floor"


def roc_curve(examples: Examples, study: Study, meaning: Meaning) -> tuple[Figure, str]:
    """True against false positives over all thresholds, with the transferred one; needs both labels (ValueError)."""
    from plotly import graph_objects as go

    found = roc(examples)
    if found is None:
        raise ValueError("a ROC needs both labels")
    scores = study.test
    figure = go.Figure(
        go.Scatter(x=found[0], y=found[1], mode="lines", line={"color": ACCENT, "width": 2, "shape": "linear"})
    )
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line={"color": OTHER_COLOUR, "width": 1, "dash": "dash"})
    point = scores.false_refusal_rate, 1 - scores.missed_refusal_rate
    figure.add_scatter(x=[point[0]], y=[point[1]], mode="markers", marker={"color": ACCENT, "size": 10})
    theme.dress(figure, height=HEIGHT)
    figure.update_xaxes(title=f"{meaning.zero}, but called {meaning.one}", range=[-0.01, 1.01], zeroline=False)
    figure.update_yaxes(title=f"{meaning.one}, called so", range=[-0.02, 1.02])
    figure.add_annotation(
        x=point[0], y=point[1], text="threshold", showarrow=False, xanchor="left", yanchor="top", xshift=8
    )
    short = f"AUROC {auroc_short(scores.auroc, study.auroc_interval)}"
    figure.add_annotation(x=0.98, y=0.06, text=short, showarrow=False, xanchor="right")
    return figure, (
        f"ROC curve with AUROC {auroc_words(vars(study))}; at the threshold {point[0]:.3f} false and "
        f"{point[1]:.3f} true."
    )


def _corner(figure: Figure, text: str, *, top: bool) -> None:
    place = {"x": 0, "xref": "paper", "xanchor": "left", "xshift": 4, "y": 1 if top else 0, "yref": "paper"}
    figure.add_annotation(text=theme.plain(text), showarrow=False, yanchor="top" if top else "bottom", **place)


def _whole_ticks(most: int) -> list[int]:
    step = next(s * 10**e for e in range(9) for s in (1, 2, 5) if most / (s * 10**e) <= 3)
    return list(range(step, most + 1, step))
