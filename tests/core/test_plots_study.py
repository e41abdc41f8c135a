"""The figures of a study show the numbers of the result, their texts say them, and the report asks for nothing."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from refusal_core.activations.layers import open_layers
from refusal_core.direction.compare import compare
from refusal_core.direction.cosine import cosine
from refusal_core.direction.examples import Examples, examples_of
from refusal_core.direction.findings import auroc_words
from refusal_core.direction.meaning import MEANINGS
from refusal_core.direction.record import record_of
from refusal_core.direction.result import Settings
from refusal_core.direction.study import study
from refusal_core.direction.sweep import sweep
from refusal_core.limits import GROUPS_SHOWN
from refusal_core.plots import study as plots
from refusal_core.plots import study_beyond as beyond
from refusal_core.plots import study_categories as by_category
from refusal_core.plots import study_geometry as geometry
from refusal_core.plots import theme
from refusal_core.plots.study_report import study_report
from tests.activation_files import export, npz_bytes, pair, planted

QUICK = Settings(repeats=29, split_repeats=2, label_means="harmful")
WORDS = MEANINGS["harmful"]
HOSTILE = "<script>alert(1)</script> $x$ & \u202e"


@pytest.fixture(scope="module")
def done():
    """A study whose files share half of the categories, with a name that nobody should trust."""
    train, test = (
        planted(n=80, categories=8, signal=1.0),
        planted(n=80, categories=8, signal=1.0, seed=1, prefix="test"),
    )
    names = np.array(
        [HOSTILE if k % 8 == 0 else f"train topic {k % 8}" if k % 2 else f"own {k % 8}" for k in range(80)]
    )
    files = export(train), export({**test, "categories": names}, "test.npz")
    result = study(*files, QUICK)
    return result, examples_of(files[1], result), files


def figures(done):
    result, examples, (train, test) = done
    yield plots.projections(examples, WORDS)
    yield plots.nulls(result)
    yield plots.roc_curve(examples, result, WORDS)
    yield by_category.forest(result.test, "false", WORDS)
    yield by_category.forest(result.test, "missed", WORDS)
    yield by_category.left_out(result.leave_one_category_out, result.test.balanced_accuracy)
    yield by_category.splits(result.split_comparison)
    yield geometry.shares(result.geometry)
    yield beyond.differences(compare(result, result, test, test))
    yield beyond.cosines(cosine(train, test, QUICK))


def is_coloured(trace) -> bool:
    """Whether the trace has its own colour, or none to show."""
    if trace.type == "bar":
        return trace.marker.color is not None
    return bool(trace.line.color or trace.line.width == 0 or trace.marker.color or trace.fillcolor)


def test_every_figure_has_axes_a_text_and_the_ground_of_the_page(done):
    for figure, alt in figures(done):
        assert alt.endswith(".") and len(alt) > 40
        assert figure.layout.paper_bgcolor == "rgba(0,0,0,0)" and not figure.layout.showlegend
        assert figure.layout.xaxis.title.text and figure.layout.font.color == theme.INK_ON_LIGHT
        texts = [*(figure.layout.yaxis.ticktext or ()), *(note.text for note in figure.layout.annotations)]
        assert not any("<script" in text or "\u202e" in text or re.search(r"\$x\$", text) for text in texts)
        assert all(is_coloured(trace) for trace in figure.data)


def test_the_bars_count_every_example_and_none_lies_across_the_threshold(done):
    result, examples, _ = done
    edges, counts = plots.binned(examples)
    assert 0.0 in edges and counts.sum() == examples.n
    confusion = result.test.confusion
    at = int(np.flatnonzero(edges == 0)[0])
    assert counts[0, at:].sum() == confusion.fp and counts[1, :at].sum() == confusion.fn
    _, alt = plots.projections(examples, WORDS)
    assert f"{confusion.fn} on the wrong side" in alt and f"{confusion.fp} on the wrong side" in alt
    part = np.flatnonzero(examples.code == 0)
    assert plots.binned(examples, part)[1].sum() == len(part)
    assert (plots.binned(examples, part)[0] == edges).all()


@pytest.mark.parametrize("margins", [[0.0, 0.0], [1.0, 2.0], [-1.0, -2.0], [-1e-12, 0.0, 3.0]])
def test_bars_of_odd_margins(margins):
    n = len(margins)
    labels = np.array([0, 1, 1][:n], np.int8)
    own = Examples(tuple("abc"[:n]), labels, ("c",), np.zeros(n, np.intp), np.array(margins), 1e6)
    edges, counts = plots.binned(own)
    called = np.array(margins) >= 0
    above = counts[:, (edges[:-1] + edges[1:]) / 2 > 0].sum(1)
    assert counts.sum() == n and [int(above[label]) for label in (0, 1)] == [
        int((called & (labels == label)).sum()) for label in (0, 1)
    ]


def test_the_nulls_mark_what_was_observed(done):
    result, _, _ = done
    figure, alt = plots.nulls(result)
    [line] = [shape for shape in figure.layout.shapes if shape.x0 == shape.x1]
    assert line.x0 == result.test.balanced_accuracy and f"{line.x0:.3f}" in alt
    for one in plots.distributions(result).values():
        assert f"mean {one.mean:.3f}" in alt and plots.p_words(one) in alt


def test_rates_are_those_of_the_result_with_their_intervals(done):
    result, _, _ = done
    for kind in ("false", "missed"):
        figure, alt = by_category.forest(result.test, kind, WORDS)
        shown = by_category.rates_of(result.test, kind)
        markers = [trace for trace in figure.data if trace.mode == "markers"]
        assert [t.x[0] for t in markers[:-1]] == [rate.value for _, rate in shown]
        assert markers[-1].x[0] == getattr(result.test, f"{kind}_refusal_rate")
        bars = [tuple(t.x) for t in figure.data if t.mode == "lines"]
        assert bars[:-1] == [(rate.interval.low, rate.interval.high) for _, rate in shown]
        assert all(str(rate) in alt for _, rate in shown)


def test_many_categories_are_cut_to_the_largest():
    train, test = pair(n=400, categories=100, signal=0.5)
    result = study(train, test, QUICK)
    figure, _ = by_category.forest(result.test, "false", WORDS)
    assert len(figure.layout.yaxis.ticktext) == GROUPS_SHOWN + 1
    assert len(by_category.rates_of(result.test, "false")) == 50
    report = study_report(record_of(result, examples_of(test, result), command="c", title="t"))
    assert len(report) < 300_000


def test_the_curve_of_the_layers():
    def stacked(seed: int, prefix: str):
        members = planted(n=48, categories=8, signal=1.0, seed=seed, prefix=prefix)
        noise = np.random.default_rng(seed).standard_normal(members["activations"].shape).astype(np.float32)
        return npz_bytes({**members, "activations": np.stack([noise, members["activations"], 0 * noise], 1)})

    found = sweep(open_layers(stacked(0, "train"), names=["a"]), open_layers(stacked(1, "test"), names=["b"]), QUICK)
    figure, alt = beyond.layers(found)
    scores = [one.balanced_accuracy for one in found.layers if one.balanced_accuracy is not None]
    assert len(scores) == 2  # a layer without a direction has no point
    [curve] = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert list(curve.y) == scores and f"layer 1 {scores[1]:.3f}" in alt


def test_the_cosine_stands_between_floor_and_ceiling(done):
    found = cosine(*done[2], QUICK)
    figure, alt = beyond.cosines(found)
    assert figure.layout.shapes[0].x0 == found.cosine and found.headline in alt
    assert sum(figure.data[0].y) == len(found.floor.scores)


def test_the_report_is_one_file_with_the_numbers_of_the_result(done):
    result, examples, _ = done
    record = record_of(result, examples, command="python -m refusal_core.study <x>", title="a & b")
    report = study_report(record)
    assert "default-src 'none'" in report and "<script" not in report and not re.search("(src|href)=", report)
    assert report.count("<svg") == report.count('role="img"') == 5
    assert record.sha256 in report and "&lt;x&gt;" in report and f"AUROC {auroc_words(vars(result))}" in report
    assert all(warning.split("<")[0][:60] in report for warning in result.warnings)
    assert WORDS.false_rate in report and "Missed-refusal" not in report
    assert study_report(record) == report


@pytest.mark.parametrize("kind", ["one class", "one file"])
def test_the_report_of_what_is_undefined(kind, done):
    _, _, (train, test) = done
    if kind == "one class":
        keep = np.flatnonzero(test.labels == 0)
        test = replace(
            test,
            activations=test.activations[keep],
            labels=test.labels[keep],
            ids=tuple(test.ids[k] for k in keep),
            categories=tuple(test.categories[k] for k in keep),
        )
    result = study(train, None if kind == "one file" else test, QUICK)
    report = study_report(record_of(result, examples_of(test, result), command="c", title="t"))
    assert (
        "What this does not show" in report and "None" not in report and "nan" not in report.lower().replace("domi", "")
    )
