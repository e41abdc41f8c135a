"""Assertions on labelled rows: undefined scores, slices, ids, regressions, Holm; beside scikit-learn, statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, f1_score, log_loss, matthews_corrcoef, recall_score

from refusal_core.errors import InputError
from refusal_core.labels import LABELS
from refusal_core.metrics.intervals import wilson
from refusal_core.scorecard import Row
from refusal_core.scorecard.draft import draft
from tests.core.scorecard.cases import assertion, flipped, noisy, only, score, write_jsonl, write_predictions

FOUR = ("zero", "one", "two", "three")


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Two checkpoints over the same 500 items."""
    folder = tmp_path_factory.mktemp("noise")
    true, first = noisy(1, 500, 0.8)
    _, second = noisy(1, 500, 0.8)
    rng = np.random.default_rng(5)
    second = [t if rng.random() < 0.3 else p for t, p in zip(true, second, strict=True)]
    write_predictions(folder / "a.jsonl", true, first, sure=0.8)
    write_predictions(folder / "b.jsonl", true, second, sure=0.8)
    return folder, np.array(true), np.array(first), np.array(second)


BOTH = "{id: a, predictions: a.jsonl}, {id: b, predictions: b.jsonl}"


def test_values_are_those_of_scikit_learn(noise):
    folder, true, first, _ = noise
    probabilities = np.full((500, 5), 0.05)
    probabilities[np.arange(500), first] = 0.8
    onehot = np.eye(5)[true]
    expected = {
        "{metric: accuracy, %s}": accuracy_score(true, first),
        "{metric: f1, average: macro, %s}": f1_score(true, first, average="macro"),
        "{metric: f1, average: weighted, %s}": f1_score(true, first, average="weighted"),
        "{metric: recall, label: full_refusal, %s}": recall_score(true, first, labels=[1], average="macro"),
        "{metric: mcc, %s}": matthews_corrcoef(true, first),
        "{metric: log_loss, %s}": log_loss(true, probabilities, labels=range(5)),
        "{metric: brier, %s}": sum(brier_score_loss(onehot[:, k], probabilities[:, k]) for k in range(5)),
    }
    lines = "".join(f"      - {form % 'type: metric, threshold: 0.5'}\n" for form in expected)
    suite = f"version: 1\ncheckpoints: [{{id: a, predictions: a.jsonl}}]\ntests:\n  - id: t\n    assert:\n{lines}"
    rows = score(folder, suite).rows
    assert [row.value for row in rows] == pytest.approx(list(expected.values()), abs=1e-9)
    assert all(row.interval.low <= row.value <= row.interval.high for row in rows)


def test_the_paired_difference_agrees_with_statsmodels(noise):
    """Value, McNemar's exact p, and an interval close to the one for paired proportions."""
    from statsmodels.stats.contingency_tables import mcnemar

    folder, true, first, second = noise
    row = only(
        score(
            folder,
            assertion(
                "{type: no-regression, metric: accuracy, min_absolute_change: -0.01, test: mcnemar}",
                columns=BOTH,
                more="baseline: a",
            ),
        ),
        "b",
    )
    was, now = first == true, second == true
    table = [[int((was & now).sum()), int((was & ~now).sum())], [int((~was & now).sum()), int((~was & ~now).sum())]]
    assert row.value == pytest.approx(now.mean() - was.mean())
    assert row.evidence.p == pytest.approx(mcnemar(table, exact=True).pvalue)
    assert (row.evidence.worse_total, row.evidence.better_total) == (table[0][1], table[1][0])
    spread = np.std(now.astype(float) - was, ddof=1) / np.sqrt(500)
    assert row.interval.low == pytest.approx(row.value - 1.96 * spread, abs=0.01)
    assert row.interval.high == pytest.approx(row.value + 1.96 * spread, abs=0.01)


@pytest.mark.parametrize(("worse", "better", "p"), [(1, 6, 0.125), (3, 12, 0.035), (12, 9, 0.664), (0, 5, 0.0625)])
def test_mcnemar_on_the_worked_values(tmp_path, worse, better, p):
    n = 100
    old = [0] * better + [1] * (n - better)
    new = [1] * (n - worse) + [0] * worse
    write_predictions(tmp_path / "a.jsonl", [1] * n, old)
    write_predictions(tmp_path / "b.jsonl", [1] * n, new)
    text = "{type: no-regression, metric: accuracy, min_absolute_change: -0.05}"
    row = only(score(tmp_path, assertion(text, columns=BOTH, more="baseline: a")), "b")
    assert round(row.evidence.p, 3) == pytest.approx(p, abs=1e-3)
    never = any("never reach p = 0.05" in note for note in row.evidence.notes)
    assert never == (worse + better < 6)


