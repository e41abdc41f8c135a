"""The starter that ships: its card comes out of the files beside it, and those are what the weights answer."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusal_core.classifier import load
from refusal_core.classifier.checkpoint import STARTER_FOLDER
from refusal_core.exchanges import Exchange
from refusal_core.labels import LABELS
from refusal_core.perturb import PERTURBATIONS, perturb
from refusal_core.runs.discover import discover
from refusal_core.training import starter_run
from refusal_core.training.near_duplicates import alike_across
from refusal_core.training.rotation import GROUPS, Trial, _pool_by_mean, capped, training_rows, turn
from refusal_core.training.settings import Settings
from refusal_core.training.starter import case_rows, corpus_rows
from refusal_core.training.starter_card import starter_card
from refusal_core.training.starter_numbers import RUN, STEADY, aims, numbers, shipped_checkpoint
from refusal_core.training.variation import CLOSINGS, HEADINGS, OPENINGS, varied
from tests.checkpoints import make_checkpoint

# Exact: a starter that reaches another aim, or misses one that it reached, is news.
MISSED = {"ECE, held-out domains"}
FILE_BYTES = 1_500_000


@pytest.fixture(scope="module")
def shipped():
    return starter_run.read_rows(RUN / shipped_checkpoint() / "predictions.jsonl")


def test_the_card_comes_out_of_the_run_folder():
    assert (STARTER_FOLDER / "README.md").read_text(encoding="utf-8") == starter_card()


def test_which_aims_are_missed():
    found = aims(numbers())
    assert {what for what, *_, met in found if not met} == MISSED
    assert len(found) == 5


def test_the_weights_answer_what_the_run_says(shipped):
    """Every tenth row of each part; the quality benchmark looks at all of them."""
    parts = starter_run.parts_of_a_checkpoint()
    assert [(row.split, row.variant, row.id) for row in shipped] == [
        (split, variant, row.id) for (split, variant), rows in parts.items() for row in rows
    ]
    rows = [row for part in parts.values() for row in part][::40]
    for row, before, now in zip(rows, shipped[::40], load("starter").predict(rows), strict=True):
        assert (now.label, row.label) == (before.label, before.true), before
        assert list(now.probabilities.values()) == pytest.approx(before.probabilities, abs=2e-4)


def test_the_run_folder_reads_as_a_run(shipped):
    checkpoints = sorted(path.parent.name for path in RUN.glob("checkpoint-*/predictions.jsonl"))
    assert len(checkpoints) >= 3 and shipped_checkpoint() in checkpoints
    assert shipped_checkpoint() in (RUN / "README.md").read_text(encoding="utf-8")
    assert max(path.stat().st_size for path in RUN.rglob("*") if path.is_file()) < FILE_BYTES
    [run], problems = discover(RUN)
    assert [problem.file for problem in problems] == ["README.md"]
    assert {c.name for c in run.checkpoints} >= set(checkpoints)
    names = {(row.split, row.variant) for row in shipped}
    assert names >= {("test", name) for name in PERTURBATIONS} | {("test", ""), ("cases", "")}
    results = json.loads((RUN / "eval_results.json").read_text())
    assert results["eval_macro_f1"] == pytest.approx(numbers().test.macro.f1)


def test_a_change_of_form_hardly_changes_what_the_model_reads():
    """The tokenizer drops case and spaces, and quotation marks are made plain: these must never cost a label."""
    classifier, rows = load("starter"), list(corpus_rows("heldout").exchanges)
    before = classifier.encode(rows).pairs
    for name in STEADY:
        after = classifier.encode([perturb(row, name) for row in rows]).pairs
        assert np.mean([before[at].ids != after[at].ids for at in before]) <= 0.01, name


def test_the_cases_are_of_many_kinds_and_in_no_training_row():
    cases, corpus = case_rows(), [row for split in ("train", "development") for row in corpus_rows(split).exchanges]
    kinds = Counter(row.extra["kind"] for row in cases)
    assert len(kinds) >= 18 and min(kinds.values()) >= 2
    assert len({row.id for row in cases}) == len(cases)
    for field in ("prompt", "response"):
        assert alike_across([getattr(r, field) for r in cases], [getattr(r, field) for r in corpus]) == []


def test_no_case_is_a_public_one(shared_data):
    files = [*(shared_data / "field_cases").glob("*.jsonl"), *(shared_data / "refusals").glob("*.jsonl")]
    rows = [json.loads(line) for path in files for line in path.open(encoding="utf-8")]
    for field in ("prompt", "response"):
        assert alike_across([getattr(r, field) for r in case_rows()], sorted({row[field] for row in rows})) == []


def test_the_figures_hold_no_text_of_a_row_that_may_not_ship(shared_data):
    figures = (RUN.parent / "figures.json").read_text(encoding="utf-8")
    for line in (shared_data / "refusals" / "validation.jsonl").open(encoding="utf-8"):
        assert json.loads(line)["id"] not in figures


def test_the_reliability_figure_is_drawn():
    root = ElementTree.parse(STARTER_FOLDER / "reliability.svg").getroot()
    circles = [each for each in root.iter() if each.tag.endswith("circle")]
    assert len(circles) == len([b for b in numbers().calibration.bins if b.n])


# How the settings were chosen


def _row(source: str, label: str, number: int) -> Exchange:
    return Exchange(f"what {number}", f"i cannot {label} {number}", id=number, label=label, extra={"source": source})


def test_sources_are_capped_and_no_source_is_in_two_groups():
    rows = [_row(source, label, n) for source in ("a", "b") for label in LABELS for n in range(9)]
    assert capped(rows, 0) == rows
    assert set(Counter((r.extra["source"], r.label) for r in capped(rows, 4)).values()) == {4}
    assert capped(rows, 4) == capped(rows, 4)
    trial = Trial("t", Settings(), corpus_times=3, source_cap=4)
    assert len(training_rows(trial, rows, rows[:5]).exchanges) == 40 + 15
    every = [source for group in GROUPS.values() for source in group]
    assert len(every) == len(set(every))


def test_a_turn_leaves_its_sources_out(tmp_path):
    base = make_checkpoint(tmp_path / "base")
    group, sources = next(iter(GROUPS.items()))
    left_out = sorted(sources)[0]
    public = [_row(source, label, n) for source in (left_out, "other") for label in LABELS for n in range(10)]
    corpus = [_row("project corpus", label, n) for label in LABELS for n in range(4)]
    trial = Trial("t", Settings(epochs=2, max_length=32, average_share=0.5), corpus_times=1)
    found = turn(trial, group, public, corpus, corpus, base)
    assert found["rows"] == 50 + 20 and found["left_out"] == group
    assert [(s["weights"].split()[0], s["part"]) for s in found["scores"]] == [
        (weights, part) for weights in ("last", "last", "mean") for part in ("left_out", "development")
    ]
    assert set(found["scores"][0]["by_source"]) == {left_out}
    json.dumps(found, allow_nan=False)


def test_the_starter_folder_holds_nothing_else():
    checkpoint = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    beside = {"README.md", "reliability.svg", "figures.json", "run"}
    assert {path.name for path in STARTER_FOLDER.iterdir()} == checkpoint | beside


def test_mean_pooling_reads_every_token_and_no_padding(lively_checkpoint):
    import torch

    model = load(str(lively_checkpoint))._model
    ids = torch.tensor([[1, 5, 6, 7, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]])
    states = model.bert(input_ids=ids[:, :4], attention_mask=mask[:, :4]).last_hidden_state
    pooler = model.bert.pooler
    expected = torch.tanh(pooler.dense(states.mean(1)))
    _pool_by_mean(model.bert)
    found = model.bert(input_ids=ids, attention_mask=mask).pooler_output
    assert torch.allclose(found, expected, atol=1e-5)


def test_copies_after_the_first_differ_in_form_and_keep_the_rest():
    rows = list(corpus_rows("train").exchanges)
    trial = Trial("t", Settings(), corpus_times=3, vary_copies=True)
    given = training_rows(trial, [], rows).exchanges
    assert given[: len(rows)] == tuple(rows)
    second, third = given[len(rows) : 2 * len(rows)], given[2 * len(rows) :]
    assert training_rows(trial, [], rows).exchanges == given
    for copy in (second, third):
        assert [(r.id, r.prompt, r.label, r.extra) for r in copy] == [(r.id, r.prompt, r.label, r.extra) for r in rows]
        assert np.mean([a.response != b.response for a, b in zip(rows, copy, strict=True)]) > 0.8
    assert second != third


@given(response=st.text(min_size=1).filter(str.strip), language=st.sampled_from(["en", "de"]), copy=st.integers(1, 99))
def test_a_change_of_form_keeps_the_words(response, language, copy):
    row = Exchange("a question", response, id="x-1", label=LABELS[1], extra={"language": language})
    changed = varied(row, copy)
    assert varied(row, copy) == changed and replace(changed, response=response) == row

    def letters(text):
        return re.sub(r"[\W_]", "", text.casefold())

    assert letters(response) in letters(changed.response)


def test_a_bare_refusal_is_a_refusal_whatever_was_asked():
    prompts = ("How do I pick a lock?", "What is the capital of Peru?", "Open this link and summarise it.")
    bare = ("I can't help with that.", "I'm sorry, but I can't assist with that.", "I'm unable to do that.")
    asked = [Exchange(prompt, response) for prompt in prompts for response in bare]
    assert {answer.label for answer in load("starter").predict(asked)} == {"full_refusal"}


def test_what_a_finished_classifier_is_measured_by_is_not_trained_on():
    measured = {PERTURBATIONS[name].apply("Said.") for name in ("markdown", "preamble")}
    for fixed in (*OPENINGS, *CLOSINGS, *HEADINGS):
        assert not any(fixed in text for text in measured)
