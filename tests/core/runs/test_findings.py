"""What does not add up in a run, each from a small folder of its own."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusal_core.metrics.report import report_from_matrix
from refusal_core.runs.by_class import class_scores
from refusal_core.runs.contradictions import contradictions
from refusal_core.runs.model import Run
from refusal_core.runs.recount import settled
from refusal_core.runs.tables import MatrixTable, ReportRow, ReportTable
from tests.core.runs.made import (
    evaluation,
    kinds,
    loss,
    of_kind,
    only,
    rows,
    seen,
    write_json,
    write_lines,
    write_state,
)


def test_a_diverged_training_is_not_the_best_one(tmp_path):
    history = [
        loss(2, 1.2, grad_norm=1.0),
        evaluation(2, 1.1, 0.4),
        {"step": 4, "loss": 0.0, "grad_norm": math.nan},
        {"step": 6, "eval_loss": math.nan, "eval_f1_macro": 0.94},
    ]
    write_state(tmp_path, history)
    [run], findings = seen(tmp_path)
    found = of_kind(findings, "diverged")
    assert found.where == "trainer_state.json, step <= 4"
    assert "loss is exactly 0 and grad_norm NaN" in found.found and "logging_nan_inf_filter" in found.found
    assert run.best.checkpoint == "step 2" and "before it diverged at step 4" in run.best.how


def test_an_infinite_gradient_alone_is_no_divergence(tmp_path):
    write_state(tmp_path, [*rows(40), loss(41, 0.4, grad_norm=math.inf)])
    found = seen(tmp_path)[1]
    assert "1 of 9 are not finite" in of_kind(found, "grad_norm_not_finite").found and "diverged" not in kinds(found)


def test_still_metrics_and_overfitting(tmp_path):
    history = []
    for step in range(10, 90, 10):
        rising = 1.0 - step / 100 if step <= 30 else 0.7 + (step - 30) / 100
        history += [loss(step, 2 / step), evaluation(step, rising, 0.4, eval_accuracy=0.6 + step / 1000)]
    write_state(tmp_path, history)
    found = seen(tmp_path)[1]
    assert "eval_f1_macro 0.4" in of_kind(found, "constant_metric").found
    over = of_kind(found, "overfitting")
    assert over.where.endswith("from step 30") and "eval_accuracy does not suffer" in over.found
    write_state(tmp_path, rows(40))
    assert kinds(seen(tmp_path)[1]) == []


def test_empty_history_and_missing_evaluations(tmp_path):
    write_state(tmp_path / "empty", [], step=50)
    write_state(tmp_path / "late" / "checkpoint-15", rows(15))
    write_state(tmp_path / "late" / "checkpoint-35", rows(35))
    write_state(tmp_path / "end", rows(38), step=40)
    found = seen(tmp_path)[1]
    assert of_kind(found, "empty_history").found == "log_history is empty at step 50"
    missing = {f.where: f for f in found if f.kind == "missing_evaluation"}
    assert set(missing) == {"checkpoint-35", "checkpoint-15", "end/trainer_state.json, step 40"}
    assert missing["checkpoint-35"].found == "the last one is at step 30"


def test_equal_runs_are_suspicious(tmp_path):
    write_state(tmp_path / "a", rows(40))
    write_state(tmp_path / "b", rows(40), train_batch_size=64)
    write_state(tmp_path / "c", rows(40, 0.1))
    lines = [{"id": str(i), "label": "ab"[i % 3 == 0], "true": "ab"[i % 2]} for i in range(30)]
    for name in ("a", "c"):
        write_lines(tmp_path / name / "checkpoint-40" / "predictions.jsonl", lines)
    found = [f for f in seen(tmp_path)[1] if f.kind == "suspicious_copy"]
    assert [(f.run, f.expected) for f in found] == [("b", "curves of its own"), ("c", "answers of its own")]
    assert "a: loss, grad_norm, eval_loss, eval_f1_macro" in found[0].found


def test_two_checkpoints_that_are_one(tmp_path):
    lines = [
        {"id": str(i), "label": "a", "true": "ab"[i % 2], "probabilities": {"a": 0.6 + i / 100, "b": 0.4 - i / 100}}
        for i in range(30)
    ]
    for step in (20, 40):
        write_state(tmp_path / f"checkpoint-{step}", [row for row in rows(40) if row["step"] <= step])
        write_lines(tmp_path / f"checkpoint-{step}" / "predictions.jsonl", lines)
    found = of_kind(seen(tmp_path)[1], "suspicious_copy")
    assert found.where == "checkpoint-40/predictions.jsonl" and "checkpoint-20/predictions.jsonl" in found.found


REPORT = """              precision    recall  f1-score   support

   compliant     0.9102    0.8539    0.8812       178
        full     0.9121    0.8469    0.8783        98
     partial     0.8158    0.6596    0.7294        47
       limit     0.7736    0.9318    0.8454       132
         ask     0.8800    0.8800    0.8800        25

    accuracy                         0.8562       480
   macro avg     0.8583    0.8345    0.8428       480
