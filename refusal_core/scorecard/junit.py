"""A scorecard as JUnit XML, as the readers of GitHub, GitLab and Jenkins take it; `scorecard.json` has more.

Numbers of a row stand in its `system-out` and as properties of the test suite, named after the row: the schema that
Jenkins publishes has no properties of a test case.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as xml

from refusal_core.scorecard.result import ColumnResult, Example, Row, Scorecard

TEXT_CHARACTERS = 2_000
_EXAMPLES = 3  # with their texts, of a row
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # by XML 1.0
_FAILURE = {"no-regression": "regression", "metric": "threshold", "rate": "threshold", "confusion": "threshold"}
_FAILURE |= {"support": "threshold", "training": "training"}


def junit(scorecard: Scorecard, on_inconclusive: str | None = None) -> str:
    """The file as text: one test suite a checkpoint, one test case a row."""
    undecided = on_inconclusive or scorecard.settings["on_inconclusive"]
    root = xml.Element("testsuites", {"name": _clean(scorecard.suite)})
    totals = {"tests": 0, "failures": 0, "errors": 0}
    for column in scorecard.checkpoints:
        suite = _suite(scorecard, column, undecided)
        for name in totals:
            totals[name] += int(suite.attrib[name])
        root.append(suite)
    root.attrib.update({name: str(number) for name, number in totals.items()})
    xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _suite(scorecard: Scorecard, column: ColumnResult, undecided: str) -> xml.Element:
    rows = scorecard.of(column.id)
    cases = [_case(row, undecided, column.gate) for row in rows]
    counts = {tag: sum(case.find(tag) is not None for case in cases) for tag in ("failure", "error", "skipped")}
    suite = xml.Element(
        "testsuite",
        {
            "name": _clean(column.id), "tests": str(len(cases)), "failures": str(counts["failure"]),
            "errors": str(counts["error"]), "skipped": str(counts["skipped"]),
        },
    )  # fmt: skip
    properties = xml.SubElement(suite, "properties")
    about = {
        "suite_sha256": scorecard.suite_sha256, "data_sha256": scorecard.data_sha256, "digest": column.digest,
        "baseline": scorecard.baseline, "kind": column.kind, "verdict": column.verdict,
        "gate": "true" if column.gate else "false", "exit_code": str(scorecard.exit_code), "error": column.error,
    }  # fmt: skip
    for name, value in about.items():
        _property(properties, name, value)
    for row in rows:
        for name, value in _numbers(row).items():
            _property(properties, f"{row.test}.{row.name}.{name}", value)
    suite.extend(cases)
    return suite


def _case(row: Row, undecided: str, gate: bool) -> xml.Element:
    case = xml.Element("testcase", {"name": _clean(row.name), "classname": _clean(row.test)})
    message = row.message
    if row.verdict == "error" and row.severity == "required" and gate:
        xml.SubElement(case, "error", {"type": "not-computed", "message": _clean(message)})
    elif row.verdict == "error":
        _skip(case, f"{'advisory' if row.severity == 'advisory' else 'ungated'} error: {message}")
    elif row.verdict == "not run":
        _skip(case, f"not run: {message}")
    elif row.verdict == "inconclusive":
        if undecided == "fail" and row.severity == "required" and gate:
            xml.SubElement(case, "failure", {"type": "inconclusive", "message": _clean(message)})
        elif undecided != "pass":
            _skip(case, f"inconclusive: {message}")
    elif row.verdict == "fail":
        if row.severity == "required" and gate:
            kind = _FAILURE.get(row.type.removeprefix("not-"), "behaviour")
            xml.SubElement(case, "failure", {"type": kind, "message": _clean(message)})
        else:
            _skip(case, f"{'advisory' if row.severity == 'advisory' else 'ungated'} failure: {message}")
    xml.SubElement(case, "system-out").text = _clean(_system_out(row))
    return case


def _skip(case: xml.Element, message: str) -> None:
    xml.SubElement(case, "skipped", {"message": _clean(message)})


def _property(properties: xml.Element, name: str, value: str | None) -> None:
    if value is not None:
        xml.SubElement(properties, "property", {"name": _clean(name), "value": _clean(value)})


def _numbers(row: Row) -> dict[str, str]:
    evidence, interval = row.evidence, row.interval
    flips = evidence.candidate is not None
    found = {
        "n": row.n, "value": row.value, "ci_low": interval and interval.low, "ci_high": interval and interval.high,
        "p": evidence.p, "b": evidence.worse_total if flips else None, "c": evidence.better_total if flips else None,
    }  # fmt: skip
    return {name: repr(value) for name, value in found.items() if value is not None}


def _system_out(row: Row) -> str:
    lines = [f"{row.verdict}: {row.message}", *row.evidence.notes]
    lines += [f"{name} = {value}" for name, value in _numbers(row).items()]
    for example in row.evidence.failing[:_EXAMPLES]:
        lines += _example(example)
    return "\n".join(lines)


def _example(example: Example) -> list[str]:
    lines = [f"{example.id}: {example.predicted}, expected {example.expected}"]
    if example.exchange is not None:
        for name in ("prompt", "response"):
            text = getattr(example.exchange, name)
            lines.append(f"{name}: {text[:TEXT_CHARACTERS]}{'…' if len(text) > TEXT_CHARACTERS else ''}")
    return lines


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
