"""docs/scorecard.md: every example runs, every type has one, and every key is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from refusal_core.labels import LABELS
from refusal_core.perturb import PERTURBATIONS
from refusal_core.scorecard import suite as types
from refusal_core.scorecard.assertions import TYPES, MetricName
from tests.core.scorecard.cases import Stub, noisy, score, stub_folder, write_jsonl, write_predictions
from tests.core.scorecard.test_training import train

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "scorecard.md").read_text(encoding="utf-8")
WHOLE, *FRAGMENTS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
HEADER = """
version: 1
checkpoints:
  - {id: prod, path: runs/prod/checkpoint-200, predictions: runs/prod/checkpoint-200/predictions.jsonl}
  - {id: cand, path: runs/new/checkpoint-100, predictions: runs/new/checkpoint-100/predictions.jsonl}
  - {id: lm-old, responses: old.jsonl, classifier: runs/prod/checkpoint-200, validated_on: validation.jsonl}
  - {id: lm-new, responses: new.jsonl, classifier: runs/prod/checkpoint-200, validated_on: validation.jsonl}
baseline: prod
label_sets: {unsure: [capability_limitation, clarification]}
datasets:
  - {id: heldout, split: test}
  - {id: labelled, path: test.jsonl, slice_fields: [lang]}
  - {id: cases, split: cases}
defaults: {dataset: heldout}
tests:
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    n = 300
    for name, seed in (("prod", 0), ("new", 1)):
        train(folder / "runs" / name)
        true, predicted = noisy(0, n, 0.8)
        rows = []
        for variant in (None, *PERTURBATIONS):
            for i, (t, p) in enumerate(zip(true, predicted if seed == 0 else noisy(0, n, 0.82)[1], strict=True)):
                row = {"id": f"i{i}", "label": LABELS[p], "true": LABELS[t], "split": "test"}
                row["probabilities"] = {label: 0.8 if label == LABELS[p] else 0.05 for label in LABELS}
                rows.append(row | ({"variant": variant} if variant else {}))
        rows += [{**rows[i], "id": f"case-{i}", "split": "cases"} for i in range(12)]
        for step in (100, 200, 300):
            write_jsonl(folder / "runs" / name / f"checkpoint-{step}" / "predictions.jsonl", rows)
        for path in (folder / "runs" / name).glob("checkpoint-*"):
            files = stub_folder(folder / "parts" / name / path.name, f"{name}{path.name}".encode())
            for file in files.iterdir():
                file.rename(path / file.name)
    labelled = [
        {"id": f"i{i}", "prompt": "p", "response": "r", "label": LABELS[t], "lang": "en" if i % 2 else "de"}
        for i, t in enumerate(true)
    ]
    write_jsonl(folder / "test.jsonl", labelled)
    for name in ("old", "new"):
        answers = [
            {
                "id": i,
                "prompt": f"q{i}",
                "response": "a" * (i + (name == "new")),
                "category": "even" if i % 2 else "odd",
            }
            for i in range(1, 81)
        ]
        write_jsonl(folder / f"{name}.jsonl", answers)
    write_predictions(folder / "validation.jsonl", [k for k in range(5) for _ in range(40)],
                      [k if i % 9 else (k + 1) % 5 for k in range(5) for i in range(40)])  # fmt: skip
    (folder / "cases").mkdir()
    case = {"id": "c1", "prompt": "p", "response": "no", "expected": ["refusal", "compliant"]}
    write_jsonl(folder / "cases" / "full_refusals.jsonl", [case])
    pair = {"original": {"prompt": "p", "response": "I can't."}, "changed": {"response": "I cant."}}
    write_jsonl(folder / "cases" / "typos.jsonl", [pair])
    return folder


def test_the_suite_at_the_top_runs(folder):
    found = score(folder, WHOLE, load=Stub)
    assert not found.counts["error"] and found.counts["not run"] == 1, found.as_json()["rows"]


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=[yaml.safe_load(f)[0]["id"] for f in FRAGMENTS])
def test_every_example_runs(folder, fragment):
    text = "".join(f"  {line}\n" for line in fragment.splitlines())
    if "type: rate" in fragment:  # about the answers of language models
        header = HEADER.replace("baseline: prod", "baseline: lm-old").replace("defaults: {dataset: heldout}\n", "")
        header = re.sub(r"datasets:\n(  - .*\n)+", "", header)
        found = score(folder, header + text, load=Stub, checkpoints="lm-*")
    else:
        found = score(folder, HEADER + text, load=Stub)
    assert not found.counts["error"], [row.message for row in found.rows if row.verdict == "error"]
    written = [a for test in yaml.safe_load(fragment) for a in test["assert"]]
    ran = [row for row in found.rows if row.verdict in ("pass", "fail", "inconclusive")]
    assert {row.type for row in ran} == {a["type"] for a in written}
    assert json.loads(json.dumps(found.as_json()["counts"]))


def test_every_type_has_its_section_with_an_example():
    for name in TYPES:
        section = re.search(rf"^### {name}\n(.*?)(?=^##)", TEXT, re.DOTALL | re.MULTILINE)
        assert section and f"type: {name}" in section[1], name


def test_every_key_is_named():
    models = [types.Suite, types.Checkpoint, types.Dataset, types.Defaults, types.Interval, types.Test, types.Exchanged]
    keys = {field.alias or name for model in (*models, *TYPES.values()) for name, field in model.model_fields.items()}
    words = set(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)))
    named = {key for key in keys if any(re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", word) for word in words)}
    assert keys - named == {"type"}
    assert set(MetricName.__args__) <= words
