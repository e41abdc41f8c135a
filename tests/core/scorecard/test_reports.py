"""JSON, CSV, JUnit XML, the terminal's table and the HTML report say the same, and the command's exit code too."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest

from refusal_core import cli
from refusal_core.plots.scorecard_report import scorecard_report
from refusal_core.reports import to_json
from refusal_core.scorecard import read_suite, schema
from refusal_core.scorecard.draft import draft
from refusal_core.scorecard.junit import TEXT_CHARACTERS, junit
from refusal_core.scorecard.report import CSV_HEADER, conditions, json_text, more_items, terminal_table, write_csv_rows
from refusal_core.scorecard.result import UNTIL_SUPPORT
from tests.core.scorecard.cases import noisy, score, write_predictions

CONDITION = "Counts of further items hold if the values stay as they are and further items are like these."
XSD = Path(__file__).with_name("junit.xsd")
SUITE = """
version: 1
description: Every verdict at once
baseline: prod
checkpoints:
  - {id: prod, predictions: prod.jsonl}
  - {id: cand, predictions: cand.jsonl}
  - {id: gone, predictions: gone.jsonl}
tests:
  - id: quality
    description: How good it is
    assert:
      - {id: easy, type: metric, metric: accuracy, threshold: 0.5}
      - {id: hard, type: metric, metric: f1, average: macro, threshold: 0.99}
      - {id: close, type: metric, metric: accuracy, threshold: 0.8}
      - {id: hint, type: metric, metric: accuracy, threshold: 0.99, severity: advisory}
      - {id: sure, type: metric, metric: brier, threshold: 0.1}
      - {id: change, type: no-regression, metric: accuracy, min_absolute_change: -0.1}
      - {id: each, type: metric, metric: recall, label: "*", threshold: 0.1}
  - id: cases
    split: cases
    assert:
      - {id: said, type: equals, value_field: "true"}
