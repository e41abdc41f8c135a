"""Figures of the scorecard, and a scorecard read back from its JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refusal_core.errors import InputError
from refusal_core.metrics.intervals import Interval
from refusal_core.plots import scorecard as plots
from refusal_core.scorecard.report import json_text
from refusal_core.scorecard.result import Row
from refusal_core.scorecard.stored import from_json
from tests.core.scorecard.cases import noisy, score, write_predictions

HOSTILE = "<b>$x$</b> & <script>"


def row(name: str, value: float | None, verdict: str = "pass", **changes) -> Row:
    interval = None if value is None else Interval(value - 0.05, value + 0.05, 0.95, "wilson")
    given = {"test": "t", "assertion": "a", "type": "metric", "severity": "required", "message": "m"}
    given |= {"subject": f"accuracy {HOSTILE}", "n": 100, "threshold": 0.8, "comparison": ">="}
    return Row(**{**given, "checkpoint": name, "verdict": verdict, "value": value, "interval": interval, **changes})


def test_each_interval_stands_against_its_bound():
    rows = [row("one", 0.9), row(f"two {HOSTILE}", 0.7, "fail"), row("three", None, "error"), row("four", 0.8)]
    figure, alt = plots.against_bound(rows[1], rows)
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    bounds, intervals = lines[0::2], lines[1::2]
    assert [tuple(trace.x) for trace in bounds] == [(0.8, 0.8)] * 3
    assert [tuple(trace.x) for trace in intervals] == [(r.interval.low, r.interval.high) for r in rows if r.interval]
    assert [trace.line.color == plots.ACCENT for trace in intervals] == [False, True, False]
    shapes = [trace.marker.symbol for trace in figure.data if trace.mode == "markers"]
    assert shapes == ["circle", "x", "circle"], "the verdict is told by shape"
    shown = [*figure.layout.yaxis.ticktext, figure.layout.xaxis.title.text, figure.layout.annotations[0].text]
    assert not any("<" in text or "$" in text for text in shown)
    assert "needs at least 0.8: one pass 0.90 (0.85 to 0.95)" in alt and "three" not in alt


def test_what_has_no_number_is_not_drawn_and_many_checkpoints_are_cut_around_the_chosen():
    assert plots.against_bound(row("a", None, "error"), [row("a", None, "error")]) is None
    free = row("a", 0.5, threshold=None)
    assert plots.against_bound(free, [free]) is None and plots.needs(free) == ""
    rows = [row(f"c{at}", 0.9) for at in range(60)]
    figure, alt = plots.against_bound(rows[40], rows)
    assert len(figure.layout.yaxis.ticktext) == plots.DRAWN and "c40 " in alt and "c0 " not in alt


def test_words_of_the_bound():
    change = row("a", 0.0, threshold=None, margin=-0.01)
    assert plots.needs(change) == "change at least -0.01"
    assert plots.needs(row("a", 0.1, comparison="<=", threshold=0.2)) == "at most 0.2"
    assert plots.needs(row("a", 0.1, type="not-metric")) == "not at least 0.8"


def test_the_trend_skips_runs_without_a_value():
    points = [("Mon", row("a", 0.7, "fail")), ("Tue", row("a", None, "error")), ("Wed", row("a", 0.9, threshold=0.85))]
    figure, alt = plots.trend(points)
    dots = next(trace for trace in figure.data if "markers" in trace.mode)
    assert list(dots.x) == [0, 2] and list(dots.y) == [0.7, 0.9] and list(dots.marker.symbol) == ["x", "circle"]
    assert list(figure.data[0].y) == [0.8, 0.8, 0.85, 0.85], "the bound of each run"
    assert "over 3 runs: Mon fail 0.70" in alt and "Tue" not in alt
    assert plots.trend([("Mon", row("a", None, "error"))]) is None


def test_a_scorecard_comes_back_from_its_json(tmp_path):
    for seed, name in enumerate(("prod", "cand")):
        write_predictions(tmp_path / f"{name}.jsonl", *noisy(seed, 200, 0.8), sure=0.7)
    found = score(
        tmp_path,
        """version: 1
checkpoints: [{id: prod, predictions: prod.jsonl}, {id: cand, predictions: cand.jsonl}, {id: gone, path: nowhere}]
baseline: prod
tests:
  - id: t
    assert:
      - {type: metric, metric: recall, label: "*", threshold: 0.8}
      - {id: change, type: rate, label: full_refusal, max_increase: 0.05}
      - {id: worse, type: no-regression, metric: accuracy, min_absolute_change: -0.01, test: mcnemar}
""",
    )
    text = json_text(found)
    back = from_json(text)
    assert json_text(back) == text
    assert back.sentence == found.sentence and [r.key for r in back.rows] == [r.key for r in found.rows]
    assert (
        replace(back.rows[0], evidence=found.rows[0].evidence, description=found.rows[0].description) == found.rows[0]
    )


NONE = ("", "[]", "{}", '{"schema": "refusal-scorecard/9"}', '{"schema": "refusal-scorecard/1"}')


@pytest.mark.parametrize("text", [*NONE, '{"schema": "refusal-scorecard/1", "suite": 3, "rows": 1}'])
def test_what_is_no_scorecard_is_one_sentence(text):
    with pytest.raises(InputError) as caught:
        from_json(text)
    assert "\n" not in str(caught.value)
