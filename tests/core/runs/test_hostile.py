"""Files made to hurt: each is a sentence among the problems, in bounded time, and the good file beside it is read."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import struct
import time
import zipfile
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusal_core import zips
from refusal_core.commands.runs import summary
from refusal_core.errors import InputError
from refusal_core.plots.runs_report import runs_report
from refusal_core.reports import to_json
from refusal_core.runs.json_members import read_members
from refusal_core.runs.read import read, read_files, read_folder
from refusal_core.runs.recount import of_report
from refusal_core.runs.tables import ReportRow, ReportTable
from refusal_core.runs.view_classes import class_table, evaluations
from refusal_core.runs.view_report import of_folder

GOOD = b'{"global_step": 2, "log_history": [{"step": 2, "loss": 0.5}]}'
ROWS = b'{"step": 1, "loss": 0.5}, ' * 3


def zipped(members: dict[str, bytes], **options) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, **options) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return out.getvalue()


HOSTILE = {
    "deep.json": b"[" * 100_000,
    "deep_object.json": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "deep_in_log.json": b'{"global_step": 1, "log_history": [{"step": 1, "x": '
    + b"[" * 50_000
    + b"]" * 50_000
    + b"}]}",
    "digits.json": b'{"eval_loss": ' + b"9" * 100_000 + b"}",
    "digits_in_log.json": b'{"global_step": 1, "log_history": [{"step": 1, "loss": ' + b"9" * 10_000 + b"}]}",
    "huge_step.json": b'{"global_step": 1e999, "best_global_step": 1e999, "log_history": [{"step": 1e999, "loss": 1}]}',
    "twice.json": b'{"global_step": 1, "global_step": 2, "log_history": [{"step": 1, "loss": 1}], "log_history": []}',
    "not_sqlite.db": b"SQLite format 3\0" + b"\xff" * 4_000,
    "short.parquet": b"PAR1" + b"\0" * 100 + b"PAR1",
    "events.out.tfevents.1": struct.pack("<QI", 24, 0) + b"\x09" + b"\0" * 8 + b"\x1a\x0dbrain.Event:2" + b"\xff" * 64,
    "bomb.zip": zipped({"a.json": b"0" * 30_000_000}),
    "pickle.pt": b"\x80\x04\x95" + b"\0" * 50,
    "wide.csv": b"step," + b",".join(b"m%d" % i for i in range(30_000)) + b"\n1" + b",1" * 30_000,
    "quote.csv": b'step,loss\n1,"0.5\n' + b"2,0.25\n" * 50_000,
    "spaces.txt": b"confusion matrix\n"
    + b" " * 200_000
    + b"x\n"
    + b"precision recall f1-score support\n"
    + b" " * 200_000
    + b"1",
    "matrix.json": json.dumps([[0] * 30] * 300).encode(),
    "labels.json": b'{"labels": ["a"], "matrix": [[1, 2], [3, 4]]}',
    "keys.jsonl": b"\n".join(b'{"step": %d, "key%d": 1}' % (i, i) for i in range(25_000)),
    "surrogate.json": b'{"eval_loss": 0.5, "name": "\\ud83d"}',
    "nothing.json": b"",
}


def test_none_of_them_hurts(tmp_path):
    for name, data in HOSTILE.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "trainer_state.json").write_bytes(GOOD)
    (tmp_path.parent / "outside.json").write_bytes(GOOD)
    (tmp_path / "link.json").symlink_to(tmp_path.parent / "outside.json")
    (tmp_path / "round").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.json")
    begun = time.perf_counter()
    artefacts, problems = read_folder(tmp_path)
    assert time.perf_counter() - begun < 10
    said = {p.file: p.what for p in problems}
    assert [a.step for a in artefacts if a.file == "trainer_state.json"] == [2]
    read_all_the_same = {"surrogate.json", "huge_step.json", "digits.json", "digits_in_log.json", "quote.csv"}
    for name in HOSTILE.keys() - read_all_the_same:
        assert name in said, name
    assert "leads out of the folder" in said["link.json"] and "cannot be opened" in said["gone.json"]
    assert "pipe" in said["pipe.json"] and not any(file.startswith("round/") for file in said)
    assert "nested" in said["deep.json"] and said["pickle.pt"] == "a pickle, which is never opened"
    assert all(len(what) < 1_000 and "\n" not in what for what in said.values())
    for name in HOSTILE:  # strictly, each is one sentence or is read
        try:
            read(tmp_path / name)
        except InputError as error:
            assert str(error).endswith((".", "?", "!"))


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"../../etc/a.json": GOOD}, "leads out of the archive"),
        ({"/etc/a.json": GOOD}, "leads out of the archive"),
        ({"C:\\a.json": GOOD}, "leads out of the archive"),
        ({"x" * 500 + ".json": GOOD}, "characters"),
        ({"a.json": b"0" * 30_000_000}, "no real file packs so well"),
    ],
)
def test_an_unsafe_archive_is_not_opened(members, said):
    artefacts, [problem] = read_files([("upload.zip", zipped(members)), ("trainer_state.json", GOOD)])
    assert said in problem.what + problem.fix or said in str(_refused(zipped(members)))
    assert [a.step for a in artefacts] == [2]


def _refused(data: bytes) -> InputError:
    with pytest.raises(InputError) as refused, zips.open_zip(data, "upload.zip"):
        pass
    return refused.value


def test_an_archive_that_lies_about_its_sizes():
    data = bytearray(zipped({"a.json": GOOD * 100}))
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = data.index(mark) + at
        data[place : place + 4] = struct.pack("<I", 10)
    artefacts, [problem] = read_files([("upload.zip", bytes(data))])
    assert not artefacts and ("damaged" in problem.what or "not as large" in problem.what)
    assert "no whole zip archive" in str(_refused(zipped({"a": b"b"})[:-30]))


def test_the_members_of_an_archive_are_files(tmp_path):
    packed = zipped(
        {"out/checkpoint-2/trainer_state.json": GOOD, "__MACOSX/x": b"", "out/.DS_Store": b"x", "out/n/": b""}
    )
    artefacts, problems = read_files([("upload.zip", packed)])
    assert [(a.file, a.step) for a in artefacts] == [("out/checkpoint-2/trainer_state.json", 2)] and not problems


@given(st.integers(1, 400), st.sampled_from([b"", b"\0", b"x", b"]", b",", b"{", b'"']))
@settings(max_examples=80, deadline=None)
def test_a_state_that_is_cut_anywhere_never_loses_a_whole_row(at, tail):
    rows = [{"step": i, "loss": 1 / (i + 1), "note": 'a "quoted" ]},{ word'} for i in range(6)]
    text = json.dumps({"global_step": 6, "log_history": rows, "max_steps": 6})
    cut = text[:at] + tail.decode("latin-1")
    found: list[dict] = []
    members = read_members(cut, {"log_history": found.append})
    whole = sum(text[: min(at, len(text))].count(json.dumps(row)) for row in rows)
    assert found == rows[: len(found)] and len(found) >= whole
    assert (members.fault is None) == (cut.strip() == text)


@given(
    st.binary(max_size=300), st.sampled_from(["", "{", "[", '{"log_history": [', "precision recall f1-score support\n"])
)
@settings(max_examples=150, deadline=None)
def test_no_bytes_bring_a_reader_down(data, start):
    artefacts, problems = read_files([("file", start.encode() + data)])
    assert artefacts or problems


def test_a_view_of_a_database_is_never_asked(tmp_path):
    path = tmp_path / "trackio.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE VIEW metrics(run_name, step, metrics) AS WITH RECURSIVE t(x) AS "
            "(SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT 'r', x, '{}' FROM t"
        )
    artefacts, [problem] = read_folder(tmp_path)
    assert not artefacts and "database" in problem.what


IMPOSSIBLE = ("-0.5", "1.5", "85", "1e308", "1e-320", "-3", "0", "2.5", "9" * 320)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", IMPOSSIBLE)
def test_numbers_that_no_score_or_count_can_be_are_shown_and_counted_in_nothing(tmp_path, value):
    """As recall, precision, support, step and epoch: every reader of what was found goes through."""
    row = f'"precision": {value}, "recall": {value}, "f1-score": 0.7, "support": %s'
    for support in (value, "10"):
        folder = tmp_path / support[:5]
        folder.mkdir()
        both = f'"a": {{{row % support}}}, "macro avg": {{{row % support}}}, "accuracy": 0.7'
        (folder / "classification_report.json").write_text(f"{{{both}}}")
        lines = "    a     {0}     {0}   0.70   {1}\n\n    accuracy     0.70   {1}\n"
        head = "     precision    recall  f1-score   support\n\n"
        (folder / "classification_report.txt").write_text(head + lines.format(value, support))
        logged = f'{{"step": {value}, "epoch": {value}, "loss": {value}}}, {{"step": 3, "epoch": 1, "eval_loss": 1}}'
        (folder / "trainer_state.json").write_text(f'{{"global_step": 3, "log_history": [{logged}]}}')
        report = of_folder(folder)
        assert len(report.runs) == 1
        assert runs_report(report, report.runs, name="x", command="runs x")
        assert json.loads(to_json(report.as_json()))
        assert summary(list(report.runs), list(report.problems), list(report.findings))
        for evaluation in evaluations(report.runs):
            for row_ in class_table(evaluation).rows:
                assert row_.recall.n >= 0 and (row_.recall.interval is None or 0 <= row_.recall.value <= 1)


@pytest.mark.parametrize("value", [1e308, -0.5, 1.5, 85.0, float("inf")])
def test_a_number_that_no_score_can_be_is_in_no_average(value):
    rows = [ReportRow("a", 0.5, value, 0.5, 10.0), ReportRow("b", 0.5, 0.5, 0.5, 10.0)]
    table = ReportTable("report.json", "", "test", tuple(rows), (), None, 20, None)
    averages = {f"{kind}_{score}": 0.5 for kind in ("macro", "weighted") for score in ("precision", "f1")}
    assert of_report(table).values == averages
    odd = [replace(rows[0], recall=0.5, support=value), rows[1]]
    plain = of_report(replace(table, classes=tuple(odd))).values
    assert ("weighted_f1" in plain) == (0 <= value < 2**53) and plain["macro_f1"] == 0.5


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that opens and cannot be read")
def test_a_disk_that_fails_while_a_file_is_read_hides_no_other_file(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_bytes(GOOD)
    (tmp_path / "trainer_state.json").write_bytes(GOOD)
    opened = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest: opened("/proc/self/mem" if "a.json" in str(path) else path, *rest)
    )
    artefacts, problems = read_folder(tmp_path)
    assert [a.file for a in artefacts] == ["trainer_state.json"]
    assert [p.file for p in problems] == ["a.json"]
