"""Which files a suite may name: on a command line any, on a page uploads and what lies below the data roots."""

from __future__ import annotations

import pytest

from refusal_core.errors import InputError
from refusal_core.roots import DataRoots
from refusal_core.scorecard import BesideSuite, WithinRoots, read_suite, run
from refusal_core.scorecard.cache import AnswerCache
from tests.core.scorecard.cases import assertion, only, write_predictions


@pytest.fixture
def folder(tmp_path):
    write_predictions(tmp_path / "root" / "suites" / "a.jsonl", [1] * 50, [1] * 50)
    write_predictions(tmp_path / "root" / "runs" / "a.jsonl", [1] * 50, [0] * 50)
    write_predictions(tmp_path / "outside" / "a.jsonl", [1] * 50, [1] * 50)
    (tmp_path / "root" / "link.jsonl").symlink_to(tmp_path / "outside" / "a.jsonl")
    return tmp_path


def page(folder, **options) -> WithinRoots:
    return WithinRoots(DataRoots((folder / "root",)), **options)


def value(resolver, written: str):
    text = assertion("{type: metric, metric: accuracy, threshold: 0.5}", columns=f"{{id: a, predictions: {written!r}}}")
    return only(run(read_suite(text.encode()), resolver, cache=AnswerCache(None)))


def test_a_command_starts_at_the_folder_of_the_suite(folder):
    resolver = BesideSuite(folder / "root" / "suites")
    assert value(resolver, "a.jsonl").value == 1
    assert value(resolver, "../runs/a.jsonl").value == 0
    assert value(resolver, str(folder / "outside" / "a.jsonl")).value == 1
    assert "there is no such file" in value(resolver, "b.jsonl").reason
    assert "it is a folder" in value(resolver, "../runs").reason
    for impossible in ("x" * 5_000, "a/" * 5_000):
        assert "there is no such file" in value(resolver, impossible).reason


def test_a_page_stays_below_its_roots(folder):
    assert value(page(folder, folder_name="suites"), "a.jsonl").value == 1
    assert value(page(folder, folder_name="suites"), "../runs/a.jsonl").value == 0
    assert value(page(folder), "runs/a.jsonl").value == 0
    for written in ("../outside/a.jsonl", "link.jsonl", str(folder / "outside" / "a.jsonl"), "/etc/passwd"):
        row = value(page(folder), written)
        assert row.verdict == "error" and str(folder / "outside") not in row.reason.replace(written or "-", "")
    there, not_there = (value(page(folder), f"../outside/{name}").reason for name in ("a.jsonl", "zzz.jsonl"))
    assert there.replace("a.jsonl", "") == not_there.replace("zzz.jsonl", "")


def test_uploads_come_first_and_need_no_root(folder):
    content = (folder / "root" / "runs" / "a.jsonl").read_bytes()
    resolver = WithinRoots(DataRoots(()), uploads={"a.jsonl": content})
    assert value(resolver, "a.jsonl").value == value(resolver, "some/folder/a.jsonl").value == 0
    assert "upload the file" in value(resolver, "b.jsonl").reason


def test_a_demo_loads_the_starter_only(folder):
    resolver = page(folder, starter_only=True)
    assert resolver.checkpoint("starter") == "starter"
    for written in ("runs", "hub:owner/name"):
        with pytest.raises(InputError, match="only the starter"):
            resolver.checkpoint(written)
    assert page(folder).checkpoint("hub:owner/name@v1") == "owner/name@v1"
    assert BesideSuite(folder).checkpoint("hub:owner/name") == "owner/name"


def test_the_printed_line_turns_no_terminal_round(folder):
    columns = '{id: "a\\x9b31m\\u202eb", predictions: a.jsonl}'
    text = assertion("{type: metric, metric: accuracy, threshold: 0.5}", columns=columns)
    found = run(read_suite(text.encode()), BesideSuite(folder / "root" / "suites"), cache=AnswerCache(None))
    assert found.sentence.startswith("PASS: a 31m b (")
