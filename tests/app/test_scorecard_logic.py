"""What the Scorecard page does apart from drawing: links, what a cell says, which bytes are run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from refusal_core.scorecard.verdicts import VERDICTS
from tests.app.scorecard_cases import SUITE, write_suite
from ui import scorecard as logic
from ui import scorecards
from ui.scorecard import Link, from_params, to_params
from ui.scorecards import FILE, SAMPLE, Shelf, Source

digests = st.text("0123456789abcdef", min_size=64, max_size=64)
verdicts = st.sets(st.sampled_from(VERDICTS)).map(lambda chosen: tuple(v for v in VERDICTS if v in chosen))


@given(
    st.none() | st.just("sample:a/b") | st.just("suites/gäte 1.yaml"),
    st.none() | st.from_regex("[A-Za-z0-9_-]{1,40}", fullmatch=True),
    st.none() | digests,
    verdicts,
    st.none() | st.tuples(st.integers(0, 19_999), st.integers(0, 99)),
)
def test_a_link_restores_its_view(suite, run, result, shown, cell):
    link = Link(suite, run, result, shown, cell)
    assert from_params(to_params(link)) == (link, [])


@given(st.dictionaries(st.sampled_from(["suite", "run", "result", "show", "cell"]), st.text(max_size=100)))
def test_garbage_never_raises(params):
    link, ignored = from_params(params)
    assert len(ignored) <= 5 and (link.cell is None or all(isinstance(part, int) for part in link.cell))


def test_untouched_text_runs_the_very_bytes_of_the_file():
    content = b"\xef\xbb\xbf" + SUITE.replace("\n", "\r\n").encode()
    source = Source(FILE, "gate.yaml", "gate.yaml", content)
    assert source.with_text(source.text) is source
    assert source.with_text(source.text.replace("\r\n", "\n")) is source  # as a browser hands it back
    edited = source.with_text(SUITE + "\n")
    assert edited.content == (SUITE + "\n").encode() and edited.edited and edited.path is None
    assert logic.suite_in_link(source) == "gate.yaml" and logic.suite_in_link(edited) is None


def test_an_edited_sample_reads_no_file_outside(monkeypatch, tmp_path):
    """A sample lies in the package; its text is the visitor's as soon as it is edited."""
    package = tmp_path / "package"
    write_suite(package / "samples")
    (tmp_path / "secret.jsonl").write_text("{}")
    monkeypatch.setattr(scorecards, "PACKAGE", package)
    monkeypatch.setattr(scorecards, "SAMPLES", package / "samples")
    monkeypatch.setenv("REFUSAL_DATA", str(package / "samples"))
    source = scorecards.sample("gate")
    assert source.kind == SAMPLE and source.resolver(demo=True).file("prod.jsonl").is_file()
    task = Shelf().start(source.with_text(SUITE.replace("bad.jsonl", "../../secret.jsonl")), None, demo=True)
    assert task.watch(60)
    assert "not below a data root" in task.scorecard.checkpoints[2].error or "is not followed" in (
        task.scorecard.checkpoints[2].error
    )
    assert scorecards.sample("../secret") is None


def test_the_shelf_forgets_the_longest_unused(monkeypatch, tmp_path):
    shelf = Shelf(kept=2)
    first = shelf.start(Source(FILE, "a.yaml", "a.yaml", b""), None, demo=False)
    assert first.watch(60) and "a.yaml" in first.problem
    tasks = [shelf.keep(Source(FILE, "b.yaml", "b.yaml", b""), _scorecard(tmp_path)) for _ in range(2)]
    assert shelf.get(first.token) is None and all(shelf.get(task.token) is task for task in tasks)


def test_the_first_cell_is_a_required_failure(tmp_path):
    found = _scorecard(tmp_path)
    assert logic.first_cell(found) == (0, 2)
    assert logic.cell_words(found.of("prod")[0]) == "✓ pass  0.92 (0.85 to 0.96, n = 100)"
    assert logic.cell_words(None) == ""


def test_names_are_as_short_as_they_may_be(tmp_path):
    more = (
        SUITE
        + """  - id: again
    assert:
      - {id: acc, type: metric, metric: accuracy, threshold: 0.5}
      - {id: recall, type: metric, metric: recall, label: "*", threshold: 0.5}
"""
    )
    found = _scorecard(tmp_path, more)
    names = [row["assertion"] for row in logic.table(found, logic.lines_of(found))]
    assert names[:5] == ["quality / acc", "macro", "acc-change", "equals", "again / acc"]
    assert names[5] == "recall [compliant]"


def _scorecard(folder, text=SUITE):
    from refusal_core.scorecard import BesideSuite, read_suite, run
    from refusal_core.scorecard.cache import AnswerCache

    return run(read_suite(write_suite(folder, text)), BesideSuite(folder), cache=AnswerCache(None))
