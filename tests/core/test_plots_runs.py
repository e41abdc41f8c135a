"""Figures of training runs: what is in the data is in the figure, and its text says it."""

from __future__ import annotations

import base64
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from refusal_core.labels import LABELS
from refusal_core.metrics.calibration import calibration, thresholds
from refusal_core.plots import runs as plots
from refusal_core.plots import runs_tables, theme
from refusal_core.plots.runs_report import runs_report
from refusal_core.runs import view, view_compare
from refusal_core.runs.model import Curve, Run
from refusal_core.runs.view import Panel, draw
from refusal_core.runs.view_classes import evaluations, items_of, matrix_of
from refusal_core.runs.view_report import of_folder
from tests.core.runs.test_view import loss, resumed, run_of
from tests.run_folders import make_run

LOSS = Panel("loss")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "one")
    make_run(folder / "two", seed=3, learning_rate=5e-5, broken=True)
    return of_folder(folder)


def curves(run: Run, **options):
    return plots.curves(draw([run], LOSS, **options), log=options.get("log", False))


def test_values_between_what_is_no_number_are_seen():
    """Loss NaN, 1, NaN, NaN, 2, NaN: two dots, four marks, the count in the legend."""
    figure, alt = curves(run_of(loss([np.nan, 1, np.nan, np.nan, 2, np.nan])))
    dots = [t for t in figure.data if t.mode == "markers" and t.yaxis != "y2"]
    assert [(list(t.x), list(t.y)) for t in dots] == [([2, 5], [1, 2])]
    [marks] = [t for t in figure.data if t.yaxis == "y2"]
    assert list(marks.x) == [1, 3, 4, 6] and marks.marker.symbol == "x-thin-open"
    assert [t.name for t in figure.data if t.showlegend is not False] == ["train (4 not a number)"]
    assert "4 not a number" in alt and figure.layout.showlegend


def test_infinities_have_marks_of_their_own():
    figure, _ = curves(run_of(loss([1, np.inf, -np.inf, 2])))
    marks = {t.marker.symbol: list(t.x) for t in figure.data if t.yaxis == "y2"}
    assert marks == {"triangle-up": [2], "triangle-down": [3]}
    assert [t.name for t in figure.data if t.name] == ["train (2 infinite)"]
    nothing, alt = curves(run_of(loss([np.nan, np.inf])))
    assert "no value that can be drawn" in alt and len(nothing.data) == 3


def test_a_resume_is_marked_and_what_it_replaced_is_faint():
    figure, alt = curves(resumed())
    assert all((np.diff(t.x) >= 0).all() for t in figure.data)
    [tail] = [t for t in figure.data if t.opacity == plots.SUPERSEDED]
    assert list(tail.x) == [8, 10, 12]
    assert [a.text for a in figure.layout.annotations] == ["resumed at 6"] and "resumed at step 6" in alt


def test_smoothing_keeps_the_raw_line_faint():
    figure, _ = curves(run_of(loss(np.arange(30.0))), smoothing=0.8)
    raw, smooth = figure.data
    assert raw.opacity == plots.RAW and raw.showlegend is False and list(raw.y) == list(range(30))
    assert smooth.name == "train" and smooth.y[-1] < 29


def test_figures_have_axes_colours_of_the_page_and_zoom():
    figure, alt = curves(run_of(loss([3, 2, 1])))
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("step", "loss")
    assert not figure.layout.xaxis.fixedrange and not figure.layout.yaxis.fixedrange
    assert figure.layout.paper_bgcolor == "rgba(0,0,0,0)" and all(t.line.color for t in figure.data)
    assert alt == "loss by step. train: from 3 to 1, least 1, largest 3."
    flat, _ = curves(run_of(loss(np.full(9, 1.0))), smoothing=0.3)
    assert list(flat.layout.yaxis.range) == [0.5, 1.5]
    part, _ = plots.curves(draw([run_of(loss([3, 2, 1]))], LOSS), between=(2, None))
    assert list(part.layout.xaxis.range) == [2, None]


def test_classes_have_their_colours_and_runs_their_own(report):
    by_class = [Curve.of("f1", np.ones(3), np.arange(3), split="eval", label=label) for label in LABELS]
    figure, _ = plots.curves(draw([run_of(*by_class)], Panel("f1", True)))
    assert [t.line.color for t in figure.data] == [theme.class_colour(label) for label in LABELS]
    two, alt = plots.curves(draw(report.runs, LOSS))
    assert len({t.line.color for t in two.data if t.name}) == 2
    assert "one: train" in alt and "two: train (2 not a number)" in alt
    hostile = replace(run_of(loss([1, 2])), name="<b>x</b> $y$")
    named, _ = plots.curves(draw([hostile, run_of(loss([1]), name="b")], LOSS))
    assert named.data[0].name == "&lt;b&gt;x&lt;/b&gt; &#36;y&#36;: train"


