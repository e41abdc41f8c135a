"""Tables from the predictions file of a column, with or without a dataset that says more of its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from refusal_core.errors import one_line
from refusal_core.exchanges import Exchange
from refusal_core.scorecard.suite import Dataset
from refusal_core.scorecard.table import LEFT_OUT, UNKNOWN, NotComputed, Table, clusters, places, spread

if TYPE_CHECKING:
    from refusal_core.scorecard.columns import Column


def of_predictions(column: Column, dataset: Dataset | None, split: str | None, variant: str) -> Table:
    found = column.predictions
    if dataset is None or dataset.path is None:
        return predicted(column, found.rows(split, variant or None))
    labelled = {str(row.id): row for row in column.dataset_rows(dataset)}
    at = [
        row
        for row, (i, s, v) in enumerate(zip(found.ids, found.splits, found.variants, strict=True))
        if i in labelled and v == variant and split in (None, s)
    ]
    lost = len(labelled) - len({found.ids[row] for row in at})
    if lost > LEFT_OUT * len(labelled):
        raise NotComputed(
            f"the ids do not match: {lost:,} of {len(labelled):,} rows of {dataset.path} are not in {found.file}"
        )
    table = predicted(column, np.array(at, dtype=np.int64))
    rows = [labelled[i] for i in table.ids]
    return replace(
        table,
        true=column.true_of([row.label for row in rows], table.ids, dataset.path),
        groups=clusters(rows, dataset.cluster_field) if dataset.cluster_field else table.groups,
        fields=tuple(column.fields_of(row) for row in rows),
        exchanges=tuple(rows),
        sliceable=frozenset(dataset.slice_fields),
    )


def predicted(column: Column, at: NDArray[np.int64]) -> Table:
    """Rows of the predictions file."""
    found, aliases = column.predictions, column.suite.label_aliases
    own = places(found.labels, column.labels, aliases)
    predicted = np.where(found.predicted[at] >= 0, own[found.predicted[at]], -1)
    problems = {}
    for row, place in enumerate(at.tolist()):
        if predicted[row] < 0:
            problems[row] = _why(column, place)
    true_names = [found.labels[t] if t >= 0 else None for t in found.true[at].tolist()]
    ids = tuple(found.ids[i] for i in at)
    fields = tuple(
        {"split": found.splits[i], "group": found.groups[i], "true": name}
        for i, name in zip(at.tolist(), true_names, strict=True)
    )
    texts = [found.texts.get(i, {}) for i in at.tolist()]
    return Table(
        labels=column.labels,
        ids=ids,
        predicted=predicted,
        true=column.true_of(true_names, ids, found.file),
        probabilities=None
        if found.probabilities is None
        else spread(found.probabilities[at], found.labels, column.labels, aliases),
        groups=tuple(found.groups[i] for i in at),
        fields=fields,
        exchanges=tuple(
            Exchange(t["prompt"], t["response"], i) if "prompt" in t and "response" in t else None
            for t, i in zip(texts, ids, strict=True)
        ),
        problems=problems,
    )


def _why(column: Column, place: int) -> str:
    found = column.predictions
    if found.predicted[place] >= 0:
        return f'{UNKNOWN}"{one_line(found.labels[found.predicted[place]], 80)}" is no class of the suite'
    return found.texts.get(place, {}).get("error") or "it has no prediction"
