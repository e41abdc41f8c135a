"""Reports and matrices as other programs print them come back number for number."""

from __future__ import annotations

import csv
import io
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import classification_report, confusion_matrix

from refusal_core.errors import InputError
from refusal_core.runs import matrices
from refusal_core.runs.report_text import read_reports
from refusal_core.runs.sniff import read_text

warnings.filterwarnings("ignore", module="sklearn")

WORDS = st.text(st.characters(codec="utf-8", categories=("L", "Nd", "Pc", "Pd")), min_size=1, max_size=12)
NAMES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
TAKEN = {"accuracy", "macro avg", "weighted avg", "micro avg", "samples avg"}
LABELS = st.lists(NAMES, min_size=2, max_size=6, unique_by=str.lower).filter(
    lambda names: not TAKEN & {name.lower() for name in names}
)


@st.composite
def labelled(draw):
    labels = draw(LABELS)
    n = draw(st.integers(1, 60))
    places = st.lists(st.integers(0, len(labels) - 1), min_size=n, max_size=n)
    return labels, draw(places), draw(places)


def both(labels, true, predicted, **options):
    given = {"labels": range(len(labels)), "target_names": labels, "zero_division": 0} | options
    printed = classification_report(true, predicted, **given)
    return printed, classification_report(true, predicted, **given, output_dict=True)


