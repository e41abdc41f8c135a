"""How many blocks of rows a study will pass, so that its progress has an end."""

from __future__ import annotations

import math
from collections.abc import Iterator

from refusal_core.direction.category_nulls import movable
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.leakage import CHUNK, SAMPLE
from refusal_core.direction.nulls import mixed_categories
from refusal_core.direction.result import Settings
from refusal_core.direction.rows import Rows, block_count

TOGETHER = 1_000  # directions of one null in memory at once


def parts(repeats: int) -> Iterator[slice]:
    """The draws of one null, at most TOGETHER at a time."""
    for start in range(0, repeats, TOGETHER):
        yield slice(start, min(start + TOGETHER, repeats))


def blocks_of(train: Rows, test: Rows, settings: Settings, held_out_only: bool) -> int:
    """Blocks of both files over all passes; a null that turns out impossible may leave some unpassed."""
    a, b = block_count(train.n, train.d), block_count(test.n, test.d)
    lookups = sum(math.ceil(min(rows.n, SAMPLE) / CHUNK) for rows in (train, test))
    total = (a + b) + a + (a + b) + a * (2 + lookups) + 2 * b  # fit and score, variances, leakage twice, variants
    if held_out_only:
        return total
    if all(test.label_counts):
        draws = len(list(parts(settings.repeats)))
        total += draws * (a + b) * (2 if mixed_categories(train) else 1)
        total += a + b if not isinstance(movable(train, test), NotAvailable) else 0
    if set(train.categories) & set(test.categories):
        total += 2 * block_count(train.n + test.n, train.d) * (1 + settings.split_repeats)
    return total


def blocks_of_one_file(rows: Rows, split_repeats: int) -> int:
    """The same for one pooled file."""
    return block_count(rows.n, rows.d) * (1 + 2 * (1 + split_repeats))
