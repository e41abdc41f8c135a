"""What the reader gives back for sound files, whatever their layout, and how it reads them."""

from __future__ import annotations

import hashlib
import io
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from refusal_core.activations.container import open_container
from refusal_core.activations.npz import check_pair, map_argument, read_export
from refusal_core.errors import Cancelled, InputError, MissingPackage
from refusal_core.jobs import Job
from tests.activation_files import archive, npy, npz_bytes, planted, raw_members, replaced, write

FINITE = {"allow_nan": False, "allow_infinity": False}


@st.composite
def activations(draw):
    kind = draw(st.sampled_from(["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]))
    shape = draw(st.tuples(st.integers(1, 9), st.integers(1, 5)))
    width = 8 * int(kind[-1])
    most = float(np.finfo(kind).max) if width < 64 else 1e99
    return draw(
        arrays.arrays(
            kind,
            shape,
            elements=st.floats(-most, most, width=min(width, 64), **FINITE) if width < 64 else st.floats(-1e99, 1e99),
        )
    )


def members(values: np.ndarray) -> dict:
    n = len(values)
    return {"activations": values, "labels": np.arange(n) % 2, "ids": np.arange(n), "categories": np.full(n, "c")}


@settings(max_examples=80, deadline=None)
@given(activations(), st.booleans(), st.booleans())
def test_every_layout_gives_the_same_numbers(values, fortran, compressed):
    raw = npz_bytes(members(np.asfortranarray(values) if fortran else values), compressed)
    found = read_export(raw, name="x.npz")
    assert found.activations.tobytes() == values.tobytes()
    assert found.dtype == values.dtype.name
    assert found.largest == np.abs(values.astype(np.float64)).max()
    assert found.sha256 == hashlib.sha256(raw).hexdigest()
    assert found.labels.dtype == np.int8 and found.labels.tolist() == [i % 2 for i in range(len(values))]
    assert found.ids == tuple(str(i) for i in range(len(values)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("fortran", [False, True])
def test_streaming_equals_mapping(dtype, fortran, tmp_path, monkeypatch):
    made = planted(300, 40, dtype=dtype)
    if fortran:
        made["activations"] = np.asfortranarray(made["activations"])
    monkeypatch.setattr("refusal_core.activations.arrays.CHUNK", 1 << 10)  # many pieces
    stored = read_export(write(tmp_path, "a.npz", npz_bytes(made)))
    deflated = read_export(write(tmp_path, "b.npz", npz_bytes(made, compressed=True)))
    assert stored.activations.tobytes() == deflated.activations.tobytes() == made["activations"].tobytes()
    assert (stored.largest, stored.ids) == (deflated.largest, deflated.ids)


def test_a_stored_file_is_mapped_and_not_copied(tmp_path):
    made = planted(2_000, 500)
    path = write(tmp_path, "a.npz", npz_bytes(made))
    tracemalloc.start()
    found = read_export(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < made["activations"].nbytes / 2
    assert not found.activations.flags.owndata and not found.activations.flags.writeable


def test_paths_bytes_and_uploads_are_read_alike(tmp_path):
    raw = npz_bytes(planted())
    path = write(tmp_path, "a.npz", raw)
    upload = io.BytesIO(raw)
    upload.read(7)  # a page may have looked at it before
    with path.open("rb") as file:
        found = [read_export(path), read_export(str(path)), read_export(raw), read_export(upload), read_export(file)]
    assert len({f.activations.tobytes() for f in found}) == 1 and len({f.sha256 for f in found}) == 1
    assert [f.name for f in found] == ["a.npz", "a.npz", "the file", "the file", str(path)]


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("fortran", [False, True])
def test_one_layer_of_many(compressed, fortran):
    made = planted()
    layers = np.stack([made["activations"] + k for k in range(3)], axis=1)
    made["activations"] = np.asfortranarray(layers) if fortran else layers
    for index in range(3):
        found = read_export(npz_bytes(made, compressed), name="x", layer_index=index)
        np.testing.assert_array_equal(found.activations, layers[:, index])
        assert (found.layers, found.layer_index, found.d) == (3, index, 8)


def test_only_the_layer_asked_for_counts_against_the_budget():
    made = planted(40, 100)
    made["activations"] = np.random.default_rng(0).standard_normal((40, 12, 100)).astype(np.float32)
    raw = npz_bytes(made, compressed=True)
    assert read_export(raw, layer_index=1, budget=16_000).d == 100
    with pytest.raises(InputError, match=r'"activations": it is 16 kB|16,000 bytes; at most'):
        read_export(raw, layer_index=1, budget=15_999)
    assert read_export(npz_bytes(made), layer_index=1, budget=1).d == 100, "a mapped member needs no budget"


def half_bits(values: np.ndarray, kind: str) -> np.ndarray:
    if kind == "float16":
        return values.astype(np.float16).view(np.uint16)
    return (values.view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("stored_as", ["<u2", ">u2", "<i2", "V2"])
@pytest.mark.parametrize("declared", ["option", "member"])
def test_declared_bits(kind, stored_as, declared):
    pytest.importorskip("ml_dtypes", reason="the optional package for bfloat16 is not installed")
    made = planted()
    bits = half_bits(made["activations"], kind)
    made["activations"] = (
        bits.view("V2") if stored_as == "V2" else bits.astype(stored_as) if "u" in stored_as else bits.view("<i2")
    )
    if declared == "member":
        made["bits"] = kind
    found = read_export(npz_bytes(made), bits=kind if declared == "option" else None)
    assert found.dtype == kind
    whole = (
        bits.view(np.float16).astype(np.float32)
        if kind == "float16"
        else (bits.astype(np.uint32) << 16).view(np.float32)
    )
    np.testing.assert_array_equal(found.activations.astype(np.float32), whole)
    assert found.largest == np.abs(whole).max()


def test_bad_values_of_bfloat16_are_found():
    pytest.importorskip("ml_dtypes", reason="the optional package for bfloat16 is not installed")
    made = planted()
    bits = half_bits(made["activations"], "bfloat16")
    bits[3, 2] = 0x7FC0
    with pytest.raises(InputError, match=r'row 3 \(id "train-0003"\): the value of dimension 2 is nan'):
        read_export(npz_bytes({**made, "activations": bits}), bits="bfloat16")


def test_bfloat16_without_its_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    made = planted()
    made["activations"] = half_bits(made["activations"], "bfloat16")
    with pytest.raises(MissingPackage, match=r"ml_dtypes: pip install -e \"\.\[activations\]\""):
        read_export(npz_bytes(made), bits="bfloat16")


def test_metadata_and_texts():
    made = planted(4, categories=2)
    made |= {
        "model": "  org/model ",
        "layer": np.array([12]),
        "pooling": np.bytes_("last token"),
        "extra": np.arange(3),
    }
    made["ids"] = np.array(["b ", " a", "cafe\u0301", "<b>"])
    made["categories"] = np.array([b"x", "caf\u00e9".encode(), b"x", b"=1"])
    found = read_export(npz_bytes(made))
    assert found.metadata == {"model": "org/model", "layer": "12", "pooling": "last token"}
    assert found.ids == ("b", "a", "caf\u00e9", "<b>") and found.categories == ("x", "caf\u00e9", "x", "=1")


def test_a_member_that_is_not_an_array_is_left_alone_when_it_is_not_ours():
    raw = archive([*raw_members(planted()), ("README.txt", b"what this is"), ("folder/", b"")])
    assert read_export(raw).n == 24


def test_messages_hold_no_control_characters_of_the_file():
    made = planted()
    made["ids"] = np.array(["x\n\u202ey"] * 24)
    with pytest.raises(InputError) as refused:
        read_export(npz_bytes(made), name="a\nb.npz")
    assert "\n" not in str(refused.value) and "\u202e" not in str(refused.value)


def test_crc_is_checked_for_mapped_members_that_are_read_as_they_are():
    raw = npz_bytes(planted())
    container = open_container(raw, "x")
    member = container.members["activations"]
    assert bytes(container.packed(member)) == npy(planted()["activations"])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_damage_gets_past_as_anything_but_an_input_error(data):
    """Any few bytes changed, or any cut: the same numbers, or one sentence; never a traceback or other numbers."""
    raw = npz_bytes(planted(6, 3, categories=2), compressed=data.draw(st.booleans()))
    sound = read_export(raw)
    out = bytearray(raw[: data.draw(st.one_of(st.just(len(raw)), st.integers(0, len(raw))))])
    for place in data.draw(st.lists(st.integers(0, max(len(out) - 1, 0)), max_size=3)) if out else []:
        out[place] = data.draw(st.integers(0, 255))
    try:
        found = read_export(bytes(out))
    except InputError as refused:
        assert str(refused).count("\n") == 0 and refused.fix
        return
    assert found.activations.tobytes() == sound.activations.tobytes()
    assert (found.labels.tolist(), found.ids, found.categories) == (sound.labels.tolist(), sound.ids, sound.categories)


def test_a_header_may_not_reach_past_its_member():
    raw = replaced(planted(), "labels", b"\x93NUMPY\x01\x00\xff\xff{'descr'")
    with pytest.raises(InputError, match='member "labels"'):
        read_export(raw)


def test_reading_can_be_cancelled():
    job = Job()
    job.cancel.set()
    with pytest.raises(Cancelled):
        read_export(npz_bytes(planted()), job=job)


def test_map_argument():
    assert map_argument(["activations=acts", "labels = y"]) == {"activations": "acts", "labels": "y"}
    for wrong in (["activations"], ["=x"], ["labels="], ["ids=a", "ids=b"]):
        with pytest.raises(InputError, match="--map"):
            map_argument(wrong)


def test_a_pair_says_nothing_when_nothing_is_wrong():
    made = [read_export(npz_bytes(planted(seed=k, prefix=f"p{k}"))) for k in (0, 1)]
    assert check_pair(*made) == ()


def test_zip64_members_are_read(tmp_path):
    path = tmp_path / "big.npz"
    with zipfile.ZipFile(path, "w") as out:
        for name, raw in raw_members(planted()):
            with out.open(name, "w", force_zip64=True) as member:
                member.write(raw)
    assert read_export(path).n == 24
