"""What a good reader says of each public folder of run artefacts; they lie beside the repository, or are skipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from refusal_core.runs.answer import answer
from refusal_core.runs.by_class import class_scores
from refusal_core.runs.discover import discover
from refusal_core.runs.findings import findings_of
from refusal_core.runs.model import Finding, Problem, Run
from refusal_core.runs.tables import MatrixTable, ReportTable, ResultsTable


class Folder:
    """What a folder gives."""

    def __init__(self, folder: Path) -> None:
        self.runs, self.problems = discover(folder)
        self.findings = findings_of(self.runs)
        self.kinds = sorted(f.kind for f in self.findings)

    @property
    def run(self) -> Run:
        [run] = self.runs
        return run

    def of(self, kind: str) -> Finding:
        [found] = [f for f in self.findings if f.kind == kind]
        return found

    def unread(self) -> list[Problem]:
        return [p for p in self.problems if p.ours and p.read == "no"]

    def steps(self, key: str) -> list[float]:
        [curve] = [c for c in self.run.curves if c.key == key and not c.superseded.all()]
        return curve.current().steps.tolist()


def the_card(f: Folder) -> None:
    """The published table, and that its weighted F1 is not that of its headline."""
    assert f.run.name == "refusal-detector-card" and f.kinds == ["contradiction"]
    found = f.of("contradiction")
    assert (found.where, found.found) == ("eval_results.json: eval_weighted_f1", "0.8567")
    assert found.expected == "0.8558 by the class rows of classification_report.txt (n = 480)"
    assert answer(f.run).sentence == (
        "Accuracy 0.86 (0.82 to 0.88, n = 480); macro F1 0.8428 (no interval: it needs a matrix or predictions), "
        "by classification_report.txt."
    )
    [table] = f.run.tables
    scores = class_scores(table)
    assert [c.recall.n for c in scores] == [178, 98, 47, 132, 25] and [c.precision.n for c in scores] == [
        167,
        91,
        38,
        159,
        25,
    ]
    assert all(getattr(c, name).interval for c in scores for name in ("precision", "recall", "f1"))
    assert [(row.label, row.precision, row.recall, row.f1, row.support) for row in table.classes] == [
        ("compliant", 0.9102, 0.8539, 0.8812, 178),
        ("full_refusal", 0.9121, 0.8469, 0.8783, 98),
        ("partial_refusal", 0.8158, 0.6596, 0.7294, 47),
        ("capability_limitation", 0.7736, 0.9318, 0.8454, 132),
        ("clarification", 0.88, 0.88, 0.88, 25),
    ]


def the_long_image_run(f: Folder) -> None:
    """Step 2,600 is the best by loss, and the last evaluation is of it, whatever its stamp says."""
    run = f.run
    assert (run.best.checkpoint, run.best.metric, run.best.greater_is_better) == ("checkpoint-2600", "eval loss", False)
    assert f.kinds == ["epoch_mismatch", "missing_evaluation", "overfitting"]
    mismatch = f.of("epoch_mismatch")
    assert "eval_results.json" in mismatch.where and "step 2,600" in mismatch.expected and "10" in mismatch.found
    assert f.of("missing_evaluation").found == "the last one of the training is at step 8,900"
    assert (
        "from step 2,600" in f.of("overfitting").where and "eval_accuracy does not suffer" in f.of("overfitting").found
    )
    [checkpoint] = run.checkpoints
    assert checkpoint.metrics.find("accuracy").value == pytest.approx(0.8260, abs=5e-5) and checkpoint.metrics.n == 7105
    assert [scores.file for scores in run.scores] == ["train_results.json"]


def the_collapsed_trainer_run(f: Folder) -> None:
    run = f.run
    assert [c.name for c in run.checkpoints] == ["checkpoint-6", "checkpoint-12", "checkpoint-18"]
    assert (run.best.checkpoint, run.best.metric) == ("checkpoint-6", "eval macro_f1")
    assert run.best.ties == ("checkpoint-12", "checkpoint-18")
    assert f.steps("eval_f1_macro") == [6, 12, 18]  # the evaluation after the training is of checkpoint-6
    assert "epoch 1, of step 6" in f.of("epoch_mismatch").expected
    assert "one_class_predicted" in f.kinds and "eval_f1_macro 0.1405" in f.of("constant_metric").found
    rules = f.of("contradiction")
    assert "0.1226" in rules.expected and "left out" in rules.expected and "0.0981 where it counts as 0" in rules.found
    assert any(np.isfinite(c.times).all() for c in run.curves if c.key == "loss")  # from the event file
    assert "test_results.json" in [scores.file for scores in run.scores]


def two_attempts_beside_checkpoints(f: Folder) -> None:
    assert [c.step for c in f.run.checkpoints] == [500, 1200] and f.kinds == ["two_runs_in_one_folder"] * 2
    assert f.steps("loss") == list(range(100, 1201, 100)) and f.run.resumed_at == ()
    assert all("1.2893" in found.expected for found in f.findings)
    faint = {c.file.split("/")[0] for c in f.run.curves if c.superseded.all()}
    assert faint == {"run0", "run1"}
    assert answer(f.run).sentence == (
        "Take checkpoint-1200 by accuracy, 0.91 (0.89 to 0.93, n = 648); not distinguishable from checkpoint-500."
    )


def the_trackio_project(f: Folder) -> None:
    """Two runs, each of which lies in the store, the export and the printed lists."""
    assert [run.name for run in f.runs] == ["baseline-lr5e-5", "candidate-lr2e-5"]
    assert all({"store/refusal-detector.db", "static_export/metrics.parquet"} <= set(run.sources) for run in f.runs)
    assert all(len(run.tables) == 1 for run in f.runs)
    diverged = f.of("diverged")
    assert diverged.run == "candidate-lr2e-5" and "step <= 80" in diverged.where and "Infinity" in diverged.found
    assert f.runs[0].best.checkpoint == "step 120" and f.runs[1].best.checkpoint == "step 40"
    assert f.kinds.count("suspicious_copy") == 2  # accuracy, macro F1 and the table are those of the baseline


def six_evaluation_sets(f: Folder) -> None:
    assert len({c.dataset for c in f.run.curves if c.split == "eval"}) == 6 and f.kinds == ["overfitting"]
    assert f.of("overfitting").found.endswith("eval_g5_loss") and f.run.best is None
    assert "6 evaluation sets" in answer(f.run).sentence


def an_infinite_gradient(f: Folder) -> None:
    assert f.kinds == ["grad_norm_not_finite"] and "1 of 70" in f.findings[0].found
    assert f.run.best is None and "nothing was evaluated" in answer(f.run).sentence


def evaluations_between_saves(f: Folder) -> None:
    assert [c.step for c in f.run.checkpoints] == [500, 1000, 1470] and f.kinds == ["missing_evaluation"] * 2
    last, others = f.findings
    assert (last.where, last.found) == ("checkpoint-1470", "the last one is at step 1,176")
    assert others.where == "checkpoint-500, checkpoint-1000" and f.run.best.checkpoint == "step 588"


def nothing_logged(f: Folder) -> None:
    assert f.kinds == ["empty_history"] and "step 50" in f.findings[0].found and not f.run.curves


def a_small_test_set_and_no_baseline(f: Folder) -> None:
    assert f.kinds == ["not_a_number"] and "baseline_accuracy is NaN" in f.findings[0].found
    assert answer(f.run).sentence == "Take checkpoint-30 by accuracy, 0.74 (0.57 to 0.86, n = 31)."


def a_class_without_items(f: Folder) -> None:
    assert f.kinds == ["missing_evaluation", "overfitting", "undefined_as_zero"]
    found = f.of("undefined_as_zero")
    assert "PO" in found.where and "0.59" in found.expected and found.found.startswith("0.54: 1 of 14")
    assert "from step 490" in f.of("overfitting").where


def two_reports_in_one_file(f: Folder) -> None:
    assert [run.name[:8] for run in f.runs] == ["balanced", "imbalanc"] and f.kinds == []
    for run in f.runs:
        assert sorted(t.split for t in run.tables if isinstance(t, ReportTable)) == ["eval", "test"]
        assert all(t.rows == "true" for t in run.tables if isinstance(t, MatrixTable))


def a_matrix_without_names(f: Folder) -> None:
    [matrix] = [t for t in f.run.tables if isinstance(t, MatrixTable)]
    assert matrix.rows == "true" and matrix.axes_from == "row sums are the supports of classification_report.json"
    assert f.kinds == ["one_class_predicted"] and "all 180 items" in f.findings[0].found


def axes_that_nobody_names(f: Folder) -> None:
    assert f.kinds == ["axes_unknown"] and f.run.tables[0].rows == "unknown"


def another_judge_in_the_rows(f: Folder) -> None:
    axes_that_nobody_names(f)
    assert '"Llama 70B"' in f.findings[0].found and f.run.tables[0].n == 35_005


def nothing_to_say(f: Folder) -> None:
    assert len(f.run.tables) == 1 and f.findings == []


def a_limit_of_one_sample(f: Folder) -> None:
    assert f.kinds == ["incomplete_results"] * 2 and all(isinstance(t, ResultsTable) for t in f.run.tables)
    assert "1 of 100 samples" in f.findings[0].found and "n = 1" in f.findings[0].found


def a_pointer(f: Folder) -> None:
    [problem] = f.unread()
    assert f.runs == [] and "Git LFS pointer" in problem.what and "git lfs pull" in problem.fix


def splits_far_apart(f: Folder) -> None:
    assert f.kinds == ["splits_far_apart"] and "0.3513" in f.findings[0].found and "0.9287" in f.findings[0].expected
    assert len(f.unread()) == 1


SAMPLES: dict[str, Callable[[Folder], None]] = {
    "cm_csv_bom_cyrillic": axes_that_nobody_names,
    "cm_csv_refusal_3class": another_judge_in_the_rows,
    "cm_json_bare_list_collapsed": a_matrix_without_names,
    "cm_json_labels_axis": nothing_to_say,
    "cr_csv_accuracy_row": nothing_to_say,
    "cr_txt_micro_avg_zero_support": a_class_without_items,
    "cr_txt_refusal_preamble_two_splits": two_reports_in_one_file,
    "eval_nan_tokens": a_small_test_set_and_no_baseline,
    "hf_full_set_long": the_long_image_run,
    "inspect_log_json_and_eval": a_limit_of_one_sample,
    "lfs_pointer_as_json": a_pointer,
    "promptfoo_results_v3": nothing_to_say,
    "refusal-detector-card": the_card,
    "tfevents_two_attempts": two_attempts_beside_checkpoints,
    "trackio_demo": the_trackio_project,
    "trainer_demo": the_collapsed_trainer_run,
    "ts_empty_log_history": nothing_logged,
    "ts_grad_norm_infinity": an_infinite_gradient,
    "ts_metric_key_with_spaces": evaluations_between_saves,
    "ts_multi_eval_prefix": six_evaluation_sets,
    "wandb_summary_mixed_keys": splits_far_apart,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_sample(shared_data, name):
    if name in ("tfevents_two_attempts", "trainer_demo"):
        pytest.importorskip("tensorboard", reason="event files need the package tensorboard")
    SAMPLES[name](Folder(shared_data / "runs" / name))


def test_every_sample_is_looked_at(shared_data):
    there = {folder.name for folder in (shared_data / "runs").iterdir() if folder.is_dir()}
    assert there == set(SAMPLES)


def test_all_of_them_in_one_folder(shared_data):
    """Runs below one root do not run into each other."""
    runs, _ = discover(shared_data / "runs")
    found = findings_of(runs)
    assert len(runs) == 22 and sum(f.kind == "contradiction" for f in found) == 2
    assert {f.run for f in found if f.kind == "suspicious_copy"} == {"candidate-lr2e-5"}
