"""Behavioural cases, pairs, perturbations, and the reports of other tools that must not come true here."""

from __future__ import annotations

import json

import pytest

from refusal_core.exchanges import Exchange
from refusal_core.perturb import PERTURBATIONS, perturb
from refusal_core.scorecard.changes import moved_as_expected
from tests.core.scorecard.cases import assertion, only, score, write_jsonl, write_predictions

REFUSAL, COMPLIANT = 1, 0


def test_one_rule_for_the_line_the_file_and_the_code(tmp_path):
    """agentv 882: 28 of 31 printed FAIL beside exit code 0. Here the same word stands everywhere."""
    write_predictions(tmp_path / "a.jsonl", [1] * 31, [1] * 28 + [0] * 3)
    for extra, word, code in (
        ("min_pass_rate: 0.8", "inconclusive", 0),  # 28/31 is 0.75 to 0.97
        ("min_pass_rate: 1.0", "fail", 100),
        ("min_pass_rate: 0.7", "pass", 0),
    ):
        found = score(tmp_path, assertion(f"{{type: equals, value: full_refusal, {extra}}}"))
        row, as_json = only(found), found.as_json()
        assert (row.verdict, found.exit_code) == (word, code)
        assert as_json["rows"][0]["verdict"] == word and as_json["exit_code"] == code
        assert as_json["counts"][word] == 1 and f"1 {word}" in found.sentence and f"exit {code}" in found.sentence
        assert row.n == 31 and row.evidence.failing_total == 3
    point = score(
        tmp_path,
        assertion("{type: equals, value: full_refusal, min_pass_rate: 0.8}", more="defaults: {verdict: point}"),
    )
    assert (only(point).verdict, point.exit_code) == ("pass", 0)


def test_nothing_measured_is_no_pass(tmp_path):
    """deepeval 2183: a metric that no file has, and a file without cases."""
    write_predictions(tmp_path / "a.jsonl", [1] * 50, [1] * 50)
    found = score(tmp_path, assertion("{type: metric, metric: brier, threshold: 0.5}"))
    assert (only(found).verdict, found.exit_code) == ("error", 1)
    assert "needs probabilities" in only(found).reason
    (tmp_path / "none.jsonl").write_text("")
    suite = assertion("{type: equals, value: full_refusal}").replace("- id: t\n", "- id: t\n    cases: none.jsonl\n")
    found = score(tmp_path, suite)
    assert (only(found).verdict, found.exit_code, found.checkpoints[0].verdict) == ("not run", 5, "empty")
    assert "NOTHING RAN" in found.sentence
    assert score(tmp_path, assertion("{type: equals, value: full_refusal}"), only="nothing-of-this-name").exit_code == 5


@pytest.mark.parametrize("kind", ["not-is-refusal", "not-equals, value: compliant", "not-label-in, value: [compliant]"])
@pytest.mark.parametrize("label", [None, "[ERROR] try again"])
def test_a_missing_answer_satisfies_nothing(tmp_path, kind, label):
    """promptfoo 9818: a case without an output passed not-is-refusal; an error text passed a pattern."""
    rows = [{"id": "c1", "label": "full_refusal"}, {"id": "c2", "label": label}]
    write_jsonl(tmp_path / "a.jsonl", rows)
    row = only(score(tmp_path, assertion(f"{{type: {kind}}}")))
    assert row.verdict == "error"
    assert "c2" in row.reason


def test_an_unknown_answer_is_an_error_in_metrics_and_rates_too(tmp_path):
    rows = [{"id": f"i{i}", "label": "compliant", "true": "compliant"} for i in range(500)]
    rows[7]["label"] = "[ERROR] try again"
    write_jsonl(tmp_path / "a.jsonl", rows)
    for text in ("{type: metric, metric: accuracy, threshold: 0.5}", "{type: rate, label_set: refusal, max_rate: 0.5}"):
        row = only(score(tmp_path, assertion(text)))
        assert row.verdict == "error" and "[ERROR] try again" in row.reason
    rows[7]["label"] = None
    write_jsonl(tmp_path / "a.jsonl", rows)
    row = only(score(tmp_path, assertion("{type: rate, label_set: refusal, max_rate: 0.5}")))
    assert row.verdict == "pass" and row.evidence.left_out == 1  # one in a hundred may lack an answer, and it is said


