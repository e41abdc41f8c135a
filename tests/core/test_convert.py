"""Other layouts into our NPZ: the same numbers, in the same order, and a sentence for what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from refusal_core import cli
from refusal_core.activations.convert import convert
from refusal_core.activations.npz import read_export
from refusal_core.activations.write import write_export
from refusal_core.errors import Cancelled, InputError
from refusal_core.jobs import Job
from tests.activation_files import npz_bytes, write

safetensors = pytest.importorskip("safetensors.torch")
torch = pytest.importorskip("torch")
N, D = 12, 6


@pytest.fixture
def values():
    return np.random.default_rng(0).standard_normal((N, D)).astype(np.float32)


@pytest.fixture
def table(tmp_path) -> Path:
    rows = [f"q{k},{['harmless', 'harmful'][k % 2]},topic {k % 3}" for k in range(N)]
    return write(tmp_path, "table.csv", ("id,kind,topic\n" + "\n".join(rows) + "\n").encode())


TABLE = {"columns": {"label": "kind", "category": "topic"}, "positive": ("harmful",)}


def test_a_file_a_class(tmp_path, values):
    for name, part in (("harmless", values[:5]), ("harmful", values[5:])):
        np.save(tmp_path / f"{name}.npy", part)
    paths = [tmp_path / "harmless.npy", tmp_path / "harmful.npy"]
    metadata = {"model": "m", "layer": "12", "label_means": "harmful"}
    found = convert(paths, tmp_path / "out.npz", labels=[0, 1], metadata=metadata)
    export = read_export(tmp_path / "out.npz")
    np.testing.assert_array_equal(export.activations, values)
    assert export.labels.tolist() == [0] * 5 + [1] * 7 and export.metadata == metadata
    assert set(export.categories) == {"harmless", "harmful"} and export.ids[0] == "harmless/harmless-0"
    assert found.label_counts == (5, 7) and "one category" in found.notes[0]


def test_a_list_of_tensors_in_one_file(tmp_path, values, table):
    """Ten follows nine, and bfloat16 becomes float32 without a loss."""
    half = torch.from_numpy(values).bfloat16()
    path = tmp_path / "list.safetensors"
    safetensors.save_file({f"q{k}": half[k].clone() for k in reversed(range(N))}, path)
    convert([path], tmp_path / "out.npz", table=table, **TABLE)
    export = read_export(tmp_path / "out.npz")
    np.testing.assert_array_equal(export.activations, half.float().numpy())
    assert export.dtype == "float32" and export.ids == tuple(f"q{k}" for k in range(N))
    assert export.labels.tolist() == [k % 2 for k in range(N)] and export.categories[4] == "topic 1"


def test_a_folder_with_a_file_an_example_is_matched_by_id(tmp_path, values):
    folder = tmp_path / "acts"
    folder.mkdir()
    for k in range(N):
        np.save(folder / f"q{k}.npy", values[k])
    shuffled = np.random.default_rng(1).permutation(N)
    lines = [json.dumps({"id": f"q{k}", "label": int(k % 2), "category": f"c{k % 4}"}) for k in shuffled]
    table = write(tmp_path, "table.jsonl", "\n".join(lines).encode())
    convert([folder], tmp_path / "out.npz", table=table, dtype="float16")
    export = read_export(tmp_path / "out.npz")
    np.testing.assert_array_equal(export.activations, values.astype(np.float16))
    assert export.labels.tolist() == [k % 2 for k in range(N)] and export.ids[10] == "q10"


@pytest.mark.parametrize("kind", ["npy", "npz", "deflated npz", "safetensors"])
def test_layers_with_labels_by_order(tmp_path, table, kind):
    values = np.random.default_rng(0).standard_normal((N, 3, D)).astype(np.float64)
    path = tmp_path / f"acts.{kind.split()[-1]}"
    if kind == "npy":
        np.save(path, np.asfortranarray(values))
    elif kind == "safetensors":
        safetensors.save_file({"acts": torch.from_numpy(values)}, path)
    else:
        path.write_bytes(npz_bytes({"acts": values, "labels": np.zeros(3)}, compressed="deflated" in kind))
    key = "acts" if "npz" in kind else None
    convert([path], tmp_path / "out.npz", table=table, key=key, layers=["8", "12", "16"], **TABLE)
    export = read_export(tmp_path / "out.npz", layer_index=1)
    np.testing.assert_array_equal(export.activations, values[:, 1])
    assert export.metadata["layer"] == "12" and export.dtype == "float64"


def test_a_tensor_a_layer_has_to_be_declared(tmp_path, table):
    values = np.random.default_rng(0).standard_normal((2, N, D)).astype(np.float32)
    path = tmp_path / "dict.safetensors"
    safetensors.save_file({f"layer.{k}": torch.from_numpy(v) for k, v in zip((9, 10), values, strict=True)}, path)
    with pytest.raises(InputError, match="--stack examples or --stack layers"):
        convert([path], tmp_path / "out.npz", table=table, **TABLE)
    convert([path], tmp_path / "out.npz", table=table, stack="layers", **TABLE)
    for k in (0, 1):
        np.testing.assert_array_equal(read_export(tmp_path / "out.npz", layer_index=k).activations, values[k])


def _pickle(folder):
    torch.save(torch.zeros(3, 4), folder / "acts.pt")
    return folder / "acts.pt"


def _objects(folder):
    np.save(folder / "o.npy", np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    return folder / "o.npy"


def _short(folder):
    np.save(folder / "s.npy", np.zeros((N, D), np.float32))
    raw = (folder / "s.npy").read_bytes()
    (folder / "s.npy").write_bytes(raw[:-30])
    return folder / "s.npy"


def _saved(folder, array):
    np.save(folder / "a.npy", array)
    return folder / "a.npy"


def _ragged(folder):
    (folder / "r").mkdir()
    for k, d in enumerate((4, 5)):
        np.save(folder / "r" / f"{k}.npy", np.zeros(d, np.float32))
    return folder / "r"


REFUSED = {
    "a torch pickle": (_pickle, "safetensors.torch.save_file"),
    "an object array": (_objects, "pickled Python objects"),
    "a file cut short": (_short, "contradict each other"),
    "integers": (lambda f: _saved(f, np.zeros((N, D), np.int16)), "of type int16"),
    "one axis": (lambda f: _saved(f, np.zeros(N, np.float32)), r"shape \[12\]"),
    "rows of the table and examples differ": (lambda f: _saved(f, np.zeros((N + 1, D), np.float32)), "12 rows"),
    "NaN": (lambda f: _saved(f, np.full((N, D), np.nan, np.float32)), "row 0 is not finite"),
    "tensors of different length": (_ragged, "all need one type and shape"),
    "text under a known ending": (lambda f: write(f, "x.safetensors", b"hello world"), "no sound safetensors"),
    "another ending": (lambda f: write(f, "x.csv", b"1,2"), 'ending ".csv"'),
    "nothing": (lambda f: f / "none.npy", "no such file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_the_old_file(tmp_path, table, case):
    make, sentence = REFUSED[case]
    output = write(tmp_path, "out.npz", b"old")
    with pytest.raises(InputError, match=sentence):
        convert([make(tmp_path)], output, table=table, **TABLE)
    assert output.read_bytes() == b"old" and not list(tmp_path.glob("*.part"))


def test_labels_that_are_not_two(tmp_path, values, table):
    path = _saved(tmp_path, values)
    with pytest.raises(InputError, match=r'the labels are "harmful", "harmless".*--positive'):
        convert([path], tmp_path / "out.npz", table=table, columns=TABLE["columns"])
    with pytest.raises(InputError, match='no example has the label "unsafe"'):
        convert([path], tmp_path / "out.npz", table=table, columns=TABLE["columns"], positive=("unsafe",))
    with pytest.raises(InputError, match="one label a file or from a table"):
        convert([path], tmp_path / "out.npz")
    with pytest.raises(InputError, match="2 labels for 1 files"):
        convert([path], tmp_path / "out.npz", labels=[0, 1])


def test_a_stopped_conversion_leaves_nothing(tmp_path, values):
    job = Job()
    job.cancel.set()
    with pytest.raises(Cancelled):
        convert([_saved(tmp_path, values)], tmp_path / "out.npz", labels=[1], job=job)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_half_precision_that_is_too_small_is_said(tmp_path):
    with pytest.raises(InputError, match="float16 cannot hold"):
        write_export(
            tmp_path / "o.npz", [np.full((1, 2), 1e6)], shape=(1, 2), dtype="float16", labels=[0], ids=["a"],
            categories=["c"],
        )  # fmt: skip


def test_the_command_and_the_same_bytes(tmp_path, values, table, capsys):
    path = str(_saved(tmp_path, values))
    command = ["convert", path, "--table", str(table), "--map", "label=kind", "--map", "category=topic"]
    for name in ("one", "two"):
        assert cli.main([*command, "--positive", "harmful", "--output", str(tmp_path / f"{name}.npz")]) == 0
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert "12 examples of shape [6] as float32: 6 of label 0, 6 of label 1, 3 categories" in capsys.readouterr().err
    assert cli.main([*command, "--map", "nothing", "--output", str(tmp_path / "x.npz")]) == 2
