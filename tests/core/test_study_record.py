"""What stands around a study: other labels, a part held out, test rows, ROC, the plan, prompts, files, the record."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusal_core import study as command
from refusal_core.activations.parts import Picked, hold_out_categories, hold_out_rows
from refusal_core.activations.peek import Peek
from refusal_core.activations.reading import Reading, read_parts
from refusal_core.direction import planning, vector
from refusal_core.direction.examples import Examples, examples_of, projections_csv, roc
from refusal_core.direction.intervals import CategoryInterval, NotAvailable
from refusal_core.direction.meaning import MEANINGS, meaning_of
from refusal_core.direction.prompts import read_prompts
from refusal_core.direction.record import record_of, unpack
from refusal_core.direction.result import Settings
from refusal_core.direction.scores import auroc
from refusal_core.direction.study import study
from refusal_core.errors import InputError
from tests.activation_files import export, npz_bytes, pair, planted, write

QUICK = Settings(repeats=19, split_repeats=2, label_means="harmful")
TEXTS = np.array(["complied", "refused"])


def finished(n: int = 60, categories: int = 10, **options):
    train, test = pair(n=n, categories=categories, signal=1.0, **options)
    return test, study(train, test, QUICK)


@pytest.fixture(scope="module")
def done():
    return finished()


# --- labels of other kinds


@pytest.mark.parametrize(
    ("labels", "meant"),
    [
        (lambda y: 2 * y - 1, ("-1", "1")),
        (lambda y: (2 * y - 1).astype(float), ("-1", "1")),
        (lambda y: TEXTS[y], ("complied", " refused ")),
        (lambda y: np.char.encode(TEXTS[y]), ("complied", "refused")),
        (lambda y: y.astype(bool), ("False", "True")),
    ],
)
def test_two_labels_of_another_kind_give_the_same_study(labels, meant, tmp_path):
    members = planted(seed=3)
    plain, other = export(members), {**members, "labels": labels(members["labels"])}
    read = export(other, labels=meant)
    assert read.labels.dtype == np.int8 and (read.labels == plain.labels).all()
    swapped = export(other, labels=meant[::-1])
    assert (swapped.labels == 1 - plain.labels).all()
    peek = Peek(npz_bytes(other), "a.npz")
    assert set(peek.labels("labels")) == {text.strip() for text in meant}


def test_a_label_that_was_not_named_is_refused_with_its_row():
    members = {**planted(), "labels": np.array(["yes", "no", "maybe", *["no"] * 21])}
    with pytest.raises(InputError, match=r'row 2 \(id "train-0002"\): the label is "maybe"; only "no" \(0\) and "yes"'):
        export(members, labels=("no", "yes"))
    with pytest.raises(InputError, match="0 and for 1"):
        export(members, labels=("no", "no"))


def test_the_command_takes_the_same_labels(tmp_path, capsys):
    members = planted(seed=1)
    write(tmp_path, "plain.npz", npz_bytes(members))
    write(tmp_path, "text.npz", npz_bytes({**members, "labels": TEXTS[members["labels"]]}))
    write(tmp_path, "test.npz", npz_bytes(planted(seed=2, prefix="test")))
    quick = ["--repeats", "9", "--hold-out", "train topic 0", "--hold-out=train topic 1", "--label-means=harmful"]
    assert command.main([str(tmp_path / "plain.npz"), *quick]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert command.main([str(tmp_path / "text.npz"), *quick, "--zero=complied", "--one=refused"]) == 0
    text = capsys.readouterr()
    assert json.loads(text.out)["test"] == plain["test"] and "false alarms" in text.err
    assert plain["extraction"]["label_means"] == "harmful"
    assert plain["inputs"]["test"]["part"] == "categories held out: train topic 0, train topic 1"
    for wrong in (["--one=refused"], ["--hold-out=x", "--hold-out-share=0.5"], ["--hold-out=gone"]):
        assert command.main([str(tmp_path / "text.npz"), *wrong]) == 2
    assert command.main([str(tmp_path / "plain.npz"), str(tmp_path / "test.npz"), "--hold-out=x"]) == 2


# --- a part held out


def test_a_part_held_out_is_the_study_of_two_files_with_these_rows():
    members = planted(n=80, categories=8)
    whole = export(members, "pool.npz")
    train, test = hold_out_categories(whole, ["train topic 1", "train topic 4"])
    held = np.isin(members["categories"], ["train topic 1", "train topic 4"])
    assert (np.array(test.ids) == members["ids"][held]).all() and set(train.ids).isdisjoint(test.ids)
    files = [export({key: value[rows] for key, value in members.items()}, "f.npz") for rows in (~held, held)]
    ours, theirs = study(train, test, QUICK), study(*files, QUICK)
    assert ours.test == theirs.test and ours.nulls == theirs.nulls and ours.split == "categories held out"
    assert (ours.unit == theirs.unit).all() and "(part held out)" not in ours.headline


def test_random_rows_are_drawn_in_the_order_of_ids():
    members = planted(n=40)
    whole, turned = export(members), export({key: value[::-1] for key, value in members.items()})
    one, other = hold_out_rows(whole, 0.3, 7), hold_out_rows(turned, 0.3, 7)
    assert len(one[1].ids) == 12 and set(one[1].ids) == set(other[1].ids)
    assert set(hold_out_rows(whole, 0.3, 8)[1].ids) != set(one[1].ids)
    for share in (0, 1, -1, float("nan")):
        with pytest.raises(InputError, match="share"):
            hold_out_rows(whole, share, 0)


def test_what_cannot_be_held_out():
    whole = export(planted())
    for names, said in ((["gone"], "no category"), ([], "no category is held"), (set(whole.categories), "every")):
        with pytest.raises(InputError, match=said):
            hold_out_categories(whole, names)


def test_picked_rows_behave_as_the_copied_ones():
    values = np.arange(60.0).reshape(12, 5)
    rows = np.array([1, 4, 5, 11])
    picked = Picked(values, rows)
    for where in (slice(1, 3), np.array([3, 0]), (slice(None), 2), (np.array([0, 2]), 1)):
        assert (picked[where] == values[rows][where]).all()
    assert picked.shape == (4, 5) and len(picked) == 4 and picked.dtype == values.dtype


def test_reading_gives_its_own_options(tmp_path):
    reading = Reading({"activations": "acts", "ids": "ids"}, ("-1", "1"), "bfloat16", 3, ("a b", "-c"))
    assert reading.arguments() == [
        "--map=activations=acts", "--zero=-1", "--one=1", "--layer-index=3", "--bits=bfloat16", "--hold-out=a b",
        "--hold-out=-c",
    ]  # fmt: skip
    assert Reading(held_out_share=0.3).arguments() == ["--hold-out-share=0.3"]
    train, test = read_parts([(npz_bytes(planted()), "a.npz")], Reading())
    assert test is None and train.name == "a.npz"


def test_a_look_into_a_file():
    members = planted()
    stacked = np.stack([members["activations"]] * 3, axis=1)
    own = {"acts": stacked, "y": members["labels"], "ids": members["ids"], "topic": members["categories"]}
    peek = Peek(npz_bytes({**own, "model": np.array("m"), "layer": np.array([12])}), "a.npz")
    assert peek.guess() == {"activations": "acts", "labels": "y", "ids": "ids", "categories": "topic"}
    assert not peek.is_ready() and peek.layers("acts") == 3 and peek.metadata() == {"model": "m", "layer": "12"}
    assert peek.labels("y") == ("0", "1") and sum(peek.categories("topic").values()) == 24
    bits = Peek(npz_bytes({**members, "activations": members["activations"].astype("f2").view("u2")}), "b.npz")
    assert bits.needs_bits("activations") and not peek.needs_bits("acts") and bits.is_ready()
    with pytest.raises(InputError, match="pickled"):
        Peek(npz_bytes({**members, "ids": members["ids"].astype(object)}), "c.npz")


# --- the test rows


def test_the_rows_agree_with_the_study(done):
    test, result = done
    rows = examples_of(test, result)
    scores = result.test
    assert len(rows.wrong(0)) == scores.confusion.fp and len(rows.wrong(1)) == scores.confusion.fn
    assert (np.diff(np.abs(rows.margins[rows.wrong(1)])) <= 0).all()
    assert auroc(rows.margins, rows.labels) == scores.auroc
    assert np.allclose(rows.projections, test.activations.astype(float) @ result.unit)
    lines = list(csv.DictReader(io.StringIO(projections_csv(rows, {rows.ids[0]: "=1+1"}))))
    assert [line["id"] for line in lines] == list(test.ids) and lines[0]["prompt"] == "'=1+1"
    assert [float(line["projection"]) for line in lines] == rows.projections.tolist()
    assert sum(line["right"] == "true" for line in lines) == round(scores.accuracy * rows.n)
    assert examples_of(None, result) is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=40))
def test_the_area_under_the_roc_is_the_auroc(rows):
    margins, labels = np.array([float(r[0]) for r in rows]), np.array([int(r[1]) for r in rows], np.int8)
    own = Examples(tuple(map(str, range(len(rows)))), labels, ("c",), np.zeros(len(rows), np.intp), margins, 0.5)
    found = roc(own)
    if found is None:
        assert len(set(labels.tolist())) == 1
        return
    false, true = found
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(true, false) == pytest.approx(auroc(margins, labels))
    assert len(roc(own, 3)[0]) <= 3


# --- the plan


def test_more_categories_for_a_narrower_interval():
    interval = CategoryInterval("t", 0.95, 0.7, 0.9, 8.0, {"0": 5, "1": 4}, {"0": 5.0, "1": 4.0}, NotAvailable("few"))
    assert planning.categories_for(interval, 0.82, 0.25).reached
    plans = [planning.categories_for(interval, 0.82, width) for width in (0.15, 0.1, 0.05)]
    counts = [plan.categories_per_class["0"] for plan in plans]
    assert counts == sorted(counts) and counts[0] > 5 and not any(plan.reached for plan in plans)
    # Four times the categories halve the width, and a little more: the t quantile falls too.
    assert planning.categories_for(interval, 0.82, 0.1).categories_per_class["0"] <= 20
    assert planning.categories_for(interval, 0.82, 0.001).categories_per_class is None


def test_the_estimate_grows_with_the_work():
    small = planning.estimated_seconds((100, 64), (50, 64), repeats=99, split_repeats=20, shared=False, size=1_000)
    shapes = (9_000, 4_096), (5_000, 4_096)
    large = planning.estimated_seconds(*shapes, repeats=999, split_repeats=20, shared=True, size=1)
    assert 0 < small < 5 < large
    assert planning.estimated_seconds((900, 64), None, repeats=99, split_repeats=20, shared=True, size=1) < large


# --- prompts by id


@pytest.mark.parametrize(
    "content",
    [
        b'{"id": 1, "prompt": "one"}\n{"id": "b", "prompt": "two, three", "extra": [1]}\n',
        b'[{"id": 1, "prompt": "one"}, {"id": "b", "prompt": "two, three"}]',
        b'id;prompt\n1;one\nb;"two, three"\n',
    ],
)
def test_prompts_of_each_form(content):
    assert read_prompts(io.BytesIO(content), "p") == {"1": "one", "b": "two, three"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"id": 1, "text": "one"}\n', 'p, line 1: it has no "prompt"; it holds "id", "text"'),
        (b'{"id": 1, "prompt": "a"}\n{"id": 1, "prompt": "b"}\n', "two prompts"),
        (b'{"id": 1, "prompt": "a"}\n{broken\n', "line 2"),
        (b"id,prompt\n", "no rows"),
        (b"\x00\x01", "not text"),
        (b"", "empty"),
    ],
)
def test_prompts_that_cannot_be_read(content, said):
    with pytest.raises(InputError) as refused:
        read_prompts(io.BytesIO(content), "p")
    assert said in str(refused.value)


# --- files and the record


def test_the_direction_as_a_file_with_its_card(done):
    from safetensors.numpy import load

    _, result = done
    vector_, raw = np.load(io.BytesIO(vector.as_npy(result))), vector.as_safetensors(result, "d" * 64)
    assert vector_.dtype == "<f8" and (vector_ == result.unit).all() and (load(raw)["direction"] == result.unit).all()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    card = json.loads(header["__metadata__"]["card"])
    assert card == json.loads(vector.card_json(result, "d" * 64))
    assert card["threshold"] == result.direction["threshold"] and card["label_means"] == "harmful"
    assert card["train"]["sha256"] == result.inputs["train"]["sha256"] and card["study_sha256"] == "d" * 64


@pytest.mark.parametrize("kind", ["two files", "one class", "one file", "held out"])
def test_a_packed_study_is_the_same_study(kind):
    train, test = pair(n=40, categories=6)
    if kind == "one class":
        keep = test.labels == 0
        part = {name: np.array(getattr(test, name))[keep] for name in ("activations", "labels", "ids", "categories")}
        test = export(part, "test.npz")
    if kind == "held out":
        train, test = hold_out_rows(train, 0.4, 1)
    test = None if kind == "one file" else test
    result = study(train, test, QUICK)
    record = record_of(result, examples_of(test, result), command="c", title="<t>")
    again = unpack(record.packed())
    assert again.study.to_json() == record.text == again.text and again.sha256 == record.sha256
    assert (again.study.unit == result.unit).all() and (again.title, again.command) == ("<t>", "c")
    assert (again.examples is None) == (test is None)
    if test is not None:
        assert projections_csv(again.examples) == projections_csv(record.examples)
    assert str(train.activations[0:1][0, 0]) not in record.text


def test_a_damaged_record_is_one_sentence(done):
    test, result = done
    packed = record_of(result, examples_of(test, result), command="c", title="t").packed()
    for damaged in (b"", b"x" * 40, packed[:-20], packed.replace(packed[20:24], b"....")):
        with pytest.raises(InputError, match="cannot be read"):
            unpack(damaged)


def test_rates_are_worded_by_what_the_labels_mean(done):
    _, result = done
    assert meaning_of(None) is MEANINGS["refused"] and meaning_of("not stated").key == "refused"
    train, test = pair()
    only = export({name: np.array(getattr(test, name))[test.labels == 1] for name in
                   ("activations", "labels", "ids", "categories")}, "test.npz")  # fmt: skip
    assert study(train, only, QUICK).headline.startswith("Missed-harm rate")
    assert study(train, only, replace(QUICK, label_means=None)).headline.startswith("Missed-refusal rate")
    with pytest.raises(InputError, match="label-means"):
        Settings(label_means="good")
