"""The arithmetic of verdicts on worked values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.metrics.intervals import Interval, wilson
from refusal_core.scorecard.result import Row, conclude
from refusal_core.scorecard.verdicts import Bound, Judgement, against, all_of, more_needed, negated
from tests.core.scorecard.cases import assertion, flipped, only, score, write_predictions


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(26, 32, 0.647, 0.911), (19, 20, 0.764, 0.991), (180, 200, 0.851, 0.934), (1, 1, 0.207, 1.0)],
)
def test_wilson_on_the_worked_values(successes, n, low, high):
    interval = wilson(successes, n)
    assert (round(interval.low, 3), round(interval.high, 3)) == (low, high)


@pytest.mark.parametrize(("threshold", "verdict"), [(0.60, "pass"), (0.80, "inconclusive"), (0.95, "fail")])
def test_26_of_32_knows_how_little_it_knows(tmp_path, threshold, verdict):
    write_predictions(tmp_path / "a.jsonl", *flipped(32, 6))
    row = only(score(tmp_path, assertion(f"{{type: metric, metric: accuracy, threshold: {threshold}}}")))
    assert row.verdict == verdict
    assert "0.81 (0.65 to 0.91, n = 32)" in row.message


@given(low=st.floats(0, 1), width=st.floats(0, 1), at=st.floats(0, 1), bound=st.floats(0, 1), n=st.integers(1, 10_000))
def test_mirrored_bounds_give_mirrored_verdicts(low, width, at, bound, n):
    high = low + width
    value = low + at * width
    upward = against(value, Interval(low, high, 0.95, "x"), Bound(bound), n=n)
    mirrored = against(-value, Interval(-high, -low, 0.95, "x"), Bound(-bound, at_least=False), n=n)
    assert upward.verdict == mirrored.verdict
    assert (upward.verdict == "pass") == (low >= bound)
    assert (upward.verdict == "fail") == (high < bound)


def test_lower_is_better_is_known_from_the_metric(tmp_path):
    write_predictions(tmp_path / "a.jsonl", *flipped(400, 40), sure=0.9)
    suite = "{{type: metric, metric: brier, threshold: {}}}"
    assert only(score(tmp_path, assertion(suite.format(0.9)))).verdict == "pass"
    row = only(score(tmp_path, assertion(suite.format(0.05))))
    assert (row.verdict, row.comparison) == ("fail", "<=")


def test_support_comes_before_the_interval():
    clear = Interval(0.9, 1.0, 0.95, "x")
    assert against(0.95, clear, Bound(0.5), n=29, min_support=30).verdict == "inconclusive"
    assert against(0.95, clear, Bound(0.5), n=30, min_support=30).verdict == "pass"
    assert against(0.95, None, Bound(0.5), n=99) == Judgement(
        "inconclusive", "there is no interval: these items show no spread, or are too few clusters"
    )
    assert against(0.95, None, Bound(0.99), n=99, point=True).verdict == "fail"


def test_all_bounds_must_hold():
    good, bad, open_ = Judgement("pass"), Judgement("fail"), Judgement("inconclusive", "why")
    assert all_of([good, bad, open_]) == bad
    assert all_of([good, open_]) == open_
    assert all_of([good, good]) == good
    assert [negated(j).verdict for j in (good, bad, open_)] == ["fail", "pass", "inconclusive"]


@given(right=st.integers(0, 60), n=st.integers(1, 60), bound=st.floats(0.05, 0.95))
def test_the_number_of_further_items_would_decide(right, n, bound):
    """With the stated number more at the same value the interval leaves the bound out, with one less it does not."""
    right = min(right, n)
    more = more_needed(right / n, wilson(right, n), Bound(bound), n)
    if more is None or more > 20_000:
        return
    z2 = 3.841458820694124

    def decided(size: int) -> bool:
        return (right / n - bound) ** 2 > z2 * bound * (1 - bound) / size * (1 - 1e-9)

    assert decided(n + more)
    assert (
        not decided(n + more - 1) or abs((right / n - bound) ** 2 * (n + more - 1) / (bound * (1 - bound)) - z2) < 1e-6
    )


def test_no_number_of_items_decides_a_value_on_the_bound():
    assert more_needed(0.5, wilson(5, 10), Bound(0.5), 10) is None


def row(verdict, severity="required", checkpoint="a"):
    return Row("t", "x", "metric", checkpoint, verdict, severity, "m")


@pytest.mark.parametrize(
    ("verdicts", "code", "word"),
    [
        (["pass"], 0, "pass"),
        (["pass", "inconclusive"], 0, "pass"),
        (["pass", "error"], 1, "error"),
        (["fail", "error", "inconclusive"], 100, "fail"),
        (["not run"], 5, "empty"),
        ([], 5, "empty"),
    ],
)
def test_exit_codes_and_their_order(verdicts, code, word):
    found = conclude([row(v) for v in verdicts], {"a": True})
    assert (found.exit_code, found.verdicts["a"]) == (code, word)
    assert f"exit {code}" in found.sentence


def test_inconclusive_can_be_made_to_fail():
    rows = [row("pass"), row("inconclusive")]
    found = conclude(rows, {"a": True}, on_inconclusive="fail")
    assert (found.exit_code, found.verdicts["a"]) == (101, "inconclusive")
    assert conclude([*rows, row("error")], {"a": True}, on_inconclusive="fail").exit_code == 1


def test_advisory_rows_and_ungated_columns_fail_nothing():
    rows = [row("pass"), row("fail", "advisory"), row("error", "advisory"), row("fail", checkpoint="b")]
    found = conclude(rows, {"a": True, "b": False})
    assert (found.exit_code, found.verdicts) == (0, {"a": "pass", "b": "fail"})
    assert conclude(rows, {"a": True, "b": True}, fail_code=7).exit_code == 7


def test_nothing_measured_is_no_pass():
    """Required rows that did not run, or advisory rows that all erred, beside nothing else."""
    assert conclude([row("not run"), row("pass", "advisory")], {"a": True}).exit_code == 5
    assert conclude([row("error", "advisory")], {"a": True}).exit_code == 1


def test_a_column_of_which_nothing_ran_is_no_pass_beside_one_that_passes():
    rows = [row("pass"), row("not run", checkpoint="b")]
    found = conclude(rows, {"a": True, "b": True})
    assert (found.exit_code, found.verdicts["b"]) == (5, "empty") and "for b" in found.sentence
    assert conclude(rows, {"a": True, "b": True}, may_be_empty=["b"]).exit_code == 0
    assert conclude(rows, {"a": True, "b": False}).exit_code == 0
    assert conclude([*rows, row("fail", checkpoint="c")], dict.fromkeys("abc", True)).exit_code == 100
