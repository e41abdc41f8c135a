"""Every kind of input that was ever found to load silently, by the verdict that it gets in the core and in the command."""

from __future__ import annotations

import json
import re
import zipfile

import numpy as np
import pytest

from refusal_core import heldout
from refusal_core import study as study_command
from refusal_core.activations.npz import read_export
from refusal_core.direction.study import Settings, study
from refusal_core.errors import InputError
from tests import activation_files as files
from tests.activation_files import archive, flipped, npy, npy_header, npz_bytes, planted, raw_members, replaced

TRAIN, TEST = planted(), planted(seed=1, prefix="test")
REFUSED, WARNED, ACCEPTED = [], [], []


def changed(base: dict = TRAIN, **members) -> dict:
    """Members of a sound export with some exchanged; None leaves one out."""
    return {key: value for key, value in {**base, **members}.items() if value is not None}


def with_value(key: str, row: int, value, dtype=None, base: dict = TRAIN) -> dict:
    column = base[key].astype(dtype) if dtype is not None else base[key].copy()
    column[row] = value
    return changed(base, **{key: column})


def refuse(name: str, train, said: str, test=TEST, *options: str) -> None:
    REFUSED.append(pytest.param(train, test, said, options, id=name))


def warn(name: str, train, said: str, test=TEST) -> None:
    WARNED.append(pytest.param(train, test, said, id=name))


def accept(name: str, train, test=TEST, *options: str) -> None:
    ACCEPTED.append(pytest.param(train, test, options, id=name))


class Dangerous:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def objects(items: list) -> np.ndarray:
    out = np.empty(len(items), object)
    out[:] = items
    return out


X, Y, IDS, KINDS = (TRAIN[key] for key in ("activations", "labels", "ids", "categories"))
RAW = npz_bytes(TRAIN)
SOME = raw_members(TRAIN)
FLOATS = r"float16, float32 and float64 are read"