@given(labelled(), st.integers(2, 6), st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_printed_report_comes_back(drawn, digits, windows):
    labels, true, predicted = drawn
    printed, wanted = both(labels, true, predicted, digits=digits)
    text = "=== TEST ===\n" + printed
    text = text.replace("\n", "\r\n") if windows else text
    [table] = read_reports(text.replace("\r\n", "\n"), "report.txt")
    assert (table.name, table.split, table.digits) == ("TEST", "test", digits)
    assert [row.label for row in table.classes] == [" ".join(label.split()) for label in labels]
    for row in (*table.classes, *table.averages):
        key = next(name for name in wanted if " ".join(name.split()) == row.label)
        for mine, theirs in zip((row.precision, row.recall, row.f1), ("precision", "recall", "f1-score"), strict=True):
            assert mine == pytest.approx(wanted[key][theirs], abs=0.5000001 * 10**-digits)
        assert row.support == wanted[key]["support"]
    assert table.n == len(true)
    assert table.accuracy == pytest.approx(wanted["accuracy"], abs=0.5000001 * 10**-digits)


@given(labelled())
@settings(max_examples=20, deadline=None)
def test_a_report_as_json_and_csv_comes_back_exactly(drawn):
    labels, true, predicted = drawn
    _, wanted = both(labels, true, predicted)
    [as_json] = read_text(json.dumps(wanted), "report.json")[0]
    [as_csv] = read_text(pd.DataFrame(wanted).T.to_csv(), "report.csv")[0]
    for table in (as_json.table, as_csv.table):
        assert [row.label.strip() for row in table.classes] == [label.strip() for label in labels]
        for row in (*table.classes, *table.averages):
            key = next(name for name in wanted if name.strip() == row.label.strip())
            found = (row.precision, row.recall, row.f1, row.support)
            assert found == pytest.approx(tuple(wanted[key].values()), rel=1e-15)
        assert table.accuracy == pytest.approx(wanted["accuracy"]) and table.n == len(true)


@given(labelled(), st.sampled_from(["list", "dict", "nested", "csv", "bare csv", "text", "numpy", "crosstab"]))
@settings(max_examples=80, deadline=None)
def test_a_matrix_comes_back_in_every_form(drawn, form):
    labels, true, predicted = drawn
    wanted = confusion_matrix(true, predicted, labels=range(len(labels)))
    table = _read(form, labels, wanted)
    assert table is not None, form
    assert np.array_equal(table.values, wanted)
    assert table.counted == "counts" and table.n == len(true)
    if form in ("list", "bare csv", "numpy"):
        assert not table.labels_stated and table.labels == tuple(map(str, range(len(labels))))
    else:
        assert list(table.labels) == labels
    stated = form in ("dict", "text", "crosstab")
    assert (table.rows, table.columns) == (("true", "predicted") if stated else ("unknown", "unknown"))


def _read(form: str, labels: list[str], matrix: np.ndarray):
    if form == "list":
        return read_text(json.dumps(matrix.tolist()), "m.json")[0][0].table
    if form == "dict":
        value = {"labels": labels, "matrix": matrix.tolist(), "rows": "true", "columns": "predicted"}
        return matrices.from_json(value, "m.json")
    if form == "nested":
        value = {a: dict(zip(labels, map(int, row), strict=True)) for a, row in zip(labels, matrix, strict=True)}
        return matrices.from_json(value, "m.json")
    if form in ("csv", "bare csv"):
        out = io.StringIO()
        named = form == "csv"
        rows = [["", *labels]] if named else []
        rows += [[*([name] if named else []), *row] for name, row in zip(labels, matrix, strict=True)]
        csv.writer(out).writerows(rows)
        return read_text(out.getvalue(), "m.csv")[0][0].table
    if form == "numpy":
        return matrices.from_text(f"Confusion matrix:\n{matrix}\n", "m.txt")[0]
    if form == "crosstab":
        frame = pd.DataFrame(matrix, index=pd.Index(labels, name="Actual"), columns=pd.Index(labels, name="Predicted"))
        return _first("Confusion matrix\n" + frame.to_string(), labels)
    width = max(map(len, labels)) + 7
    head = " " * width + "".join(f"  {'pred=' + name:>{width}}" for name in labels)
    rows = [
        f"{'true=' + a:<{width}}" + "".join(f"  {c:>{width}}" for c in r) for a, r in zip(labels, matrix, strict=True)
    ]
    return _first("confusion matrix:\n" + "\n".join([head, *rows]), labels)


def _first(text: str, labels: list[str]):
    """A printed matrix; names of several words are told apart by wide gaps only."""
    return matrices.from_text(text, "m.txt")[0]


def test_a_label_over_two_lines_is_put_together():
    printed, _ = both(["full\nrefusal", "compliant"], [0, 1, 1], [0, 1, 0])
    [table] = read_reports(printed, "r.txt")
    assert [row.label for row in table.classes] == ["full refusal", "compliant"]


def test_a_class_that_is_called_like_an_average_is_refused():
    printed, _ = both(["macro avg", "compliant"], [0, 1, 1], [0, 1, 0])
    with pytest.raises(InputError, match='a class of the report is called "macro avg"'):
        read_reports(printed, "r.txt")


def test_older_and_other_layouts():
    old = (
        "             precision    recall  f1-score   support\n\n     refuse       0.50      1.00      0.67         1\n"
    )
    [table] = read_reports(old + "\navg / total       0.50      1.00      0.67         1\n", "r.txt")
    assert table.average("weighted").f1 == 0.67 and table.accuracy is None
    card = "| Class | Precision | Recall | F1 | Support |\n|---|---|---|---|---|\n| full | 91.2% | 0.85 | 0.88 | 98 |\n"
    [table] = read_reports(card, "README.md")
    assert table.classes[0].precision == pytest.approx(0.912) and table.classes[0].support == 98


def test_what_stands_in_a_file_for_the_axes():
    for words, wanted in {
        "rows=true, cols=pred": ("true", "predicted"),
        "rows: predicted, columns: actual": ("predicted", "true"),
        "y axis: Actual": ("true", "predicted"),
        "true labels in the columns": ("predicted", "true"),
        "rows true, columns true": ("unknown", "unknown"),
        "nothing of the kind": ("unknown", "unknown"),
    }.items():
        found = matrices.from_json({"matrix": [[5, 1], [4, 90]], "note": words}, "m.json")
        assert (found.rows, found.columns) == wanted, words


def test_true_and_predicted_are_never_swapped():
    """Labels [full_refusal, compliant], rows true: recall 5/6, precision 5/9."""
    stated = {
        "labels": ["full_refusal", "compliant"],
        "matrix": [[5, 1], [4, 90]],
        "rows": "true",
        "columns": "predicted",
    }
    turned = stated | {"matrix": [[5, 4], [1, 90]], "rows": "predicted", "columns": "true"}
    for value in (stated, turned):
        matrix = matrices.from_json(value, "m.json").true_by_predicted()
        assert matrix[0, 0] / matrix[0].sum() == 5 / 6 and matrix[0, 0] / matrix[:, 0].sum() == 5 / 9
    assert matrices.from_json([[5, 1], [4, 90]], "m.json").true_by_predicted() is None


def test_shares_are_not_taken_for_counts():
    found = matrices.from_json({"matrix": [[0.9, 0.1], [0.25, 0.75]]}, "m.json")
    assert (found.counted, found.n) == ("row shares", None)
    assert matrices.from_json([[50.0, 50.0], [0.0, 100.0]], "cm_normalized.json").counted == "counts"
    assert matrices.from_json([[0.5, 0.0], [0.25, 0.25]], "m.json").counted == "shares of all"


def test_one_class_against_the_rest():
    rows = [{"class": "a", "TP": 3, "FP": 1, "FN": 2, "TN": 4}, {"class": "b", "TP": 4, "FP": 2, "FN": 1, "TN": 3}]
    text = "class,TP,FP,FN,TN\na,3,1,2,4\nb,4,2,1,3\n"
    nested = {row["class"]: {k.lower(): v for k, v in row.items() if k != "class"} for row in rows}
    for found in (
        read_text(json.dumps(rows), "m.json")[0][0].table,
        read_text(text, "m.csv")[0][0].table,
        read_text(json.dumps(nested), "m.json")[0][0].table,
    ):
        assert found.labels == ("a", "b")
        assert found.true_positives.tolist() == [3, 4] and found.false_negatives.tolist() == [2, 1]


def test_the_rows_of_a_vega_figure():
    rows = [{"actual": a, "predicted": b, "count": c} for a, b, c in (("x", "x", 3), ("x", "y", 1), ("y", "y", 2))]
    found = matrices.from_json({"$schema": "vega-lite", "datasets": {"d": rows}}, "m.json")
    assert found.labels == ("x", "y") and found.values.tolist() == [[3, 1], [0, 2]] and found.rows == "true"


@pytest.mark.parametrize(
    "value", ["[[1, 2], [3]]", "[[1, 2, 3], [4, 5, 6]]", "[[1, -2], [3, 4]]", '[["a", "b"], ["c", "d"]]']
)
def test_why_a_list_is_no_matrix_is_said(value):
    with pytest.raises(InputError, match="no confusion matrix"):
        read_text(value, "m.json")
