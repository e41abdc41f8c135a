"""What the study says of its inputs: digests, counts, how they were extracted, and whether categories were seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from refusal_core.activations.columns import metadata_text
from refusal_core.activations.npz import MEANS, METADATA, Export
from refusal_core.direction.meaning import MEANINGS, REFUSED
from refusal_core.direction.rows import Rows
from refusal_core.errors import one_line

NOT_STATED = "not stated"


def split_name(shared: tuple[str, ...], test: Rows) -> str:
    """Whether the test categories were seen in training: the first thing that a reader must know."""
    if not shared:
        return "categories held out"
    return "categories shared" if len(shared) == len(test.categories) else "mixed"


def describe(
    given_by_user: Mapping[str, str | None], train: Export, test: Export | None
) -> tuple[dict, tuple[str, ...]]:
    """The `extraction` section, and warnings where what the user says contradicts a file.

    What label 1 means is taken from a file where the user does not say it.
    """
    files = {"train": train, **({"test": test} if test else {})}
    section: dict = {key: given_by_user.get(key) or NOT_STATED for key in METADATA}
    section[MEANS] = given_by_user.get(MEANS) or _meaning_stated(files.values()) or NOT_STATED
    warnings = []
    for part, export in files.items():
        section[f"{part}_file"] = {key: export.metadata.get(key, NOT_STATED) for key in METADATA}
        if export.metadata.get(MEANS, REFUSED.key) not in MEANINGS:
            said = one_line(export.metadata[MEANS], 60)
            warnings.append(f'{export.name} says that label 1 means "{said}", which is none of {", ".join(MEANINGS)}.')
        for key in (*METADATA, MEANS):
            given, stated = given_by_user.get(key), export.metadata.get(key)
            if given is not None and stated is not None and metadata_text(given) != stated:
                warnings.append(f"{export.name} states {key} {stated}, but --{key.replace('_', '-')} says {given}.")
    return section, tuple(warnings)


def _meaning_stated(exports: Iterable[Export]) -> str | None:
    return next((said for one in exports if (said := one.metadata.get(MEANS)) in MEANINGS), None)


def describe_input(export: Export, rows: Rows) -> Mapping[str, object]:
    """The `inputs` entry of one file."""
    n0, n1 = rows.label_counts
    sizes = np.bincount(rows.code).tolist()
    part = {} if export.part is None else {"part": export.part}
    return {
        "sha256": export.sha256,
        **part,
        "examples": export.n,
        "dimensions": export.d,
        "dtype": export.dtype,
        "label_counts": {"0": n0, "1": n1},
        "categories": dict(zip(rows.categories, sizes, strict=True)),
        "layers": export.layers,
        "layer_index": export.layer_index,
    }
