"""Confusion matrices as JSON, CSV and text, with and without labels and axes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import InputError
from refusal_core.limits import MATRIX_CLASSES
from refusal_core.runs import one_vs_rest
from refusal_core.runs.matrix_text import axes_in, counted_as, kind_of_axis, settled
from refusal_core.runs.names import split_word
from refusal_core.runs.tables import MOST_A_CELL, Axis, MatrixTable, OneVsRestTable
from refusal_core.runs.text import number

_MATRIX_KEYS = ("matrix", "confusion_matrix", "data", "values", "counts", "cm", "confusion", "table", "z")
_LABEL_KEYS = ("labels", "classes", "class_names", "label_names", "names", "categories", "target_names")


def square(value: object) -> NDArray[np.float64] | None:
    """A list of lists as a square matrix of numbers from 0; None when it is not one."""
    if not isinstance(value, list) or not 2 <= len(value) <= MATRIX_CLASSES:
        return None
    if any(not isinstance(row, list) or len(row) != len(value) for row in value):
        return None
    numbers = [[number(cell) for cell in row] for row in value]
    if any(cell is None or not 0 <= cell < MOST_A_CELL for row in numbers for cell in row):
        return None
    return np.array(numbers, dtype=np.float64)


def why_not(value: object) -> str | None:
    """Why a list of lists is no confusion matrix, in words; None when it is none at all."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) for row in value):
        return None
    lengths = {len(row) for row in value}
    if len(value) > MATRIX_CLASSES:
        return f"{len(value):,} rows, at most {MATRIX_CLASSES:,} are read"
    if lengths != {len(value)}:
        return f"{len(value)} rows of {', '.join(map(str, sorted(lengths)[:4]))} cells: it is not square"
    if len(value) == 1:
        return "one class only"
    return "cells that are no counts or shares"


def table(
    values: NDArray[np.float64],
    file: str,
    *,
    labels: Sequence[object] | None = None,
    axes: tuple[Axis, Axis] = ("unknown", "unknown"),
    name: str = "",
    said: str = "",
    row_name: str = "",
    column_name: str = "",
) -> MatrixTable:
    """The table of a square matrix. `said` are the words of the file that settle its axes."""
    stated = labels is not None and len(labels) == len(values)
    values.setflags(write=False)
    return MatrixTable(
        file=file,
        name=name,
        split=split_word(name) or split_word(file.rpartition("/")[2]),
        labels=tuple(str(label) for label in labels) if stated else tuple(map(str, range(len(values)))),
        labels_stated=stated,
        values=values,
        counted=counted_as(values, f"{name} {said} {file}"),
        rows=axes[0],
        columns=axes[1],
        row_name=row_name,
        column_name=column_name,
        axes_from=said if axes[0] != "unknown" else "",
    )


def from_json(value: object, file: str, name: str = "") -> MatrixTable | OneVsRestTable | None:
    """The matrix that a JSON value is; None when it is none. Raises InputError for a matrix whose labels do not fit."""
    if isinstance(value, list):
        found = square(value)
        return _named_rows(value, file, name) if found is None else table(found, file, name=name)
    if not isinstance(value, Mapping):
        return None
    for key in _MATRIX_KEYS:
        if (found := square(value.get(key))) is not None:
            return _with_labels(value, found, file, name, exclude=key)
        if isinstance(value.get(key), Mapping) and (nested := _dict_of_dicts(value[key])):
            return table(nested[1], file, labels=nested[0], name=name, **_said(value, key))
    if one := one_vs_rest.from_mapping(value, file, name):
        return one
    if nested := _dict_of_dicts(value):
        return table(nested[1], file, labels=nested[0], name=name)
    return _vega(value, file, name)


def from_rows(header: Sequence[str], rows: Sequence[Sequence[str]], file: str) -> MatrixTable | OneVsRestTable | None:
    """The matrix of a CSV: labels in the first row and the first column, or neither; or TP, FP, FN, TN by class."""
    if one := one_vs_rest.from_rows(header, rows, file):
        return one
    cells = [list(header), *map(list, rows)]
    bare = square([[cell.strip() for cell in row] for row in cells])
    if bare is not None:
        return table(bare, file)
    body = square([[cell.strip() for cell in row[1:]] for row in rows])
    if body is None or len(header) != len(rows) + 1:
        return None
    across, down = [cell.strip() for cell in header[1:]], [row[0].strip() for row in rows]
    plain_across, across_axis = _unprefixed(across)
    plain_down, down_axis = _unprefixed(down)
    corner = header[0].strip()
    if not corner and counted_as(body) == "counts":  # a frame of counts that was given names on one side only
        numbers = list(map(str, range(len(rows))))
        if plain_down == numbers and not any(number(name) is not None for name in plain_across):
            plain_down = plain_across
        elif plain_across == numbers and not any(number(name) is not None for name in plain_down):
            plain_across = plain_down
    if sorted(plain_across) != sorted(plain_down) or len(set(plain_down)) < len(plain_down):
        return None
    if plain_across != plain_down:  # the same classes in another order
        body = body[:, [plain_across.index(label) for label in plain_down]]
    axes = settled(down_axis, across_axis)
    said = f"{down[0]} / {across[0]}" if axes[0] != "unknown" else corner
    if axes[0] == "unknown" and corner:
        axes = _corner_axes(corner)
    row_name = corner if corner and axes[0] == "unknown" else ""
    return table(body, file, labels=plain_down, axes=axes, said=said, row_name=row_name)


