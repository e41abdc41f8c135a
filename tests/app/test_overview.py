import subprocess
import sys
from urllib.parse import parse_qsl

from refusal_core import limits
from refusal_core.classifier.checkpoint import load_checkpoint
from tests.app.conftest import PLAYGROUND, ROOT, classify, words
from ui import state
from ui.frame import PAGES

OPEN_IT = """
import sys
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("app.py", default_timeout=60).run()
assert not app.exception and app.title[0].value == "Overview"
print([name for name in ("torch", "transformers", "pandas", "pyarrow", "huggingface_hub") if name in sys.modules])
"""


def test_opens_without_the_heavy_packages():
    done = subprocess.run([sys.executable, "-c", OPEN_IT], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_says_what_each_page_is_for_and_links_it(overview):
    app = overview()
    assert [link.proto.label for link in app.sidebar.get("page_link")] == [page.title for page in PAGES.values()]
    assert [heading.value for heading in app.subheader] == [
        *(page.title for page in PAGES.values() if page.key != "overview"),
        "Checkpoint",
        "Versions",
        "Limits",
    ]
    assert all((ROOT / page.file).is_file() for page in PAGES.values())
    found = {f"pages/{path.name}" for path in (ROOT / "pages").glob("*.py")}
    assert {page.file for page in PAGES.values()} == found | {"app.py"}


def test_sample_link_carries_the_sample(overview):
    link = next(link.proto for link in overview().get("page_link") if "sample" in link.proto.label)
    assert (link.page, link.query_string) == ("Playground", "sample=break-in")


def test_batch_link_scores_the_sample_batch(overview):
    link = next(link.proto for link in overview().get("page_link") if "batch" in link.proto.label)
    assert (link.page, link.query_string) == ("Playground", "batch=sample")
    assert state.from_params(dict(parse_qsl(link.query_string))) == (state.View(batch=state.SAMPLE_BATCH), [])


def test_tells_which_checkpoint_will_answer_before_and_after_loading(overview, tiny_checkpoint):
    app = overview()
    app.selectbox(key=state.CHECKPOINT).set_value("folder:tiny-bert").run()
    digest = load_checkpoint(str(tiny_checkpoint)).info.digest
    assert "tiny-bert" in [element.value for element in app.text]
    assert digest in [element.value for element in app.code]
    assert "not loaded yet" in words(app)
    app.switch_page(PLAYGROUND).run()
    app.run()
    classify(app, "Hi", "Hello")
    app.switch_page("app.py").run()
    app.run()  # AppTest hands persisted values over one run later than a browser
    assert "| state | loaded |" in words(app) and digest in [element.value for element in app.code]
    assert "126 tokens" in words(app) or "128 tokens" in words(app)


def test_broken_checkpoint_is_one_sentence(overview, tmp_path, monkeypatch):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    monkeypatch.setenv("REFUSAL_DATA", str(tmp_path))
    app = overview()
    app.selectbox(key=state.CHECKPOINT).set_value("folder:broken").run()
    assert not app.exception
    assert "it holds no weights" in words(app)
    assert "Limits" in [heading.value for heading in app.subheader]


def test_limits_are_those_of_the_core(overview):
    shown = words(overview())
    assert f"{limits.TEXT_CHARACTERS:,} characters" in shown
    assert limits.show_bytes(limits.CHECKPOINT_BYTES) in shown
    assert f"| upload | {limits.show_bytes(limits.UPLOAD_BYTES)} |" in shown
    assert f"| rows of a batch on a page | {limits.BATCH_ROWS:,} |" in shown
    assert f"| upload in demo mode | {limits.show_bytes(limits.DEMO_UPLOAD_BYTES)} |" in shown
    assert f"| rows of a batch in demo mode | {limits.DEMO_BATCH_ROWS:,} |" in shown


def test_demo_has_the_starter_only_and_says_so(overview, monkeypatch):
    monkeypatch.setenv("REFUSAL_DEMO", "1")
    app = overview(checkpoint="owner/name", fold="not-compliant")
    picker = app.selectbox(key=state.CHECKPOINT)
    assert (picker.options, picker.value, picker.disabled) == (["starter"], "starter", True)
    assert "Nothing that you type is stored" in words(app)
    assert "the demo has the starter only" in words(app)
    assert app.radio(key=state.FOLD).value == "not-compliant"


def test_missing_data_root_leaves_the_starter(overview, monkeypatch, tmp_path):
    monkeypatch.setenv("REFUSAL_DATA", str(tmp_path / "nowhere"))
    app = overview()
    assert "there is no folder" in words(app)
    assert app.selectbox(key=state.CHECKPOINT).options == ["starter", "from the Hugging Face hub"]


def test_a_folder_that_went_is_said(overview, monkeypatch, tmp_path):
    app = overview()
    app.selectbox(key=state.CHECKPOINT).set_value("folder:tiny-bert").run()
    monkeypatch.setenv("REFUSAL_DATA", str(tmp_path))
    app.run()
    assert not app.exception
    assert "tiny-bert is not there any more" in words(app)