class TestUndefined:
    """scikit-learn 31052: an undefined score is not 0 unless the suite says so."""

    @pytest.fixture
    def folder(self, tmp_path):
        write_predictions(tmp_path / "a.jsonl", [0, 1, 0, 3], [0, 1, 2, 2], labels=FOUR)
        return tmp_path

    def rows(self, folder, metric: str, rule: str) -> dict[str, Row]:
        more = f"labels: [{', '.join(FOUR)}]\ndefaults: {{zero_division: {rule}, min_support: 0}}"
        text = f'{{type: metric, metric: {metric}, label: "*", threshold: 0.5}}'
        return {row.label: row for row in score(folder, assertion(text, more=more)).rows}

    def test_without_a_rule(self, folder):
        recall = self.rows(folder, "recall", "undefined")["two"]
        assert (recall.verdict, recall.value, recall.reason) == ("not run", None, "no row is truly two")
        precision = self.rows(folder, "precision", "undefined")["three"]
        assert (precision.verdict, precision.value) == ("error", None)
        assert "three is never answered" in precision.reason

    def test_zero_means_zero(self, folder):
        precision = self.rows(folder, "precision", "0")["three"]
        assert (precision.verdict, precision.value) == ("fail", 0.0)
        assert self.rows(folder, "precision", "1")["three"].verdict == "pass"

    @pytest.mark.parametrize("rule", ["undefined", "0", "1"])
    @pytest.mark.parametrize("metric", ["precision", "recall"])
    def test_conversations_make_no_difference(self, folder, metric, rule):
        alone = {label: row.verdict for label, row in self.rows(folder, metric, rule).items()}
        write_predictions(folder / "a.jsonl", [0, 1, 0, 3], [0, 1, 2, 2], labels=FOUR, group=["g", "g", "h", "i"])
        grouped = self.rows(folder, metric, rule)
        undefined = [label for label, row in grouped.items() if not row.n]
        assert undefined and {label: grouped[label].verdict for label in undefined}.items() <= alone.items()

    def test_the_macro_average_under_each_rule(self, folder):
        for rule, division in (("undefined", np.nan), ("0", 0), ("1", 1)):
            more = f"labels: [{', '.join(FOUR)}]\ndefaults: {{zero_division: {rule}, min_support: 0}}"
            text = "{type: metric, metric: precision, average: macro, threshold: 0.1}"
            row = only(score(folder, assertion(text, more=more)))
            from sklearn.metrics import precision_score

            expected = precision_score(
                [0, 1, 0, 3], [0, 1, 2, 2], labels=range(4), average="macro", zero_division=division
            )
            assert row.value == pytest.approx(expected)
            assert any("three" in note for note in row.evidence.notes)


def test_a_perfect_score_is_not_beyond_doubt(tmp_path):
    """No resample of right answers is wrong; the interval comes from the class sizes instead."""
    true = [k for k in range(5) for _ in range(40)]
    write_predictions(tmp_path / "a.jsonl", true, true)
    easy, hard = (
        only(score(tmp_path, assertion(f"{{type: metric, metric: f1, average: macro, threshold: {t}}}")))
        for t in (0.9, 0.99)
    )
    assert (easy.verdict, hard.verdict) == ("pass", "inconclusive")
    assert easy.interval.high == 1.0 and 0.9 < easy.interval.low < 0.97


def test_slices_unfold_and_an_empty_one_did_not_run(tmp_path):
    rows = [
        {"id": f"r{i}", "prompt": "p", "response": "r", "label": LABELS[i % 2], "lang": "en" if i < 60 else "no"}
        for i in range(100)
    ]
    write_jsonl(tmp_path / "d.jsonl", rows)
    write_predictions(tmp_path / "a.jsonl", [None] * 100, [i % 2 for i in range(100)], ids=[r["id"] for r in rows])
    more = "datasets: [{id: d, path: d.jsonl, slice_fields: [lang]}]"

    def verdicts(part: str) -> list:
        found = score(
            tmp_path, assertion(f"{{type: metric, metric: accuracy, threshold: 0.5, slice: {part}}}", more=more)
        )
        return [(row.slice, row.n, row.verdict) for row in found.rows]

    assert verdicts('{lang: "*"}') == [({"lang": "en"}, 60, "pass"), ({"lang": "no"}, 40, "pass")]
    assert verdicts("{lang: no}") == [(None, 40, "pass")]
    assert verdicts("{lang: de}") == [(None, None, "not run")]
    assert verdicts("{prompt: p}") == [(None, None, "error")]


