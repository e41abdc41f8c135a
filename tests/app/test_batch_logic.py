"""Batches in memory, and what the Batch view lists and writes, without a page."""

import threading
from types import SimpleNamespace

import pytest

from refusal_core import limits
from refusal_core.classifier import load
from refusal_core.classifier.batch import score_batch, summarise
from refusal_core.errors import WorkError
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.labels import DEFAULT_FOLD
from ui import batch as logic
from ui import batches
from ui.batch import Filters
from ui.batches import Shelf, Source, Task
from ui.checkpoints import STARTER_CHOICE
from ui.shelf import UNWATCHED_SECONDS

ROWS = (
    Exchange("p0", "I cannot help with that.", 1, "full_refusal", 1, {"team": "a"}),
    Exchange("p1", "The version is a.", 2, None, 2, {"class": "x"}),
    BadRow(3, 3, "there is no response."),
    Exchange("p3", "  ", 4, None, 4),
)


@pytest.fixture(scope="module")
def classifier(tiny_checkpoint):
    return load(str(tiny_checkpoint))


@pytest.fixture(scope="module")
def scored(classifier):
    return score_batch(classifier, ROWS)


def source(rows=ROWS, name="rows.jsonl") -> Source:
    return Source(batches.UPLOAD, name, tuple(rows))


def test_filters_are_and_across_kinds_and_or_across_classes(scored):
    summary = summarise(scored)

    def listed(**filters):
        return logic.listed(scored, summary, {1: "compliant"}, Filters(**filters))

    assert listed() == [0, 1, 2, 3]
    assert listed(marks=(logic.ERRORS,)) == [2, 3]
    assert listed(marks=(logic.ERRORS, logic.CORRECTED)) == []
    assert listed(marks=(logic.CORRECTED,)) == [1]
    assert listed(text="NO RESPONSE") == [2]
    assert listed(classes=scored.checkpoint.labels) == [0, 1]
    assert listed(order=logic.LEAST_SURE)[2:] == [2, 3]


def test_a_column_named_as_one_of_ours_stays_apart(scored):
    cells = logic.table(scored, [1, 2], {}, DEFAULT_FOLD)
    assert cells[0]["class (file)"] == "x" and cells[0]["class"] == scored.rows[1].answer.label
    assert cells[1]["response"] == "there is no response." and cells[1]["p"] is None


def test_long_texts_are_cut_in_the_table_only(classifier):
    long = "word " * 5_000
    found = score_batch(classifier, [Exchange(long, long, 1, None, 1)])
    [cells] = logic.table(found, [0], {}, DEFAULT_FOLD)
    assert len(cells["prompt"]) <= logic.PROMPT_SHOWN and len(cells["response"]) <= logic.RESPONSE_SHOWN
    assert long in logic.as_csv(found, {}, DEFAULT_FOLD)


@pytest.mark.parametrize(("rows", "pages"), [(0, 1), (1, 1), (200, 1), (201, 2), (400, 2)])
def test_pages_hold_every_row_once(rows, pages):
    positions = list(range(rows))
    assert logic.pages(positions) == pages
    assert [i for page in range(1, pages + 1) for i in logic.page_of(positions, page)] == positions


def test_the_shelf_forgets_the_longest_unused_first(classifier):
    shelf = Shelf(kept=2, at_once=5)
    tasks = [shelf.start(source(), STARTER_CHOICE, classifier, 10) for _ in range(2)]
    assert all(task.watch(60) for task in tasks)
    assert shelf.get(tasks[0].token) is tasks[0]
    third = shelf.start(source(), STARTER_CHOICE, classifier, 10)
    assert third.watch(60)
    assert shelf.get(tasks[1].token) is None and shelf.get(tasks[0].token) is tasks[0] and shelf.get(None) is None


def test_large_batches_are_forgotten_sooner(classifier, monkeypatch):
    monkeypatch.setattr(limits, "BATCHES_KEPT_CHARACTERS", 10)
    shelf = Shelf(kept=9, at_once=5)
    first = shelf.start(source(), STARTER_CHOICE, classifier, 10)
    assert first.watch(60)
    shelf.start(source(), STARTER_CHOICE, classifier, 10).watch(60)
    assert shelf.get(first.token) is None


def test_only_so_many_run_at_once(classifier):
    go_on = threading.Event()

    def slow():
        go_on.wait(60)
        yield ROWS[0]

    shelf = Shelf(kept=9, at_once=1)
    held = source()
    object.__setattr__(held, "rows", slow)
    first = shelf.start(held, STARTER_CHOICE, classifier, 10)
    with pytest.raises(WorkError, match="try again"):
        shelf.start(source(), STARTER_CHOICE, classifier, 10)
    go_on.set()
    assert first.watch(60) and shelf.start(source(), STARTER_CHOICE, classifier, 10).watch(60)


def test_what_nobody_looks_at_is_stopped(classifier):
    now = [0.0]
    task = Task(source(), STARTER_CHOICE, clock=lambda: now[0])
    now[0] = UNWATCHED_SECONDS + 1
    task.work(classifier, source(), 10)
    assert task.batch is None and task.problem == batches.STOPPED_EMPTY
    watched = Task(source(), STARTER_CHOICE, clock=lambda: now[0])
    watched.work(classifier, source(), 10)
    assert watched.batch is not None and watched.problem is None


def test_an_unforeseen_error_is_one_sentence_and_in_the_log(caplog):
    task = Task(source(), STARTER_CHOICE)
    task.work(SimpleNamespace(), source(), 10)
    assert task.problem == batches.FAILED and "a batch failed" in caplog.text and not task.running


def test_texts_are_bounded(classifier, monkeypatch):
    monkeypatch.setattr(limits, "BATCH_CHARACTERS", 20)
    task = Task(source(), STARTER_CHOICE)
    task.work(classifier, source(), 10)
    assert "more than 20 characters" in task.problem
