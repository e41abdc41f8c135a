"""Which files are of one training, and how its attempts, checkpoints and evaluations come together."""

import json
import math

import numpy as np
import pytest

from refusal_core.metrics.compare import paired
from refusal_core.metrics.scores import Metric
from refusal_core.reports import to_json
from refusal_core.runs.answer import answer
from refusal_core.runs.discover import discover
from refusal_core.runs.json_form import to_json as as_json
from tests.core.runs.made import (
    curve,
    evaluation,
    kinds,
    loss,
    of_kind,
    only,
    rows,
    seen,
    write_json,
    write_lines,
    write_state,
)


def test_histories_that_begin_alike_are_one_run_also_when_the_settings_change(tmp_path):
    write_state(tmp_path / "checkpoint-20", rows(20))
    write_state(tmp_path / "checkpoint-40", rows(40), max_steps=60, train_batch_size=4)
    [run], findings = seen(tmp_path)
    assert [c.name for c in run.checkpoints] == ["checkpoint-20", "checkpoint-40"]
    assert run.resumed_at == (20.0,) and run.settings["max_steps"] == 60
    assert "max_steps 40" in of_kind(findings, "resumed").found
    assert len(curve(run, "loss")) == 8


def test_other_beginnings_with_other_settings_are_two_runs_in_one_folder(tmp_path):
    for step, seed in ((10, 0.0), (30, 0.0), (20, 0.3), (40, 0.3)):
        more = {"max_steps": 56, "train_batch_size": 4} if seed else {}
        write_state(tmp_path / f"checkpoint-{step}", rows(step, seed), **more)
    runs, findings = seen(tmp_path)
    assert [[c.name for c in run.checkpoints] for run in runs] == [
        ["checkpoint-10", "checkpoint-30"],
        ["checkpoint-20", "checkpoint-40"],
    ]
    assert kinds(findings).count("two_runs_in_one_folder") == 2
    assert len({run.name for run in runs}) == 2 and "train_batch_size 4" in runs[1].name
    assert not curve(runs[0], "loss").superseded.any()  # no zig-zag


def test_a_resume_from_before_the_end_keeps_the_old_tail_faint(tmp_path):
    """As a folder looks where the first attempt went to 30 and the second started again at 10."""
    write_state(tmp_path / "checkpoint-30", rows(30))
    write_state(tmp_path / "checkpoint-40", rows(10) + rows(40, 0.2, start=10))
    [run], findings = seen(tmp_path)
    line = curve(run, "loss")
    assert run.resumed_at == (10.0,) and of_kind(findings, "resumed").found.startswith("resumed at step 10; 16 values")
    current = line.current()
    assert current.steps.tolist() == list(range(5, 45, 5)) and (np.diff(current.steps) > 0).all()
    assert line.steps[line.superseded].tolist() == [15, 20, 25, 30]
    assert line.attempt[~line.superseded].tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert run.checkpoints[1].metrics.find("macro_f1").value == pytest.approx(0.5 + 0.4 + 0.2)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_log_that_runs_backwards_is_two_attempts(tmp_path, form):
    steps = [*range(2, 13, 2), *range(8, 25, 2)]
    lines = [{"step": step, "loss": 1 / step + (i > 5)} for i, step in enumerate(steps)]
    if form == "jsonl":
        write_lines(tmp_path / "log.jsonl", lines)
    else:
        text = "step,loss\n" + "".join(f"{line['step']},{line['loss']}\n" for line in lines)
        (tmp_path / "history.csv").write_text(text)
    [run], findings = seen(tmp_path)
    line = curve(run, "loss")
    assert line.current().steps.tolist() == list(range(2, 25, 2))
    assert (line.current().values[3:] > 1).all()  # the latest attempt counts from step 8
    assert line.steps[line.superseded].tolist() == [8, 10, 12]
    assert run.resumed_at == (6.0,) and "resumed at step 6" in of_kind(findings, "resumed").found


