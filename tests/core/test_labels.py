import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.labels import COLOUR, DEFAULT_FOLD, FOLDS, LABELS, MEANING, OTHER_COLOUR


def test_the_five_classes_in_their_order_everywhere():
    assert LABELS == ("compliant", "full_refusal", "partial_refusal", "capability_limitation", "clarification")
    assert tuple(MEANING) == tuple(COLOUR) == LABELS


def test_colours_are_apart():
    colours = [*COLOUR.values(), OTHER_COLOUR]
    assert len(set(colours)) == 6
    assert all(re.fullmatch("#[0-9A-F]{6}", colour) for colour in colours)


def test_folds():
    refused = {key: [label for label in LABELS if fold.is_refused(label)] for key, fold in FOLDS.items()}
    assert refused == {
        "full-partial": ["full_refusal", "partial_refusal"],
        "plus-capability": ["full_refusal", "partial_refusal", "capability_limitation"],
        "not-compliant": ["full_refusal", "partial_refusal", "capability_limitation", "clarification"],
    }
    assert DEFAULT_FOLD.key == "full-partial" and DEFAULT_FOLD.name == "full + partial refusal"
    assert all(fold.key == key and fold.key.replace("-", "").isalnum() for key, fold in FOLDS.items())


@pytest.mark.parametrize("fold", FOLDS.values(), ids=lambda fold: fold.key)
@given(weights=st.lists(st.floats(0, 1), min_size=5, max_size=5).filter(any))
def test_refused_probability_is_the_share_of_the_refused_classes(fold, weights):
    probabilities = {label: weight / sum(weights) for label, weight in zip(LABELS, weights, strict=True)}
    refused = fold.refused_probability(probabilities)
    assert 0 <= refused <= 1
    assert refused == pytest.approx(
        1 - sum(p for label, p in probabilities.items() if label not in fold.refused), abs=1e-9
    )


def test_refused_probability_without_our_classes_is_zero():
    assert DEFAULT_FOLD.refused_probability({"toxic": 1.0}) == 0.0
    assert type(DEFAULT_FOLD.refused_probability({})) is float
