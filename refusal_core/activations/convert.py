"""Other layouts of activations into our NPZ: a file a class, many tensors, or an array with a table beside it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from refusal_core.activations.layouts import open_tensors
from refusal_core.activations.tensors import Tensors
from refusal_core.activations.two_labels import two_labels
from refusal_core.activations.write import DTYPES, write_export
from refusal_core.errors import InputError
from refusal_core.exchange_files import read_rows
from refusal_core.jobs import Job
from refusal_core.limits import EXPORT_EXAMPLES

COLUMNS = {"id": "id", "label": "label", "category": "category"}


@dataclass(frozen=True)
class Conversion:
    """What was written: the shape and type of `activations`, how many examples have label 0 and 1, and what to know."""

    examples: int
    shape: tuple[int, ...]
    dtype: str
    label_counts: tuple[int, int]
    categories: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Table:
    """The columns of a table in its order; None where it has no such column."""

    name: str
    ids: list[str] | None
    labels: list[object] | None
    categories: list[str] | None


def convert(
    sources: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    labels: Sequence[int] | None = None,
    table: str | os.PathLike[str] | None = None,
    columns: Mapping[str, str] | None = None,
    positive: Collection[str] = (),
    key: str | None = None,
    stack: str | None = None,
    bits: str | None = None,
    dtype: str | None = None,
    layers: Sequence[str] | None = None,
    metadata: Mapping[str, str] | None = None,
    job: Job | None = None,
) -> Conversion:
    """Write the activations of `sources`, in order, with labels, ids and categories as one NPZ.

    Labels come from `labels` (one a source), or from `table`, a file with a row an example in the order of the examples
    (by id where tensors or files have the table's ids as their names). `columns` maps id, label and category to the
    table's; `positive` as in `two_labels`. `layers` name the layer axis, `metadata` may hold model, layer, pooling
    and label_means. Without categories every source is one. Raises InputError for what does not fit, before anything is
    written.
    """
    job = job or Job()
    if (labels is None) == (table is None):
        raise InputError(
            "labels come from one label a file or from a table",
            where="--labels and --table",
            fix="give one of the two, for example --labels 0,1 for a harmless and a harmful file",
        )
    parts = [open_tensors(source, key=key, stack=stack, bits=bits) for source in sources]
    total = _check_parts(parts, labels)
    if dtype is None:  # NumPy has no bfloat16 of its own; float32 holds it exactly
        dtype = parts[0].dtype if parts[0].dtype in DTYPES else "float32"
    found = None if table is None else _read_table(Path(table), {**COLUMNS, **(columns or {})})
    ids, codes, categories, notes = _columns(parts, total, labels, found, positive)
    shape = parts[0].shape
    members = dict(metadata or {})
    if layers is not None:
        if len(shape) != 2 or len(layers) != shape[0]:
            axis = f"{shape[0]} layers" if len(shape) == 2 else "no axis of layers"
            raise InputError(f"{len(layers)} names for {axis}", where="--layers", fix="name each layer once, in order")
        members["layers"] = np.array([str(name) for name in layers])
    job.start(total, "examples")
    write_export(
        output,
        _counted(parts, job),
        shape=(total, *shape),
        dtype=dtype,
        labels=codes,
        ids=ids,
        categories=categories,
        members=members,
    )
    ones = sum(codes)
    return Conversion(total, (total, *shape), dtype, (total - ones, ones), len(set(categories)), tuple(notes))


def _counted(parts: list[Tensors], job: Job) -> Iterator[np.ndarray]:
    for part in parts:
        for block in part.blocks():
            yield block
            job.advance(len(block))


def _check_parts(parts: list[Tensors], labels: Sequence[int] | None) -> int:
    """The number of examples. Raises InputError for sources of other shapes or types, or too few labels."""
    for part in parts[1:]:
        if (part.shape, part.dtype) != (parts[0].shape, parts[0].dtype):
            raise InputError(
                f"its examples are {part.dtype} of shape {list(part.shape)}, those of {parts[0].name} "
                f"{parts[0].dtype} of {list(parts[0].shape)}",
                where=part.name,
                why="all need one type and shape",
                fix="export them from one model and layer",
            )
    if labels is not None and len(labels) != len(parts):
        raise InputError(
            f"there are {len(labels)} labels for {len(parts)} files", where="--labels", fix="give one label a file"
        )
    if labels is not None and set(labels) - {0, 1}:
        raise InputError("a label is 0 or 1", where="--labels", fix="for example --labels 0,1")
    total = sum(part.n for part in parts)
    if total > EXPORT_EXAMPLES:
        raise InputError(
            f"there are {total:,} examples", why=f"at most {EXPORT_EXAMPLES:,} are written", fix="convert a part"
        )
    return total


def _columns(
    parts: list[Tensors], total: int, labels: Sequence[int] | None, table: _Table | None, positive: Collection[str]
) -> tuple[list[str], list[int], list[str], list[str]]:
    """ids, labels and categories in the order of the examples, and notes."""
    notes: list[str] = []
    names = [
        name if len(parts) == 1 else f"{Path(part.name).stem}/{name}"
        for part in parts
        for name in part.names or [f"{Path(part.name).stem}-{row}" for row in range(part.n)]
    ]
    own = [Path(part.name).stem for part in parts for _ in range(part.n)]
    if table is None:
        notes.append("Every file is one category, so categories and labels are the same thing: no interval, no test.")
        codes = [label for part, label in zip(parts, labels, strict=True) for _ in range(part.n)]
        return names, codes, own, notes
    order = _order(parts, names, total, table)
    if table.labels is None:
        raise InputError("it has no column of labels", where=table.name, fix="name it by --map label=COLUMN")
    codes, _ = two_labels(table.labels, positive=positive, where=f"{table.name}, labels")
    ids = table.ids or names
    categories = table.categories
    if categories is None:
        notes.append("The table has no column of categories, so every file is one; name it by --map category=COLUMN.")
        return [ids[k] for k in order] if table.ids else ids, [codes[k] for k in order], own, notes
    return (
        [ids[k] for k in order] if table.ids else ids,
        [codes[k] for k in order],
        [categories[k] for k in order],
        notes,
    )


def _order(parts: list[Tensors], names: list[str], total: int, table: _Table) -> list[int]:
    """The row of the table that each example has: by id where the tensors bear the table's ids, otherwise by order."""
    rows = len(table.labels or table.ids or ())
    if rows != total:
        raise InputError(
            f"it has {rows:,} rows, the activations {total:,} examples",
            where=table.name,
            why="a row an example is needed, in the same order",
            fix="leave out rows or examples that have no counterpart",
        )
    if table.ids is None or any(part.names is None for part in parts):
        return list(range(total))
    place = {name: row for row, name in enumerate(table.ids)}
    shared = sum(name in place for name in names)
    if shared == total == len(place):
        return [place[name] for name in names]
    if shared:
        raise InputError(
            f"{shared:,} of {total:,} tensors bear an id of the table",
            where=table.name,
            why="all or none are expected: by id, or by order",
            fix="mend the ids, or leave that column out",
        )
    return list(range(total))


def _read_table(path: Path, columns: Mapping[str, str]) -> _Table:
    found: dict[str, list] = {ours: [] for ours in columns}
    missing: set[str] = set()
    for number, row in enumerate(read_rows(path, names=tuple(columns.values()))):
        if number >= EXPORT_EXAMPLES:
            raise InputError(f"it has more than {EXPORT_EXAMPLES:,} rows", where=path.name, fix="convert a part")
        if row.error is not None or row.values is None:
            raise InputError(
                row.error or "the row is empty", where=f"{path.name}, line {row.line}", fix="mend that row"
            )
        for ours, theirs in columns.items():
            if theirs not in row.values:
                missing.add(ours)
            else:
                found[ours].append(row.values[theirs])
    for ours in missing:
        if columns[ours] != COLUMNS[ours]:
            raise InputError(f'it has no column "{columns[ours]}"', where=path.name, fix=f"correct --map {ours}=COLUMN")
    ids, labels, categories = (None if ours in missing else found[ours] for ours in ("id", "label", "category"))
    texts = (None if values is None else [str(value).strip() for value in values] for values in (ids, categories))
    as_ids, as_categories = texts
    return _Table(path.name, as_ids, labels, as_categories)
