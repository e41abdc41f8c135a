"""Labelled predictions, made for tests."""

import numpy as np
from hypothesis import strategies as st

from refusal_core.metrics.items import Items


def items_of(true, predicted, labels="abcde", **more) -> Items:
    ids = more.pop("ids", None) or [f"i{row}" for row in range(len(true))]
    return Items(tuple(labels), tuple(ids), np.array(true, dtype=int), np.array(predicted, dtype=int), **more)


def noisy_items(n=400, wrong=0.2, seed=0, k=5, groups=None) -> Items:
    """Five classes, one of them rare; `wrong` of the answers are drawn anew; probabilities that go with the answers."""
    rng = np.random.default_rng(seed)
    true = np.sort(rng.choice(k, n, p=np.array([5, 2, 1.5, 1, 0.5])[:k] / np.array([5, 2, 1.5, 1, 0.5])[:k].sum()))
    true[:k] = np.arange(k)
    predicted = np.where(rng.random(n) < wrong, rng.integers(0, k, n), true)
    probabilities = rng.dirichlet(np.ones(k), n) * 0.5
    probabilities[np.arange(n), predicted] += 0.5
    return items_of(true, predicted, "abcde"[:k], probabilities=probabilities, groups=groups)


@st.composite
def any_items(draw, most=30, classes=4, probabilities=False):
    k = draw(st.integers(2, classes))
    n = draw(st.integers(1, most))
    places = st.lists(st.integers(0, k - 1), min_size=n, max_size=n)
    true, predicted = draw(places), draw(places)
    if not probabilities:
        return items_of(true, predicted, "abcd"[:k])
    weights = np.array(draw(st.lists(st.integers(1, 9), min_size=n * k, max_size=n * k)), dtype=float).reshape(n, k)
    return items_of(true, predicted, "abcd"[:k], probabilities=weights / weights.sum(axis=1, keepdims=True))