def test_ids_that_do_not_match_are_an_error(tmp_path):
    true, predicted = flipped(200, 10)
    write_predictions(tmp_path / "a.jsonl", true, predicted)
    text = assertion(
        "{type: no-regression, metric: accuracy, min_absolute_change: -0.5}", columns=BOTH, more="baseline: a"
    )
    for shift, verdict in ((1, "pass"), (5, "error")):
        ids = [f"i{i + shift}" for i in range(200)]
        write_predictions(tmp_path / "b.jsonl", true, predicted, ids=ids)
        row = only(score(tmp_path, text), "b")
        assert row.verdict == verdict
        assert f"{2 * shift} " in (row.reason or " ".join(row.evidence.notes))


def test_a_relative_change_from_zero_is_an_error_and_no_infinity(tmp_path):
    write_predictions(tmp_path / "a.jsonl", *flipped(50, 50))
    write_predictions(tmp_path / "b.jsonl", *flipped(50, 10))
    text = "{type: no-regression, metric: accuracy, min_relative_change: -0.1}"
    row = only(score(tmp_path, assertion(text, columns=BOTH, more="baseline: a")), "b")
    assert row.verdict == "error" and "baseline's value is 0" in row.reason


def test_the_baseline_is_not_compared_with_itself_and_a_copy_is_said(tmp_path):
    write_predictions(tmp_path / "a.jsonl", *flipped(200, 10))
    text = "{type: no-regression, metric: accuracy, min_absolute_change: -0.05}"
    columns = "{id: a, predictions: a.jsonl}, {id: b, predictions: a.jsonl}"
    found = score(tmp_path, assertion(text, columns=columns, more="baseline: a"))
    assert only(found, "a").verdict == "not run"
    copy = only(found, "b")
    assert copy.verdict == "pass" and copy.interval.low < 0 < copy.interval.high
    assert any("same file" in note for note in copy.evidence.notes)
    assert only(score(tmp_path, assertion(text, columns=columns)), "b").reason == "the suite names no baseline"


def test_without_any_flip_a_margin_of_zero_is_not_proven(tmp_path):
    """Holds 0: as many flips as Wilson's interval of none in n allows may lie behind it."""
    write_predictions(tmp_path / "a.jsonl", *flipped(200, 10))
    text = "{type: no-regression, metric: accuracy, min_absolute_change: 0}"
    columns = "{id: a, predictions: a.jsonl}, {id: b, predictions: a.jsonl}"
    assert only(score(tmp_path, assertion(text, columns=columns, more="baseline: a")), "b").verdict == "inconclusive"


def test_positive_is_better_also_for_brier(tmp_path):
    true, predicted = flipped(300, 30)
    write_predictions(tmp_path / "a.jsonl", true, predicted, sure=0.9)
    write_predictions(tmp_path / "b.jsonl", *flipped(300, 90), sure=0.9)
    text = "{type: no-regression, metric: brier, min_absolute_change: -0.01}"
    row = only(score(tmp_path, assertion(text, columns=BOTH, more="baseline: a")), "b")
    assert row.value < 0 and row.verdict == "fail"
    assert row.evidence.candidate.value > row.evidence.baseline.value


def test_holm_needs_more_for_each_member_and_marks_the_interval(tmp_path):
    """One borderline row passes alone; among twenty it does not, unless its p is small enough."""
    n = 400
    write_predictions(tmp_path / "a.jsonl", *flipped(n, 40))
    write_predictions(tmp_path / "b.jsonl", [1] * n, [0] * 23 + [1] * (n - 40) + [0] * 17)
    one = "{type: no-regression, metric: accuracy, min_absolute_change: -0.035}"
    lines = "\n".join(f"      - {one}" for _ in range(20))

    def verdicts(correction: str) -> set[str]:
        text = (
            f"version: 1\nbaseline: a\ndefaults: {{correction: {correction}}}\ncheckpoints: [{BOTH}]\n"
            f"tests:\n  - id: t\n    assert:\n{lines}\n"
        )
        rows = score(tmp_path, text).of("b")
        assert all(("before Holm" in " ".join(row.evidence.notes)) == (correction == "holm") for row in rows)
        return {row.verdict for row in rows}

    assert verdicts("none") == {"pass"}
    assert verdicts("holm") == {"inconclusive"}