def from_text(text: str, file: str) -> tuple[MatrixTable, ...]:
    """Every matrix of a text that has a heading with "confusion", its columns named or numpy's brackets."""
    lines = text.splitlines()
    found = []
    for start, line in enumerate(lines):
        if re.search(r"confusion", line, re.I) and (matrix := _below(lines, start, file)):
            found.append(matrix)
    return tuple(found)


def _below(lines: Sequence[str], start: int, file: str) -> MatrixTable | None:
    """The matrix in the lines below a heading."""
    heading = lines[start].strip(" \t=#*-:|")
    section = next((split_word(line) for line in reversed(lines[:start]) if split_word(line) and len(line) < 60), "")
    below = [_short(line) for line in lines[start + 1 : start + 3 + MATRIX_CLASSES]]
    while below and not below[0].strip():
        below.pop(0)
    block = below[: next((i for i, line in enumerate(below) if not line.strip()), len(below))]
    name = " ".join(filter(None, (section.upper() if section and not split_word(heading) else "", heading)))
    beside = lines[start].partition("[")[2]
    brackets = re.findall(r"\[([^\[\]]*)\]", "\n".join(([f"[{beside}"] if beside else []) + block))
    if brackets:
        values = square([row.replace(",", " ").split() for row in brackets])
        return None if values is None else table(values, file, axes=axes_in(heading), said=heading, name=name)
    if len(block) < 3:
        return None
    across_name = down_name = ""
    if len(block) > 3 and not re.search(r"\d", block[1]) and kind_of_axis(block[1]) != "unknown":  # pandas' crosstab
        across_name, _, block[0] = block[0].strip().partition(" ")
        down_name = block.pop(1).strip()
    lines = [line.replace("|", " ").strip() for line in block]
    gaps = re.split(r"\s{2,}|\t|\s*\|\s*", block[0].strip(" |\t"))
    found = _printed(gaps, lines[1 : len(gaps) + 1]) or _printed(lines[0].split(), lines[1 : len(lines[0].split()) + 1])
    if not found and len({len(line.split()) for line in lines}) > 1:  # names of several words, one blank between them
        found = _printed([lines[0]], lines[1:], whole=True)
    if not found:
        return None
    values, labels, down_axis, across_axis = found
    axes = axes_in(heading)
    if down_name:
        axes, heading = settled(kind_of_axis(down_name), kind_of_axis(across_name)), f"{down_name} / {across_name}"
    axes = settled(down_axis, across_axis) if axes[0] == "unknown" else axes
    return table(values, file, labels=labels, axes=axes, said=heading, name=name)


def _printed(
    across: list[str], rows: list[str], whole: bool = False
) -> tuple[NDArray[np.float64], list[str], Axis, Axis] | None:
    """(values, labels, what a row is, what a column is) of printed rows, cells cut from the right; None for no matrix.

    `whole`: the head is one text, of which is only asked whether it names the rows' labels in their order.
    """
    count = len(rows) if whole else len(across)
    cut = [row.rsplit(None, count) for row in rows]
    if len(rows) != count or any(len(cells) != count + 1 for cells in cut):
        return None
    values = square([cells[1:] for cells in cut])
    down, down_axis = _unprefixed([" ".join(cells[0].split()) for cells in cut])
    if whole:
        across = down if " ".join(across[0].split()) == " ".join(down) else []
    across, across_axis = _unprefixed([" ".join(name.split()) for name in across])
    if values is None or sorted(across) != sorted(down) or len(set(down)) < len(down):
        return None
    return values[:, [across.index(label) for label in down]], down, down_axis, across_axis


def _short(line: str) -> str:
    """The line with runs of blanks as two; one that no matrix has is cut."""
    return re.sub(r"[ \t]{3,}", "  ", line[: 30 * MATRIX_CLASSES])


def _unprefixed(labels: Sequence[str]) -> tuple[list[str], Axis]:
    """Labels without a "true=" or "pred_" before each, and what that says about their axis."""
    split = [re.fullmatch(r"(true|actual|gold|pred\w*?)(?:\s*[=:]\s*|[ _])(.+)", label, re.I) for label in labels]
    if not all(split) or len({found[1].lower() for found in split}) != 1:
        return list(labels), "unknown"
    return [found[2] for found in split], kind_of_axis(split[0][1])


