"""What words say about a matrix: which axis is true, and what its numbers count."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from refusal_core.runs.tables import Axis, Counted

_TRUE = r"true|actual|truth|gold|ground[ _-]?truth|reference|target|real|expected|y_true"
_PREDICTED = r"pred\w*|guess\w*|model|output|hypothesis|y_pred"
_ROWS = r"rows?|y[ _-]?axis|y|vertical|axis[ _]?0|index"
_COLUMNS = r"col(?:umn)?s?|x[ _-]?axis|x|horizontal|axis[ _]?1|header"
_SHARES = re.compile(r"normali[sz]ed?|share|percent|rate", re.I)


def kind_of_axis(text: str) -> Axis:
    """Whether words speak of true or predicted classes."""
    is_true = re.search(rf"\b(?:{_TRUE})(?:\b|_)", text, re.I)
    is_predicted = re.search(rf"\b(?:{_PREDICTED})(?:\b|_)", text, re.I)
    if bool(is_true) == bool(is_predicted):
        return "unknown"
    return "true" if is_true else "predicted"


def axes_in(text: str) -> tuple[Axis, Axis]:
    """(rows, columns) of a sentence such as "rows=true, cols=pred" or "x: Predicted, y: Actual"; else unknown."""
    rows = _axis_of(text, _ROWS)
    columns = _axis_of(text, _COLUMNS)
    return settled(rows, columns)


def settled(rows: Axis, columns: Axis) -> tuple[Axis, Axis]:
    """One axis tells the other; two that contradict each other tell nothing."""
    if rows == columns:
        return "unknown", "unknown"
    if rows == "unknown":
        rows = "true" if columns == "predicted" else "predicted"
    elif columns == "unknown":
        columns = "true" if rows == "predicted" else "predicted"
    return rows, columns


def _axis_of(text: str, names: str) -> Axis:
    said = re.search(
        rf"(?<![\w])(?:{names})\b\W{{0,6}}(?:is|are|hold|give|show|labels?)?\W{{0,4}}([\w\- ]+)", text, re.I
    )
    if said:
        words = re.split(rf"\b(?:{_ROWS}|{_COLUMNS})\b", said[1], maxsplit=1, flags=re.I)[0]
        if (found := kind_of_axis(words)) != "unknown":
            return found
    for found in re.finditer(
        rf"\b({_TRUE}|{_PREDICTED})\b[^,;\n]{{0,20}}?\b(?:on|as|in|along)\b[^,;\n]{{0,10}}?\b(?:{names})\b", text, re.I
    ):
        return kind_of_axis(found[1])
    return "unknown"


def counted_as(values: NDArray[np.float64], words: str = "") -> Counted:
    """What the numbers are: whole ones are counts, others shares of what they sum to, by row first."""
    if np.all(values == np.round(values)) and not (_SHARES.search(words) and values.max() <= 1):
        return "counts"
    for scale in (1.0, 100.0):
        for axis, name in ((1, "row shares"), (0, "column shares")):
            sums = values.sum(axis=axis)
            if np.all((np.abs(sums - scale) < 0.02 * scale) | (sums == 0)) and sums.any():
                return name
        if abs(values.sum() - scale) < 0.02 * scale:
            return "shares of all"
    return "counts"
