"""Reading an activation export, and checking that two of them can be a train and a test file.

The format: an NPZ with `activations` [examples, dimensions] or [examples, layers, dimensions], `labels` 0 or 1,
`ids` and `categories`; optional single values `model`, `layer`, `pooling`, and `bits` for typeless 2-byte activations;
optional `layers`, the names of the layer axis.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from refusal_core.activations.arrays import BITS, check_values, read_activations
from refusal_core.activations.columns import (
    as_labels,
    as_metadata,
    as_texts,
    check_length,
    check_unique,
    read_column,
)
from refusal_core.activations.container import Container, Member, open_container
from refusal_core.activations.foreign import EXPORT_FIX
from refusal_core.activations.header import read_header
from refusal_core.errors import InputError
from refusal_core.jobs import Job
from refusal_core.limits import ACTIVATION_BYTES

NAMES = ("activations", "labels", "ids", "categories")
METADATA = ("model", "layer", "pooling")
MEANS = "label_means"  # what label 1 says, "refused" or "harmful"
# What exporters call the members, most common first.
OTHER_NAMES = {
    "activations": (
        "acts",
        "hidden_states",
        "X",
        "x",
        "activation",
        "hidden",
        "features",
        "embeddings",
        "resid",
        "residual_stream",
    ),
    "labels": ("label", "y", "Y", "targets", "target", "refused", "is_refusal"),
    "ids": ("id", "example_ids", "prompt_ids", "checkpoint_ids", "q_indices", "index", "names", "texts"),
    "categories": ("category", "groups", "group", "pair", "pairs", "topics", "topic", "types", "type"),
}
_PER_CLASS = ({"harmful", "harmless"}, {"harmful", "benign"})


@dataclass(frozen=True, eq=False)
class Export:
    """One activation export, checked: every row has a finite vector, a 0/1 label, a unique id and a category.

    `activations` [n, d] in the file's own type, mapped from it where it was stored; `dtype` names that type. `largest`
    is max |x|. `layers` is the length of the layer axis, None for [n, d]. `sha256` is of the whole file. `bits` is what
    typeless values were declared to be, None where nothing was. `part` says which rows of the file these are, None for
    all.
    """

    name: str
    sha256: str
    activations: np.ndarray
    labels: np.ndarray
    ids: tuple[str, ...]
    categories: tuple[str, ...]
    dtype: str
    largest: float
    layers: int | None = None
    layer_index: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    bits: str | None = None
    part: str | None = None

    @property
    def n(self) -> int:
        return self.activations.shape[0]

    @property
    def d(self) -> int:
        return self.activations.shape[1]


def read_export(
    source: str | os.PathLike[str] | BinaryIO | bytes,
    *,
    name: str | None = None,
    columns: Mapping[str, str] | None = None,
    bits: str | None = None,
    layer_index: int | None = None,
    labels: tuple[str, str] | None = None,
    budget: int = ACTIVATION_BYTES,
    job: Job | None = None,
) -> Export:
    """Read an NPZ from a path, bytes, or a binary file.

    `name` is for messages (the file's own name when not given); `columns` maps our member names to the file's
    ({"activations": "acts"}); `labels` says what stands for 0 and for 1; `bits`, `layer_index` and `budget` as in
    `read_activations`. Raises InputError with file,
    member, row, reason and mend for everything that is wrong with the input, and WorkError when it cannot be read.
    """
    if name is None:
        name = (
            Path(source).name if isinstance(source, (str, os.PathLike)) else getattr(source, "name", "") or "the file"
        )
    job = job or Job()
    container = open_container(source, name)
    sha256 = container.sha256()
    job.check()
    for member in container.members.values():  # a pickle anywhere makes the file unsafe for its next reader
        if member.info.filename.endswith(".npy"):
            read_header(container, member)
    found = _found(container, dict(columns or {}))
    notes: list[str] = []
    metadata = _metadata(container, notes)
    bits = bits or _declared_bits(container)
    rows, dtype, layers = read_activations(
        container, found["activations"], bits=bits, layer_index=layer_index, budget=budget
    )
    if layers is not None and (named := layer_names(container, layers)):
        metadata["layer"] = named[layer_index]
    job.check()
    places = {ours: f'{name}, member "{member.key}"' for ours, member in found.items()}
    values = {ours: read_column(container, found[ours]) for ours in NAMES[1:]}
    shape = read_header(container, found["activations"]).shape
    for ours in NAMES[1:]:
        check_length(values[ours].shape, shape[0], shape, places[ours])
    ids = as_texts(values["ids"], places["ids"])
    check_unique(ids, places["ids"])
    categories = as_texts(values["categories"], places["categories"])
    zeros_and_ones = as_labels(values["labels"], ids, places["labels"], labels)
    largest = check_values(rows, ids, places["activations"])
    job.check()
    return Export(
        name,
        sha256,
        rows,
        zeros_and_ones,
        ids,
        categories,
        dtype,
        largest,
        layers,
        layer_index,
        metadata,
        tuple(notes),
        bits,
    )


def layer_names(container: Container, layers: int) -> tuple[str, ...] | None:
    """What the member `layers` calls each of the `layers` of the layer axis; None when it does not name them all."""
    if "layers" not in container.members:
        return None
    values = read_column(container, container.members["layers"])
    if values.shape != (layers,) or values.dtype.kind not in "USiu":
        return None
    return as_texts(values, f'{container.name}, member "layers"')


def check_train(train: Export) -> None:
    """Raise InputError when a direction cannot be fitted: fewer than two labels."""
    counts = np.bincount(train.labels, minlength=2)
    if not counts.all():
        missing = int(np.argmin(counts))
        raise InputError(
            f"no example has label {missing}",
            where=f'{train.name}, member "labels"',
            why="a direction is the difference between two class means",
            fix="export examples of both classes into the training file",
        )


def check_pair(train: Export, test: Export) -> tuple[str, ...]:
    """Warnings about a train and a test file that belong together: metadata that differs.

    Raises InputError for the same file twice, ids in both, different dimensions, and one class in train.
    """
    if train.sha256 == test.sha256 and not (train.part and test.part):
        raise InputError(
            "train and test are the same file",
            where=test.name,
            why=f"both have the SHA-256 {train.sha256[:12]}…",
            fix="give a test file of other examples, or give one file alone for a comparison of splits",
        )
    if train.d != test.d:
        raise InputError(
            f"it has shape {list(test.activations.shape)}, {train.name} has {list(train.activations.shape)}",
            where=f'{test.name}, member "activations"',
            why="both need the same number of dimensions",
            fix="export both from the same model and layer",
        )
    if shared := set(train.ids) & set(test.ids):
        row = next(row for row, name in enumerate(test.ids) if name in shared)
        shown = ", ".join(f'"{name}"' for name in sorted(shared)[:3])
        raise InputError(
            f"{len(shared):,} ids are in the training file too ({shown}{', …' if len(shared) > 3 else ''})",
            where=f'{test.name}, member "ids", row {row} (id "{test.ids[row]}")',
            why="an example that was fitted cannot test the fit",
            fix="leave them out of one file",
        )
    check_train(train)
    return tuple(
        f"The files state different values of {key}: {train.metadata[key]} in {train.name}, {test.metadata[key]} in "
        f"{test.name}; a direction holds for one model, layer, token position and meaning of the labels."
        for key in (*METADATA, MEANS)
        if key in train.metadata and key in test.metadata and train.metadata[key] != test.metadata[key]
    )


def map_argument(pairs: Iterable[str]) -> dict[str, str]:
    """`--map NAME=KEY` arguments as a mapping of our member names to the file's. Raises InputError for another form."""
    columns: dict[str, str] = {}
    for pair in pairs:
        ours, equals, key = (part.strip() for part in pair.partition("="))
        if not equals or not key or ours not in NAMES or ours in columns:
            raise InputError(
                f'"{pair}" maps no member',
                where="--map",
                why=f"NAME is {', '.join(NAMES)}, each once",
                fix="write NAME=KEY, for example activations=acts",
            )
        columns[ours] = key
    return columns


def _found(container: Container, columns: dict[str, str]) -> dict[str, Member]:
    """Our names to members. Raises InputError that lists what is there and what could be mapped."""
    members = container.members
    lacking = [ours for ours in NAMES if columns.get(ours, ours) not in members]
    if not lacking:
        return {ours: members[columns.get(ours, ours)] for ours in NAMES}
    keys = ", ".join(f'"{key}"' for key in list(members)[:12]) + (", …" if len(members) > 12 else "")
    likely = {ours: next((key for key in OTHER_NAMES[ours] if key in members), None) for ours in lacking}
    maps = [f"--map {ours}={key}" for ours, key in likely.items() if key and ours not in columns]
    fix = f"perhaps {' '.join(maps)}" if maps else EXPORT_FIX
    if "activations" in lacking and any(pair <= set(members) for pair in _PER_CLASS):
        fix = "it holds one array a class: stack them and save labels, ids and categories beside"
    raise InputError(
        "it has no member " + " or ".join(f'"{columns.get(ours, ours)}"' for ours in lacking),
        where=container.name,
        why=f"it holds {keys}" if members else "the archive is empty",
        fix=fix,
    )


def _metadata(container: Container, notes: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in (*METADATA, MEANS):
        if key in container.members:
            text = as_metadata(read_column(container, container.members[key]))
            if text is None:
                notes.append(f'{container.name}: the member "{key}" is not one value, so it is not read.')
            else:
                found[key] = text
    return found


def _declared_bits(container: Container) -> str | None:
    """What the file's own member `bits` declares."""
    if "bits" not in container.members:
        return None
    text = as_metadata(read_column(container, container.members["bits"]))
    if text not in BITS:
        raise InputError(
            f'it is "{text}"',
            where=f'{container.name}, member "bits"',
            why=f"{' or '.join(BITS)} is needed",
            fix="correct or remove it",
        )
    return text
