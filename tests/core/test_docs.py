"""The documentation names every option, setting, page and output key that exists, and its links and commands work."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from refusal_core import cli
from refusal_core.classifier.result import Classification, TokensRead
from refusal_core.labels import LABELS

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMANDS = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
ALL = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)


def subparsers() -> dict:
    return next(action.choices for action in cli.parser()._actions if hasattr(action, "choices") and action.choices)


def section(name: str) -> str:
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", COMMANDS, re.DOTALL | re.MULTILINE)
    assert found, f"docs/commands.md has no section {name}"
    return found[1]


def test_every_command_and_option_is_documented():
    for name, parser in subparsers().items():
        assert f"`{name}`" in README
        text = section(name) + (section("classify") if "options of `classify`" in section(name) else "")
        options = [
            o for action in parser._actions for o in action.option_strings if o.startswith("--") and o != "--help"
        ]
        assert [o for o in options if o not in text] == [], name


def test_every_option_of_the_studies_is_documented():
    from refusal_core.commands import heldout, study

    text = (REPOSITORY / "docs" / "direction_study.md").read_text(encoding="utf-8")
    known: set[str] = set()
    for module in (heldout, study):
        parser = argparse.ArgumentParser()
        module.add_arguments(parser)
        known |= {o for action in parser._actions for o in action.option_strings if o.startswith("--")}
    assert sorted(o for o in known - {"--help"} if f"`{o}" not in text) == []
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) <= known


def test_documented_options_exist():
    for name, parser in subparsers().items():
        known = {o for action in parser._actions for o in action.option_strings}
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", section(name))) <= known, name


def test_every_key_of_a_row_is_documented():
    good = Classification(1, "compliant", dict.fromkeys(LABELS, 0.2), TokensRead(1, 1, 1, 1, 5)).as_row()
    bad = Classification(1, None, None, None, error="empty response").as_row()
    for key in {*good, *bad, "matcher"}:
        assert f"| `{key}` |" in section("classify"), key


def test_every_setting_is_documented():
    sources = [
        *REPOSITORY.glob("*.py"),
        *(p for d in ("refusal_core", "ui", "pages") for p in (REPOSITORY / d).rglob("*.py")),
    ]
    used = {name for path in sources for name in re.findall(r"\"(REFUSAL_[A-Z]+)\"", path.read_text(encoding="utf-8"))}
    assert used, "no setting was found in the code"
    assert {name for name in used if f"`{name}`" not in README} == set()
    assert set(re.findall(r"`(REFUSAL_[A-Z]+)`", README)) <= used


def test_every_page_is_in_the_readme():
    for path in (REPOSITORY / "pages").glob("*.py"):
        title = path.stem.split("_", 1)[1].replace("_", " ")
        assert title in README, title


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_command_lines_parse():
    """Those with a real file name; the ones with IN and [options] are summaries."""
    lines = [line for line in re.findall(r"^python -m refusal_core\.cli (.+)$", ALL, re.MULTILINE) if "[" not in line]
    assert lines
    for line in lines:
        cli.parser().parse_args(shlex.split(line, comments=True))


def test_the_jobs_in_ci_take_the_torch_that_is_required():
    """Another one would be replaced by the package index's, which may be a CUDA build."""
    [needed] = re.findall(r"^torch>=(\d+\.\d+)\S*?,<(\S+)", (REPOSITORY / "requirements.txt").read_text(), re.MULTILINE)
    found = re.findall(r'"torch>=(\d+\.\d+),<(\S+)"', README)
    assert found and set(found) == {needed}


def test_the_python_example_runs():
    [code] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    shown: list = []
    exec(compile(code, "README.md", "exec"), {"print": lambda *words: shown.append(words)})
    [(label, probabilities)] = shown
    assert label == max(probabilities, key=probabilities.get)


def test_bootstrap_needs_nothing_but_python():
    """It runs before anything is installed, so it may import the standard library only."""
    import ast
    import sys

    tree = ast.parse((REPOSITORY / "bootstrap.py").read_text())
    names = {a.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    names |= {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names <= sys.stdlib_module_names


def test_the_same_bounds_are_tested_as_installed():
    """Every requirement has a lower and an upper bound."""
    lines = [line.split("#")[0].strip() for line in (REPOSITORY / "requirements.txt").read_text().splitlines()]
    for line in filter(None, lines):
        assert re.fullmatch(r"[\w.-]+>=[\d.]+,<[\d.]+", line), line