def test_logs_of_one_folder_go_on_from_each_other_or_are_two_runs(tmp_path):
    def line(step: int, shift: float) -> dict:
        return {"step": step, "loss": 1 / step + shift, "timestamp": 1e9 + step + 1e6 * shift}

    write_lines(tmp_path / "on" / "b.jsonl", [line(step, 0) for step in range(2, 13, 2)])
    write_lines(tmp_path / "on" / "a.jsonl", [line(step, 1) for step in range(8, 25, 2)])
    write_lines(tmp_path / "two" / "a.jsonl", [line(step, 0) for step in range(2, 13, 2)])
    write_lines(tmp_path / "two" / "b.jsonl", [line(step, 1) for step in range(2, 13, 2)])
    runs, findings = seen(tmp_path)
    assert [run.name for run in runs] == ["on", "two", "two/b.jsonl"]
    whole = curve(runs[0], "loss")
    assert whole.current().steps.tolist() == list(range(2, 25, 2)) and runs[0].resumed_at == (6.0,)
    assert whole.steps[whole.superseded].tolist() == [8, 10, 12]
    assert kinds(findings) == ["missing_evaluation"] * 3 + ["resumed", "two_runs_in_one_folder"]


def test_checkpoints_are_in_the_order_of_their_numbers(tmp_path):
    for name in ("checkpoint-6", "checkpoint-12", "checkpoint-100", "checkpoint-best", "checkpoint-12 (1)"):
        write_json(tmp_path / name / "config.json", {"model_type": "bert", "id2label": {"0": "a", "1": "b"}})
    write_state(tmp_path, rows(40))
    names = [c.name for c in only(tmp_path).checkpoints]
    assert names == ["checkpoint-6", "checkpoint-12", "checkpoint-100", "checkpoint-12 (1)", "checkpoint-best"]
    assert [c.step for c in only(tmp_path).checkpoints] == [6, 12, 100, None, None]


def test_an_own_evaluation_is_found_in_a_later_state(tmp_path):
    whole = rows(40)
    cut = [row for row in rows(20) if not ("eval_loss" in row and row["step"] == 20)]
    write_state(tmp_path / "checkpoint-20", cut)
    write_state(tmp_path / "checkpoint-30", [row for row in whole if row["step"] <= 30])
    first, second = only(tmp_path).checkpoints
    assert first.metrics.find("macro_f1").value == pytest.approx(0.7)
    assert first.metrics.file == "checkpoint-30/trainer_state.json" and "lacks its evaluation" in first.notes[0]
    assert second.metrics.file == "checkpoint-30/trainer_state.json" and not second.notes


def test_results_belong_to_the_checkpoint_whose_values_they_have(tmp_path):
    """With load_best_model_at_end: the values of step 20 under the stamp of the last epoch, in the log and the file."""
    end = {"step": 40, "epoch": 4.0, "train_runtime": 10.0, "train_loss": 1.0}
    again = {**rows(40)[5], "step": 40, "epoch": 4.0}
    assert again["eval_f1_macro"] == 0.7
    best = {"best_metric": 0.7, "best_model_checkpoint": "C:\\out\\checkpoint-20"}
    write_state(tmp_path, [*rows(40), end, again], **best)
    write_state(tmp_path / "checkpoint-20", rows(20))
    write_json(tmp_path / "eval_results.json", {**{k: v for k, v in again.items() if k != "step"}, "eval_samples": 50})
    [run], findings = seen(tmp_path)
    assert curve(run, "eval_f1_macro").current().steps.tolist() == [10, 20, 30, 40]
    mismatch = of_kind(findings, "epoch_mismatch")
    assert "eval_results.json" in mismatch.where and "step 20" in mismatch.expected and "epoch 4" in mismatch.found
    [checkpoint] = [c for c in run.checkpoints if c.name == "checkpoint-20"]
    assert checkpoint.metrics.n == 50 and any("not by its epoch stamp" in note for note in checkpoint.notes)
    assert run.scores == ()
    # 0.7 is not the highest F1 of the log: what the training calls the best one is not.
    assert (run.best.checkpoint, run.best.metric, run.best.greater_is_better) == (
        "checkpoint-20",
        "eval macro_f1",
        True,
    )
    assert "is 0.9, at step 40" in of_kind(findings, "contradiction").expected


