"""The sweep over layers: each layer as the study has it, one p-value for the choice, one layer in memory at a time."""

from __future__ import annotations

import json

import numpy as np
import pytest

from refusal_core import cli
from refusal_core.activations.layers import open_layers
from refusal_core.activations.npz import read_export
from refusal_core.direction.fit import fit
from refusal_core.direction.left_out import left_out_scores
from refusal_core.direction.result import Settings
from refusal_core.direction.rows import rows_of
from refusal_core.direction.splits import out_of_fold
from refusal_core.direction.study import study
from refusal_core.direction.sweep import sweep
from refusal_core.errors import Cancelled, InputError
from refusal_core.jobs import Job
from tests.activation_files import export, npz_bytes, planted, write

FEW = Settings(repeats=99)


def stacked(seed: int, prefix: str, signals=(0.0, 0.5, 1.0), **options) -> dict[str, np.ndarray]:
    """Members with one layer a signal, named 5, 10, ... in `layers`."""
    options = {"n": 96, "d": 16, "categories": 8, **options}
    layers = [planted(seed=100 * seed + k, signal=s, prefix=prefix, **options) for k, s in enumerate(signals)]
    names = 5 * np.arange(1, len(signals) + 1)
    return {**layers[0], "activations": np.stack([each["activations"] for each in layers], 1), "layers": names}


def opened(seed: int, prefix: str, **options):
    return open_layers(npz_bytes(stacked(seed, prefix, **options)), names=[f"{prefix}.npz"])


@pytest.fixture(scope="module")
def pair():
    return opened(0, "train"), opened(1, "test")


def test_every_layer_is_what_the_study_says_of_it(pair):
    found = sweep(*pair, FEW)
    assert [layer.layer for layer in found.layers] == ["5", "10", "15"]
    for place, layer in enumerate(found.layers):
        own = study(pair[0].export(place), pair[1].export(place), FEW)
        assert layer.balanced_accuracy == own.test.balanced_accuracy and layer.auroc == own.test.auroc
        assert layer.interval == own.interval
        assert layer.direction_sha256 == own.direction["sha256"]
        for ours, theirs in (("shuffled labels", "shuffled_labels"), ("shuffled categories", "shuffled_categories")):
            assert layer.nulls[ours].p_value == own.nulls[theirs].p_value
            assert layer.nulls[ours].adjusted_p_value >= layer.nulls[ours].p_value
    assert found.layers[found.best].balanced_accuracy == max(layer.balanced_accuracy for layer in found.layers)
    assert f"Layer {found.layers[found.best].layer} is the best of 3" in found.headline
    assert json.loads(found.to_json())["layers"][0]["layer"] == "5"
    assert found.to_json() == sweep(*pair, FEW).to_json()


def test_files_of_one_layer_give_what_the_stack_gives(tmp_path, pair):
    def files(seed, prefix):
        members = stacked(seed, prefix)
        for place, layer in enumerate(members.pop("layers")):
            one = {**members, "activations": members["activations"][:, place], "layer": layer}
            yield write(tmp_path, f"{prefix}-{layer}.npz", npz_bytes(one))

    ours = sweep(open_layers(list(files(0, "train"))), open_layers(list(files(1, "test"))), FEW)
    theirs = sweep(*pair, FEW)
    assert ours.layers == theirs.layers and ours.maxima == theirs.maxima


def test_the_choice_of_a_layer_is_paid_for():
    """With nothing to find, the best layer's adjusted p is about uniform; its own p is far too small."""
    adjusted, own = [], []
    for seed in range(40):
        train, test = (opened(2 * seed + k, f"set{k}", signals=(0.0,) * 8, n=48, d=8) for k in (0, 1))
        found = sweep(train, test, Settings(repeats=59))
        null = found.layers[found.best].nulls["shuffled labels"]
        adjusted.append(null.adjusted_p_value)
        own.append(null.p_value)
    assert sum(p <= 0.1 for p in adjusted) <= 10  # binomial(40, 0.1) is above 10 once in 2,000
    assert 0.3 < np.mean(adjusted) < 0.7
    assert sum(p <= 0.1 for p in own) >= 15


