"""A view of the Training runs page as query parameters and back. Imports no streamlit."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from refusal_core.runs.view import AXES
from ui.runs import FOLDER, SAMPLE

MOST_SMOOTHING = 0.99
_TOKEN = re.compile(r"[A-Za-z0-9_-]{8,60}")


@dataclass(frozen=True)
class View:
    """What a share link holds beside what is read. Empty values are "not stated"."""

    runs: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    axis: str = ""
    smoothing: float = 0.0
    log: bool = False
    start: float | None = None
    end: float | None = None
    tab: str = ""
    metric: str = ""
    baseline: str = ""
    evaluation: str = ""
    shares: str = ""
    cell: tuple[str, str] | None = None


def to_params(token: str, view: View) -> dict[str, str]:
    """The query parameters of a view."""
    given = {
        "runs": token,
        "show": "\n".join(view.runs),
        "panels": ",".join(view.panels),
        "x": view.axis if view.axis != AXES[0] else "",
        "smooth": f"{view.smoothing:g}" if view.smoothing else "",
        "log": "1" if view.log else "",
        "from": "" if view.start is None else f"{view.start:g}",
        "to": "" if view.end is None else f"{view.end:g}",
        "tab": view.tab,
        "by": view.metric,
        "baseline": view.baseline,
        "of": view.evaluation,
        "shares": view.shares,
        "cell": "\n".join(view.cell) if view.cell else "",
    }
    return {name: value for name, value in given.items() if value}


def from_params(params: Mapping[str, str]) -> tuple[str | None, View, list[str]]:
    """(what is to be read, the view, a sentence for what cannot be used). Never raises."""
    token, ignored = params.get("runs"), []
    if token is not None and not (token.startswith((f"{SAMPLE}:", f"{FOLDER}:")) or _TOKEN.fullmatch(token)):
        token = None
        ignored.append("The link names no runs that a link can name.")
    try:
        smoothing = float(params.get("smooth", 0))
        if not 0 <= smoothing <= MOST_SMOOTHING:
            raise ValueError
    except ValueError:
        smoothing = 0.0
        ignored.append("The link's smoothing cannot be used; there is none.")
    axis = params.get("x", "")
    if axis and axis not in AXES:
        axis = ""
        ignored.append("The link's axis cannot be used; it is the step.")
    start, end = _number(params.get("from")), _number(params.get("to"))
    cell = tuple(params.get("cell", "").split("\n"))
    view = View(
        runs=tuple(filter(None, params.get("show", "").split("\n"))),
        panels=tuple(filter(None, params.get("panels", "").split(","))),
        axis=axis,
        smoothing=smoothing,
        log=params.get("log") == "1",
        start=start,
        end=end,
        tab=params.get("tab", ""),
        metric=params.get("by", ""),
        baseline=params.get("baseline", ""),
        evaluation=params.get("of", ""),
        shares=params.get("shares", ""),
        cell=cell if len(cell) == 2 else None,
    )
    return token, view, ignored


def _number(text: str | None) -> float | None:
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if math.isfinite(found) else None