def test_the_direction_of_the_best_metric_follows_from_its_name_and_values(tmp_path):
    history = [evaluation(10, 0.9, 0.5), evaluation(20, 0.4, 0.6), evaluation(30, 0.7, 0.8)]
    write_state(tmp_path / "a", history, best_metric=0.4, best_model_checkpoint="out/checkpoint-20")
    write_state(tmp_path / "b", history, best_metric=0.9, best_model_checkpoint="out/checkpoint-10")
    write_state(tmp_path / "c", history + [evaluation(40, 0.5, 0.8)])
    (lowest, highest, none), findings = seen(tmp_path)
    assert (lowest.best.metric, lowest.best.greater_is_better, lowest.best.checkpoint) == (
        "eval loss",
        False,
        "checkpoint-20",
    )
    assert not highest.best.greater_is_better
    [wrong] = [f for f in findings if f.kind == "contradiction"]
    assert wrong.run == "b" and "the worst of all" in wrong.expected
    assert (none.best.checkpoint, none.best.ties) == ("step 30", ("step 40",)) and "states none" in none.best.how


def test_the_answer_says_what_cannot_be_told_apart(tmp_path):
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 300)
    labels = ("a", "b", "c")
    wrongs = {10: 0.5, 20: 0.1, 30: 0.09}
    noise, other = rng.random(300), rng.integers(1, 3, 300)
    for step, wrong in wrongs.items():
        answers = np.where(noise < wrong, (true + other) % 3, true)
        lines = [
            {"id": f"i{i}", "label": labels[p], "true": labels[t]}
            for i, (p, t) in enumerate(zip(answers, true, strict=True))
        ]
        write_state(tmp_path / f"checkpoint-{step}", [row for row in rows(30) if row["step"] <= step])
        write_lines(tmp_path / f"checkpoint-{step}" / "predictions.jsonl", lines)
    run = only(tmp_path)
    found = answer(run)
    assert found.sentence == "Take checkpoint-30 by macro F1, 0.8000; not distinguishable from checkpoint-20."
    assert found.alike == ("checkpoint-20",) and answer(run).sentence == found.sentence
    sides = [c.predictions[0].items() for c in run.checkpoints]
    differences = dict(found.differences)
    assert differences["checkpoint-10"].interval == paired(sides[2], sides[0], Metric("f1", "macro")).interval


def test_tables_of_a_folder_without_a_state_are_a_run_and_logs_join_the_state_they_repeat(tmp_path):
    write_state(tmp_path / "one", rows(40))
    write_lines(
        tmp_path / "one" / "logs" / "train.jsonl", [{k: v for k, v in r.items() if k != "epoch"} for r in rows(40)]
    )
    write_lines(tmp_path / "one" / "other.jsonl", [{"step": s, "loss": 9.0 + s} for s in range(5, 41, 5)])
    write_json(
        tmp_path / "two" / "confusion_matrix.json", {"labels": ["a", "b"], "matrix": [[3, 1], [0, 4]], "rows": "true"}
    )
    write_json(tmp_path / "results" / "eval_results.json", {"eval_accuracy": 0.5})
    runs, findings = seen(tmp_path)
    assert [run.name for run in runs] == ["one", "two"]
    assert [scores.file for scores in runs[0].scores] == ["results/eval_results.json"]
    assert len(runs[1].tables) == 1 and not runs[1].curves
    assert "one/logs/train.jsonl" in runs[0].sources
    strange = of_kind(findings, "two_runs_in_one_folder")
    assert strange.where == "one/other.jsonl, step 5" and strange.found.startswith("14")
    assert [c.file for c in runs[0].curves if c.superseded.all()] == ["one/other.jsonl"]
    assert runs[0].resumed_at == ()


def test_numbers_that_are_none_are_read_and_written_as_strict_json(tmp_path):
    write_state(tmp_path / "a", [loss(1, -math.inf), loss(2, math.nan), loss(3, 1.0)])
    write_json(tmp_path / "b" / "eval_results.json", {"eval_f1_macro": math.nan, "eval_accuracy": 0.91})
    values = [math.nan, 1, math.nan, math.nan, 2, math.nan]
    write_state(tmp_path / "c", [loss(step, value) for step, value in enumerate(values, 1)])
    runs, problems = discover(tmp_path)
    from refusal_core.runs.findings import findings_of

    found = findings_of(runs)
    text = to_json(as_json(runs, problems, found))
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert np.isneginf(curve(runs[0], "loss").values[0])
    assert of_kind(found, "not_a_number").where == "b/eval_results.json"
    line = curve(runs[2], "loss").values
    assert np.isfinite(line).sum() == 2 and np.isnan(line).sum() == 4 and len(line) == 6