weighted avg     0.8622    0.8562    0.8558       480
"""


def test_a_headline_that_its_own_table_does_not_give(tmp_path):
    (tmp_path / "report.txt").write_text(REPORT)
    stated = {"eval_accuracy": 0.8562, "eval_macro_f1": 0.8428, "eval_weighted_f1": 0.8567, "eval_samples": 480}
    write_json(tmp_path / "eval_results.json", stated)
    found = of_kind(seen(tmp_path)[1], "contradiction")
    assert (found.where, found.found) == ("eval_results.json: eval_weighted_f1", "0.8567")
    assert found.expected == "0.8558 by the class rows of report.txt (n = 480)"
    # As `evaluate` writes them: the split is stated in one of the two files only, and the keys begin with eval_.
    write_json(tmp_path / "eval_results.json", {**stated, "split": "test"})
    for name, compared in {"report": True, "test_report": True, "validation_report": False}.items():
        (tmp_path / "report.txt").rename(tmp_path / f"{name}.txt")
        assert ("contradiction" in kinds(seen(tmp_path)[1])) == compared
        (tmp_path / f"{name}.txt").rename(tmp_path / "report.txt")
    write_json(tmp_path / "eval_results.json", {**stated, "eval_weighted_f1": 0.8558})
    assert seen(tmp_path)[1] == []
    # Of another evaluation: nothing is alike, and nothing is said.
    write_json(tmp_path / "eval_results.json", {"eval_accuracy": 0.6, "eval_macro_f1": 0.5, "eval_weighted_f1": 0.55})
    assert seen(tmp_path)[1] == []


def test_a_report_whose_averages_do_not_follow_from_its_rows(tmp_path):
    (tmp_path / "report.txt").write_text(REPORT.replace("0.8428       480", "0.8628       480"))
    found = of_kind(seen(tmp_path)[1], "contradiction")
    assert (found.where, found.expected) == ("report.txt: macro F1", "0.8429 by its class rows")


def matrix_of(values, labels=("full_refusal", "compliant"), rows="true", **more) -> MatrixTable:
    other = {"true": "predicted", "predicted": "true", "unknown": "unknown"}[rows]
    fields = {"labels_stated": True, "counted": "counts", **more}
    return MatrixTable(
        "m.json", "", "", tuple(labels), values=np.array(values, float), rows=rows, columns=other, **fields
    )


def report_of(values, labels, digits=None) -> ReportTable:
    counted = report_from_matrix(np.array(values), labels)

    def row(name, scores, support):
        numbers = [scores(s) for s in ("precision", "recall", "f1")]
        return ReportRow(name, *(n if n is None or digits is None else round(n, digits) for n in numbers), support)

    classes = [row(c.label, lambda s, c=c: getattr(c, s).value or 0.0, c.support) for c in counted.classes]
    averages = [
        row(f"{kind} avg", lambda s, k=kind: getattr(getattr(counted, k), s), counted.n)
        for kind in ("macro", "weighted")
    ]
    accuracy = counted.accuracy.value if digits is None else round(counted.accuracy.value, digits)
    return ReportTable("r.txt", "", "", tuple(classes), tuple(averages), accuracy, counted.n, digits)


def test_axes_are_settled_by_the_supports_and_swapped_ones_are_told():
    values, labels = [[5, 1], [4, 90]], ("full_refusal", "compliant")
    report = report_of(values, labels)
    assert report.classes[0].recall == pytest.approx(5 / 6) and report.classes[0].precision == pytest.approx(5 / 9)
    for given_as, true in ((values, "true"), (np.transpose(values), "predicted")):
        found = settled(matrix_of(given_as, rows="unknown"), [report])
        assert found.rows == true and "r.txt" in found.axes_from
        assert found.true_by_predicted().tolist() == values
    assert settled(matrix_of(values, rows="unknown"), []).rows == "unknown"
    [swapped] = contradictions(Run("r", "", tables=(matrix_of(np.transpose(values)), report)))
    assert "column sums are just these" in swapped.found and "swap the axes" in swapped.fix
    assert contradictions(Run("r", "", tables=(matrix_of(values), report))) == []


def test_a_matrix_and_a_report_of_other_predictions():
    labels = ("a", "b", "c")
    report = report_of([[8, 1, 1], [2, 9, 0], [0, 3, 6]], labels, digits=2)
    found = contradictions(Run("r", "", tables=(report, matrix_of([[7, 2, 1], [2, 9, 0], [0, 3, 6]], labels))))
    assert "r.txt: recall of a" in {f.where for f in found} and {f.kind for f in found} == {"contradiction"}
    other = [[8, 1, 2], [2, 9, 0], [0, 3, 5]]
    assert "row sums" in contradictions(Run("r", "", tables=(report, matrix_of(other, labels))))[0].expected


@settings(max_examples=60)
@given(st.lists(st.integers(0, 60), min_size=9, max_size=9), st.sampled_from([None, 2, 4]))
def test_files_that_agree_are_never_called_contradictions(cells, digits):
    values, labels = np.array(cells).reshape(3, 3), ("a", "b", "c")
    if not values.sum():
        return
    tables = (report_of(values, labels, digits), matrix_of(values, labels))
    assert [f for f in contradictions(Run("r", "", tables=tables)) if f.kind == "contradiction"] == []


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=4, max_size=30))
def test_what_scikit_learn_writes_under_either_rule_is_no_contradiction_of_itself(pairs):
    from sklearn.metrics import classification_report

    from refusal_core.runs.report_data import from_mapping

    true, predicted = zip(*pairs, strict=True)
    names = ["a", "b", "c", "d"]
    for rule in (0, math.nan):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = classification_report(
                true, predicted, labels=range(4), target_names=names, output_dict=True, zero_division=rule
            )
        table = from_mapping(whole, "r.json", "")
        assert [f for f in contradictions(Run("r", "", tables=(table,))) if f.kind == "contradiction"] == []


def test_two_rules_for_nothing_over_nothing():
    labels = ("a", "b", "never")
    zero = report_of([[4, 1, 0], [2, 3, 0], [0, 0, 0]], labels)
    row = zero.classes[2]
    empty = ReportRow("never", None, None, None, row.support)
    macro = ReportRow(
        "macro avg",
        *(v * 3 / 2 for v in (zero.averages[0].precision, zero.averages[0].recall, zero.averages[0].f1)),
        10,
    )
    left_out = ReportTable(
        "n.json", "", "", (*zero.classes[:2], empty), (macro, zero.averages[1]), zero.accuracy, 10, None
    )
    found = contradictions(Run("r", "", tables=(zero, left_out)))
    assert sorted(f.kind for f in found) == ["contradiction", "undefined_as_zero"]
    told = of_kind(found, "contradiction")
    assert "counts as 0" in told.expected and "is left out of the mean" in told.found


def test_classes_without_items_and_a_report_with_micro_avg(tmp_path):
    """Two of five classes occur; the report dict has "micro avg" and no "accuracy"."""
    values = [[3, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 0, 5, 0, 0], [0] * 5, [0] * 5]
    labels = ["compliant", "full_refusal", "partial_refusal", "capability_limitation", "clarification"]
    report = report_of(values, labels)
    as_dict = {
        r.label: {"precision": r.precision, "recall": r.recall, "f1-score": r.f1, "support": r.support}
        for r in report.classes
    }
    as_dict["micro avg"] = {"precision": 0.8, "recall": 0.8, "f1-score": 0.8, "support": 10}
    as_dict["macro avg"] = {
        "precision": report.averages[0].precision,
        "recall": report.averages[0].recall,
        "f1-score": report.averages[0].f1,
        "support": 10,
    }
    write_json(tmp_path / "report.json", as_dict)
    write_json(tmp_path / "m.json", {"labels": labels, "matrix": values, "rows": "true", "columns": "predicted"})
    run = only(tmp_path)
    table = next(t for t in run.tables if isinstance(t, ReportTable))
    assert (
        [row.label for row in table.classes] == labels and table.accuracy is None and table.average("micro").f1 == 0.8
    )
    [found] = seen(tmp_path)[1]
    assert found.kind == "undefined_as_zero" and "3 of 5 classes have no item" in found.found


def test_one_answer_to_everything(tmp_path):
    matrix = {"labels": ["a", "b"], "matrix": [[5, 0], [7, 0]], "rows": "true", "columns": "predicted"}
    write_json(tmp_path / "m.json", matrix)
    assert '"a" for all 12 items' in of_kind(seen(tmp_path)[1], "one_class_predicted").found


@settings(max_examples=80)
@given(st.lists(st.integers(0, 80), min_size=9, max_size=9), st.sampled_from([None, 2, 3, 4]))
def test_scores_of_a_class_are_counted_back_only_where_they_are_certain(cells, digits):
    values, labels = np.array(cells).reshape(3, 3), ("a", "b", "c")
    if not values.sum():
        return
    exact = report_from_matrix(values, labels).classes
    report = report_of(values, labels, digits)
    for row, ours, true in zip(report.classes, class_scores(report), exact, strict=True):
        for name in ("precision", "recall", "f1"):
            found, known = getattr(ours, name), getattr(true, name)
            assert found.interval is None or found == known
            assert (found.value is None) == (name == "recall" and not true.support)
            stated = getattr(row, name)
            assert found.value is None or found.value == pytest.approx(stated, abs=0.51 * 10.0 ** -(digits or 9))
        assert digits in (2, 3) or ours.recall.interval == true.recall.interval
