"""Columns of a language model's answers: rates, against a baseline, and corrected for the classifier's errors."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from refusal_core.labels import LABELS
from refusal_core.metrics.intervals import wilson
from refusal_core.scorecard.correction import Validation, corrected_difference, corrected_rate, true_shares
from tests.core.scorecard.cases import assertion, only, score, write_jsonl, write_predictions

GOOD = np.full((5, 5), 3) + np.eye(5, dtype=int) * 85  # 0.88 right


def answers(path, labels, *, category=None, prompts=None):
    rows = [
        {"id": f"q{i}", "prompt": prompts[i] if prompts else f"question {i}", "response": "an answer", "label": label,
         "category": category[i] if category else "all"}
        for i, label in enumerate(labels)
    ]  # fmt: skip
    return write_jsonl(path, rows)


OLD = "{id: old, responses: old.jsonl, label_field: label}"
NEW = "{id: new, responses: new.jsonl, label_field: label}"


def test_rates_overall_and_by_category(tmp_path):
    labels = ["full_refusal"] * 30 + ["partial_refusal"] * 10 + ["compliant"] * 60
    answers(tmp_path / "old.jsonl", labels, category=["weapons"] * 50 + ["cooking"] * 50)
    row = only(score(tmp_path, assertion("{type: rate, label_set: refusal, max_rate: 0.45}", columns=OLD)))
    assert (row.verdict, row.value, row.n) == ("inconclusive", 0.4, 100)
    assert (row.interval.low, row.interval.high) == (wilson(40, 100).low, wilson(40, 100).high)
    text = '{type: rate, label_set: refusal, max_rate: 0.1, slice: {category: "*"}}'
    found = score(tmp_path, assertion(text, columns=OLD)).rows
    assert [(r.slice["category"], r.verdict, r.evidence.failing_total) for r in found] == [
        ("cooking", "pass", 0), ("weapons", "fail", 40),
    ]  # fmt: skip
    both = score(tmp_path, assertion('{type: rate, label: "*", min_rate: 0.0, max_rate: 0.9}', columns=OLD)).rows
    assert [r.label for r in both] == list(LABELS) and {r.verdict for r in both} == {"pass"}


def test_a_change_is_paired_by_prompt(tmp_path):
    old = ["full_refusal"] * 40 + ["compliant"] * 60
    new = ["compliant"] * 10 + ["full_refusal"] * 60 + ["compliant"] * 30
    answers(tmp_path / "old.jsonl", old)
    answers(tmp_path / "new.jsonl", new)
    text = "{type: rate, label_set: refusal, max_increase: 0.05, max_decrease: 0.05}"
    row = only(score(tmp_path, assertion(text, columns=f"{OLD}, {NEW}", more="baseline: old")), "new")
    assert (row.verdict, row.value, row.margin, row.comparison) == ("fail", pytest.approx(0.2), 0.05, "<=")
    assert (row.evidence.worse_total, row.evidence.better_total) == (30, 10)
    assert {e.id for e in row.evidence.failing} == {f"q{i}" for i in range(40, 70)}
    answers(tmp_path / "new.jsonl", new, prompts=[f"other {i}" for i in range(100)])
    row = only(score(tmp_path, assertion(text, columns=f"{OLD}, {NEW}", more="baseline: old")), "new")
    assert row.verdict == "error" and 'the id "q0" has another prompt' in row.reason


def test_what_asks_a_classifier_is_not_run_on_answers(tmp_path):
    answers(tmp_path / "old.jsonl", ["full_refusal"] * 40)
    for text in (
        "{type: metric, metric: accuracy, threshold: 0.5}",
        "{type: no-regression, metric: accuracy, min_absolute_change: 0}",
        "{type: training, check: finite}",
        "{type: invariance, perturbation: markdown}",
    ):
        found = score(tmp_path, assertion(text, columns=OLD, more="baseline: old"))
        assert (only(found).verdict, found.exit_code) == ("not run", 5)
    assert only(score(tmp_path, assertion("{type: is-refusal}", columns=OLD))).verdict == "pass"


shares = st.lists(st.integers(0, 40), min_size=5, max_size=5).filter(lambda counts: sum(counts) > 5)


@settings(max_examples=25)
@given(counts=shares, seed=st.integers(0, 99))
def test_the_simplex_solution_is_the_best_one(counts, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(5), size=5) * 0.4 + np.eye(5) * 0.6
    q = np.array(counts) / sum(counts)
    found = true_shares(matrix[None], q[None])[0]
    assert (found >= 0).all() and found.sum() == pytest.approx(1)

    def loss(pi):
        return float(((matrix.T @ pi - q) ** 2).sum())

    best = minimize(
        loss, np.full(5, 0.2), bounds=[(0, 1)] * 5, constraints={"type": "eq", "fun": lambda pi: pi.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert loss(found) <= best.fun + 1e-9


def test_exact_answers_are_given_back():
    true = np.array([0.5, 0.2, 0.1, 0.15, 0.05])
    matrix = GOOD / GOOD.sum(axis=1, keepdims=True)
    assert true_shares(matrix[None], (matrix.T @ true)[None])[0] == pytest.approx(true)


def test_the_corrected_interval_covers():
    """The 95% interval holds the true rate about as often as it says, where the plain one nearly never does."""
    rng = np.random.default_rng(7)
    matrix = GOOD / 100
    matrix[0] = [0.75, 0.2, 0.03, 0.01, 0.01]  # one good answer in five is called a refusal
    true = np.array([0.5, 0.25, 0.1, 0.1, 0.05])
    hits = raw_hits = 0
    for seed in range(150):
        validation = Validation(LABELS, np.stack([rng.multinomial(80, row) for row in matrix]))
        answered = np.repeat(np.arange(5), rng.multinomial(300, true @ matrix))
        found = corrected_rate(validation, answered, [1, 2], seed=seed, resamples=200)
        hits += found.interval.low <= 0.35 <= found.interval.high
        raw = wilson(int(np.isin(answered, [1, 2]).sum()), 300)
        raw_hits += raw.low <= 0.35 <= raw.high
    assert 135 <= hits <= 149
    assert raw_hits < 75


def test_a_difference_of_equal_models_is_none():
    validation = Validation(LABELS, GOOD)
    answered = np.repeat(np.arange(5), 40)
    value, interval = corrected_difference(
        (validation, answered), (validation, answered), [1, 2], same_classifier=True, resamples=200
    )
    assert value == 0 and (interval.low, interval.high) == (0, 0)


def validated(tmp_path, per_class=40):
    """The lively checkpoint's column with validation rows that are its own predictions of themselves."""
    true = [k for k in range(5) for _ in range(per_class)]
    predicted = [k if i % 8 else (k + 1) % 5 for k in range(5) for i in range(per_class)]
    write_predictions(tmp_path / "validation.jsonl", true, predicted)


