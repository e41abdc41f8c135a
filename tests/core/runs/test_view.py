"""What a page shows of runs: lines that keep every extreme and every non-finite value, scores with their intervals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from refusal_core.errors import InputError
from refusal_core.metrics.compare import paired
from refusal_core.metrics.metric import Metric
from refusal_core.metrics.report import report_from_matrix
from refusal_core.metrics.scores import score
from refusal_core.runs import view, view_compare
from refusal_core.runs.discover import discover
from refusal_core.runs.model import Best, Checkpoint, Curve, Run, Score, Scores
from refusal_core.runs.samples import samples
from refusal_core.runs.tables import MatrixTable, OneVsRestTable, ReportRow, ReportTable
from refusal_core.runs.view import Panel, draw
from refusal_core.runs.view_classes import cell_rows, class_table, evaluations, matrix_of
from refusal_core.runs.view_lines import smoothed, thin
from refusal_core.runs.view_report import headline, of_folder
from tests.run_folders import make_run

LOSS = Panel("loss")
ANY = st.floats(allow_nan=True, allow_infinity=True, width=32)


def run_of(*curves: Curve, name: str = "run", **more) -> Run:
    return Run(name, name, curves=curves, **more)


def loss(values, steps=None, **more) -> Curve:
    values = np.asarray(values, dtype=float)
    return Curve.of("loss", values, np.arange(1, len(values) + 1) if steps is None else steps, split="train", **more)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "one")
    make_run(folder / "two", seed=3, learning_rate=5e-5, broken=True)
    return discover(folder)[0]


@given(arrays(float, st.integers(1, 400), elements=ANY), st.integers(20, 120))
@settings(max_examples=150, deadline=None)
def test_thinning_loses_no_extreme_and_no_value_that_is_none(values, room):
    values = np.concatenate([values, values])
    line = draw([run_of(loss(values))], LOSS, points=room).lines[0]
    finite = values[np.isfinite(values)]
    drawn = line.y[np.isfinite(line.y)]
    assert set(drawn) <= set(finite)
    if len(finite):
        assert (drawn.min(), drawn.max()) == (finite.min(), finite.max())
    counts = np.isnan(values).sum(), np.isposinf(values).sum(), np.isneginf(values).sum()
    assert (line.nan.count, line.above.count, line.below.count) == counts
    assert (np.diff(line.x) >= 0).all()
    # A line never bridges a value that cannot be drawn.
    place = {step: k for k, step in enumerate(range(1, len(values) + 1))}
    for (x0, y0), (x1, y1) in zip(zip(line.x, line.y), zip(line.x[1:], line.y[1:]), strict=False):  # noqa: B905
        if np.isfinite(y0) and np.isfinite(y1):
            assert np.isfinite(values[place[x0] : place[x1] + 1]).all()


def test_a_million_points_become_few_and_keep_their_spikes():
    values = np.linspace(2, 0.5, 1_000_000)
    values[[10, 499_999, 999_998]] = 50, -3, 49
    line = draw([run_of(loss(values))], LOSS, smoothing=0.9).lines[0]
    assert len(line.x) <= view.POINTS_OF_LINE + 10 and line.thinned
    assert {50, -3, 49} <= set(line.y)
    closer = draw([run_of(loss(values))], LOSS, between=(499_900, 500_100)).lines[0]
    assert not closer.thinned and len(closer.x) == 203


@given(arrays(float, st.integers(1, 60), elements=ANY), st.floats(0, 0.99))
@settings(max_examples=100, deadline=None)
def test_smoothing_is_the_average_without_the_pull_to_zero(values, weight):
    found, sum_of, weights = smoothed(values, weight), 0.0, 0.0
    for value, ours in zip(values, found, strict=True):
        if not math.isfinite(value):
            assert math.isnan(ours)
            continue
        sum_of, weights = weight * sum_of + (1 - weight) * value, weight * weights + (1 - weight)
        assert ours == pytest.approx(
            sum_of / weights, rel=1e-6, abs=1e-6 * np.nanmax(np.abs(values[np.isfinite(values)]))
        )


def test_smoothing_keeps_a_constant_and_refuses_a_weight_of_one():
    assert smoothed(np.full(5, 0.3), 0.9) == pytest.approx(0.3)
    with pytest.raises(ValueError, match="below 1"):
        smoothed(np.ones(3), 1.0)
    assert list(thin([np.arange(5.0)], 10)) == [0, 1, 2, 3, 4]


def resumed() -> Run:
    """Steps 2, 4, …, 12, then from 8 again with other values."""
    steps = np.array([2, 4, 6, 8, 10, 12, 8, 10, 12, 14], dtype=float)
    values = np.array([9, 8, 7, 6, 5, 4, 60, 50, 40, 30], dtype=float)
    attempt = np.array([0] * 6 + [1] * 4)
    curve = replace(
        Curve.of("loss", values, steps, split="train", superseded=(attempt == 0) & (steps >= 8)), attempt=attempt
    )
    return run_of(curve, resumed_at=(6.0,))


def test_after_a_resume_no_line_runs_backwards():
    line = draw([resumed()], LOSS).lines[0]
    assert list(line.x) == [2, 4, 6, 8, 10, 12, 14] and list(line.y) == [9, 8, 7, 60, 50, 40, 30]
    [(x, y)] = line.tails
    assert list(x) == [8, 10, 12] and list(y) == [6, 5, 4]
    assert line.resumed == ((6.0, 6.0),)
    shuffled = Curve.of("loss", np.arange(4.0), np.array([4.0, 2, 3, 1]), split="train")
    assert (np.diff(draw([run_of(shuffled)], LOSS).lines[0].x) > 0).all()


def test_axes_units_and_what_cannot_be_drawn():
    timed = loss([3, 2, 1], times=np.array([1e9, 1e9 + 3600, 1e9 + 3 * 3600.0]))
    untimed = loss([3, 2])
    both = [run_of(timed, name="a"), run_of(untimed, name="b")]
    assert view.axes(both) == ("step", "time")
    drawing = draw(both, LOSS, axis="time")
    assert (drawing.unit, list(drawing.lines[0].x)) == ("hours", [0, 1, 3])
    assert len(drawing.lines) == 1 and drawing.left_out == ("One curve states no time and is not drawn.",)
    log = draw([run_of(loss([1, 0, -2, 4]))], LOSS, log=True)
    assert "2 values at or below 0" in log.left_out[0]
    assert [y for y in log.lines[0].y if y == y] == [1, 4] and len(log.lines[0].dots[0]) == 2


def test_panels_come_in_order_and_classes_apart(runs):
    found = view.panels(runs)
    assert [p.metric for p in found] == ["loss", "accuracy", "macro_f1", "learning_rate", "grad_norm"]
    assert [p.metric for p in view.first_panels(found)] == ["loss", "macro_f1", "accuracy", "grad_norm"]
    by_class = Curve.of("f1", np.ones(2), np.arange(2), split="eval", label="compliant")
    assert view.panels([run_of(loss([1]), by_class)])[-1].key == "f1.by_class"


def test_the_best_checkpoint_lies_on_the_evaluation_lines(runs):
    best = Best("checkpoint-200", "eval macro_f1", True, 0.79)
    run = replace(next(r for r in runs if r.name == "one"), best=best)
    lines = {line.curve.split: line for line in draw([run], LOSS).lines}
    assert lines["eval"].best == (200, pytest.approx(0.68)) and lines["train"].best is None


def test_side_by_side_is_paired_where_items_are_shared(runs):
    found = view_compare.candidates(runs)
    assert [one.name for one in found][:2] == ["one checkpoint-100", "one checkpoint-200"]
    table = view_compare.side_by_side(found, "macro_f1", "one|checkpoint-100")
    second = table.entries[1]
    metric = Metric("f1", average="macro")
    expected = paired(found[1].items, found[0].items, metric)
    assert (second.difference, second.compared.interval) == (expected.value, expected.interval)
    assert second.rate == score(found[1].items, metric) and second.verdict == "better"
    assert table.entries[0].difference is None and found[table.best].checkpoint == "checkpoint-200"
    assert len(second.compared.better) > 20 and not second.compared.worse


def test_a_value_that_is_no_number_is_said_and_never_best():
    def checkpoint(name: str, f1: float) -> Checkpoint:
        scores = Scores("eval_results.json", (Score("macro_f1", "eval", "", None, "eval_f1_macro", f1),))
        return Checkpoint(name, name, 1, metrics=scores)

    run = run_of(checkpoints=(checkpoint("a", math.nan), checkpoint("b", 0.8), checkpoint("c", 0.9)))
    table = view_compare.side_by_side(view_compare.candidates([run]), "macro_f1", "run|b")
    words = [view_compare.value_words(entry) for entry in table.entries]
    assert words == ["not a number", "0.8000", "0.9000"]
    assert table.candidates[table.best].name == "c" and table.entries[0].difference is None
    assert view_compare.difference_words(table.entries[2]) == "+0.1000" and table.entries[2].verdict == ""
    with pytest.raises(InputError, match="baseline"):
        view_compare.side_by_side(table.candidates, "macro_f1", "nobody")


def test_matrices_are_compared_as_of_separate_items():
    def matrix(values) -> MatrixTable:
        return MatrixTable(
            "m.json", "", "test", ("a", "b"), True, np.array(values, float), "counts", "true", "predicted"
        )  # fmt: skip

    checkpoints = tuple(
        Checkpoint(name, name, k, tables=(matrix(values),))
        for k, (name, values) in enumerate({"x": [[50, 10], [10, 50]], "y": [[55, 5], [2, 58]]}.items())
    )
    table = view_compare.side_by_side(view_compare.candidates([run_of(checkpoints=checkpoints)]), "accuracy", "run|x")
    assert not table.entries[1].compared.paired and table.entries[1].basis == "matrix"
    assert table.entries[1].difference == pytest.approx(13 / 120)


def test_the_headline_says_what_to_take_and_how_sure_that_is(runs):
    one = headline(runs[:1])
    assert one.sentence == "Take checkpoint-200 by macro F1, 0.8100; not distinguishable from checkpoint-300"
    assert one.beside == ("checkpoint-200 is stated by the training.",)
    both = headline(runs)
    rate = score(view_compare.candidates(runs)[1].items, Metric("f1", average="macro"))
    assert both.sentence.startswith(f"one checkpoint-200 has the best macro F1 of 2 runs, {rate}")
    assert both.sentence.endswith("; not distinguishable from two checkpoint-200") and len(both.beside) == 2
    card = next(sample for sample in samples() if sample.key == "card")
    found = of_folder(card.folder)
    assert headline(found.runs).sentence.startswith(
        "Accuracy 0.86 (0.82 to 0.88, n = 480); macro F1 0.8428 (no interval"
    )
    assert [(f.kind, f.where) for f in found.findings] == [("contradiction", "eval_results.json: eval_weighted_f1")]
    assert headline([run_of(loss([1])), run_of(loss([2]), name="b")]).sentence == "2 runs"


def test_settings_that_differ(runs):
    found = dict(view_compare.differing([replace(r, settings={**r.settings, "seed": k}) for k, r in enumerate(runs)]))
    assert found == {"seed": (0, 1)}


def test_the_published_card_has_its_table_with_intervals():
    card = next(sample for sample in samples() if sample.key == "card")
    [run], _ = discover(card.folder)
    table = class_table(evaluations([run])[0])
    assert [row.support for row in table.rows] == [178, 98, 47, 132, 25]
    assert [row.predicted for row in table.rows] == [167, 91, 38, 159, 25]
    assert [round(row.f1.value, 4) for row in table.rows] == [0.8812, 0.8783, 0.7294, 0.8454, 0.8800]
    assert all(s.interval for row in table.rows for s in (row.precision, row.recall, row.f1))
    assert table.accuracy.n == 480 and table.accuracy.interval
    assert {a.name: a.f1.value for a in table.averages} == {"macro avg": 0.8428, "weighted avg": 0.8558}


def test_a_report_whose_digits_give_no_counts_has_no_interval():
    row = ReportRow("a", 0.5, 0.123, 0.2, 10)
    none = ReportRow("b", 0.0, 0.0, 0.0, 0)
    table = class_table(_evaluation(ReportTable("r.txt", "", "", (row, none), (), 0.5, 10, 3)))
    assert table.rows[0].recall.interval is None and table.rows[0].recall.value == 0.123
    assert table.rows[1].recall.value is None and "0 of 2" in table.how
    empty = class_table(
        _evaluation(ReportTable("r.txt", "", "", (ReportRow("a", None, None, None, None),), (), None, None, None))
    )
    assert empty.rows[0].precision.value is None and empty.accuracy is None


def _evaluation(table):
    return evaluations([run_of(tables=(table,))])[0]


def test_axes_that_no_file_states_are_asked_for():
    values = np.array([[5.0, 1], [4, 90]])
    table = MatrixTable("m.json", "", "", ("full_refusal", "compliant"), True, values, "counts", "unknown", "unknown")
    one = _evaluation(table)
    assert one.axes_unknown and class_table(one) is None
    true, predicted = class_table(one, "true").rows[0], class_table(one, "predicted").rows[0]
    assert (true.recall.value, true.precision.value) == (5 / 6, 5 / 9)
    assert (predicted.recall.value, predicted.precision.value) == (5 / 9, 5 / 6)
    shares = replace(table, counted="row shares", rows="true", columns="predicted")
    assert matrix_of(_evaluation(shares)) is None and class_table(_evaluation(shares)) is None
    counts = OneVsRestTable("o.csv", "", "", ("a",), np.array([5]), np.array([4]), np.array([1]), np.array([90]))
    assert class_table(_evaluation(counts)).rows[0].recall.value == 5 / 6


def test_predictions_give_classes_matrix_and_the_rows_of_a_cell(runs):
    one = next(e for e in evaluations(runs) if e.source == "predictions")
    matrix, table = matrix_of(one), class_table(one)
    expected = report_from_matrix(matrix.counts, matrix.labels)
    assert [row.recall for row in table.rows] == [c.recall for c in expected.classes]
    assert table.averages[0].f1.value == pytest.approx(expected.macro.f1) and table.averages[0].f1.interval
    for i, true in enumerate(matrix.labels):
        for j, called in enumerate(matrix.labels):
            assert len(cell_rows(one, true, called)) == matrix.counts[i, j]
    assert cell_rows(one, "compliant", "nobody") == []
    worst = matrix.most_confused(2)
    wrong = {name: int(matrix.counts[i].sum() + matrix.counts[:, i].sum() - 2 * matrix.counts[i, i])
             for i, name in enumerate(matrix.labels)}  # fmt: skip
    assert min(wrong[name] for name in worst) >= max(n for name, n in wrong.items() if name not in worst)
    assert matrix.part(worst).counts.shape == (2, 2)