# One line a case: the table is read down, not across.
# fmt: off
# ruff: noqa: E501
# Pickles
refuse("object ids", changed(ids=IDS.astype(object)), r'member "ids": it holds pickled .* never opened; .*dtype=str')
refuse("ragged rows", changed(activations=objects([row[: 3 + i % 2] for i, row in enumerate(X)])), r'"activations": it holds pickled')
refuse("dict metadata", changed(meta=np.array({"layer": 3})), r'member "meta": it holds pickled Python objects')
refuse("a pickle that runs code", replaced(TRAIN, "labels", npy(objects([Dangerous()]))), r'"labels": it holds pickled')
# Lies about size
refuse("a bomb of zeros", archive([*SOME[1:], ("activations.npy", npy(np.zeros((4, 1 << 20))))], zipfile.ZIP_DEFLATED), r"it unpacks from .* to 33\.6 MB; a large member may grow 200 times")
refuse("1e9 x 4096 in a header", replaced(TRAIN, "activations", npy_header("'<f4'", "(1000000000, 4096)", bytes(64))), r"declares shape \[1000000000, 4096\] of float32 but holds 64 bytes")
refuse("6 GiB declared, 4 kB stored", files.patched(RAW, 18, 20, (0xF0000000).to_bytes(4, "little") * 2), r"contradicts the table of contents|cannot be read")
refuse("a product over 64 bits", replaced(TRAIN, "activations", npy_header("'<f4'", "(1099511627776, 1099511627776)", bytes(64))), r"declares shape .* but holds 64 bytes")
refuse("a product of 2**64 that wraps to 0", replaced(TRAIN, "activations", npy_header("'<f4'", "(4294967296, 4294967296)", b"")), r"declares shape .* but holds 0 bytes")
refuse("a negative shape", replaced(TRAIN, "activations", npy_header("'<f4'", "(-24, -8)", bytes(768))), r"declares shape \[-24, -8\]")
refuse("a header of 4 GiB", replaced(TRAIN, "activations", npy_header("'<f4'", "(1, 1)", version=2, length=0xFFFFFFFF)), r"its header claims 4,294,967,295 bytes")
refuse("a header that is no dictionary", replaced(TRAIN, "labels", npy_header("'<i8', 'x'", "(24,)")), r"array header cannot be read")
refuse("a shape of text", replaced(TRAIN, "labels", npy_header("'<i8'", "'24'")), r"array header cannot be read")
refuse("a header nested 3,000 deep", replaced(TRAIN, "labels", npy_header("'<i8'", "(" * 3000 + ")" * 3000)), r"array header cannot be read")
refuse("less data than declared", replaced(TRAIN, "labels", npy(Y)[:-8]), r'member "labels": it declares shape \[24\] of int64 but holds 184 bytes')
refuse("more data than declared", replaced(TRAIN, "labels", npy(Y) + bytes(8)), r"but holds 200 bytes")
# Damage
refuse("cut short", RAW[: len(RAW) // 2], r"the archive is damaged or cut short")
refuse("one bit flipped, stored", flipped(RAW), r'member "activations": its bytes are damaged; .* checksum')
refuse("one bit flipped, deflated", flipped(npz_bytes(TRAIN, compressed=True)), r'member "activations": its bytes are damaged')
refuse("one bit of the labels flipped", flipped(RAW, "labels"), r'member "labels": its bytes are damaged')
refuse("local and central names differ", RAW.replace(b"labels.npy", b"lobels.npy", 1), r"contradicts the table of contents")
refuse("encrypted", files.patched(RAW, 6, 8, b"\x01\x00"), r"it is encrypted")
refuse("an unknown method", files.patched(RAW, 8, 10, b"\x63\x00"), r"it is packed by method 99|cannot be read")
refuse("packed by bzip2", archive(SOME, zipfile.ZIP_BZIP2), r"it is packed by method 12")
refuse("20,000 members", archive([*SOME, *((f"m{i}.npy", b"") for i in range(20_000))]), r"holds 20,004 members; at most 1,000")
refuse("two members of one name", archive([*SOME, SOME[1]]), r'member "labels": two members have this name')
refuse("labels and labels.npy", archive([*SOME, ("labels", SOME[1][1])]), r'member "labels": two members have this name')
refuse("an empty archive", archive([]), r'it has no member "activations" or .*; the archive is empty')
# Paths
refuse("a member that climbs out", archive([*SOME, ("../../evil.npy", npy(Y))]), r"its name is a path that leads out")
refuse("an absolute member", archive([*SOME, ("/etc/evil.npy", npy(Y))]), r"its name is a path that leads out")
refuse("a member on a drive", archive([*SOME, ("C:\\evil.npy", npy(Y))]), r"its name is a path that leads out")
# Not NPZ
refuse("a .npy file", npy(X), r"the file is a single \.npy array")
refuse("an empty file", b"", r"the file is empty")
refuse("a web page", b"<!DOCTYPE html><html>404</html>", r"the file is a web page; .*download the file itself")
refuse("a PyTorch archive", archive([("model/data.pkl", b"\x80\x02."), ("model/data/0", bytes(64))]), r"the file is a PyTorch archive")
refuse("a safetensors file", (16).to_bytes(8, "little") + b'{"a":{"x":[1]}}  ' + bytes(64), r"the file is a safetensors file")
refuse("a pickle", b"\x80\x04\x95" + bytes(40), r"the file is a pickle")
refuse("an HDF5 file", b"\x89HDF\r\n\x1a\n" + bytes(40), r"the file is an HDF5 file")
refuse("plain text", b"id,label\n1,0\n", r"the file is not an NPZ file")
refuse("a Git LFS pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:0", r"Git LFS pointer")
refuse("a member that is no array", replaced(TRAIN, "labels", b"0101" * 9), r'member "labels": it is not a NumPy array')
# Types
refuse("bfloat16 as V2", replaced(TRAIN, "activations", npy_header("'|V2'", "(24, 8)", bytes(384))), r"of type \|V2; .*--bits bfloat16")
refuse("bfloat16 bits as uint16", changed(activations=(X.view(np.uint32) >> 16).astype(np.uint16)), r"type uint16; .*not guessed; .*--bits")
refuse("half bits as int16", changed(activations=X.astype(np.float16).view(np.int16)), r"type int16; .*not guessed")
refuse("int8", changed(activations=X.astype(np.int8)), r"type int8; integers are usually quantised")
refuse("int64", changed(activations=X.astype(np.int64)), r"type int64; integers")
refuse("bool activations", changed(activations=X > 0), rf"type bool; {FLOATS}")
refuse("complex", changed(activations=X.astype(complex)), rf"type complex128; {FLOATS}")
refuse("text activations", changed(activations=X.astype(str)), rf"type <U\d+; {FLOATS}")
refuse("long double", changed(activations=X.astype(np.longdouble)), FLOATS)
refuse("records", changed(activations=np.zeros(24, [("a", "f4"), ("b", "f4")])), r"it is an array of records")
refuse("<f1", replaced(TRAIN, "activations", npy_header("'<f1'", "(24, 8)", bytes(192))), r'its type "<f1" is unknown')
refuse("bits declared of float32", TRAIN, r"it is float32, but bfloat16 bits were declared", TEST, "--bits", "bfloat16")
refuse("bits that nobody knows", changed(bits="float8"), r'member "bits": it is "float8"; float16 or bfloat16 is needed')
accept("big-endian", changed(activations=X.astype(">f4")))
accept("Fortran order", changed(activations=np.asfortranarray(X)))
accept("float64", changed(activations=X.astype(np.float64)))
accept("deflated", npz_bytes(TRAIN, compressed=True))
# Values
refuse("a NaN", with_value("activations", (7, 3), np.nan), r'"activations", row 7 \(id "train-0007"\): the value of dimension 3 is nan; 1 values')
refuse("infinities", with_value("activations", ([5, 9], [2, 0]), np.inf), r'row 5 \(id "train-0005"\): the value of dimension 2 is inf; 2 values')
refuse("half overflow", changed(activations=np.where(np.abs(X * 1e5) > 65504, np.sign(X) * np.inf, X).astype(np.float16)), r"the value of dimension \d is -?inf")
refuse("beyond 1e100", with_value("activations", (3, 3), -1e200, np.float64), r"row 3 .* is -1e\+200; 1 values .*above 1e100")
refuse("a NaN among big-endian halves", changed(activations=with_value("activations", (2, 2), np.nan)["activations"].astype(">f2")), r"row 2 .* is nan")
accept("near the largest float32", changed(activations=X / np.abs(X).max() * np.float32(3.4e38)))
accept("constant dimensions", changed(activations=np.hstack([X[:, :6], np.full((24, 2), 3, np.float32)])))
accept("equal test rows", TRAIN, changed(TEST, activations=np.ones_like(X)))
refuse("equal class means", changed(activations=np.tile(X[:2], (12, 1))[np.repeat(np.arange(12), 2) % 2], categories=KINDS), r"two class means are equal")
refuse("constant rows", changed(activations=np.full_like(X, 0.1)), r"two class means are equal")
# Labels
accept("bool labels", changed(labels=Y.astype(bool)))
accept("0.0 and 1.0", changed(labels=Y.astype(float)))
accept("uint8 labels", changed(labels=Y.astype(np.uint8)))
refuse("-1 and 1", changed(labels=2 * Y - 1), r'"labels", row 0 \(id "train-0000"\): the label is -1; 12 labels .*--zero=-1 --one=1')
refuse("0, 1, 2", with_value("labels", 5, 2), r'row 5 \(id "train-0005"\): the label is 2; 1 labels')
refuse("a label of 0.5", with_value("labels", 5, 0.5, float), r"the label is 0\.5; 1 labels are neither")
refuse("a label of NaN", with_value("labels", 4, np.nan, float), r"row 4 .*the label is nan")
refuse("text labels", changed(labels=np.where(Y, "refused", "complied")), r"they are text; 0 \(not refused\) and 1")
refuse("complex labels", changed(labels=Y.astype(complex)), r"they are of type complex128")
refuse("labels [n, 1]", changed(labels=Y[:, None]), r"it has shape \[24, 1\], the activations have \[24, 8\]; .*ravel")
refuse("a single label", changed(labels=np.array(1)), r"it has shape \[\], the activations have \[24, 8\]")
refuse("one class in train", changed(labels=np.zeros_like(Y)), r"no example has label 1")
warn("one class in test", TRAIN, r"The test file holds one class", changed(TEST, labels=np.zeros_like(Y)))
# Shapes
refuse("layers without an index", changed(activations=X.reshape(24, 2, 4)), r"shape \[24, 2, 4\], 2 layers; .*--layer-index 0 to 1")
accept("layers with an index", changed(activations=np.stack([X, -X], 1)), changed(TEST, activations=np.stack([TEST["activations"]] * 2, 1)), "--layer-index", "1")
refuse("a layer that is not there", changed(activations=np.stack([X, X], 1)), r"there is no layer 2 in shape \[24, 2, 8\]", TEST, "--layer-index", "2")
refuse("a negative layer", changed(activations=np.stack([X, X], 1)), r"there is no layer -1", TEST, "--layer-index", "-1")
refuse("a layer of [n, d]", TRAIN, r"shape \[24, 8\], without an axis of layers", TEST, "--layer-index", "0")
refuse("one axis", changed(activations=X[:, 0]), r"it has shape \[24\]; \[examples, dimensions\]")
refuse("no axis", changed(activations=np.float32(1)), r"it has shape \[\]")
refuse("four axes", changed(activations=X.reshape(24, 2, 2, 2)), r"it has shape \[24, 2, 2, 2\]")
refuse("no rows", {key: value[:0] for key, value in TRAIN.items()}, r"it has shape \[0, 8\]; nothing is in it")
refuse("no columns", changed(activations=X[:, :0]), r"it has shape \[24, 0\]; nothing is in it")
refuse("transposed", changed(activations=X.T), r"it has shape \[24\], the activations have \[8, 24\]; .*transposed")
refuse("one label too few", changed(labels=Y[:-1]), r"it has shape \[23\], the activations have \[24, 8\]")
refuse("one id too many", changed(ids=np.append(IDS, "x")), r'"ids": it has shape \[25\]')
refuse("categories for half", changed(categories=KINDS[:12]), r'"categories": it has shape \[12\]')
refuse("other dimensions in test", TRAIN, r'test\.npz, member "activations": it has shape \[24, 4\], train\.npz has \[24, 8\]', changed(TEST, activations=TEST["activations"][:, :4]))
# Ids
refuse("a repeated id", with_value("ids", 9, "train-0002"), r'"ids", row 9: the id "train-0002" stands in row 2 already; 1 rows')
refuse("ids in both files", TRAIN, r'test\.npz, member "ids", row 3 \(id "train-0000"\): 1 ids are in the training file', with_value("ids", 3, "train-0000", "U12", TEST))
refuse("the same file twice", TRAIN, r"train and test are the same file", TRAIN)
refuse("bytes against text", TRAIN, r"24 ids are in the training file", changed(TEST, ids=IDS.astype("S10")))
refuse("NFC against NFD", with_value("ids", 0, "caf\u00e9"), r"1 ids are in the training file", with_value("ids", 5, "cafe\u0301", None, TEST))
refuse("trailing space", TRAIN, r"1 ids are in the training file", with_value("ids", 5, " train-0004 ", "U14", TEST))
refuse("NaN ids", changed(ids=np.full(24, np.nan)), r'"ids": it is of type float64; text or whole numbers')
refuse("a blank id", with_value("ids", 6, "  "), r'"ids", row 6: the value is blank; 1 rows')
refuse("bytes that are no text", changed(ids=np.array([b"\xff%d" % i for i in range(24)])), r'"ids": it holds bytes that are no text')
refuse("code points that are no text", changed(ids=(np.arange(24, dtype=np.uint32) + 0x110000).view("U1")), r'"ids": it holds bytes that are no text')
accept("whole numbers as ids", changed(ids=np.arange(24)))
# Leakage
warn("equal rows", TRAIN, r"1 test rows equal a training row", with_value("activations", 5, X[4], None, TEST))
warn("near rows", TRAIN, r"0 test rows equal a training row and 1 lie nearer", with_value("activations", 5, X[4] + 1e-3, None, TEST))
warn("equal rows in another type", TRAIN, r"1 test rows equal a training row", with_value("activations", 5, X[4], np.float64, TEST))
# Categories
refuse("a blank category", with_value("categories", 8, " "), r'"categories", row 8: the value is blank')
refuse("no categories", changed(categories=None), r'it has no member "categories"; it holds "activations", "labels", "ids"')
refuse("categories of fractions", changed(categories=np.arange(24) / 2), r'"categories": it is of type float64')
accept("one category", changed(categories=np.full(24, "all")))
accept("categories only in test", TRAIN, changed(TEST, categories=np.array(["new one", "other"])[TEST["labels"]]))
warn("categories in both", TRAIN, r"4 of 4 test categories are in the training file too", changed(TEST, categories=KINDS))
accept("markup, formula, newline, comma", changed(categories=np.array(["<b>x</b>", "=1+1", "a\nb", "c,d"])[np.arange(24) % 4]))
accept("whole numbers as categories", changed(categories=np.arange(24) % 4))
# Metadata
warn("another layer", changed(layer=12), r"different values of layer: 12 in train\.npz, 13 in test\.npz", changed(TEST, layer="13"))
warn("another model", changed(model="a"), r"different values of model", changed(TEST, model="b"))
warn("another pooling", changed(pooling="last"), r"different values of pooling", changed(TEST, pooling="mean"))
warn("metadata that is a list", changed(layer=np.arange(3)), r'the member "layer" is not one value')
accept("[12] against 12", changed(layer=np.array(["[12]"])), changed(TEST, layer=np.array(12.0)))
# Names
refuse("other names", {"acts": X, "y": Y, "ids": IDS, "category": KINDS}, r'no member "activations" or "labels" or "categories"; .*--map activations=acts --map labels=y --map categories=category')
refuse("one array a class", {"harmful": X, "harmless": X}, r"it holds one array a class: stack them")
refuse("a mapping to nothing", TRAIN, r'it has no member "other"', TEST, "--map", "labels=other")
refuse("a mapping of nothing", TRAIN, r'--map: "colour=acts" maps no member', TEST, "--map", "colour=acts")
accept("mapped names", {"acts": X, "labels": Y, "ids": IDS, "categories": KINDS}, {("acts" if k == "activations" else k): v for k, v in TEST.items()}, "--map", "activations=acts")

# fmt: on


def raw_of(members) -> bytes:
    return members if isinstance(members, bytes) else npz_bytes(members)


def core(train, test, options=()) -> dict:
    """The study of the pair through the core; its sections as JSON gives them."""
    options = dict(zip(options[::2], options[1::2], strict=True))
    columns = dict([options["--map"].split("=")]) if "--map" in options else {}
    index = int(options["--layer-index"]) if "--layer-index" in options else None
    reads = {"columns": columns, "layer_index": index, "bits": options.get("--bits")}
    exports = [read_export(raw_of(m), name=name, **reads) for m, name in ((train, "train.npz"), (test, "test.npz"))]
    return json.loads(study(*exports, Settings(repeats=9, split_repeats=2)).to_json())


def command(folder, capsys, train, test, options=()) -> tuple[int, str, str, bool]:
    paths = [str(files.write(folder, name, raw_of(m))) for m, name in ((train, "train.npz"), (test, "test.npz"))]
    output = folder / "study.json"
    code = study_command.main([*paths, "--repeats", "9", "--split-repeats", "2", "--output", str(output), *options])
    captured = capsys.readouterr()
    assert sorted(p.name for p in folder.iterdir() if p != output) == ["test.npz", "train.npz"], (
        "something half-written"
    )
    return code, captured.out, captured.err, output.exists()


def test_the_table_is_as_wide_as_what_was_found():
    assert len(REFUSED) + len(WARNED) + len(ACCEPTED) >= 88


@pytest.mark.parametrize(("train", "test", "said", "options"), REFUSED)
def test_refused_with_file_member_reason_and_mend(train, test, said, options, tmp_path, capsys):
    if not options or options[0] != "--map" or options[1].startswith("labels"):
        with pytest.raises(InputError) as refused:
            core(train, test, options)
        assert re.search(said, str(refused.value)), str(refused.value)
        assert refused.value.where.startswith(("train.npz", "test.npz"))
        assert refused.value.why and refused.value.fix
    code, out, err, written = command(tmp_path, capsys, train, test, options)
    assert (code, out, written) == (2, "", False)
    assert re.search(said, err), err
    assert err.count("\n") == 1 and err.endswith(".\n"), "one sentence on one line"


@pytest.mark.parametrize(("train", "test", "said"), WARNED)
def test_warned_about(train, test, said, tmp_path, capsys):
    assert re.search(said, "\n".join(core(train, test)["warnings"]))
    code, _, err, written = command(tmp_path, capsys, train, test)
    assert (code, written) == (0, True)
    assert re.search(f"warning: .*{said}", err)


@pytest.mark.parametrize(("train", "test", "options"), ACCEPTED)
def test_accepted_without_a_word_about_the_file(train, test, options, tmp_path, capsys):
    sections = core(train, test, options)
    assert not [w for w in sections["warnings"] if "training row" in w or "different values" in w]
    code, _, err, written = command(tmp_path, capsys, train, test, options)
    assert (code, written) == (0, True), err
    assert json.loads((tmp_path / "study.json").read_text())["direction"]["sha256"] == sections["direction"]["sha256"]


@pytest.mark.parametrize("main", [heldout.main, study_command.main])
def test_files_that_are_not_there(main, tmp_path, capsys):
    path = str(files.write(tmp_path, "train.npz", RAW))
    assert main([path, str(tmp_path / "none.npz")]) == 2
    assert capsys.readouterr().err == "none.npz: there is no such file; an .npz file is needed; correct the path.\n"
    assert main([path, str(tmp_path)]) == 2
    assert "it is a folder" in capsys.readouterr().err
    assert main([path, "a\0b"]) == 2
    assert "it is not a file name" in capsys.readouterr().err
