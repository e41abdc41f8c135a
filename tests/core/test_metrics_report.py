import json
import math
import re

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.errors import InputError
from refusal_core.labels import LABELS
from refusal_core.metrics.intervals import f1_interval, wilson
from refusal_core.metrics.report import log_loss, report, report_from_matrix
from refusal_core.reports import to_json

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=25)


@st.composite
def cases(draw):
    """Labels (some of them never used), and true and predicted ones."""
    labels = draw(st.one_of(st.just(list(LABELS)), st.lists(NAMES, min_size=2, max_size=7, unique=True)))
    used = st.sampled_from(draw(st.lists(st.sampled_from(labels), min_size=1)))
    pairs = draw(st.lists(st.tuples(used, used), min_size=1, max_size=60))
    return labels, [t for t, _ in pairs], [p for _, p in pairs]


@given(cases())
def test_every_number_is_scikit_learns(case):
    labels, true, predicted = case
    ours = report(true, predicted, labels)
    assert np.array_equal(ours.matrix, sk.confusion_matrix(true, predicted, labels=labels))
    scores = sk.precision_recall_fscore_support(true, predicted, labels=labels, zero_division=0)
    for c, precision, recall, f1, support in zip(ours.classes, *scores, strict=True):
        assert [c.precision.value or 0, c.recall.value or 0, c.f1.value or 0] == pytest.approx([precision, recall, f1])
        assert (c.support, c.predicted) == (support, predicted.count(c.label))
    assert ours.accuracy.value == pytest.approx(sk.accuracy_score(true, predicted))
    for average, means in (("macro", ours.macro), ("weighted", ours.weighted)):
        expected = sk.precision_recall_fscore_support(true, predicted, labels=labels, average=average, zero_division=0)[
            :3
        ]
        assert (means.precision, means.recall, means.f1) == pytest.approx(expected)
    expected = sk.precision_recall_fscore_support(
        true, predicted, labels=labels, average="macro", zero_division=np.nan
    )[:3]
    means = ours.macro_where_defined
    assert (means.precision, means.recall, means.f1) == pytest.approx(expected)


@given(cases(), st.sampled_from([2, 4]))
def test_the_text_is_scikit_learns_character_by_character(case, digits):
    labels, true, predicted = case
    expected = sk.classification_report(true, predicted, labels=labels, digits=digits, zero_division=0)
    if not any(t == p for t, p in zip(true, predicted, strict=True)):
        assert re.search(r"\d\.0$", expected, flags=re.MULTILINE), (
            "it no longer prints support as a fraction: drop this case"
        )
        expected = re.sub(r"  (\d+)\.0$", r"    \1", expected, flags=re.MULTILINE)
    assert report(true, predicted, labels).text(digits) == expected


@given(cases())
def test_intervals_and_undefined_scores(case):
    ours = report(case[1], case[2], case[0])
    for i, c in enumerate(ours.classes):
        tp = ours.matrix[i][i]
        assert c.precision.interval == wilson(tp, c.predicted)
        assert c.recall.interval == wilson(tp, c.support)
        assert c.f1.interval == f1_interval(tp, c.predicted - tp, c.support - tp)
        undefined = {score for label, score in ours.undefined_as_zero if label == c.label}
        assert ("precision" in undefined) == (c.predicted == 0) == (c.precision.value is None)
        assert ("recall" in undefined) == (c.support == 0) == (c.recall.value is None)
        assert ("f1" in undefined) == (c.predicted + c.support == 0) == (c.f1.value is None)
    assert ours.accuracy.interval == wilson(sum(t == p for t, p in zip(*case[1:], strict=True)), len(case[1]))
    assert (ours.macro == ours.macro_where_defined) == (not ours.undefined_as_zero) or ours.macro.f1 == 0