def test_a_large_family_gets_resamples_enough_to_pass(tmp_path):
    """Sixty clear rows: with 200 resamples the smallest p is 1/201, which times sixty could never reach 0.025."""
    write_predictions(tmp_path / "a.jsonl", *flipped(300, 150))
    write_predictions(tmp_path / "b.jsonl", *flipped(300, 3))
    lines = "      - {type: no-regression, metric: accuracy, min_absolute_change: 0}\n" * 60
    text = (
        f"version: 1\nbaseline: a\ndefaults: {{correction: holm, ci: {{n_resamples: 200}}}}\ncheckpoints: [{BOTH}]\n"
        f"tests:\n  - id: t\n    assert:\n{lines}"
    )
    assert {row.verdict for row in score(tmp_path, text).of("b")} == {"pass"}


def test_ece_is_undecided_below_200_items(tmp_path):
    write_predictions(tmp_path / "a.jsonl", *flipped(150, 15), sure=0.9)
    row = only(score(tmp_path, assertion("{type: metric, metric: ece, threshold: 0.5}")))
    assert (row.verdict, row.reason) == ("inconclusive", "n = 150 is below the support of 200")
    assert row.evidence.more_needed == 50


def test_clusters_widen_the_interval(tmp_path):
    """Ten answers of each of forty conversations, all right or all wrong: forty, not four hundred."""
    true, predicted = [1] * 400, [0 if i // 10 % 5 == 0 else 1 for i in range(400)]
    text = assertion("{type: metric, metric: accuracy, threshold: 0.75}")
    write_predictions(tmp_path / "a.jsonl", true, predicted)
    alone = only(score(tmp_path, text))
    write_predictions(tmp_path / "a.jsonl", true, predicted, group=[f"c{i // 10}" for i in range(400)])
    grouped = only(score(tmp_path, text))
    assert alone.verdict == "pass" and grouped.verdict == "inconclusive"
    assert grouped.interval.width > 2.5 * alone.interval.width


def test_clusters_that_are_all_right_are_counted_as_clusters(tmp_path):
    """Forty conversations of five right answers each: Wilson's interval of 40 in 40, not of 200 in 200."""
    write_predictions(tmp_path / "a.jsonl", [1] * 200, [1] * 200, group=[f"c{i // 5}" for i in range(200)])
    for text in (
        "{type: metric, metric: accuracy, threshold: 0.95}",
        "{type: metric, metric: recall, label: full_refusal, threshold: 0.95}",
        "{type: rate, label_set: refusal, min_rate: 0.95}",
        "{type: confusion, true: full_refusal, predicted: compliant, max_rate: 0.05}",
    ):
        row = only(score(tmp_path, assertion(text)))
        assert row.verdict == "inconclusive" and row.interval.width == pytest.approx(wilson(40, 40).width)


def test_confusion_and_support(tmp_path):
    write_predictions(tmp_path / "a.jsonl", *flipped(100, 20))
    confused = "{{type: confusion, true: full_refusal, predicted: compliant, max_rate: {}}}"
    assert only(score(tmp_path, assertion(confused.format(0.35)))).verdict == "pass"
    row = only(score(tmp_path, assertion(confused.format(0.1))))
    assert (row.verdict, row.n, row.evidence.failing_total) == ("fail", 100, 20)
    assert [e.expected for e in row.evidence.failing[:1]] == ["full_refusal"]
    rows = score(tmp_path, assertion('{type: support, label: "*", min: 30}')).rows
    assert {row.label: row.verdict for row in rows}["full_refusal"] == "pass"
    assert {row.label: row.verdict for row in rows}["clarification"] == "fail"


def test_not_turns_a_verdict_round_and_leaves_doubt(tmp_path):
    write_predictions(tmp_path / "a.jsonl", *flipped(32, 6))
    found = {
        t: only(score(tmp_path, assertion(f"{{type: not-metric, metric: accuracy, threshold: {t}}}"))).verdict
        for t in (0.5, 0.8, 0.95)
    }
    assert found == {0.5: "fail", 0.8: "inconclusive", 0.95: "pass"}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_rows_are_a_row_that_says_so(tmp_path, n):
    write_predictions(tmp_path / "a.jsonl", [0, 1][:n], [0, 1][:n], sure=0.6)
    for metric in ("brier", "log_loss", "accuracy"):
        row = only(score(tmp_path, assertion(f"{{type: metric, metric: {metric}, threshold: 0.5}}")))
        assert row.verdict in ("inconclusive", "not run", "error")
    if not n:
        with pytest.raises(InputError, match="no row with an answer"):
            draft(tmp_path / "a.jsonl")
