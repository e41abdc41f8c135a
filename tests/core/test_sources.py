"""docs/sources.md names the function that holds each formula; none of them may be gone."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
NAMES = re.findall(r"`((?:direction|activations|metrics)\.[a-z_0-9.]+)`", TEXT)
# Functions that hold a rule of the study; what reads, counts, passes rows or writes sentences needs no source.
PLUMBING = {"rows", "plan", "study", "result", "describe", "findings", "one_file", "sweep_result"}
PLUMBING |= {"prompts", "vector", "record", "meaning"}


def test_the_page_names_many_functions():
    assert len(set(NAMES)) >= 25


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_a_function_named_as_the_holder_of_a_formula_is_there(name):
    module, function = name.rsplit(".", 1)
    assert callable(getattr(importlib.import_module(f"refusal_core.{module}"), function))


def test_every_rule_of_the_study_that_cites_a_work_is_on_the_page():
    lacking = []
    for path in sorted((ROOT / "refusal_core" / "direction").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            cites = isinstance(node, ast.FunctionDef) and re.search(r"\((?:19|20)\d\d\)", ast.get_docstring(node) or "")
            if cites and f"direction.{path.stem}.{node.name}" not in NAMES:
                lacking.append(f"{path.stem}.{node.name}")
    assert not lacking


def test_every_module_of_the_study_is_on_the_page():
    modules = {path.stem for path in (ROOT / "refusal_core" / "direction").glob("*.py")} - {"__init__"} - PLUMBING
    assert modules == {name.split(".")[1] for name in NAMES if name.startswith("direction.")}


def test_every_row_of_a_table_has_a_source_and_a_holder():
    rows = [line for line in TEXT.splitlines() if line.startswith("|") and "---" not in line and "held by" not in line]
    formulas = [line for line in rows if "`" in line]
    assert len(formulas) >= 25
    for line in formulas:
        what, source, holder = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        assert what and source and re.search(r"`[a-z_.0-9]+`", holder), line
