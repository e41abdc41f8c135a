"""The suites that ship: they run, and show every kind of verdict."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import refusal_core.scorecard
from refusal_core.classifier.checkpoint import STARTER_FOLDER
from refusal_core.scorecard import run
from refusal_core.scorecard.cache import AnswerCache
from refusal_core.scorecard.resolver import BesideSuite
from refusal_core.scorecard.suite import SuiteFile, read_suite
from tests.core.scorecard.cases import Stub

FOLDER = Path(refusal_core.scorecard.__file__).with_name("samples")

needs_the_run = pytest.mark.skipif(
    not (STARTER_FOLDER / "run").is_dir(),
    reason="the starter's run folder is not there: its suites are not tested here",
)


@needs_the_run
def test_the_starter_over_its_own_checkpoints():
    file, resolver = shipped("starter")
    found = run(file, resolver, cache=AnswerCache(None))
    assert not found.counts["error"], [row.message for row in found.rows if row.verdict == "error"]
    assert found.counts["pass"] > 20 and found.counts["inconclusive"] > 0
    assert {c.verdict for c in found.checkpoints} <= {"pass", "fail"}
    [last] = [c for c in found.checkpoints if c.id == "shipped"]
    assert last.verdict == "pass", [row.message for row in found.of("shipped") if row.verdict == "fail"]
    types = {row.type for row in found.rows}
    assert {"metric", "no-regression", "confusion", "equals", "invariance", "support", "training"} <= types


def test_the_answers_are_sixty_pairs_over_six_categories():
    sides = [
        [json.loads(line) for line in (FOLDER / f"answers-{name}.jsonl").read_text("utf-8").splitlines()]
        for name in ("first", "second")
    ]
    assert [(r["id"], r["prompt"]) for r in sides[0]] == [(r["id"], r["prompt"]) for r in sides[1]]
    assert Counter(row["category"] for row in sides[0]) == dict.fromkeys(
        ("kitchen", "health", "code", "letters", "money", "live facts"), 10
    )


@needs_the_run
def test_the_answers_run_with_any_classifier():
    """The real labels are looked at when the sample is made; here a stub stands in, so that nothing is loaded."""
    file, resolver = shipped("answers")

    def stub(name: str) -> Stub:
        return Stub(str(STARTER_FOLDER))

    found = run(file, resolver, cache=AnswerCache(None), load=stub)
    assert not found.counts["error"], [row.message for row in found.rows if row.verdict == "error"]
    assert {row.evidence.corrected is not None for row in found.rows if row.assertion == "overall"} == {True}
    assert "errs on these responses as it did" in " ".join(found.rows[0].evidence.notes)


def shipped(key: str) -> tuple[SuiteFile, BesideSuite]:
    return read_suite(FOLDER / f"{key}.yaml"), BesideSuite(FOLDER)
