import csv
import dataclasses
import enum
import io
import json
import math
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from refusal_core.reports import to_json, write_csv

SURROGATES = st.text(st.characters(categories=("Cs", "Ll", "So")))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | SURROGATES
KEYS = st.text(st.characters(codec="utf-8"))
JSONABLE = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20)


# JSON


def refuse_constant(name):
    raise AssertionError(f"not strict JSON: {name}")


def strict(text):
    return json.loads(text, parse_constant=refuse_constant)


def expected_json(obj):
    if isinstance(obj, float) and not math.isfinite(obj):
        return None
    if isinstance(obj, str):
        return obj.encode("utf-8", "backslashreplace").decode()
    if isinstance(obj, list):
        return [expected_json(item) for item in obj]
    if isinstance(obj, dict):
        return {key: expected_json(value) for key, value in obj.items()}
    return obj


@given(JSONABLE)
def test_json_is_strict_ascii_and_comes_back(obj):
    text = to_json(obj)
    assert text.isascii()
    assert strict(text) == expected_json(obj)


class Colour(enum.StrEnum):
    RED = "red"


class Old(str, enum.Enum):  # noqa: UP042
    ONE = "one"


class Count(enum.IntEnum):
    TWO = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    tags: tuple[str, ...] = ()
    inner: "Point | None" = None


class Model(BaseModel):
    schema_: str = Field("refusal/1", alias="schema")
    value: float = math.nan
    points: tuple[int, ...] = (1, 2)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.float64("nan"), None),
        (np.longdouble(0.25), 0.25),
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("é"), "é"),
        (np.array([[1.0, np.inf], [np.nan, 2.0]]), [[1.0, None], [None, 2.0]]),
        (np.array(3), 3),
        (np.array(["a", None], dtype=object), ["a", None]),
        ((1, (2, [3])), [1, [2, [3]]]),
        ({1: "a", np.int64(2): "b"}, {"1": "a", "2": "b"}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Point(math.inf, ("a",), Point(1)), {"x": None, "tags": ["a"], "inner": {"x": 1, "tags": [], "inner": None}}),
        (Model(), {"schema": "refusal/1", "value": None, "points": [1, 2]}),
        ([Colour.RED, Old.ONE, Count.TWO], ["red", "one", 2]),
        ("\ud83d", "\\ud83d"),
        ({chr(0xD83D): 1, chr(0xD83E): 2}, {"\\ud83d": 1, "\\ud83e": 2}),
    ],
)
def test_json_of_each_type(obj, expected):
    assert strict(to_json(obj)) == expected


def test_json_keeps_order_and_indents():
    assert to_json({"b": 1, "a": [2]}) == '{"b": 1, "a": [2]}'
    assert to_json({"b": 1, "a": 2}, indent=2) == '{\n  "b": 1,\n  "a": 2\n}'


@pytest.mark.parametrize(
    "obj",
    [{1, 2}, b"x", 1j, np.complex64(1), object(), Point, Model, Decimal(1), Path("a"), np.datetime64("2020-01-01")],
)
def test_json_refuses_other_types(obj):
    with pytest.raises(TypeError, match="no JSON for"):
        to_json([obj])


@pytest.mark.parametrize("key", [None, True, 1.5, (1,), b"a"])
def test_json_refuses_other_keys(key):
    with pytest.raises(TypeError, match="no JSON key for"):
        to_json({key: 1})


def test_json_refuses_keys_that_would_be_one():
    with pytest.raises(ValueError, match="two keys"):
        to_json({1: "a", "1": "b"})


# CSV


def written(header, rows):
    file = io.StringIO(newline="")
    write_csv(file, header, rows)
    return file.getvalue()


@given(st.lists(st.tuples(st.text(), SURROGATES, st.floats(), st.integers()), max_size=8))
def test_csv_comes_back_and_no_text_cell_starts_a_formula(rows):
    back = list(csv.reader(io.StringIO(written(["a", "b", "c", "d"], rows), newline="")))
    assert back[0] == ["a", "b", "c", "d"]
    assert len(back) == len(rows) + 1
    for row, cells in zip(rows, back[1:], strict=True):
        for text, cell in zip(row[:2], cells[:2], strict=True):
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
            plain = expected_json(text)
            assert cell == plain or cell == "'" + plain
        assert (float(cells[2]) == row[2]) if math.isfinite(row[2]) else cells[2] == ""
        assert int(cells[3]) == row[3]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_csv_formulas_get_an_apostrophe_also_in_the_header(start):
    header, row = csv.reader(io.StringIO(written([start + "h"], [[start + "1"]]), newline=""))
    assert (header, row) == (["'" + start + "h"], ["'" + start + "1"])


def test_csv_numbers_stay_numbers():
    row = [-1, -1.5, np.float32(-0.5), np.int64(-7), None, math.nan, -math.inf, True, np.bool_(False), 1e-7]
    assert written(["x"] * 10, [row]).splitlines()[1] == "-1,-1.5,-0.5,-7,,,,true,false,1e-07"


@pytest.mark.parametrize("text", ['a"b', "a\nb", "a\rb", "a\r\nb", "a,b", "\0", ""])
def test_csv_quotes_what_must_be_quoted(text):
    assert list(csv.reader(io.StringIO(written(["h", "i"], [[text, text]]), newline="")))[1] == [text, text]


def test_csv_refuses_ragged_rows():
    with pytest.raises(ValueError, match="row 2 has 1 cells, the header 2"):
        written(["a", "b"], [[1, 2], [1]])