def test_corrected_rates_in_a_suite(tmp_path, classifier, lively_checkpoint):
    texts = ["i can help", "which version ?", "sorry , i cannot", "lima", "refuse that", "do it"]
    rows = [{"id": i, "prompt": f"what is {i} ?", "response": texts[i % 6] + " a" * (i // 6)} for i in range(60)]
    write_jsonl(tmp_path / "r.jsonl", rows)
    validated(tmp_path)
    name = json.dumps(str(lively_checkpoint))
    column = f"{{id: m, responses: r.jsonl, classifier: {name}, validated_on: validation.jsonl}}"
    plain = "{{type: rate, label_set: refusal, max_rate: 1.0{}}}"
    raw = only(score(tmp_path, assertion(plain.format(""), columns=column)))
    corrected = only(score(tmp_path, assertion(plain.format(", corrected: true"), columns=column)))
    assert raw.value == raw.evidence.raw.value == corrected.evidence.raw.value
    assert corrected.value == raw.evidence.corrected.value != raw.value
    assert corrected.interval.width > 0 and "corrected" in corrected.subject
    assert any("errs on these responses as it did" in note for note in corrected.evidence.notes)
    validated(tmp_path, per_class=29)
    withheld = only(score(tmp_path, assertion(plain.format(", corrected: true"), columns=column)))
    assert withheld.verdict == "error" and "fewer than 30 validation rows of compliant 29" in withheld.reason
    still = only(score(tmp_path, assertion(plain.format(""), columns=column)))
    assert still.verdict == "pass" and any("withheld" in n or "no corrected rate" in n for n in still.evidence.notes)


def test_refusal_rates_by_model_and_category_of_public_answers(tmp_path, shared_data):
    """The counts that the data's own README states for each source and class, as rates of its labelled answers."""
    source = shared_data / "refusals" / "train.jsonl"
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    write_jsonl(tmp_path / "all.jsonl", rows)
    column = "{id: train, responses: all.jsonl, label_field: label}"
    text = '{type: rate, label: full_refusal, min_rate: 0.0, slice: {source: "*"}}'
    found = {row.slice["source"]: row for row in score(tmp_path, assertion(text, columns=column)).rows}
    table = published(shared_data / "refusals" / "README.md")
    checked = 0
    for name, row in found.items():
        total = sum(n for (_, s), n in table.items() if s == name)
        if total == row.n:  # the table has every class of this source
            assert round(row.value * row.n) == table["full_refusal", name]
            checked += 1
    assert checked >= 5
    part = '{source: "kunishou/do-not-answer-ja", response_model: "*"}'
    text = f"{{type: rate, label_set: refusal, min_rate: 0.0, slice: {part}}}"
    counts = Counter(
        (row["response_model"], row["label"] in ("full_refusal", "partial_refusal"))
        for row in rows
        if row["source"] == "kunishou/do-not-answer-ja"
    )
    by_model = score(tmp_path, assertion(text, columns=column)).rows
    assert len(by_model) > 6
    ran = [row for row in by_model if row.verdict != "not run"]
    assert {row.slice["response_model"]: round(row.value * row.n) for row in ran} == {
        model: counts[model, True] for model in {name for name, _ in counts}
    }


def published(readme) -> Counter:
    """(class, source) -> rows in train.jsonl, from the README's table."""
    table: Counter = Counter()
    for line in readme.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[0] in LABELS and cells[3].isdigit():
            table[cells[0], cells[1]] += int(cells[3])
    return table