def test_a_million_points_of_many_runs_fit_into_a_message():
    rng = np.random.default_rng(0)
    runs = [run_of(loss(rng.normal(size=60_000)), name=f"run {k}") for k in range(20)]
    drawing = draw(runs, LOSS, smoothing=0.9)
    figure, _ = plots.curves(drawing)
    assert sum(line.rows for line in drawing.lines) == 1_200_000
    assert len(figure.to_json()) < 2_000_000
    lines = draw([run_of(loss(rng.normal(size=9)), name=str(k)) for k in range(60)], LOSS)
    assert len(lines.lines) == view.LINES_OF_FIGURE and "of 60 lines" in lines.left_out[0]


def test_differences_are_rows_with_their_intervals(report):
    found = view_compare.candidates(report.runs)
    table = view_compare.side_by_side(found, "macro_f1", found[0].key)
    figure, alt = runs_tables.differences(table)
    dots = [t.x[0] for t in figure.data if t.mode == "markers"]
    assert dots == [e.difference for e in table.entries[1:]]
    bars = [tuple(t.x) for t in figure.data if t.mode == "lines"]
    assert bars == [(i.low, i.high) for i in (e.compared.interval for e in table.entries[1:])]
    assert f"{dots[0]:+.3f}" in alt and "better" in alt
    assert "above 0 is better" in figure.layout.xaxis.title.text


def test_a_matrix_can_be_clicked_and_says_its_axes(report):
    matrix = matrix_of(evaluations(report.runs)[0])
    figure, alt = runs_tables.confusion(matrix, "counts", (1, 2))
    heat, cells = figure.data
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("predicted class", "true class")
    assert list(cells.text) == [str(n) for n in matrix.counts.ravel()]
    assert [(x, y) for x, y in zip(cells.x, cells.y, strict=True)] == [(j, i) for i in range(5) for j in range(5)]
    assert np.allclose(np.sum(heat.z, axis=1), 1) and len(figure.layout.shapes) == 1
    columns, _ = runs_tables.confusion(matrix, "column shares")
    assert np.allclose(np.sum(columns.data[0].z, axis=0), 1) and columns.data[1].text[0].endswith("%")
    assert f"compliant: {matrix.counts[0, 0]} compliant" in alt


def test_the_difference_of_two_matrices(report):
    first, second = (matrix_of(e) for e in evaluations(report.runs)[:2])
    figure, alt = runs_tables.matrix_difference(second, first)
    share = second.counts / second.counts.sum(1, keepdims=True) - first.counts / first.counts.sum(1, keepdims=True)
    assert np.allclose(figure.data[0].z, share) and figure.data[1].text[0] == f"{100 * share[0, 0]:+.0f}"
    assert "points of the row" in alt
    same, alt = runs_tables.matrix_difference(first, first)
    assert np.all(np.array(same.data[0].z) == 0) and alt.endswith("none.")


def test_calibration_and_thresholds_show_their_numbers(report):
    items = items_of(evaluations(report.runs)[0])
    found = calibration(items)
    figure, alt = runs_tables.reliability(found)
    assert list(figure.data[1].y) == [b.right.value for b in found.bins if b.n] and str(found.ece) in alt
    points = thresholds(items)
    figure, alt = runs_tables.thresholds(points, None, 0.7)
    assert list(figure.data[0].y) == [p.abstained.value for p in points] and str(points[70].accuracy) in alt
    figure, _ = runs_tables.thresholds(thresholds(items, label="full_refusal"), "full_refusal", 0.7)
    assert [t.name for t in figure.data] == ["withheld", "precision", "recall"]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def test_the_html_report_holds_all_and_fetches_nothing(report):
    runs = [replace(run, name=f"<i>{run.name}</i>") for run in report.runs]
    text = runs_report(report, runs, name="<script>", command="python -m refusal_core.cli runs . --json")
    found = Tags()
    found.feed(text)
    assert not [t for t, a in found.seen if t in ("script", "i", "link", "img") or "src" in a or "href" in a]
    assert text.count("<svg") >= 5 and "Confusion matrix" in text and "runs . --json" in text
    assert "2 values are no finite numbers" in text and len(text) < 400_000
    table = view_compare.side_by_side(view_compare.candidates(runs), "macro_f1", "<i>one</i>|checkpoint-100")
    assert view_compare.difference_words(table.entries[1]) in text.replace("&#x27;", "'")


def test_typed_arrays_are_what_travels():
    """The payload is small because Plotly sends arrays as bytes, not as text."""
    spec = curves(run_of(loss(np.arange(500.0))))[0].to_dict()
    y = spec["data"][0]["y"]
    assert np.frombuffer(base64.b64decode(y["bdata"]), y["dtype"]).tolist() == list(range(500))
