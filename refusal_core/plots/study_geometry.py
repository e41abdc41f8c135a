"""The geometry panel of a direction study: how many dimensions carry the direction, and other directions beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refusal_core.direction.geometry import Geometry
from refusal_core.direction.result import Study
from refusal_core.direction.variants import Variant
from refusal_core.labels import OTHER_COLOUR
from refusal_core.plots import theme
from refusal_core.plots.study import ACCENT

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

TITLES = {"scaled": "each dimension over its variance", "shrunk_covariance": "shrunk covariance"}
HEIGHT = 210


def shares(found: Geometry) -> tuple[Figure, str]:
    """The share of the direction's squared length, and of the score's variance, in the top 1, 5 and 10 dimensions."""
    from plotly import graph_objects as go

    figure, said = go.Figure(), []
    names = list(found.share_of_direction)
    parts = (
        ("of the direction", found.share_of_direction, ACCENT),
        ("of the score's variance", found.share_of_score_variance, OTHER_COLOUR),
    )
    for title, values, colour in parts:
        heights = [values[name] for name in names]
        text = [theme.number(value, 2) for value in heights]
        figure.add_bar(
            x=names, y=heights, marker={"color": colour}, text=text, textposition="outside", cliponaxis=False
        )
        said.append(f"{title} " + ", ".join(f"{value:.3f} in the top {name}" for name, value in values.items()))
    theme.dress(figure, height=HEIGHT)
    figure.update_xaxes(title="largest dimensions", type="category", showgrid=False)
    figure.update_yaxes(title="share", range=[0, 1.12], tickvals=[0, 0.5, 1])
    figure.update_traces(textfont={"size": 12})
    return figure, f"Share {'; '.join(said)}."


def variant_rows(study: Study) -> list[tuple[str, str, str, str]]:
    """Direction, balanced accuracy, AUROC and cosine with the plain one, as they are printed."""
    rows = [("difference of means (the study's)", _plain(study.test.balanced_accuracy), _plain(study.test.auroc), "1")]
    for key, title in TITLES.items():
        one = study.variants[key]
        if isinstance(one, Variant):
            rows.append((title, _plain(one.balanced_accuracy), _plain(one.auroc), f"{one.cosine:.3f}"))
    geometry = study.geometry
    without = (
        ("without the largest dimension of the direction, number", geometry.without_top_of_direction),
        ("without the dimension of most variance, number", geometry.without_top_of_variance),
    )
    rows += [
        (f"{title} {one.dimension}", _plain(one.balanced_accuracy), _plain(one.auroc), "") for title, one in without
    ]
    return rows


def _plain(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
