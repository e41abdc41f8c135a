"""What the app's source may not do, read from the source itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ui import state

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted([ROOT / "app.py", *(ROOT / "pages").glob("*.py"), *(ROOT / "ui").glob("*.py")])
CORE = sorted((ROOT / "refusal_core").rglob("*.py"))
PAGE_LINES, FILE_LINES = 200, 300
LONGER = {  # than a file should be, and why
    "refusal_core/classifier/checkpoint.py": "the whole way from a name to a loaded model, read as one",
}
# The places that may build Markdown from escaped values, and give widgets a label that their callers wrote.
SHOW = (ROOT / "ui" / "show.py", ROOT / "ui" / "inputs.py")

# Methods whose first argument, label, help or title Streamlit reads as Markdown.
MARKDOWN = {
    "markdown", "title", "header", "subheader", "caption", "info", "warning", "error", "success", "toast", "badge",
    "latex", "expander", "button", "form_submit_button", "checkbox", "toggle", "radio", "selectbox", "multiselect",
    "pills", "text_area", "text_input", "number_input", "file_uploader", "tabs", "page_link", "download_button",
    "metric", "spinner", "status", "popover", "segmented_control", "slider",
}  # fmt: skip
# Our own helpers: the first argument is a literal, what follows is escaped or shown as text.
HELPERS = {"sentence", "headline", "problem", "download", "refused", "pick", "watch"}
# Literals of ui/frame.py, ui/batch_inputs.py and ui/study_*.py.
OWN_TABLE = {
    "page.title", "page.question", "page.file", "entry.title", "entry.file", "OURS[ours]", "ROLES[role]",
    "TITLES[name]",
}  # fmt: skip
NO_STREAMLIT = (
    "checkpoints.py", "playground.py", "batch.py", "batches.py", "study.py", "studies.py", "scorecard.py",
    "scorecards.py", "runs.py", "runs_link.py", "shelf.py",
)  # fmt: skip
BANNED = {"html", "write", "write_stream", "components", "json", "help", "exception"}


def calls(path: Path) -> Iterator[ast.Call]:
    """The calls of a method or of a module's function."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node


def is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.List):
        return all(map(is_literal, node.elts))
    return (isinstance(node, ast.Constant) and isinstance(node.value, str)) or ast.unparse(node) in OWN_TABLE


def imports_streamlit(path: Path) -> bool:
    tree = ast.walk(ast.parse(path.read_text("utf-8")))
    return any("streamlit" in ast.unparse(node) for node in tree if isinstance(node, ast.Import | ast.ImportFrom))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_html_and_no_guessing_writer(path):
    text = path.read_text("utf-8")
    assert "unsafe_allow" not in text and "st.components" not in text
    used = [ast.unparse(call.func) for call in calls(path)]
    assert not {f"st.{name}" for name in BANNED} & set(used)


@pytest.mark.parametrize("path", [path for path in SOURCES if path not in SHOW], ids=lambda path: path.name)
def test_markdown_is_literal(path):
    """A value may stand in Markdown only through show.sentence, which escapes it."""
    wrong = []
    for call in calls(path):
        ours = ast.unparse(call.func.value) in ("show", "inputs")
        if call.func.attr in (HELPERS if ours else MARKDOWN):
            named = [word.value for word in call.keywords if word.arg in ("label", "help", "title") and not ours]
            wrong += [ast.unparse(call) for text in (*call.args[:1], *named) if not is_literal(text)]
    assert not wrong


def test_every_cache_is_in_one_file_and_bounded():
    for path in SOURCES:
        caches = [call for call in calls(path) if ast.unparse(call.func).startswith("st.cache_")]
        uses = path.read_text("utf-8").replace("st.cache_*", "").count("st.cache_")
        assert uses == len(caches), f"{path.name} has a cache without settings"
        assert not uses or path.name == "cache.py"
        assert all("max_entries" in [word.arg for word in call.keywords] for call in caches)


def test_no_button_has_a_default_value():
    """Streamlit refuses to draw a button whose key was given one, as ui/state.py does for its table."""
    keys = [
        ast.unparse(word.value).strip("'")
        for path in SOURCES
        for call in calls(path)
        for word in call.keywords
        if word.arg == "key" and call.func.attr in ("button", "download_button", "form_submit_button", "download")
    ]
    names = {f"state.{name}": value for name, value in vars(state).items() if isinstance(value, str)}
    assert len(keys) > 2 and not {names.get(key, key) for key in keys} & state.DEFAULTS.keys()


def test_no_button_is_white_on_the_accent():
    """The accent of the dark theme is light, and Streamlit writes white on it."""
    words = [ast.unparse(word) for path in SOURCES for call in calls(path) for word in call.keywords]
    assert "type='primary'" not in words


def test_only_the_app_imports_streamlit():
    assert not [path for path in (ROOT / "refusal_core").rglob("*.py") if imports_streamlit(path)]
    assert not any(imports_streamlit(ROOT / "ui" / name) for name in NO_STREAMLIT)


def test_files_stay_small():
    lines = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in [*SOURCES, *CORE]}
    long = {name for name, count in lines.items() if count > (PAGE_LINES if name.startswith("pages") else FILE_LINES)}
    assert long <= LONGER.keys(), "split the file, or say in LONGER why it is one"
