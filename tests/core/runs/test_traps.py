"""Small files with the faults that people's folders have: what is read of each, and what is said about it."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from refusal_core.errors import InputError
from refusal_core.runs.discover import discover
from refusal_core.runs.files import fingerprint
from refusal_core.runs.model import Curve
from refusal_core.runs.read import read, read_files, read_folder
from refusal_core.runs.tables import MatrixTable, ReportTable

FILES = Path(__file__).parent / "files"


def one(name: str):
    """(artefacts, problems) of one file, leniently."""
    return read_files([(name, (FILES / name).read_bytes())])


def curve(artefact, metric: str, split: str = "", dataset: str = "", label: str | None = None) -> Curve:
    [found] = [c for c in artefact.curves if c.name == (split, dataset, metric, label)]
    return found


def test_one_bad_file_never_hides_the_good_ones():
    artefacts, problems = read_folder(FILES)
    read_in_part = {p.file for p in problems if p.read == "in part"}
    unread = {p.file for p in problems if p.read == "no" and p.ours}
    strangers = {p.file for p in problems if not p.ours}
    assert read_in_part == {"cut_state.json", "trainer_log.jsonl"}
    assert unread == {"lfs_pointer.json", "nul_only.json", "wandb_died.json"}
    assert strangers == {"tokenizer_config.json", "other_program_state.json"}
    assert {a.file for a in artefacts} == {p.name for p in FILES.iterdir()} - unread - strangers
    assert all(len(a.digest) == 64 for a in artefacts)


def test_of_a_cut_state_the_whole_rows_are_kept():
    [state], [problem] = one("cut_state.json")
    assert "cut short" in problem.what and "6 whole rows" in problem.what and problem.read == "in part"
    assert curve(state, "loss", "train").steps.tolist() == [10, 20, 30, 40]
    assert curve(state, "loss", "eval").steps.tolist() == [20, 40] and state.step == 60
    with pytest.raises(InputError, match="cut short"):
        read(FILES / "cut_state.json")


def test_a_state_with_bom_and_crlf_and_a_windows_path():
    [state], problems = one("state_crlf_bom.json")
    assert not problems and state.step == 60 and len(curve(state, "macro_f1", "eval")) == 3
    assert state.best.checkpoint == "checkpoint-60"
    assert state.settings == {"max_steps": 60, "num_train_epochs": 3, "train_batch_size": 8}


def test_numbers_that_are_not_finite_are_kept_and_marked():
    [state], problems = one("not_finite_state.json")
    loss, grad_norm = curve(state, "loss", "train"), curve(state, "grad_norm", "train")
    assert loss.values.tolist() == [1.604, 0.0, 0.0, -math.inf] and not problems
    assert np.array_equal(grad_norm.values, [2.5, math.nan, math.inf, math.inf], equal_nan=True)
    assert np.array_equal(curve(state, "loss", "eval").values, [math.nan, math.inf], equal_nan=True)
    assert curve(state, "macro_f1", "eval").values.tolist() == [0.14]  # null is no value
    assert '"histogram" is no number in 1 rows' in state.notes and "2 numbers were written as text" in state.notes


def test_minus_infinity_alone_is_read():
    [state], problems = one("minus_infinity_state.json")
    assert curve(state, "loss", "train").values.tolist() == [-math.inf] and not problems and state.step == 1


def test_several_evaluation_sets_custom_rows_and_the_end_of_training():
    [state], problems = one("several_sets_state.json")
    assert curve(state, "accuracy", "eval", "ood").values.tolist() == [0.5, 0.5]
    own = curve(state, "accuracy", "eval")
    assert own.values.tolist() == [0.7, 0.7, 0.75] and own.superseded.tolist() == [False, True, False]
    assert own.current().values.tolist() == [0.7, 0.75] and state.replaced == 1
    assert curve(state, "rewards/accuracies", "train").values.tolist() == [0.5, 0.5]  # no accuracy
    assert curve(state, "my_custom/ratio").values.tolist() == [0.25]
    assert state.summary["train_loss"] == 1.1 and not problems
    [after] = state.after_training
    assert after.find("accuracy").value == 0.8 and after.step == 20


@pytest.mark.parametrize("name", ["report_utf16.txt", "report_cp1252.txt"])
def test_reports_of_other_encodings(name):
    [found], problems = one(name)
    assert found.table.split == "eval" and [row.label for row in found.table.classes] == ["refus", "réponse à côté"]
    assert found.table.classes[1].f1 == 0.67
    said = [p.what for p in problems if p.read == "whole"]
    assert said == (["it is not UTF-8 and was read as Windows-1252"] if "cp1252" in name else [])


def test_matrices_with_and_without_axes():
    [cyrillic], _ = one("matrix_cyrillic.csv")
    assert cyrillic.table.labels == ("да", "нет совсем") and cyrillic.table.rows == "unknown"
    [judges], _ = one("matrix_judges.csv")
    assert (judges.table.row_name, judges.table.rows) == ("Judge A", "unknown")
    [corner], _ = one("matrix_corner.csv")
    assert (corner.table.rows, corner.table.columns) == ("true", "predicted")
    assert corner.table.true_by_predicted().tolist() == [[5, 1], [4, 90]]


def test_what_is_said_of_files_that_hold_nothing():
    said = {name: one(name)[1][0] for name in ("lfs_pointer.json", "nul_only.json", "wandb_died.json")}
    assert "pointer" in said["lfs_pointer.json"].what and "git lfs pull" in said["lfs_pointer.json"].fix
    assert "NUL bytes" in said["nul_only.json"].what and "after 41 s" in said["wandb_died.json"].what


def test_a_report_with_micro_average_in_place_of_accuracy():
    [found], problems = one("report_micro_avg.json")
    assert isinstance(found.table, ReportTable) and not problems
    assert found.table.accuracy is None and found.table.average("micro").f1 == 0.6667
    assert found.table.classes[1].precision is None and found.table.classes[1].support == 0


def test_logs_of_other_programs():
    [factory], [cut] = one("trainer_log.jsonl")
    assert curve(factory, "loss", "train").values.tolist() == [0.2, 0.1, 2 / 30] and "line 4" in cut.what
    assert curve(factory, "learning_rate", "train").steps.tolist() == [10, 20, 30]
    [keras], _ = one("keras_history.csv")
    assert curve(keras, "loss", "train").epochs.tolist() == [0, 2]
    assert np.array_equal(curve(keras, "loss", "eval").values, [1.3, math.nan, 1.1], equal_nan=True)
    [console], _ = one("console.log")
    assert np.array_equal(curve(console, "grad_norm", "train").values, [0.42, math.nan], equal_nan=True)
    assert curve(console, "loss", "eval").epochs.tolist() == [1.0]


def test_nothing_ran_is_no_pass():
    [empty], _ = one("promptfoo_empty.json")
    assert empty.table.status == "nothing ran" and empty.table.rows == ()
    [cancelled], _ = one("inspect_cancelled.json")
    assert cancelled.table.status == "incomplete: cancelled"
    [errors], _ = one("promptfoo_errors.json")
    assert {r.metric: r.value for r in errors.table.rows} == {
        "pass rate": 1 / 3, "tests failed": 1.0, "tests with an error": 1.0
    }  # fmt: skip
    [lm_eval], _ = one("lm_eval.json")
    rows = {(r.group, r.metric): r for r in lm_eval.table.rows}
    assert rows["refusals", "acc"].error == 0.0433 and rows["refusals", "acc"].higher_is_better
    assert rows["refusals", "exact_match (strict-match)"].status == rows["empty", "acc"].status == "not a number"
    assert lm_eval.table.status == "a part: limit 100"


def test_flat_and_nested_results():
    [mixed], _ = one("wandb_mixed.json")
    assert mixed.scores.find("accuracy", split="eval").value == 0.93
    assert mixed.scores.find("accuracy", split="test").value == 0.35 and mixed.step == 498
    assert mixed.scores.find("loss", split="train").value == 0.14 and mixed.scores.find("mean_loss").value == 0.48
    scores, matrix, nested = one("nested_metrics.json")[0]
    assert scores.scores.find("recall", split="test", label="refuse").value == 0.7
    assert scores.scores.find("accuracy").n == 11
    assert isinstance(matrix.table, MatrixTable) and (matrix.table.split, matrix.table.n) == ("test", 11)
    assert [(r.group, r.metric, r.value, r.n) for r in nested.table.rows if r.metric == "accuracy"] == [
        ("by_language.en", "accuracy", 0.95, 8), ("by_language.de", "accuracy", 0.67, 3)
    ]  # fmt: skip


def test_a_result_that_is_not_a_number_stays_in_the_table():
    [found], [problem] = one("nan_results.json")
    assert math.isnan(found.scores.find("macro_f1").value) and found.scores.find("accuracy").n == 40
    assert 'the key "epoch" comes twice' in problem.what and found.epoch == 4.0


def test_checkpoints_are_in_the_order_of_their_steps(tmp_path):
    for name in ("checkpoint-6", "checkpoint-12", "checkpoint-100", "checkpoint-best", "checkpoint-12 (1)"):
        (tmp_path / name).mkdir()
        shutil.copy(FILES / "state_crlf_bom.json", tmp_path / name / "trainer_state.json")
    runs, problems = discover(tmp_path)
    checkpoints = [c for run in runs for c in run.checkpoints]
    assert [c.step for c in checkpoints] == [6, 12, 100, None, None] and not problems


def test_a_data_set_is_not_taken_for_predictions():
    rows = b'{"id": 1, "prompt": "p", "response": "r", "label": "compliant"}\n' * 3
    artefacts, [problem] = read_files([("train.jsonl", rows)])
    assert not artefacts and not problem.ours


def test_predictions_that_a_crash_cut_keep_their_whole_rows():
    rows = b'{"id": "a", "label": "x", "true": "x"}\n{"id": "b", "label": "y", "true": "x"}\n{"id": "c", "lab'
    [found], [problem] = read_files([("predictions.jsonl", rows)])
    assert found.predictions.ids == ("a", "b") and "last line is cut; 2 rows" in problem.what
    wrong = rows.replace(b'"label": "y"', b'"label": 7')
    assert read_files([("predictions.jsonl", wrong)])[0] == []


def test_a_frame_of_counts_with_names_on_one_side_is_a_matrix_and_a_history_is_none():
    [found], _ = read_files([("cm.csv", b",refuse,comply\n0,5,1\n1,4,90\n")])
    assert found.table.labels == ("refuse", "comply") and found.table.rows == "unknown"
    [history], _ = read_files([("h.csv", b"epoch,loss\n0,1\n1,2\n")])
    assert history.kind == "history"
    artefacts, [problem] = read_files([("t.csv", b"a,b\n1,2\n3,4\n")])
    assert not artefacts and not problem.ours


def test_a_folder_that_is_being_written_has_another_fingerprint(tmp_path):
    shutil.copy(FILES / "cut_state.json", tmp_path / "trainer_state.json")
    before = fingerprint(tmp_path)
    assert fingerprint(tmp_path) == before
    shutil.copy(FILES / "state_crlf_bom.json", tmp_path / "trainer_state.json")
    assert fingerprint(tmp_path) != before


def test_a_tokenizer_is_no_report_and_an_interval_no_result():
    """A vocabulary has tokens such as "precision" and "f1", each with a number."""
    words = {f"token{i}": i for i in range(6_000)} | {"precision": 11718, "recall": 9131, "f1": 20069, "support": 2490}
    named = {"tokenizer.json": {"version": "1.0", "model": {"type": "WordPiece", "vocab": words}}, "vocab.json": words}
    artefacts, problems = read_files([(name, json.dumps(value).encode()) for name, value in named.items()])
    assert not artefacts and [p.file for p in problems] == list(named) and not any(p.ours for p in problems)

    interval = {"low": 0.5, "high": 0.7, "level": 0.95, "method": "wilson"}
    own = {"split": "test", "eval_accuracy": 0.6, "eval_accuracy_interval": interval}
    [scores], problems = read_files([("eval_results.json", json.dumps(own).encode())])
    assert scores.kind == "scores" and not problems
