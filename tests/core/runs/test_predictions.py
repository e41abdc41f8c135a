"""predictions.jsonl: strict, with line numbers; rows by split and variant become items."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusal_core.errors import InputError
from refusal_core.labels import LABELS
from refusal_core.runs.predictions import read_predictions, variants_of

FILES = Path(__file__).parent / "files"


def read(*rows: object):
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    return read_predictions(io.BytesIO(text.encode()), "p.jsonl")


def test_a_file_with_splits_variants_and_an_unanswered_row():
    found = read_predictions(FILES / "predictions.jsonl")
    assert len(found) == 5 and found.labels == LABELS and found.main_split == "test"
    assert list(variants_of(found)) == [("test", ""), ("test", "lower_case"), ("cases", "")]
    items = found.items()
    assert items.ids == ("a", "b") and items.groups.tolist() == [0, 0]
    assert [found.labels[i] for i in items.true] == ["full_refusal", "full_refusal"]
    assert items.probabilities[0].tolist() == [0.1, 0.9, 0, 0, 0]
    assert found.items(variant="lower_case").ids == ("a",) and found.items(split="cases").ids == ("k",)
    assert found.predicted[3] == -1 and found.texts[3] == {"error": "empty response"}
    assert found.texts[1] == {"prompt": "p", "response": "r"}
    turned = found.items(labels=LABELS[::-1])
    assert turned.labels == LABELS[::-1] and turned.probabilities[0].tolist() == [0, 0, 0, 0.9, 0.1]
    assert not found.predicted.flags.writeable


ROWS = st.tuples(
    st.sampled_from("abc"), st.sampled_from("abc"), st.sampled_from(["", "test"]), st.none() | st.text(max_size=3)
)


@given(st.lists(ROWS, min_size=1, max_size=20))
@settings(max_examples=40, deadline=None)
def test_what_is_written_comes_back(rows):
    names = ("label", "true", "split", "group")
    found = read(*({"id": i, **dict(zip(names, row, strict=True))} for i, row in enumerate(rows)))
    assert [found.labels[i] for i in found.predicted] == [a for a, *_ in rows]
    assert [found.labels[i] for i in found.true] == [b for _, b, *_ in rows]
    assert list(found.splits) == [split for *_, split, _ in rows] and found.ids == tuple(map(str, range(len(rows))))
    assert list(found.groups) == [group or None for *_, group in rows]
    wanted = "test" if "test" in found.splits else ""
    assert len(found.items()) == sum(split == wanted for *_, split, _ in rows)


GOOD = {"id": "a", "label": "x", "true": "x", "probabilities": {"x": 0.75, "y": 0.25}}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{cut", "line 2: the line is not valid JSON"),
        ("[1]", "the line is a list, not an object"),
        ({"id": "b", "true": "x"}, 'there is no "label"'),
        ({"id": "b", "label": 3}, '"label" is a number'),
        ({"id": "b", "label": " "}, '"label" is blank'),
        ({"id": [1], "label": "x"}, '"id" is a list'),
        ({"id": "b", "label": "x", "group": {}}, '"group" is an object'),
        ({"id": "b", "label": "x", "probabilities": {"x": 1.5, "y": -0.5}}, 'the probability of "x" is 1.5'),
        ({"id": "b", "label": "x", "probabilities": {"x": True, "y": 0}}, 'the probability of "x" is true'),
        ('{"id": "b", "label": "x", "probabilities": {"x": NaN, "y": 1}}', 'the probability of "x" is nan'),
        ({"id": "b", "label": "x", "probabilities": {"x": 0.2, "y": 0.2}}, "the probabilities sum to 0.4, not 1"),
        ({"id": "b", "label": "x", "probabilities": {"x": 1.0, "z": 0.0}}, "over other classes than before"),
        ({"id": "b", "label": "z", "probabilities": {"x": 1.0, "y": 0.0}}, '"label" is "z", which has no probability'),
        ('{"id": "b", "label": "x", "label": "y"}', 'the key "label" comes twice'),
    ],
)
def test_a_wrong_line_is_named(row, said):
    with pytest.raises(InputError) as refused:
        read(GOOD, row)
    assert said in str(refused.value) and str(refused.value).startswith("p.jsonl, line 2")


def test_items_are_never_guessed():
    with pytest.raises(InputError, match='the id "a" comes twice'):
        read(GOOD, GOOD).items()
    with pytest.raises(InputError, match='several splits: "validation", "cases"'):
        read(GOOD | {"split": "validation"}, GOOD | {"split": "cases"}).items()
    with pytest.raises(InputError, match="no row with an answer and a true class"):
        read({"id": "a", "label": "x"}).items()
    with pytest.raises(InputError, match='not among those asked for: "x"'):
        read(GOOD).items(labels=("y", "z"))
    assert read(GOOD | {"id": "b", "probabilities": None}, GOOD).items().probabilities is None
    assert np.isnan(read(GOOD | {"probabilities": None}, GOOD).probabilities).any(axis=1).tolist() == [True, False]
