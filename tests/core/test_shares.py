"""Shares of classes and groups add up to what was counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.labels import DEFAULT_FOLD, LABELS
from refusal_core.metrics.shares import class_shares, refused_by_group, refused_share

ITEMS = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from("abc")))


@given(ITEMS)
def test_shares_add_up(items):
    labels = [label for label, _ in items]
    shares = class_shares(labels, LABELS)
    assert [share.label for share in shares] == list(LABELS)
    assert [share.count for share in shares] == [labels.count(label) for label in LABELS]
    if items:
        assert sum(share.rate.value for share in shares) == pytest.approx(1)
        refused = sum(share.rate.value for share in shares if DEFAULT_FOLD.is_refused(share.label))
        assert refused_share(labels, DEFAULT_FOLD).value == pytest.approx(refused)
    else:
        assert all(share.rate.value is None for share in shares)


@given(ITEMS)
def test_groups_divide_the_items(items):
    labels, groups = [label for label, _ in items], [group for _, group in items]
    found = refused_by_group(labels, groups, DEFAULT_FOLD)
    assert sum(group.refused.n for group in found) == len(items)
    assert {group.group for group in found} == set(groups)
    assert [(-g.refused.n, g.group) for g in found] == sorted((-g.refused.n, g.group) for g in found)
    for group in found:
        inside = [label for label, name in items if name == group.group]
        assert group.refused == refused_share(inside, DEFAULT_FOLD)
        assert group.count == sum(map(DEFAULT_FOLD.is_refused, inside))


def test_strangers_are_refused():
    with pytest.raises(ValueError, match="other"):
        class_shares(["other"], LABELS)
    with pytest.raises(ValueError, match="1 items but 0 groups"):
        refused_by_group(["compliant"], [], DEFAULT_FOLD)