def test_one_file_is_scored_on_categories_left_out(pair):
    found = sweep(pair[0], None, FEW)
    assert found.null == "shuffled categories" and found.split.startswith("one pooled file")
    for place, layer in enumerate(found.layers):
        rows = rows_of(pair[0].export(place))
        right = out_of_fold(rows, rows.code, len(rows.categories), Job())
        both = rows.cells(right).sum(0) / rows.cells().sum(0)
        assert layer.balanced_accuracy == pytest.approx(both.mean()) == layer.left_out_balanced_accuracy


def test_many_labelings_at_once_are_scored_as_one_by_one():
    rows = rows_of(export(planted(90, 12, signal=1.0, categories=6)))
    rng = np.random.default_rng(0)
    labels = np.array([rng.permutation(rows.labels) for _ in range(8)], bool)
    fast = left_out_scores(rows, fit(rows), labels, Job())
    for row, score in zip(labels, fast, strict=True):
        moved = type(rows)(**{**vars(rows), "labels": row.astype(np.int8)})
        right = out_of_fold(moved, moved.code, 6, Job())
        assert score == pytest.approx((moved.cells(right).sum(0) / moved.cells().sum(0)).mean(), abs=1e-12)


def test_a_layer_without_a_direction_is_said_and_left_out():
    train, test = stacked(0, "train"), stacked(1, "test")
    for members in (train, test):
        members["activations"][:, 0] = 1.5
    found = sweep(
        *(open_layers(npz_bytes(members), names=[name]) for members, name in ((train, "a"), (test, "b"))), FEW
    )
    assert "equal" in found.layers[0].problem and found.layers[0].balanced_accuracy is None
    assert found.best != 0 and any("Layer 5" in warning for warning in found.warnings)
    for members in (train, test):
        members["activations"][:] = 1.5
    with pytest.raises(InputError, match="no layer has a direction"):
        sweep(*(open_layers(npz_bytes(m), names=[n]) for m, n in ((train, "a"), (test, "b"))), FEW)


def test_what_is_refused(tmp_path, pair):
    with pytest.raises(InputError, match="without an axis of layers"):
        open_layers(npz_bytes(planted()), names=["flat.npz"])
    with pytest.raises(InputError, match="its layers are"):
        sweep(pair[0], opened(1, "test", signals=(0.0, 1.0)), FEW)
    with pytest.raises(InputError, match="no layer at 7"):
        sweep(*pair, FEW, [7])
    one, other = planted(24), planted(24, seed=1)
    other["ids"] = np.array([f"x{k}" for k in range(24)])
    paths = [write(tmp_path, f"{name}.npz", npz_bytes(m)) for name, m in (("one", one), ("other", other))]
    with pytest.raises(InputError, match="0 ids are in both"):
        open_layers(paths)
    with pytest.raises(InputError, match="same file"):
        open_layers([paths[0], paths[0]])
    job = Job()
    job.cancel.set()
    with pytest.raises(Cancelled):
        sweep(*pair, FEW, job=job)


def test_only_one_layer_is_held(monkeypatch, tmp_path):
    """A deflated stack is unpacked layer by layer: what is in memory does not grow with the number of layers."""
    members = stacked(0, "train", signals=(0.1,) * 6, n=64, d=256)
    path = write(tmp_path, "train.npz", npz_bytes(members, compressed=True))
    one_layer = 64 * 256 * 4
    layers = open_layers(path, budget=one_layer)
    for place in range(6):
        np.testing.assert_array_equal(layers.export(place).activations, members["activations"][:, place])
    assert layers.export(3).metadata["layer"] == "20" == read_export(path, layer_index=3).metadata["layer"]


def test_the_command(tmp_path, capsys, pair):
    train, test = (write(tmp_path, f"{n}.npz", npz_bytes(stacked(k, n))) for k, n in enumerate(("train", "test")))
    code = cli.main(["sweep", "--train", str(train), "--test", str(test), "--repeats", "99", "--layers", "0,2"])
    assert code == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["schema"] == "refusal-sweep/1" and [layer["place"] for layer in found["layers"]] == [0, 2]
    assert found["headline"] in err
    assert cli.main(["sweep", "--train", str(train), "--layers", "a"]) == 2
