"""The sample that ships: small, whole, what its README says, and rich enough to show every part of a study."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from refusal_core.activations.layers import open_layers
from refusal_core.activations.npz import read_export
from refusal_core.activations.prompts import read_prompts
from refusal_core.direction.findings import auroc_short
from refusal_core.direction.intervals import CategoryInterval
from refusal_core.direction.result import Settings
from refusal_core.direction.sample import FOLDER, LAYER_INDEX, sample_files
from refusal_core.direction.sample.make import LAYERS, TEST
from refusal_core.direction.study import study
from refusal_core.direction.sweep import sweep

TRAIN, TEST_FILE, TABLE = sample_files()
README = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def pair():
    return tuple(read_export(path, layer_index=LAYER_INDEX) for path in (TRAIN, TEST_FILE))


def test_the_files_are_of_the_prompts_and_small(pair):
    prompts, skipped = read_prompts(TABLE)
    assert not skipped and sum(path.stat().st_size for path in sample_files()) < 3_000_000
    for export, in_test in zip(pair, (False, True), strict=True):
        own = [prompt for prompt in prompts if (prompt.category in TEST) == in_test]
        assert export.ids == tuple(prompt.id for prompt in own)
        assert export.labels.tolist() == [prompt.label for prompt in own]
        assert export.categories == tuple(prompt.category for prompt in own)
        assert export.metadata["layer"] == "20" == str(LAYERS[LAYER_INDEX])
        assert export.metadata["pooling"] == "last-token of the prompt" and "SmolLM2" in export.metadata["model"]
        assert export.metadata["label_means"] == "harmful"
    rows = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
    assert {row["category"] for row in rows if row["part"] == "test"} == set(TEST)
    metadata = json.loads(str(np.load(TRAIN)["metadata"]))
    assert metadata["label_1_means"].startswith("the prompt is sensitive") and metadata["layers"] == list(LAYERS)


def test_each_topic_holds_both_labels_in_the_same_frames():
    by_topic: dict[tuple, list] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        by_topic.setdefault((row["category"], row["label"]), []).append(" ".join(row["prompt"].split()[:2]))
    assert len(by_topic) == 32 and len({tuple(frames) for frames in by_topic.values()}) == 1


def test_the_readme_says_what_the_study_says(pair):
    found = study(*pair, Settings())
    assert isinstance(found.interval, CategoryInterval)
    interval = f"{found.interval.low:.2f} to {found.interval.high:.2f}"
    assert f"**{found.test.balanced_accuracy:.2f} ({interval}, 6 topics held out, n = 72)**" in README
    assert f"AUROC {auroc_short(found.test.auroc, found.auroc_interval)};" in README
    random = found.baselines["random_directions"]
    assert f"Random directions: {random.mean:.2f} on average" in README
    for null in ("shuffled_labels", "within_categories"):
        assert found.nulls[null].tail_fraction == 0
    layers = sweep(open_layers(TRAIN), open_layers(TEST_FILE), Settings(repeats=199))
    scores = [f"{layer.balanced_accuracy:.2f}" for layer in layers.layers]
    assert f"All four layers: {', '.join(scores[:3])} and {scores[3]}" in README
    assert layers.layers[layers.best].layer == "20" and layers.chosen_on_train.layer == "25"


def test_it_is_packaged():
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert '"direction/sample/*"' in text
