"""What a suite may be: hostile and mistaken ones get one clear sentence with line and column."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.errors import InputError
from refusal_core.labels import LABELS
from refusal_core.limits import SUITE_BYTES
from refusal_core.scorecard import read_suite, schema
from refusal_core.scorecard.assertions import TYPES
from refusal_core.scorecard.unfold import names_of
from refusal_core.scorecard.yaml_in import read_yaml
from tests.core.scorecard.cases import assertion

GOOD = assertion("{type: metric, metric: accuracy, threshold: 0.5}")
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)


def refusal(text: str | bytes) -> str:
    with pytest.raises(InputError) as problem:
        read_suite(text if isinstance(text, bytes) else text.encode(), "suite.yaml")
    return str(problem.value)


def test_a_good_suite_is_read_with_its_defaults():
    suite = read_suite(GOOD.encode()).suite
    assert suite.labels == list(LABELS)
    assert (suite.defaults.confidence, suite.defaults.correction, suite.defaults.on_inconclusive) == (
        0.95,
        "none",
        "warn",
    )
    assert suite.sets["refusal"] == {"full_refusal", "partial_refusal"}


HOSTILE = [
    ("an alias bomb", BOMB, "more than 100,000 values", "line 6"),
    ("an alias of itself", "a: &a [1, *a]", "alias *a has no finished anchor", "line 1, column 11"),
    ("a Python tag", "version: !!python/object/apply:os.system ['ls']", "the tag", "line 1, column 10"),
    ("an own tag", "version: !thing 1", "the tag !thing", "line 1, column 10"),
    ("a merge key", "a: &a {b: 1}\nc: {<<: *a}", "merge key", "line 2, column 5"),
    ("a key twice", "version: 1\nversion: 1", 'the key "version" is there twice', "line 2, column 1"),
    ("two documents", "version: 1\n---\nversion: 1", "a second document", "line 2"),
    ("a list for a key", "? [a]\n: 1", "a key is no plain text", "line 1"),
    ("deep nesting", "a: " + "[" * 500 + "]" * 500, "levels deep", "line 1"),
    ("nothing", "", "the file is empty", "suite.yaml"),
    ("a tab", "version:\n\t- 1", "not valid YAML", "line 2, column 1"),
    ("an open quote", 'version: "1', "not valid YAML", "line 1"),
    ("a scalar", "just text", "it is no mapping", "line 1, column 1"),
    ("Latin-1", "description: é".encode("latin-1"), "not UTF-8", "line 1"),
    ("a control character", "version: \x07", "not valid YAML", "suite.yaml"),
    ("a binary", b"\x00\x01\x02\xff\xfe", "suite.yaml", "suite.yaml"),
]


@pytest.mark.parametrize(("text", "what", "where"), [c[1:] for c in HOSTILE], ids=[c[0] for c in HOSTILE])
def test_hostile_yaml_is_refused_in_one_sentence(text, what, where):
    begun = time.perf_counter()
    sentence = refusal(text)
    assert what in sentence and where in sentence, sentence
    assert "\n" not in sentence and sentence.endswith(".")
    assert time.perf_counter() - begun < 3


def test_a_huge_file_is_refused_before_it_is_parsed():
    assert "split the suite" in refusal(b"#" + b"x" * SUITE_BYTES)


def edited(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


MISTAKES = [
    (
        "an unknown key",
        edited("threshold: 0.5", "treshold: 0.5"),
        'the key "treshold" is not known',
        "line 7, column 42",
    ),
    ("a near key", edited("threshold: 0.5", "threshold: 0.5, sevrity: advisory"), '"severity" may be meant', "line 7"),
    (
        "an unknown type",
        edited("type: metric", "type: llm-rubric"),
        'no assertion type "llm-rubric"',
        "line 7, column 9",
    ),
    ("no type", edited("type: metric, ", ""), "an assertion has no type", "line 7, column 9"),
    ("text for a number", edited("0.5", "high"), 'threshold is "high"; a number was expected', "line 7, column 42"),
    ("a quoted number", edited("0.5", '"0.5"'), "a number was expected", "line 7"),
    ("a word for true", edited("{id: a,", "{id: a, gate: yes,"), 'gate is "yes"; true or false was expected', "line 3"),
    ("no tests", "version: 1\ncheckpoints: [{id: a, path: x}]", 'the key "tests" is missing', "line 1"),
    ("another version", edited("version: 1", "version: 2"), "version is 2; 1 was expected", "line 1, column 1"),
    ("an unknown metric", edited("metric: accuracy", "metric: bleu"), 'metric is "bleu"', "line 7"),
    ("f1 of what", edited("metric: accuracy", "metric: f1"), "f1 needs a label", "line 7"),
    ("an unknown class", edited("metric: accuracy", "metric: recall, label: refused"), 'no class "refused"', "line 7"),
    ("no column", edited("predictions: a.jsonl", "gate: true"), "needs path, predictions or responses", "line 3"),
    ("two kinds", edited("id: a,", "id: a, responses: r.jsonl,"), "exclude each other", "line 3"),
    (
        "an id twice",
        edited("checkpoints: [", "checkpoints: [{id: a, path: y}, "),
        'checkpoints are called "a"',
        "line 3",
    ),
    ("no such baseline", edited("version: 1", "version: 1\nbaseline: z"), 'no checkpoint "z"', "line 2, column 1"),
    ("no such dataset", edited("threshold: 0.5", "threshold: 0.5, dataset: d"), 'no dataset "d"', "line 7, column 58"),
    ("infinite", edited("0.5", ".inf"), "threshold is", "line 7"),
    ("more than a float holds", edited("0.5", "1e999"), 'threshold is "1e999"', "line 7"),
    ("a number of 400 digits", edited("0.5", "9" * 400), "a number was expected", "line 7"),
    (
        "too many classes",
        edited("version: 1", f"version: 1\nlabels: {[str(i) for i in range(1_001)]}"),
        "labels is a list",
        "line 2",
    ),
    ("an average as a class", edited("version: 1", "version: 1\nlabels: [a, macro avg]"), "cannot be called", "line 2"),
]


@pytest.mark.parametrize(("text", "what", "where"), [c[1:] for c in MISTAKES], ids=[c[0] for c in MISTAKES])
def test_mistakes_are_said_with_line_and_column(text, what, where):
    sentence = refusal(text)
    assert what in sentence and where in sentence, sentence


def test_ten_thousand_rows_without_a_name_are_named_at_once():
    row = "{type: metric, metric: accuracy, threshold: 0.5}"
    suite = read_suite((assertion(row) + f"      - {row}\n" * 9_999).encode()).suite
    begun = time.perf_counter()
    names = names_of(suite.tests[0])
    assert time.perf_counter() - begun < 1
    assert names[:3] == ["metric", "metric-2", "metric-3"] and len(set(names)) == 10_000


def test_words_stay_words():
    """YAML 1.1 reads "no" as false, and a date as a date: a slice may be called so."""
    data = read_yaml(b"{lang: no, on: off, day: 2024-01-02, n: 1_0, time: 12:30:00, v: 1e3, t: true}", "x").data
    assert data == {
        "lang": "no", "on": "off", "day": "2024-01-02", "n": "1_0", "time": "12:30:00", "v": 1000.0, "t": True,
    }  # fmt: skip


def test_aliases_within_reason_are_followed():
    data = read_yaml(b"base: &b {x: [1, 2]}\nagain: *b", "x").data
    assert data == {"base": {"x": [1, 2]}, "again": {"x": [1, 2]}}


TEXT = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cn", "Co")), max_size=6)


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-10**9, 10**9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
))  # fmt: skip
def test_json_is_yaml_and_read_as_it_is(value):
    text = json.dumps(value, ensure_ascii=False)
    assert read_yaml(text.encode(), "x").data == value


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_whatever_is_given_raises_nothing_else(content):
    content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    try:
        read_suite(content, "suite.yaml")
    except InputError as problem:
        assert "\n" not in str(problem)


def test_the_schema_knows_every_type_and_refuses_other_keys():
    found = schema()
    types = found["$defs"]["Test"]["properties"]["assert"]["items"]["discriminator"]["mapping"]
    assert set(types) == {name for kind in TYPES for name in (kind, f"not-{kind}")}
    assert all(part["additionalProperties"] is False for part in found["$defs"].values())
    assert json.loads(json.dumps(found)) == found