def _corner_axes(corner: str) -> tuple[Axis, Axis]:
    """The axes that the top-left cell names, as in "true\\predicted" or "Actual"."""
    parts = re.split(r"\s*(?:\\|/|\||->|→| vs\.? )\s*", corner, maxsplit=1)
    if len(parts) == 2:
        return settled(kind_of_axis(parts[0]), kind_of_axis(parts[1]))
    found = axes_in(corner)
    return settled(kind_of_axis(corner), "unknown") if found[0] == "unknown" else found


def _said(value: Mapping, exclude: str) -> dict:
    """Axes of an object: {"rows": "true", …}, or any text or object of texts beside the matrix that speaks of them."""
    rows, columns = value.get("rows"), value.get("columns")
    if isinstance(rows, str) and isinstance(columns, str):
        axes = settled(kind_of_axis(rows), kind_of_axis(columns))
        if axes[0] != "unknown":
            return {"axes": axes, "said": f"rows {rows}, columns {columns}"}
    for key, said in value.items():
        if key == exclude:
            continue
        if isinstance(said, Mapping):
            said = ", ".join(f"{inner}: {text}" for inner, text in said.items() if isinstance(text, str))
        if isinstance(said, str) and (axes := axes_in(said))[0] != "unknown":
            return {"axes": axes, "said": said[:200]}
    return {}


def _with_labels(value: Mapping, found: NDArray, file: str, name: str, exclude: str) -> MatrixTable:
    labels = next((value[key] for key in _LABEL_KEYS if isinstance(value.get(key), list)), None)
    if labels is None and isinstance(value.get("x"), list) and value.get("x") == value.get("y"):  # a heat map's
        labels = value["x"]
    if labels is not None and len(labels) != len(found):
        raise InputError(
            f"{len(labels)} labels beside a matrix of {len(found)} rows", where=file, fix="write one label a row"
        )
    return table(found, file, labels=labels, name=name, **_said(value, exclude))


def _dict_of_dicts(value: Mapping) -> tuple[list[str], NDArray[np.float64]] | None:
    """{"class": {"class": count}}; a missing inner key counts 0 when the others are classes."""
    if len(value) < 2 or not all(isinstance(row, Mapping) for row in value.values()):
        return None
    labels = list(value)
    if any(not set(row) <= set(labels) for row in value.values()) or not any(value.values()):
        return None
    values = square([[row.get(label, 0) for label in labels] for row in value.values()])
    return None if values is None else (labels, values)


def _named_rows(value: list, file: str, name: str) -> MatrixTable | OneVsRestTable | None:
    """A list of objects: one a class with TP, FP, FN, TN, or one a cell with the two classes and a count."""
    if not value or not all(isinstance(row, Mapping) for row in value):
        return None
    keys = list(value[0])
    if any(list(row) != keys for row in value):
        return None
    if all(one_vs_rest.key_of(keys, wanted) for wanted in one_vs_rest.CELLS.values()):
        texts = [["" if cell is None else str(cell) for cell in row.values()] for row in value]
        return one_vs_rest.from_rows(keys, texts, file)
    return _cells(value, keys, file, name)


def _cells(value: list, keys: list[str], file: str, name: str) -> MatrixTable | None:
    kinds = {key: kind_of_axis(key.replace("_", " ")) for key in keys}
    true = next((key for key, kind in kinds.items() if kind == "true"), None)
    predicted = next((key for key, kind in kinds.items() if kind == "predicted"), None)
    count = next((key for key in keys if key not in (true, predicted) and number(value[0][key]) is not None), None)
    if None in (true, predicted, count):
        return None
    labels = list(dict.fromkeys(str(row[key]) for key in (true, predicted) for row in value))
    if not 2 <= len(labels) <= MATRIX_CLASSES or len(value) > len(labels) ** 2:
        return None
    values = np.zeros((len(labels), len(labels)))
    for row in value:
        cell = number(row[count])
        if cell is None or not 0 <= cell < MOST_A_CELL:
            return None
        values[labels.index(str(row[true])), labels.index(str(row[predicted]))] = cell
    said = f"{true}, {predicted}"
    return table(values, file, labels=labels, axes=("true", "predicted"), said=said, name=name)


def _vega(value: Mapping, file: str, name: str) -> MatrixTable | None:
    """The rows in the data sets of a Vega-Lite figure."""
    sets = value.get("datasets")
    inline = value.get("data", {}).get("values") if isinstance(value.get("data"), Mapping) else None
    for rows in [*(sets.values() if isinstance(sets, Mapping) else ()), inline]:
        if isinstance(rows, list) and (found := _named_rows(rows, file, name)):
            return found
    return None
