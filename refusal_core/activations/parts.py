"""One pooled file as a training and a test part: whole categories held out, or random rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from refusal_core.activations.npz import Export
from refusal_core.errors import InputError, one_line

_STREAM = 64  # far from the streams of the study itself, which count from 0


class Picked:
    """Some rows of an array [n, d], gathered when they are read: a mapped file is not copied."""

    def __init__(self, values: np.ndarray, rows: np.ndarray) -> None:
        self._values, self._rows = values, rows
        self.shape, self.dtype = (len(rows), values.shape[1]), values.dtype

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, where: slice | np.ndarray | tuple) -> np.ndarray:
        """Rows by slice or index, or (rows, dimensions)."""
        rows, *rest = where if isinstance(where, tuple) else (where,)
        return self._values[(self._rows[rows], *rest)]


def hold_out_categories(export: Export, names: Collection[str]) -> tuple[Export, Export]:
    """The rows of other categories to fit on, and those of `names` to test on.

    Raises InputError for a name that is no category of the file, and when nothing is left to fit on.
    """
    known = set(export.categories)
    if strange := [name for name in names if name not in known]:
        raise InputError(
            f'there is no category "{strange[0]}"',
            where=export.name,
            why=f"it holds {', '.join(sorted(known)[:12])}{', …' if len(known) > 12 else ''}",
            fix="name one of them",
        )
    if not names or set(names) == known:
        raise InputError(
            "every category is held out" if names else "no category is held out",
            where=export.name,
            why="a direction needs rows to be fitted on and others to be tested on",
            fix="hold out some of them",
        )
    held = np.array([name in names for name in export.categories])
    listed = one_line(", ".join(sorted(names)), 200)
    return _split(export, held, f"categories held out: {listed}")


def hold_out_rows(export: Export, share: float, seed: int) -> tuple[Export, Export]:
    """Random rows held out, `share` of them (above 0, below 1), drawn in the order of ids.

    Raises InputError for another share, and for a file of one row.
    """
    if not 0 < share < 1 or export.n < 2:
        raise InputError(
            f"a share of {share:g} of {export.n:,} rows cannot be held out",
            where=export.name,
            why="both parts need rows, and the share lies between 0 and 1",
            fix="give a share such as 0.3",
        )
    count = min(max(round(share * export.n), 1), export.n - 1)
    order = np.array(sorted(range(export.n), key=export.ids.__getitem__), np.intp)
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(_STREAM,))))
    held = np.zeros(export.n, bool)
    held[order[rng.permutation(export.n)[:count]]] = True
    return _split(export, held, f"random rows held out: {count:,} of {export.n:,}, seed {seed}")


def _split(export: Export, held: np.ndarray, how: str) -> tuple[Export, Export]:
    return _part(export, ~held, "training part", how), _part(export, held, "part held out", how)


def _part(export: Export, rows: np.ndarray, name: str, how: str) -> Export:
    places = np.flatnonzero(rows)
    return replace(
        export,
        name=f"{export.name} ({name})",
        activations=Picked(export.activations, places),
        labels=export.labels[places],
        ids=tuple(export.ids[place] for place in places),
        categories=tuple(export.categories[place] for place in places),
        part=how,
        notes=export.notes if name == "training part" else (),
    )
