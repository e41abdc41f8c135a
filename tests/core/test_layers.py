"""The direction of imports, read from the source: nothing points back, and heavy libraries come only when needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "refusal_core"
BASE = {
    "labels", "exchanges", "exchange_files", "exchange_formats", "chats", "errors", "limits", "reports", "jobs",
    "atomic", "memory", "roots", "perturb", "samples", "versions",
    "zips",
}  # fmt: skip
# Part of refusal_core -> the parts that it may import besides BASE and itself. "*" is every part.
PARTS: dict[str, set[str]] = {
    **dict.fromkeys(BASE, set()),
    "metrics": set(),
    "classifier": {"metrics"},
    "runs": {"metrics"},
    "climb": {"metrics"},
    "store": {"metrics"},
    "training": {"classifier", "metrics"},
    "activations": {"classifier", "metrics"},
    "direction": {"activations", "metrics"},
    "scorecard": {"runs", "metrics", "classifier"},
    "plots": {"metrics", "classifier", "runs", "climb", "training", "activations", "direction", "scorecard"},
    **dict.fromkeys(("commands", "cli", "heldout", "study"), {"*"}),
}
HEAVY = {"torch", "transformers", "tensorboard"}
SOURCES = sorted(path for top in ("refusal_core", "ui", "pages") for path in (ROOT / top).rglob("*.py"))
SOURCES += ROOT.glob("app.py")
OUTSIDE = {"app", "pages", "ui", "tests", "benchmarks"}  # of the core


def imported(tree: ast.AST, path: Path) -> Iterator[str]:
    """Every module that the source names, "package.module.name" for a name taken from a module."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *((node.module,) if node.module else ())))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def at_import(tree: ast.Module) -> ast.Module:
    """What of the source runs when it is imported: no function bodies, no blocks for the type checker."""

    class Prune(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            return None

        visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

        def visit_If(self, node: ast.If) -> ast.AST:
            if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
                return ast.Module(body=node.orelse, type_ignores=[])
            return self.generic_visit(node)

    return Prune().visit(tree)


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def faults(path: Path, source: str) -> list[str]:
    """The imports of `source`, as if it were the file `path`, that the layers do not allow."""
    top = path.relative_to(ROOT).parts[0].removesuffix(".py")
    names = [name.split(".") for name in imported(ast.parse(source), path)]
    found = []
    for name in names:
        if name[0] in (OUTSIDE | {"streamlit"} if top == "refusal_core" else OUTSIDE - {"ui"}):
            found.append(f"imports {name[0]}")
        elif top == "app" and name[:2] == ["refusal_core", "store"]:
            found.append("imports store")
        elif top == "refusal_core" == name[0] and part_of(path) != "__init__":
            found += _part_fault(part_of(path), name[1])
    if top == "refusal_core":
        early = {name.split(".")[0] for name in imported(at_import(ast.parse(source)), path)}
        found += [f"imports {name} when it is imported itself" for name in sorted(early & HEAVY)]
    return found


def _part_fault(part: str, other: str) -> list[str]:
    allowed = PARTS[part]
    if other == part or other in BASE or "*" in allowed or other in allowed:
        return []
    return [f"{part} imports {other}"]


def test_every_part_of_the_core_has_its_place():
    parts = {part_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__"}
    assert parts - PARTS.keys() == set(), "say in PARTS what this part may import"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_import_points_back(path):
    assert faults(path, path.read_text("utf-8")) == []


def test_the_layers_have_no_cycle():
    order: list[str] = []
    waiting = {part: others - {"*"} for part, others in PARTS.items()}
    while waiting:
        ready = [part for part, others in waiting.items() if others <= set(order)]
        assert ready, f"a cycle among {sorted(waiting)}"
        order += ready
        waiting = {part: others for part, others in waiting.items() if part not in ready}


FAULTY = [
    ("refusal_core/metrics/a.py", "from refusal_core.classifier import load", "metrics imports classifier"),
    ("refusal_core/metrics/a.py", "from refusal_core import classifier", "metrics imports classifier"),
    ("refusal_core/metrics/a.py", "import refusal_core.classifier.hub", "metrics imports classifier"),
    ("refusal_core/metrics/a.py", "from ..classifier import load", "metrics imports classifier"),
    ("refusal_core/metrics/a.py", "from .. import plots", "metrics imports plots"),
    ("refusal_core/errors.py", "def f():\n    from refusal_core.metrics import report", "errors imports metrics"),
    ("refusal_core/scorecard/a.py", "from refusal_core.store import add", "scorecard imports store"),
    ("refusal_core/plots/a.py", "from refusal_core.store import add", "plots imports store"),
    ("refusal_core/classifier/a.py", "import streamlit as st", "imports streamlit"),
    ("refusal_core/classifier/a.py", "def f():\n    import streamlit", "imports streamlit"),
    ("refusal_core/classifier/a.py", "from ui import cache", "imports ui"),
    ("refusal_core/classifier/a.py", "from tests.checkpoints import x", "imports tests"),
    ("refusal_core/classifier/a.py", "import torch", "imports torch when it is imported itself"),
    ("refusal_core/classifier/a.py", "class A:\n    from torch import nn", "imports torch when it is imported itself"),
    ("refusal_core/classifier/a.py", "try:\n    import transformers.utils\nfinally:\n    pass", "imports transformers"),
    ("ui/a.py", "import app", "imports app"),
    ("ui/a.py", "from pages import x", "imports pages"),
    ("app.py", "from refusal_core.store import add", "imports store"),
    ("pages/1_A.py", "from tests import x", "imports tests"),
]


@pytest.mark.parametrize(("path", "source", "fault"), FAULTY)
def test_a_fault_is_seen(path, source, fault):
    (found,) = faults(ROOT / path, source)
    assert found.startswith(fault)


SOUND = [
    ("refusal_core/metrics/a.py", "from refusal_core.metrics.intervals import rate\nfrom . import report"),
    ("refusal_core/metrics/a.py", "from ..errors import InputError\nimport numpy"),
    ("refusal_core/plots/a.py", "from refusal_core.scorecard import x\nimport plotly"),
    ("refusal_core/commands/a.py", "from refusal_core import store, plots, scorecard"),
    ("refusal_core/classifier/a.py", "def f():\n    import torch\nif TYPE_CHECKING:\n    import torch"),
    ("ui/a.py", "import streamlit\nfrom ui import show\nfrom refusal_core.store import add"),
    ("pages/1_A.py", "import streamlit\nfrom ui import show\nfrom refusal_core.store import add"),
    ("app.py", "import streamlit\nfrom ui import show\nfrom refusal_core.limits import MB"),
]


@pytest.mark.parametrize(("path", "source"), SOUND)
def test_what_is_allowed(path, source):
    assert faults(ROOT / path, source) == []


@pytest.mark.parametrize("modules", ["refusal_core.classifier", "*"])
def test_importing_loads_nothing_heavy(modules):
    """The whole core, since a library may bring another one."""
    code = f"""
import importlib, pkgutil, sys
import refusal_core
every = [module.name for module in pkgutil.walk_packages(refusal_core.__path__, "refusal_core.")]
assert len(every) > 20
for name in every if {modules!r} == "*" else [{modules!r}]:
    importlib.import_module(name)
print([name for name in ("torch", "transformers", "streamlit", "huggingface_hub", "py3langid") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
