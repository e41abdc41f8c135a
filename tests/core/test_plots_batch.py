"""Figures and the HTML report of a batch: every number is the summary's, hostile names stay text."""

import json

import pytest

from refusal_core.classifier import load
from refusal_core.classifier.attribution import attribute
from refusal_core.classifier.batch import score_batch, summarise
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.limits import GROUPS_SHOWN
from refusal_core.metrics.intervals import format_rate
from refusal_core.plots import batch as plots
from refusal_core.plots.batch_report import batch_report

NASTY = "<img src=x onerror=alert(1)>$x$"


@pytest.fixture(scope="module")
def classifier(tiny_checkpoint):
    return load(str(tiny_checkpoint))


@pytest.fixture(scope="module")
def scored(classifier):
    rows = [
        Exchange(f"p{n}", f"I cannot help with {n}. {NASTY}", n, "full_refusal", n, {"team": f"{NASTY}{n % 30}"})
        for n in range(1, 41)
    ]
    return score_batch(classifier, [*rows, BadRow(41, 41, NASTY)])


def test_shares_and_groups_draw_rate_and_interval(scored):
    summary = summarise(scored, group_by="team")
    figure, alt = plots.class_shares(summary.shares)
    bars = figure.data[0]
    for at, share in enumerate(summary.shares):
        assert bars.x[at] == share.rate.value
        assert bars.x[at] + bars.error_x.array[at] == pytest.approx(share.rate.interval.high)
        assert bars.x[at] - bars.error_x.arrayminus[at] == pytest.approx(share.rate.interval.low)
        assert f"{share.label} {format_rate(share.rate)}" in alt
    figure, alt = plots.refused_by_group(summary.groups, "team", summary.fold.name)
    assert len(figure.data[0].x) == GROUPS_SHOWN and "The other 10 groups" in alt
    assert "<img" not in json.dumps(figure.to_plotly_json()["layout"], default=str)


def test_the_confusion_matrix_shows_counts(scored):
    report = summarise(scored).report
    figure, alt = plots.confusion(report)
    counts = [str(n) for row in report.matrix for n in row]
    assert [note.text for note in figure.layout.annotations] == counts
    assert "full_refusal: " in alt and "compliant:" not in alt.replace("full_refusal: ", "")


def test_spans_show_the_drops(classifier):
    found = attribute(classifier, Exchange("p", f"I cannot. {NASTY} Which version? Sorry."))
    figure, alt = plots.spans(found)
    drops = [span.drop for span in sorted(found.strongest, key=lambda span: span.start)]
    assert list(figure.data[0].x) == drops and all(f"{drop:+.3f}" in alt for drop in drops)
    assert "<img" not in json.dumps(figure.to_plotly_json()["layout"], default=str)


def test_the_report_is_self_contained_and_says_the_same(scored):
    summary = summarise(scored, group_by="team")
    page = batch_report(scored, summary, name=NASTY, command=f"classify {NASTY}", corrections=2)
    assert "<img" not in page and "<script" not in page
    assert page.count("://") == page.count("http://www.w3.org/2000/svg")
    for rate in (summary.refused, summary.refused_by_matcher, summary.report.accuracy):
        assert format_rate(rate) in page
    assert "2 labels of the file were corrected" in page and scored.checkpoint.digest in page
    assert "Rows that could not be classified: 1." in page


def test_a_batch_without_answers_still_makes_a_report(classifier):
    empty = score_batch(classifier, [BadRow(1, 1, "no."), Exchange("p", " ", 2, None, 2)])
    page = batch_report(empty, summarise(empty), name="x", command="y")
    assert "undefined (n = 0)" in page
    figure, alt = plots.class_shares(summarise(empty).shares)
    assert "undefined" in alt and list(figure.data[0].x) == [0.0] * 5