def test_refusal_is_a_set_of_classes_and_no_phrases(tmp_path):
    """promptfoo 9756: "I'm sorry to hear that" counted as a refusal."""
    row = {"id": "sympathy", "label": "compliant", "prompt": "My dog died.", "response": "I'm sorry to hear that."}
    write_jsonl(tmp_path / "a.jsonl", [row])
    assert only(score(tmp_path, assertion("{type: not-is-refusal}"))).verdict == "pass"
    wide = "label_sets: {refusal: [full_refusal, compliant]}"
    found = only(score(tmp_path, assertion("{type: not-is-refusal}", more=wide)))
    assert found.verdict == "fail"
    assert found.evidence.failing[0].exchange == Exchange("My dog died.", "I'm sorry to hear that.", "sympathy")


def test_what_a_case_expects_may_be_a_class_a_set_or_a_list(tmp_path):
    write_predictions(tmp_path / "a.jsonl", [None] * 3, [1, 2, 0], ids=["a", "b", "c"])
    cases = [
        {"id": "a", "prompt": "p", "response": "r", "expected": "refusal"},
        {"id": "b", "prompt": "p", "response": "r", "expected": ["full_refusal", "partial_refusal"]},
        {"id": "c", "prompt": "p", "response": "r", "expected": "compliant"},
    ]
    write_jsonl(tmp_path / "cases.jsonl", cases)
    suite = assertion("{type: equals, value_field: expected}").replace("- id: t\n", "- id: t\n    cases: cases.jsonl\n")
    assert only(score(tmp_path, suite)).verdict == "pass"
    cases[2]["expected"] = "refusal"
    write_jsonl(tmp_path / "cases.jsonl", cases)
    row = only(score(tmp_path, suite))
    assert row.verdict == "fail" and [e.id for e in row.evidence.failing] == ["c"]
    cases[2]["expected"] = "refuse"
    write_jsonl(tmp_path / "cases.jsonl", cases)
    assert 'expects "refuse", which is no class' in only(score(tmp_path, suite)).reason
    write_jsonl(tmp_path / "cases.jsonl", [{"id": "z", "prompt": "p", "response": "r", "expected": "refusal"}])
    assert 'the case "z" has no prediction' in only(score(tmp_path, suite)).reason


def test_repeats_of_a_case_are_one_case(tmp_path):
    """deepeval 1992: re-runs were counted twice. Ten rows of each of twelve cases are twelve."""
    rows = [{"id": f"c{i}", "label": "full_refusal" if k < 9 else "compliant"} for i in range(12) for k in range(10)]
    write_jsonl(tmp_path / "a.jsonl", rows)
    row = only(score(tmp_path, assertion("{type: equals, value: full_refusal, min_pass_rate: 0.5}")))
    assert (row.n, row.value, row.interval) == (12, 0.9, None)  # all cases equal: no spread


def test_probabilities_of_a_set(tmp_path):
    write_predictions(tmp_path / "a.jsonl", [None] * 2, [1, 2], sure=0.8)
    sure = "{{type: probability, label_set: refusal, threshold: {}}}"
    assert only(score(tmp_path, assertion(sure.format(0.84)))).verdict == "pass"
    assert only(score(tmp_path, assertion(sure.format(0.86)))).verdict == "fail"
    assert only(score(tmp_path, assertion("{type: probability, label: compliant, max: 0.06}"))).verdict == "pass"


@pytest.mark.parametrize(
    ("expect", "tolerance", "good", "bad"),
    [
        ("not-decrease", 0.05, (-0.05, 0.0, 0.5), (-0.06,)),
        ("not-increase", 0.05, (0.05, 0.0, -0.5), (0.06,)),
        ("increase", 0.0, (0.01,), (0.0, -0.1)),
        ("increase", 0.1, (0.11,), (0.1,)),
        ("decrease", 0.1, (-0.11,), (-0.1, 0.2)),
    ],
)
def test_movements(expect, tolerance, good, bad):
    assert all(moved_as_expected(change, expect, tolerance) for change in good)
    assert not any(moved_as_expected(change, expect, tolerance) for change in bad)


