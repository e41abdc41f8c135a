"""Several layers of the same examples, read one at a time: [examples, layers, dimensions], or a file a layer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from refusal_core.activations.arrays import check_values, read_activations
from refusal_core.activations.columns import metadata_text
from refusal_core.activations.container import open_container
from refusal_core.activations.npz import Export, layer_names, read_export
from refusal_core.errors import InputError
from refusal_core.jobs import Job
from refusal_core.limits import ACTIVATION_BYTES, SWEEP_LAYERS

Source = str | os.PathLike[str] | BinaryIO | bytes


class Layers:
    """The layers of an export by their place; use `open_layers`. Holds no activations but those of the first layer.

    `names` of the layers: what the file says of them, otherwise their place, or the file's name. `first` is the export
    of place 0, whose ids, labels and categories are those of all; `sha256` are of the files, one or one a layer.
    """

    def __init__(self, name: str, names: tuple[str, ...], first: Export, sha256: tuple[str, ...]) -> None:
        self.name, self.names, self.first, self.sha256 = name, names, first, sha256

    def __len__(self) -> int:
        return len(self.names)

    def export(self, place: int) -> Export:
        """The layer at `place` (from 0), checked; nothing keeps it but the caller."""
        raise NotImplementedError


def open_layers(
    sources: Source | Sequence[Source],
    *,
    names: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    bits: str | None = None,
    labels: tuple[str, str] | None = None,
    budget: int = ACTIVATION_BYTES,
    job: Job | None = None,
) -> Layers:
    """The layers of one file of shape [examples, layers, dimensions], or of several files of one layer each.

    `names` are the files' names in messages; the rest as in `read_export`. Raises InputError as `read_export` does, for
    a single file of shape [examples, dimensions], for more than 512 layers, and for files whose ids, labels or
    categories differ.
    """
    many = list(sources) if isinstance(sources, (list, tuple)) else [sources]
    names = list(names) if names is not None else [None] * len(many)
    _check_count(len(many), names[0] or "the files")
    options = {"columns": columns, "bits": bits, "labels": labels, "budget": budget}
    if len(many) == 1:
        return _Stack(many[0], names[0], options, job)
    return _Files(many, names, options, job)


class _Stack(Layers):
    """One file of [examples, layers, dimensions]."""

    def __init__(self, source: Source, name: str | None, options: dict, job: Job | None) -> None:
        if name is None:
            path = isinstance(source, (str, os.PathLike))
            name = Path(source).name if path else getattr(source, "name", None) or "the file"
        self._container = open_container(source, name)  # one map of the file for all its layers
        first = read_export(self._container, name=name, layer_index=0, job=job, **options)
        _check_count(first.layers, first.name)
        self._member = self._container.members[(options["columns"] or {}).get("activations", "activations")]
        self._options = {"bits": options["bits"] or first.bits, "budget": options["budget"]}
        names = layer_names(self._container, first.layers) or tuple(map(str, range(first.layers)))
        super().__init__(first.name, names, first, (first.sha256,))

    def export(self, place: int) -> Export:
        if place == 0:
            return self.first
        where = f'{self.name}, member "{self._member.key}"'
        rows, _, _ = read_activations(self._container, self._member, layer_index=place, **self._options)
        metadata = {**self.first.metadata}
        if self.names[place] != str(place) or "layer" in metadata:
            metadata["layer"] = self.names[place]
        return replace(
            self.first,
            activations=rows,
            layer_index=place,
            largest=check_values(rows, self.first.ids, where),
            metadata=metadata,
        )


class _Files(Layers):
    """One file of [examples, dimensions] a layer."""

    def __init__(self, sources: list[Source], names: list[str | None], options: dict, job: Job | None) -> None:
        self._sources, self._names, self._options = sources, names, options
        self._same: dict | None = None
        exports = []
        for place in range(len(sources)):  # only one at a time is mapped or held
            export = self._read(place, job)
            exports.append((_name_of(export), export.sha256))
            if place == 0:
                first = export
        found = [name for name, _ in exports]
        digests = [digest for _, digest in exports]
        if len(set(digests)) < len(digests):
            twice = next(place for place, digest in enumerate(digests) if digest in digests[:place])
            raise InputError(
                "two layers are the same file", where=found[twice], fix="name each layer's file once, in order"
            )
        if len(set(found)) < len(found):
            found = [f"{place}: {name}" for place, name in enumerate(found)]
        super().__init__(f"{first.name} and {len(sources) - 1} more", tuple(found), first, tuple(digests))

    def export(self, place: int) -> Export:
        return self.first if place == 0 else self._read(place, None)

    def _read(self, place: int, job: Job | None) -> Export:
        export = read_export(self._sources[place], name=self._names[place], job=job, **self._options)
        rows = zip(export.labels.tolist(), export.categories, strict=True)
        own = dict(zip(export.ids, rows, strict=True))
        if self._same is None:
            self._same, self._first_name = own, export.name
        check_same_examples(self._same, own, self._first_name, export.name)
        return export


def check_same_examples(ours: Mapping[str, tuple], theirs: Mapping[str, tuple], name: str, other: str) -> None:
    """Raise InputError, with counts, unless both map the same ids to the same (label, category)."""
    shared = ours.keys() & theirs.keys()
    if len(shared) < max(len(ours), len(theirs)):
        only = sorted(ours.keys() ^ theirs.keys())[:3]
        raise InputError(
            f"{len(shared):,} ids are in both {name} ({len(ours):,}) and this file ({len(theirs):,})",
            where=f'{other}, member "ids"',
            why=f"the same examples are needed in both; for example {', '.join(map(repr, only))} is in one only",
            fix="export the same examples, or leave the others out of both",
        )
    for what, part in (("label", 0), ("category", 1)):
        differing = [key for key in ours if ours[key][part] != theirs[key][part]]
        if differing:
            key = min(differing)
            raise InputError(
                f'the {what} of id "{key}" is {theirs[key][part]!r} here and {ours[key][part]!r} in {name}',
                where=f'{other}, member "{"labels" if part == 0 else "categories"}"',
                why=f"{len(differing):,} of {len(ours):,} examples differ in it",
                fix=f"export both with the same {what} an example",
            )


def _name_of(export: Export) -> str:
    return metadata_text(export.metadata.get("layer", "")) or Path(export.name).stem


def _check_count(count: int, name: str) -> None:
    if not 1 <= count <= SWEEP_LAYERS:
        raise InputError(
            f"there are {count:,} layers", where=name, why=f"1 to {SWEEP_LAYERS} are possible", fix="name fewer"
        )
