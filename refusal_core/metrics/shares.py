"""How often each class is answered, and how often an answer counts as refused: over all rows and by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from refusal_core.labels import Fold
from refusal_core.metrics.intervals import LEVEL, Rate, rate


@dataclass(frozen=True, slots=True)
class Share:
    """One class: `rate.value` is its part of all items (0 to 1, None when there are none), `count` its items."""

    label: str
    count: int
    rate: Rate


@dataclass(frozen=True, slots=True)
class GroupShare:
    """The refused part of one group's items. `refused.n` is the group's size, `count` its refused items."""

    group: str
    count: int
    refused: Rate


def class_shares(predicted: Iterable[str], classes: Sequence[str], level: float = LEVEL) -> tuple[Share, ...]:
    """One Share for each of `classes`, in that order; all of them have the number of items as n, Wilson's interval.

    Raises ValueError for an item that is none of `classes`.
    """
    counts = Counter(predicted)
    if strangers := counts.keys() - set(classes):
        raise ValueError(f"not among the classes: {sorted(strangers)}")
    n = counts.total()
    return tuple(Share(label, counts[label], rate(counts[label], n, level)) for label in classes)


def refused_share(predicted: Iterable[str], fold: Fold, level: float = LEVEL) -> Rate:
    """The part of the items that `fold` counts as refused, with Wilson's interval."""
    flags = [fold.is_refused(label) for label in predicted]
    return rate(sum(flags), len(flags), level)


def refused_by_group(
    predicted: Sequence[str], groups: Sequence[str], fold: Fold, level: float = LEVEL
) -> tuple[GroupShare, ...]:
    """One GroupShare a group, the largest group first, equal ones by name. The n of all groups sum to the items.

    Raises ValueError when the two sequences differ in length.
    """
    if len(predicted) != len(groups):
        raise ValueError(f"{len(predicted)} items but {len(groups)} groups")
    sizes = Counter(groups)
    refused = Counter(group for label, group in zip(predicted, groups, strict=True) if fold.is_refused(label))
    ordered = sorted(sizes, key=lambda group: (-sizes[group], group))
    return tuple(GroupShare(group, refused[group], rate(refused[group], sizes[group], level)) for group in ordered)
