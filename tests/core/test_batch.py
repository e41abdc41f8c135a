"""A batch: every row with its answer, what a stop keeps, and the summary under a fold."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from refusal_core.classifier import Classification, Classifier, load
from refusal_core.classifier import batch as batches
from refusal_core.classifier.batch import Batch, corrected, score_batch, summarise
from refusal_core.classifier.compare import compare
from refusal_core.classifier.matcher import Match
from refusal_core.classifier.stream import Answered
from refusal_core.errors import InputError
from refusal_core.exchanges import BadRow, Exchange
from refusal_core.jobs import Job, Progress
from refusal_core.labels import FOLDS, LABELS
from tests.checkpoints import make_checkpoint

ROWS = [
    Exchange("what is lima", "lima is a version", 1, "compliant", 1, {"model": "a", "n": 1, "score": 0.5}),
    Exchange("help", "sorry, i cannot help", 2, "full_refusal", 2, {"model": "b"}),
    BadRow(3, 3, "there is no response."),
    Exchange("help", "", 4, "full_refusal", 4, {"model": "b", "ok": True}),
    Exchange("help", "sorry, i cannot help", "again", None, 5, {"model": " ", "list": [1]}),
    Exchange("do that", "which version?", 6, "other label", 6, {"model": "a"}),
]


@pytest.fixture(scope="module")
def classifier(tiny_checkpoint) -> Classifier:
    return load(str(tiny_checkpoint))


@pytest.fixture(scope="module")
def scored(classifier) -> Batch:
    return score_batch(classifier, ROWS)


def answered(
    label: str | None, *, true: str | None = None, matched: str = "compliant", p: float = 0.9, **extra
) -> Answered:
    """A row as a model would leave it, without one."""
    others = dict.fromkeys(LABELS, (1 - p) / 4)
    answer = Classification(1, label, {**others, label: p} if label else None, None, error=None if label else "empty")
    return Answered(Exchange("p", "r", 1, true, 1, extra), answer, Match(matched, None))


def planted(info, *rows: Answered) -> Batch:
    return Batch(info, {}, rows, len(rows))


def test_every_row_has_what_predict_and_the_matcher_say(classifier, scored):
    assert [r.row for r in scored.rows] == ROWS
    assert not scored.stopped
    for row, answer in zip(ROWS, scored.rows, strict=True):
        if isinstance(row, BadRow):
            assert (answer.answer.error, answer.answer.label, answer.matched) == (row.error, None, None)
            continue
        [alone] = classifier.predict([row])
        assert (answer.answer.id, answer.answer.label, answer.answer.error) == (row.id, alone.label, alone.error)
        if alone.label:
            assert answer.answer.probabilities == pytest.approx(alone.probabilities, abs=1e-6)
    assert scored.rows[1].matched.label == "full_refusal"
    assert scored.errors == (2, 3)
    assert scored.columns == ("model", "n", "ok")
    assert scored.labelled


def test_the_summary_counts_what_is_there(scored):
    summary = summarise(scored, group_by="model")
    assert (summary.n, summary.unclassified) == (4, 2)
    assert sum(share.count for share in summary.shares) == 4
    assert tuple(share.label for share in summary.shares) == scored.checkpoint.labels
    assert {group.group: group.refused.n for group in summary.groups} == {"a": 2, "b": 1, "(none)": 1}
    assert summary.refused_by_matcher.value == 0.5
    assert summary.report.n == 2
    assert summary.other_labels == {"other label": 1}


def test_a_summary_follows_its_fold(classifier):
    rows = [
        answered("full_refusal", matched="full_refusal"),
        answered("partial_refusal", matched="compliant"),
        answered("capability_limitation", matched="full_refusal"),
        answered("compliant", matched="compliant"),
        answered(None),
    ]
    batch = planted(classifier.info, *rows)
    default, wide = summarise(batch), summarise(batch, fold=FOLDS["plus-capability"])
    assert (default.refused.value, wide.refused.value) == (0.5, 0.75)
    assert default.refused.interval.low < 0.5 < default.refused.interval.high
    assert default.disagreements == (1, 2)
    assert wide.disagreements == (1,)


def test_the_least_sure_rows_come_first(classifier):
    batch = planted(classifier.info, *(answered("compliant", p=p) for p in (0.59, 0.61, 0.3, 0.6)))
    assert summarise(batch).low_confidence == (2, 0)
    assert summarise(batch, threshold=1).low_confidence == (2, 0, 3, 1)
    assert summarise(batch, threshold=0).low_confidence == ()


def test_groups_are_any_plain_column(classifier):
    batch = planted(
        classifier.info,
        answered("compliant", flag=True, n=3),
        answered("full_refusal", flag=False, n=3),
        answered("full_refusal", n=4.5),
    )
    assert batch.columns == ("flag", "n")
    found = {g.group: (g.count, g.refused.n) for g in summarise(batch, group_by="flag").groups}
    assert found == {"true": (0, 1), "false": (1, 1), "(none)": (1, 1)}
    assert [g.group for g in summarise(batch, group_by="n").groups] == ["3", "(none)"]
    with pytest.raises(InputError, match="flag, n"):
        summarise(batch, group_by="model")


def test_labels_that_people_correct_change_the_scores(classifier):
    batch = planted(classifier.info, answered("compliant", true="full_refusal"), answered("compliant"))
    assert summarise(batch).report.accuracy.value == 0
    better = corrected(batch, {0: "compliant", 1: "compliant"})
    assert (summarise(better).report.accuracy.value, summarise(better).report.n) == (1, 2)
    assert batch.rows[0].row.label == "full_refusal"
    with pytest.raises(IndexError):
        corrected(batch, {2: "compliant"})
    bad = planted(classifier.info, Answered(BadRow(1, 1, "x."), Classification(1, None, None, None, error="x."), None))
    with pytest.raises(ValueError, match="no exchange"):
        corrected(bad, {0: "compliant"})
    assert summarise(bad).report is None
    assert summarise(bad).refused.value is None


def test_a_stop_keeps_whole_what_is_done(classifier, monkeypatch):
    monkeypatch.setattr(batches, "CHUNK_ROWS", 8)
    rows = [Exchange(f"help {i}", "sorry " * (i % 5 + 1), i) for i in range(80)]
    stop = threading.Event()
    seen: list[Progress] = []

    def show(progress: Progress) -> None:
        seen.append(progress)
        if progress.done >= 20:
            stop.set()

    partial = score_batch(classifier, rows, Job(show=show, cancel=stop, every=0))
    assert partial.stopped
    assert partial.total == 80
    assert 8 <= len(partial.rows) <= 24
    assert [r.row for r in partial.rows] == rows[: len(partial.rows)]
    assert all(r.answer.label for r in partial.rows)
    assert summarise(partial).n == len(partial.rows)
    assert (seen[0].done, seen[0].total, seen[0].unit) == (0, 80, "rows")

    nothing = score_batch(classifier, rows, Job(cancel=stop))
    assert (nothing.rows, nothing.stopped) == ((), True)
    assert summarise(nothing).refused.value is None


def test_progress_counts_every_row_once(classifier):
    seen: list[Progress] = []
    score_batch(classifier, ROWS * 3, Job(show=seen.append, every=0))
    assert seen[-1].done == len(ROWS) * 3
    assert max(p.done for p in seen) == len(ROWS) * 3


@pytest.mark.parametrize(
    ("rows", "options", "part"),
    [
        ([], {}, "no rows"),
        (ROWS, {"most": 5}, "more than 5 rows"),
        (ROWS, {"max_length": 4}, "4 tokens"),
        (ROWS, {"batch_size": 0}, "batch size"),
        (ROWS, {"truncation": "none"}, "truncation"),
    ],
)
def test_wrong_input_is_refused(classifier, rows, options, part):
    with pytest.raises(InputError, match=part):
        score_batch(classifier, rows, **options)


def test_two_checkpoints_on_the_same_rows(classifier, tmp_path, scored):
    other = score_batch(load(str(make_checkpoint(tmp_path / "other", seed=5))), ROWS)
    result = compare(scored, other)
    assert (result.n, result.left_out) == (4, 2)
    assert (result.first, result.second) == (scored.checkpoint, other.checkpoint)
    assert sum(result.moves.values()) == 4
    changed = [i for i in (0, 1, 4, 5) if scored.rows[i].answer.label != other.rows[i].answer.label]
    assert result.changed == tuple(changed)
    assert result.agreement.value == 1 - len(changed) / 4


def test_flips_have_a_direction(classifier):
    first = planted(classifier.info, *map(answered, ("compliant", "full_refusal", "full_refusal", "compliant", None)))
    second = planted(
        classifier.info, *map(answered, ("partial_refusal", "compliant", "partial_refusal", "compliant", "compliant"))
    )
    result = compare(first, second)
    assert (result.to_refused, result.to_not_refused, result.changed) == ((0,), (1,), (0, 1, 2))
    assert (result.agreement.value, result.agreement_folded.value, result.left_out) == (0.25, 0.5, 1)
    assert (result.refused_first.value, result.refused_second.value) == (0.5, 0.5)
    assert result.moves["compliant", "partial_refusal"] == 1
    back = compare(second, first)
    assert (back.to_refused, back.to_not_refused) == (result.to_not_refused, result.to_refused)


def test_a_stopped_batch_is_compared_as_far_as_it_goes(scored):
    assert compare(scored, replace(scored, rows=scored.rows[:2])).n == 2


def test_different_rows_are_not_compared(scored):
    rows = (*scored.rows[:1], *scored.rows[2:], scored.rows[1])
    with pytest.raises(InputError, match="row 2"):
        compare(scored, replace(scored, rows=rows))