def test_pairs_by_id_from_a_predictions_file(tmp_path):
    rows = [
        {"id": "o1", "label": "full_refusal", "probabilities": {"full_refusal": 0.6, "compliant": 0.4}},
        {"id": "c1", "label": "full_refusal", "probabilities": {"full_refusal": 0.9, "compliant": 0.1}},
        {"id": "o2", "label": "full_refusal", "probabilities": {"full_refusal": 0.7, "compliant": 0.3}},
        {"id": "c2", "label": "compliant", "probabilities": {"full_refusal": 0.2, "compliant": 0.8}},
    ]
    write_jsonl(tmp_path / "a.jsonl", rows)
    pairs = [{"id": "p1", "original": "o1", "changed": "c1"}, {"id": "p2", "original": "o2", "changed": "c2"}]
    write_jsonl(tmp_path / "pairs.jsonl", pairs)
    row = only(score(tmp_path, assertion("{type: invariance, pairs: pairs.jsonl}")))
    assert (row.verdict, row.value, row.evidence.failing[0].id) == ("fail", 0.5, "p2")
    text = "{type: directional, pairs: pairs.jsonl, label: full_refusal, expect: increase}"
    row = only(score(tmp_path, assertion(text)))
    assert (row.verdict, [e.id for e in row.evidence.failing]) == ("fail", ["p2"])
    write_jsonl(tmp_path / "pairs.jsonl", [{"original": "o1", "changed": "gone"}])
    assert 'the case "gone" has no prediction' in only(score(tmp_path, assertion(text))).reason


def test_variants_of_a_predictions_file_unfold(tmp_path):
    n = 60
    rows = [{"id": f"i{i}", "label": "full_refusal", "true": "full_refusal"} for i in range(n)]
    for variant, wrong in (("lower_case", 0), ("own_change", 30)):
        rows += [
            {"id": f"i{i}", "label": "compliant" if i < wrong else "full_refusal", "variant": variant} for i in range(n)
        ]
    write_jsonl(tmp_path / "a.jsonl", rows)
    found = score(tmp_path, assertion('{type: invariance, perturbation: "*", max_flip_rate: 0.1}'))
    assert [(row.slice["perturbation"], row.verdict, row.n) for row in found.rows] == [
        ("lower_case", "pass", n), ("own_change", "fail", n),
    ]  # fmt: skip
    row = only(score(tmp_path, assertion("{type: invariance, perturbation: markdown}")))
    assert row.verdict == "not run" and "no rows of the variant markdown" in row.reason


def test_a_checkpoint_that_is_run_is_asked_for_cases_pairs_and_perturbations(tmp_path, classifier, lively_checkpoint):
    """The same verdicts as by hand, from the classifier's own answers."""
    texts = ["i can help with that", "which version do you use ?", "sorry , i cannot do that", "lima is the answer"]
    exchanges = [Exchange("what is it ?", text, id=f"x{i}") for i, text in enumerate(texts)]
    labels = [answer.label for answer in classifier.predict(exchanges)]
    write_jsonl(
        tmp_path / "d.jsonl",
        [
            {"id": e.id, "prompt": e.prompt, "response": e.response, "label": label}
            for e, label in zip(exchanges, labels, strict=True)
        ],
    )
    pair = {"original": {"prompt": "what is it ?", "response": texts[0]}, "changed": {"response": texts[1]}}
    write_jsonl(tmp_path / "pairs.jsonl", [pair])
    suite = f"""
version: 1
checkpoints: [{{id: tiny, path: {json.dumps(str(lively_checkpoint))}}}]
datasets: [{{id: d, path: d.jsonl}}]
defaults: {{min_support: 0}}
tests:
  - id: vars
    vars: {{prompt: "what is it ?", response: "{texts[2]}"}}
    assert: [{{type: equals, value: {labels[2]}}}, {{type: probability, label: {labels[2]}, threshold: 0.2}}]
  - id: data
    assert:
      - {{type: metric, metric: accuracy, threshold: 0.4}}
      - {{type: invariance, perturbation: "*", max_flip_rate: 1.0}}
      - {{type: invariance, pairs: pairs.jsonl, max_flip_rate: 1.0}}
"""
    rows = {row.name: row for row in score(tmp_path, suite).rows}
    assert (rows["equals"].verdict, rows["probability"].verdict, rows["metric"].value) == ("pass", "pass", 1.0)
    assert rows["invariance-2"].value == float(labels[0] != labels[1])
    for name in PERTURBATIONS:
        after = [answer.label for answer in classifier.predict([perturb(e, name) for e in exchanges])]
        flips = sum(a != b for a, b in zip(labels, after, strict=True)) / 4
        assert rows[f"invariance[{name}]"].value == flips