"""
NASTY = "=cmd()|\x00\x1b[31m ]]> <b>&amp;\ud800 \u202e" + "x" * 3_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    true, first = noisy(3, 300, 0.75)
    for name, seed in (("prod", 3), ("cand", 3)):
        write_predictions(folder / f"{name}.jsonl", true, first if name == "prod" else noisy(seed, 300, 0.8)[1],
                          split=["test"] * 300)  # fmt: skip
        with (folder / f"{name}.jsonl").open("a") as file:
            case = {"id": "=1+1", "label": "compliant", "true": "full_refusal", "split": "cases", "prompt": NASTY}
            file.write(json.dumps({**case, "response": NASTY}) + "\n")
    (folder / "suite.yaml").write_text(SUITE)
    return folder


@pytest.fixture(scope="module")
def scorecard(folder):
    return score(folder, SUITE)


def test_every_verdict_is_there(scorecard):
    assert all(scorecard.counts.values()), scorecard.counts
    assert sum(scorecard.counts.values()) == len(scorecard.rows) == 3 * 12
    assert [c.verdict for c in scorecard.checkpoints] == ["fail", "fail", "error"]
    assert scorecard.exit_code == 100


def test_the_json_is_strict_and_keeps_the_contract(scorecard):
    def refuse(constant):
        raise AssertionError(constant)

    found = json.loads(json_text(scorecard), parse_constant=refuse)
    assert found["schema"] == "refusal-scorecard/1"
    assert {"suite", "checkpoints", "baseline", "rows", "counts", "exit_code"} <= found.keys()
    assert found["suite"].keys() == {"name", "sha256", "description"}
    assert all({"id", "kind", "digest", "verdict"} <= c.keys() for c in found["checkpoints"])
    wanted = {"test", "assertion", "type", "checkpoint", "verdict", "severity", "value", "interval", "n", "threshold",
              "margin", "message", "evidence"}  # fmt: skip
    assert all(wanted <= row.keys() for row in found["rows"])
    assert found["rows"][0]["interval"].keys() == {"low", "high", "level", "method"}
    assert [row["label"] for row in found["rows"] if row["assertion"] == "each"][::3] == read_suite(
        SUITE.encode()
    ).suite.labels
    assert "/tmp" not in json_text(scorecard)


def test_the_same_seed_gives_the_same_bytes(folder, scorecard):
    assert json_text(score(folder, SUITE)) == json_text(scorecard)


def test_the_csv_has_a_line_a_row(scorecard):
    out = io.StringIO()
    write_csv_rows(out, scorecard)
    header, *lines = csv.reader(io.StringIO(out.getvalue()))
    assert tuple(header) == CSV_HEADER and len(lines) == len(scorecard.rows)
    assert [line[header.index("verdict")] for line in lines] == [row.verdict for row in scorecard.rows]


def test_the_junit_file_is_valid_and_counts_the_same(scorecard):
    import xmlschema

    text = junit(scorecard)
    xmlschema.XMLSchema(str(XSD)).validate(text)
    root = xml.fromstring(text)
    assert [suite.get("name") for suite in root] == ["prod", "cand", "gone"]
    cases = [case for suite in root for case in suite.iter("testcase")]
    assert len(cases) == len(scorecard.rows)
    required = [row for row in scorecard.rows if row.severity == "required"]
    assert root.get("failures") == str(sum(row.verdict == "fail" for row in required))
    assert root.get("errors") == str(sum(row.verdict == "error" for row in required))
    names = {(case.get("classname"), case.get("name")) for case in cases}
    assert ("quality", "each[full_refusal]") in names and ("cases", "said") in names
    by_name = {case.get("name"): case for case in root[0].iter("testcase")}
    assert by_name["close"].find("skipped").get("message").startswith("inconclusive: accuracy")
    assert by_name["hint"].find("skipped").get("message").startswith("advisory failure: ")
    assert by_name["change"].find("skipped").get("message") == "not run: this is the baseline"
    assert by_name["said"].find("failure").get("type") == "behaviour"
    properties = {p.get("name"): p.get("value") for p in root[0].iter("property")}
    assert properties["baseline"] == "prod" and properties["suite_sha256"] == scorecard.suite_sha256
    assert float(properties["quality.close.n"]) == 300


def test_junit_takes_what_a_model_may_write(scorecard):
    [case] = [c for c in xml.fromstring(junit(scorecard))[0].iter("testcase") if c.get("name") == "said"]
    out = case.find("system-out").text
    assert "]]> <b>&amp;" in out and "\x1b" not in out and "\x00" not in out
    assert f"x{'…'}" in out and len(out) < 3 * TEXT_CHARACTERS


def test_undecided_rows_fail_in_junit_where_the_suite_says_so(folder):
    strict = SUITE.replace("tests:", "defaults: {on_inconclusive: fail}\ntests:", 1)
    found = score(folder, strict, checkpoints="prod", only="close")
    assert found.exit_code == 101 and "INCONCLUSIVE: prod" in found.sentence
    [case] = [c for c in xml.fromstring(junit(found)).iter("testcase") if c.get("name") == "close"]
    assert case.find("failure").get("type") == "inconclusive"


def test_the_terminal_shows_the_matrix_and_each_reason_once(scorecard):
    text = terminal_table(scorecard, 150)
    for symbol in "✓✕~!–":
        assert symbol in text
    assert text.count("could not be loaded") == 1
    assert "more items would decide" in text and "if the value stays" not in text
    assert " ".join(text.split()).count(CONDITION) == 1
    assert all(len(line) <= 150 for line in text.splitlines())
    assert all(len(line) <= 80 for line in terminal_table(scorecard, 80).splitlines())


def test_the_condition_of_a_count_stands_once_below_a_list_and_whole_with_a_row_alone(scorecard):
    [row] = [row for row in scorecard.of("prod") if row.assertion == "close"]
    assert re.fullmatch(r"about [\d,]+ more items? would decide", more_items(row, listed=True))
    assert more_items(row) == f"{more_items(row, listed=True)}, {row.evidence.assumption}"
    assert "if the value stays at" in more_items(row) and conditions([row, row]) == [CONDITION]
    page = scorecard_report(scorecard, command="x")
    assert page.count(CONDITION) == 1 and "if the value stays" not in page
    few = replace(row, evidence=replace(row.evidence, more_needed=1, assumption=UNTIL_SUPPORT))
    assert more_items(few) == "1 more item would reach the support that is asked for" and conditions([few]) == []


def test_the_html_report_is_one_file_without_script(scorecard):
    page = scorecard_report(scorecard, command="python -m refusal_core.cli scorecard suite.yaml")
    assert scorecard.sentence in page and "<script" not in page and "<b>&amp;" not in page
    for row in scorecard.rows:
        assert row.verdict in ("pass", "not run") or row.test in page


def test_the_command_writes_all_and_exits_with_the_gate(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REFUSAL_CACHE", str(tmp_path / "cache"))
    names = ("json", "csv", "junit", "html")
    options = [part for name in names for part in (f"--{name}", str(tmp_path / f"out.{name}"))]
    suite = str(folder / "suite.yaml")
    code = cli.main(["scorecard", suite, *options])
    last = capsys.readouterr().out.strip().splitlines()[-1]
    found = json.loads((tmp_path / "out.json").read_text())
    assert code == found["exit_code"] == 100 and last == found["sentence"]
    assert all((tmp_path / f"out.{name}").stat().st_size for name in names)
    assert cli.main(["scorecard", suite, "--checkpoints", "cand", "--filter", "quality/easy"]) == 0
    assert cli.main(["scorecard", suite, "--fail-exit-code", "7"]) == 7
    assert cli.main(["scorecard", suite, "--filter", "nothing"]) == 5
    assert cli.main(["scorecard", suite, "--baseline", "cand", "--filter", "change", "--checkpoints", "prod"]) in (
        0,
        100,
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "no suite is named"),
        (["absent.yaml"], "cannot be read"),
        (["{suite}", "--checkpoints", "x*"], 'no checkpoint is called "x*"'),
        (["{suite}", "--baseline", "x"], 'no checkpoint "x"'),
        (["{suite}", "--fail-exit-code", "5"], "but not 5"),
        (["{suite}", "--json", "{suite}"], "the output is the input file"),
        (["{suite}", "--html", "{suite}/../absent/out.html"], "absent"),
        (["{suite}", "--json", "{suite}.out", "--csv", "{suite}.out"], "two outputs are one file"),
        (["{suite}", "--json", "{suite}.out", "--junit", "{suite}.d/x.xml"], "does not exist"),
    ],
)
def test_the_command_says_what_is_wrong_before_it_works(folder, capsys, monkeypatch, options, sentence):
    monkeypatch.setattr("refusal_core.scorecard.evaluate._Run._rows", lambda run: pytest.fail("it began"))
    before = sorted(folder.iterdir())
    code = cli.main(["scorecard", *(option.format(suite=folder / "suite.yaml") for option in options)])
    error = capsys.readouterr().err
    assert code == 2 and sentence in error and error.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_the_schema_and_a_draft_are_printed(folder, tmp_path, capsys):
    assert cli.main(["scorecard", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(to_json(schema()))
    assert cli.main(["scorecard", "--draft", str(folder / "prod.jsonl")]) == 0
    found = score(folder, capsys.readouterr().out)
    assert found.exit_code == 0 and found.counts["pass"] > 5 and not found.counts["error"]


def test_a_draft_takes_any_names(tmp_path):
    labels = ("no", 'it\'s: "so" #1', "[x]", "\u2028\U0001f642")
    name = 'a: b\'s "file" #1.jsonl'
    write_predictions(tmp_path / name, *noisy(0, 200, 0.9, 4), labels=labels, sure=0.7)
    found = score(tmp_path, draft(tmp_path / name))
    assert [r.verdict for r in found.rows if r.type != "no-regression" and r.severity == "required"].count("pass") >= 5
