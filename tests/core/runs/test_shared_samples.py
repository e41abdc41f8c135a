"""What a good reader gives for each public folder of run artefacts; they lie beside the repository, or are skipped."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from refusal_core.runs.artefacts import Artefact
from refusal_core.runs.model import Problem
from refusal_core.runs.read import read_folder
from refusal_core.runs.tables import MatrixTable, ReportTable, ResultsTable


class Folder:
    """What was read of one folder."""

    def __init__(self, artefacts: list[Artefact], problems: list[Problem]) -> None:
        self.artefacts, self.problems = artefacts, problems

    def of(self, kind: str, file: str = "") -> list[Artefact]:
        return [a for a in self.artefacts if a.kind == kind and a.file.startswith(file)]

    def state(self, file: str = "trainer_state.json") -> Artefact:
        [found] = self.of("state", file)
        return found

    def table(self, file: str, part: str | None = None):
        [found] = [a.table for a in self.of("table", file) if part in (None, a.part)]
        return found

    def scores(self, file: str):
        [found] = self.of("scores", file)
        return found.scores

    def unread(self) -> dict[str, str]:
        return {p.file: p.what for p in self.problems if p.ours and p.read == "no"}


def curve(artefact: Artefact, metric: str, split: str = "", dataset: str = "", label: str | None = None):
    [found] = [c for c in artefact.curves if c.name == (split, dataset, metric, label)]
    return found


def multi_eval_prefix(f: Folder) -> None:
    sets = {c.dataset for c in f.state().curves if c.split == "eval"}
    assert sets == {"g0", "g1", "g2", "g3", "g4", "g5"}
    first = [curve(f.state(), "accuracy", "eval", f"g{i}").values[0] for i in range(6)]
    assert first == pytest.approx([0.7082, 0.4389, 0.3242, 0.2668, 0.2319, 0.1820], abs=5e-5)
    assert {len(c) for c in f.state().curves if c.metric == "accuracy"} == {31}  # no row lost to its step
    assert f.state().replaced == 0 and f.state().step == 12030


def grad_norm_infinity(f: Folder) -> None:
    grad_norm = curve(f.state(), "grad_norm", "train")
    assert np.isinf(grad_norm.values).sum() == 1 and len(grad_norm) == 70
    assert "train_runtime" in f.state().summary and len(curve(f.state(), "loss", "train")) == 70
    assert not [c for c in f.state().curves if c.split == "eval"]
    assert f.scores("all_results.json").find("mean_loss").value == pytest.approx(f.state().summary["train_loss"])


def metric_key_with_spaces(f: Folder) -> None:
    state = f.state("checkpoint-1470/")
    recall = curve(state, "recall", "eval")
    assert recall.key == "eval_recall (sensitivity)" and recall.steps.tolist() == [294, 588, 882, 1176]
    assert curve(state, "loss", "train").steps.tolist() == [500, 1000]  # its own evaluation is in no file
    assert curve(state, "roc_auc", "eval").values[0] == pytest.approx(0.549456, abs=1e-6)
    assert [a.step for a in f.of("state")] == [500, 1000, 1470]


def empty_log_history(f: Folder) -> None:
    assert (f.state().step, f.state().curves, f.state().rows) == (50, (), 0)
    assert not f.unread()


def nan_tokens(f: Folder) -> None:
    scores = f.scores("evaluation_results.json")
    values = {s.key: s.value for s in scores.scores}
    assert math.isnan(values["baseline_accuracy"]) and math.isnan(values["improvement"])
    assert values["finetuned_accuracy"] == 0.8125 and scores.n == 32
    assert curve(f.state(), "accuracy", "eval").values[-1] == pytest.approx(0.741935, abs=1e-6)
    assert f.state().best.checkpoint == "checkpoint-30" and f.state().best.step == 30


def full_set_long(f: Folder) -> None:
    state = f.state()
    assert (state.rows, state.step, state.replaced) == (982, 8920, 0)
    loss = curve(state, "loss", "eval")
    assert loss.steps[-1] == 8900 and len(loss) == 89
    stated = f.scores("eval_results.json")
    assert stated.epoch == 10.0
    assert loss.steps[loss.values == stated.find("loss", split="eval").value].tolist() == [2600]
    assert (state.best.value, state.best.checkpoint) == (0.5151475667953491, "checkpoint-2600")


def matrix_labels_axis(f: Folder) -> None:
    table = f.table("confusion_matrix.json")
    assert isinstance(table, MatrixTable) and table.labels == ("entailment", "neutral", "contradiction")
    assert (table.rows, table.columns, table.n) == ("true", "predicted", 1550)
    assert "Actual" in table.axes_from and table.true_by_predicted()[0].sum() == 535


def bare_list_collapsed(f: Folder) -> None:
    matrix, report = f.table("confusion_matrix.json"), f.table("classification_report.json")
    assert not matrix.labels_stated and (matrix.rows, matrix.n) == ("unknown", 180)
    assert matrix.values.sum(axis=0).tolist() == [0, 0, 180]
    assert [row.label for row in report.classes] == ["0.0", "1.0", "2.0"]
    assert [row.support for row in report.classes] == [41, 61, 78] and report.accuracy == pytest.approx(
        0.43333, abs=1e-5
    )


def bom_cyrillic(f: Folder) -> None:
    table = f.table("confusion_matrix.csv")
    assert table.labels == ("Возврат и обмен", "Доставка", "Оплата", "Спам", "Техническая ошибка")
    assert (table.rows, table.n) == ("unknown", 144) and not f.unread()


def micro_avg_zero_support(f: Folder) -> None:
    report = f.table("classification_report.txt")
    assert len(report.classes) == 14 and report.accuracy is None and report.n == 196 and report.digits == 2
    po = next(row for row in report.classes if row.label == "PO")
    assert (po.support, po.f1) == (0, 0.0)
    assert report.average("micro").f1 == 0.79 and report.average("macro").f1 == 0.54
    assert f.state("checkpoint-4500/").step == 4500


def csv_accuracy_row(f: Folder) -> None:
    report = f.table("classification_report.csv")
    assert [row.label for row in report.classes][1] == "rec.sport.baseball"
    assert report.n == 755 and report.accuracy == pytest.approx(0.862252, abs=1e-6)
    assert [row.label for row in report.averages] == ["macro avg", "weighted avg"]


def preamble_two_splits(f: Folder) -> None:
    folder = "balanced_hard__all-minilm-l6-v2__seed42/"
    test, val = (f.table(folder + "classification_report.txt", part) for part in ("TEST", "VAL"))
    assert (test.split, test.n, val.split, val.n) == ("test", 256, "eval", 254)
    matrices = [a.table for a in f.of("table", folder) if isinstance(a.table, MatrixTable)]
    printed = next(m for m in matrices if m.file.endswith(".txt"))
    assert printed.split == "test" and printed.labels == ("dont_refuse", "refuse") and printed.rows == "true"
    assert printed.values.tolist() == [[120, 8], [6, 122]]
    assert {m.split: m.n for m in matrices if m.file.endswith(".json")} == {"test": 256, "eval": 254}
    scores = f.scores(folder + "metrics.json")
    refuse = scores.find("f1", split="test", label="refuse")
    assert (refuse.value, refuse.n) == (0.9457364341085271, 256)


def refusal_3class(f: Folder) -> None:
    table = f.table("judge_confusion_matrix.csv")
    assert (table.row_name, table.rows, table.n) == ("Llama 70B", "unknown", 35005)
    assert table.true_by_predicted() is None  # rows are another judge: nobody says that it is right


def promptfoo(f: Folder) -> None:
    table = f.table("promptfoo-results.json")
    assert isinstance(table, ResultsTable) and (table.tool, table.status) == ("promptfoo", "ok")
    assert [(r.metric, r.value, r.n) for r in table.rows[:3]] == [
        ("pass rate", 2 / 3, 3), ("tests failed", 1.0, 3), ("tests with an error", 0.0, 3)
    ]  # fmt: skip


def inspect_log(f: Folder) -> None:
    for file in ("log_formats.json", "log_formats.eval"):
        table = f.table(file)
        [row] = table.rows
        assert (row.metric, row.value, row.n) == ("accuracy", 0.0, 1)
        assert table.status == "a part: 1 of 100 samples (limit)"


def wandb_mixed_keys(f: Folder) -> None:
    scores = f.scores("wandb-summary.json")
    assert scores.find("accuracy", split="eval").value == pytest.approx(0.92868, abs=1e-5)
    assert scores.find("accuracy", split="test").value == pytest.approx(0.35129, abs=1e-5)
    assert scores.find("loss", split="train").value == 0.1379 and scores.step == 498
    assert "the run ended after 41 s" in f.unread()["files/wandb-summary.json"]


def two_attempts(f: Folder) -> None:
    events = f.of("history")
    assert [a.file.split("/")[0] for a in events] == ["run0", "run1"]
    assert {a.settings["max_steps"] for a in (*events, *f.of("state"))} == {1200}
    state = curve(f.state("checkpoint-1200/"), "loss", "train")
    same = [np.allclose(curve(a, "loss", "train").values, state.values, rtol=1e-6) for a in events]
    assert same == [False, False]  # no event file of the two belongs to these checkpoints
    assert all(np.isfinite(curve(a, "loss", "train").times).all() for a in events)


def lfs_pointer(f: Folder) -> None:
    [problem] = [p for p in f.problems if p.ours]
    assert "Git LFS pointer" in problem.what and problem.fix == "run git lfs pull in that repository"
    assert not f.artefacts


def trainer_demo(f: Folder) -> None:
    state = f.state("trainer_state.json")
    assert (state.rows, state.step, state.best.step) == (14, 18, 6)
    [after] = state.after_training  # evaluate() of the best weights, stamped with the last step
    assert after.step == 18 and after.find("loss").value == 1.36749267578125
    assert curve(state, "loss", "eval").values.tolist() == [1.36749267578125, 1.211540699005127, 1.1719872951507568]
    zero, nan = f.table("classification_report.txt"), f.table("classification_report.json")
    assert (zero.average("macro").f1, nan.average("macro").f1) == (0.0981, pytest.approx(0.12264, abs=1e-5))
    assert nan.classes[4].label == "deflection" and nan.classes[4].f1 is None and zero.classes[4].f1 == 0.0
    matrix = f.table("confusion_matrix.json")
    assert (matrix.rows, matrix.n) == ("true", 40) and matrix.values[:, 0].sum() == 40
    assert curve(state, "f1", "eval", label="deflection").values.tolist() == [0, 0, 0]
    assert curve(state, "support", "eval", label="compliance").values[0] == 16
    [events] = f.of("history")
    assert curve(events, "macro_f1", "eval").steps.tolist()[:3] == [6, 12, 18]
    assert [a.labels[0] for a in f.of("config")] == ["full_refusal"] * 3


def trackio_demo(f: Folder) -> None:
    store = f.of("history", "store/")
    assert [a.name for a in store] == ["baseline-lr5e-5", "candidate-lr2e-5"]
    loss = curve(store[1], "loss", "train")
    assert loss.steps.tolist() == list(range(10, 130, 10)) and np.isnan(loss.values[7])
    assert np.isinf(curve(store[1], "loss", "eval").values[-1])
    assert store[1].settings == {"learning_rate": 2e-05, "epochs": 3, "model": "tiny-bert", "num_labels": 5}
    assert store[1].alerts == ("warn at step 120: low f1 on deflection (f1 < 0.6)",)
    assert curve(store[0], "f1", "eval", label="full_refusal").values[-1] == 0.7858
    tables = [a.table for a in f.of("table", "store/")]
    assert len(tables) == 2 and isinstance(tables[0], ReportTable) and tables[0].classes[4].support == 0
    exported = f.of("history", "static_export/")
    for ours, theirs in zip(store, exported, strict=True):
        for one in ours.curves:
            other = curve(theirs, one.metric, one.split, one.dataset, one.label)
            assert np.array_equal(one.values, other.values, equal_nan=True) and np.array_equal(one.steps, other.steps)
    printed = {a.file: a for a in f.of("history", "cli_json/metric_")}
    assert np.isinf(curve(printed["cli_json/metric_eval_loss_candidate.json"], "loss", "eval").values[-1])
    assert not f.unread()


def detector_card(f: Folder) -> None:
    report, scores = f.table("classification_report.txt"), f.scores("eval_results.json")
    assert [row.support for row in report.classes] == [178, 98, 47, 132, 25] and report.n == 480
    assert report.classes[2].label == "partial_refusal" and report.classes[2].f1 == 0.7294
    assert report.average("weighted").f1 == 0.8558 and scores.find("weighted_f1").value == 0.8567
    assert scores.n == 480 and not f.unread()


FACTS: dict[str, Callable[[Folder], None]] = {
    "ts_multi_eval_prefix": multi_eval_prefix,
    "ts_grad_norm_infinity": grad_norm_infinity,
    "ts_metric_key_with_spaces": metric_key_with_spaces,
    "ts_empty_log_history": empty_log_history,
    "eval_nan_tokens": nan_tokens,
    "hf_full_set_long": full_set_long,
    "cm_json_labels_axis": matrix_labels_axis,
    "cm_json_bare_list_collapsed": bare_list_collapsed,
    "cm_csv_bom_cyrillic": bom_cyrillic,
    "cr_txt_micro_avg_zero_support": micro_avg_zero_support,
    "cr_csv_accuracy_row": csv_accuracy_row,
    "cr_txt_refusal_preamble_two_splits": preamble_two_splits,
    "cm_csv_refusal_3class": refusal_3class,
    "promptfoo_results_v3": promptfoo,
    "inspect_log_json_and_eval": inspect_log,
    "wandb_summary_mixed_keys": wandb_mixed_keys,
    "tfevents_two_attempts": two_attempts,
    "lfs_pointer_as_json": lfs_pointer,
    "trainer_demo": trainer_demo,
    "trackio_demo": trackio_demo,
    "refusal-detector-card": detector_card,
}


@pytest.mark.parametrize("name", FACTS)
def test_what_is_read_of(name, shared_data):
    folder = shared_data / "runs" / name
    if not folder.is_dir():
        pytest.skip(f"the shared data has no runs/{name}")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    FACTS[name](Folder(*read_folder(folder)))
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before  # nothing is written beside it


def test_every_folder_has_its_facts(shared_data):
    folders = {path.name for path in Path(shared_data / "runs").iterdir() if path.is_dir()}
    assert folders <= set(FACTS)