@given(cases())
def test_a_report_comes_back_from_its_own_matrix_file(case):
    ours = report(case[1], case[2], case[0])
    file = json.loads(to_json(ours.confusion_matrix()))
    assert list(file) == ["labels", "matrix", "rows", "columns"]
    assert (file["rows"], file["columns"]) == ("true", "predicted")
    assert report_from_matrix(file["matrix"], file["labels"]) == ours


def test_rows_are_true_and_columns_predicted():
    ours = report(["a", "a", "b"], ["b", "b", "b"], ["a", "b"])
    assert ours.matrix == ((0, 2), (0, 1))
    assert ours.classes[0].precision.value is None and ours.classes[0].recall.value == 0.0
    assert ours.undefined_as_zero == (("a", "precision"),)
    assert ours.macro.precision == pytest.approx(1 / 6) and ours.macro_where_defined.precision == pytest.approx(1 / 3)


def test_a_class_that_never_occurs_counts_as_zero_in_macro():
    ours = report(["a", "b"], ["a", "b"], ["a", "b", "c"])
    assert ours.macro.f1 == pytest.approx(2 / 3)
    assert ours.weighted.f1 == ours.macro_where_defined.f1 == 1.0
    assert ours.undefined_as_zero == (("c", "precision"), ("c", "recall"), ("c", "f1"))


def test_no_items_is_undefined_throughout():
    ours = report([], [], ["a", "b"])
    assert ours.n == 0 and ours.accuracy.value is None
    for means in (ours.macro, ours.weighted, ours.macro_where_defined):
        assert (means.precision, means.recall, means.f1) == (None, None, None)
    assert ours.text().count("0.0000") == 2 * 3 + 1 + 2 * 3


def test_a_label_outside_is_named_with_its_count():
    with pytest.raises(InputError, match=r'^true labels: .*"refusal" \(2 times\).*compliant, full_refusal') as error:
        report(["refusal", "refusal", "compliant"], ["compliant"] * 3, LABELS)
    assert error.value.exit_code == 2
    with pytest.raises(InputError, match=r'predicted labels.*"None" \(1 times\)'):
        report(["compliant"], [None], LABELS)
    with pytest.raises(InputError, match="and 3 more"):
        report([f"x{i}" for i in range(8)], ["compliant"] * 8, LABELS)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: report(["a"], [], ["a"]), ValueError),
        (lambda: report([], [], []), ValueError),
        (lambda: report(["a"], ["a"], ["a", "a"]), ValueError),
        (lambda: report_from_matrix([[1, 0]], ["a", "b"]), ValueError),
        (lambda: report_from_matrix([[1], [0]], ["a", "b"]), ValueError),
        (lambda: report_from_matrix([[1, -1], [0, 0]], ["a", "b"]), ValueError),
        (lambda: report_from_matrix([[0.5, 0], [0, 0]], ["a", "b"]), TypeError),
    ],
)
def test_wrong_arguments_are_refused(call, error):
    with pytest.raises(error):
        call()


def test_a_label_cannot_break_the_lines_of_the_text():
    ours = report(["a\nb", "c"], ["c", "c"], ["a\nb", "c"])
    assert len(ours.text().splitlines()) == 8
    assert "a b" in ours.text()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_log_loss_is_scikit_learns(p):
    p = np.array(p)
    expected = sk.log_loss(np.ones(len(p)), np.column_stack([1 - p, p]), labels=[0, 1])
    assert log_loss(p) == pytest.approx(expected, abs=1e-12)


def test_log_loss_at_its_ends():
    assert log_loss([]) is None
    assert log_loss([0.0]) == pytest.approx(36.04, abs=0.01)
    assert math.copysign(1, log_loss([1.0])) == 1.0 and log_loss([1.0]) == 0.0
    assert log_loss(np.array([1.0000001], dtype=np.float32)) == 0.0
    assert log_loss([0.5, 0.25]) == pytest.approx(1.5 * math.log(2))
    for wrong in ([math.nan], [1.1], [-0.1], [math.inf], [[0.5]]):
        with pytest.raises(ValueError):
            log_loss(wrong)
