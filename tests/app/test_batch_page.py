"""The Batch view in each of its states."""

import csv
import io
import json

from refusal_core import limits
from refusal_core.classifier.batch import summarise
from refusal_core.labels import FOLDS
from refusal_core.metrics.intervals import format_rate
from refusal_core.samples import batch_sample
from tests.app.batch_cases import ROWS, finish, jsonl, problem_of, score, select, table, task_of, upload
from tests.app.conftest import words
from ui import cache, state

HOSTILE = "<script>alert(1)</script> ![x](http://x.example/a.png) $x$ :red[x]"


def test_empty_view_says_what_to_do(batch):
    app = batch()
    assert "Use the sample, upload a file" in words(app)
    assert not app.header and not app.dataframe


def test_the_sample_is_scored_at_one_click(batch):
    app = batch()
    app.button(key="batch_sample").click().run()
    finish(app)
    found = task_of(app).batch
    assert len(found.rows) == batch_sample().count(b"\n") and not found.stopped
    assert app.selectbox(key=state.BATCH_GROUP).options == ["domain", "voice", "language"]
    assert "?fold=full-partial&batch=sample" in words(app)


def test_every_number_is_the_one_of_the_summary(batch):
    app = score(batch(), jsonl(ROWS))
    task = task_of(app)
    app.selectbox(key=state.BATCH_GROUP).set_value("team").run()
    for fold in FOLDS.values():
        app.radio(key=state.FOLD).set_value(fold.key).run()
        summary = summarise(task.batch, fold=fold, group_by="team")
        assert app.header[0].value == f"Refused {format_rate(summary.refused)}"
        assert format_rate(summary.report.accuracy) in words(app)
        shares, groups, confusion = app.get("plotly_chart")
        for share in summary.shares:
            assert f"{share.label} {format_rate(share.rate)}" in shares.proto.alt
        for group in summary.groups:
            assert f"{group.group} {format_rate(group.refused)}" in groups.proto.alt
        cells = json.loads(confusion.proto.spec)["layout"]["annotations"]
        assert [cell["text"] for cell in cells] == [str(n) for row in summary.report.matrix for n in row]


def test_a_refused_upload_keeps_the_last_good_result(batch):
    app = score(batch(), jsonl(ROWS))
    good = task_of(app)
    upload(app, b"", "empty.jsonl")
    assert "This file cannot be scored" in words(app) and "the file is empty" in words(app)
    assert task_of(app) is good and app.header
    upload(app, b"PK\x03\x04not a table", "rows.xlsx")
    assert "This file cannot be scored" in words(app) and task_of(app) is good


def test_a_file_that_fails_while_it_is_scored_keeps_the_last_good_result(batch, monkeypatch):
    app = score(batch(), jsonl(ROWS))
    good = task_of(app)
    monkeypatch.setattr(limits, "BATCH_ROWS", 2)
    score(app, jsonl(ROWS), "more.jsonl")
    assert "more than 2 rows" in problem_of(app) and "The last result stays below" in words(app)
    assert task_of(app) is good


def test_other_column_names_are_mapped(batch):
    rows = [{"Question": r["prompt"], "said": r["response"], "gold": r["label"], "team": r["team"]} for r in ROWS]
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    app = upload(batch(), file.getvalue().encode(), "rows.csv")
    assert "say which is which" in words(app)
    assert "batch_go" not in [button.key for button in app.button]
    boxes = {box.label: box for box in app.selectbox}
    assert (boxes["Prompt"].value, boxes["Response"].value, boxes["Label"].value) == ("Question", None, "gold")
    boxes["Response"].set_value("said").run()
    app.button(key="batch_go").click().run()
    finish(app)
    found = task_of(app).batch
    assert [row.row.response for row in found.rows] == [row["response"] for row in ROWS]
    assert found.labelled and found.columns == ("team",)
    assert "--map prompt=Question --map response=said --map label=gold" in words(app)


def test_one_column_for_two_things_is_one_sentence(batch):
    app = upload(batch(), b"a,b\n1,2\n", "rows.csv")
    boxes = {box.label: box for box in app.selectbox}
    boxes["Prompt"].set_value("a")
    boxes["Response"].set_value("a").run()
    assert 'the column "a" is read twice' in words(app) and not app.exception


def test_chats_are_scored_by_every_turn_when_asked(batch):
    chat = [{"role": role, "content": f"{role} {n}"} for n in (1, 2) for role in ("user", "assistant")]
    app = upload(batch(), jsonl([{"messages": chat}]), "chats.jsonl")
    app.checkbox(key=state.BATCH_EVERY_TURN).check().run()
    app.button(key="batch_go").click().run()
    finish(app)
    assert [row.row.response for row in task_of(app).batch.rows] == ["assistant 1", "assistant 2"]
    assert "--every-turn" in words(app)


def test_bad_rows_have_their_line_and_stop_nothing(batch):
    data = jsonl(ROWS[:1]) + b"not json\n" + jsonl([{"prompt": "p", "response": " "}]) + jsonl(ROWS[1:])
    app = score(batch(), data)
    assert "2 of 6 rows could not be classified" in words(app)
    errors = next(frame.value for frame in app.dataframe if "why" in frame.value)
    assert list(errors["line"]) == [2, 3]
    app.get_by_key(state.BATCH_MARKS).set_value(["errors"]).run()
    assert list(table(app)["line"]) == [2, 3]


def test_filters_and_order(batch):
    app = score(batch(), jsonl(ROWS))
    found = task_of(app).batch
    app.text_input(key=state.BATCH_TEXT).set_value("VERSION is").run()
    assert list(table(app)["line"]) == [2]
    app.text_input(key=state.BATCH_TEXT).set_value("").run()
    app.get_by_key(state.BATCH_MARKS).set_value(["disagree"]).run()
    expected = [i + 1 for i in summarise(found).disagreements]
    assert list(table(app)["line"]) == expected
    app.get_by_key(state.BATCH_MARKS).set_value([])
    app.selectbox(key=state.BATCH_ORDER).set_value("least sure").run()
    sureness = [row.confidence for row in found.rows]
    assert list(table(app)["line"]) == [i + 1 for i in sorted(range(4), key=lambda i: sureness[i])]
    app.multiselect(key=state.BATCH_CLASSES).set_value(["clarification"]).run()
    classes = {row.answer.label for row in found.rows}
    assert "No row passes" in words(app) if "clarification" not in classes else table(app) is not None


def test_long_tables_are_paged(batch, monkeypatch):
    monkeypatch.setattr("ui.batch.TABLE_ROWS", 3)
    app = score(batch(), jsonl(ROWS))
    assert list(table(app)["line"]) == [1, 2, 3]
    app.get("pagination")[0].set_value(2).run()
    assert list(table(app)["line"]) == [4]


def test_a_selected_row_is_shown_in_full_as_text_only(batch):
    long = "word " * 200 + HOSTILE
    app = score(batch(), jsonl([{"prompt": HOSTILE, "response": long, HOSTILE: HOSTILE}]), f"{HOSTILE}.jsonl")
    assert long not in words(app)
    select(app, 0)
    assert {HOSTILE, long} <= {code.value for code in app.code}
    markdown = [e.value for kind in (app.title, app.header, app.subheader, app.markdown) for e in kind]
    assert not any("x.example" in value or "script" in value for value in markdown)


def test_a_corrected_label_counts_in_the_scores_and_is_stored(batch):
    app = score(batch(), jsonl(ROWS))
    task, before = task_of(app), words(app)
    answer = task.batch.rows[1].answer.label
    select(app, 1)
    app.text_input(key=state.WHO).set_value("ana")
    app.get_by_key(f"batch_right_{task.token}_1").set_value(answer).run()
    app.button(key="batch_keep").click().run()
    assert not app.exception and "Saved among the corrections" in words(app)
    assert task.labels == {1: answer}
    assert "accuracy 0.00" in before and "accuracy 0.25" in words(app)
    app.toggle(key=state.KEPT).set_value(True).run()
    kept = next(frame.value for frame in app.dataframe if "right label" in frame.value)
    assert list(kept["right label"]) == [answer] and list(kept["who"]) == ["ana"]


def test_without_labels_and_columns_it_says_what_would_help(batch):
    app = score(batch(), jsonl([{"prompt": "p", "response": "r"}]))
    assert "The file has no labels" in words(app) and "no other column to group by" in words(app)
    assert len(app.get("plotly_chart")) == 1


def test_labels_that_are_no_classes_are_named_and_left_out(batch):
    app = score(batch(), jsonl([*ROWS, {"prompt": "p", "response": "r", "label": "refuse"}]))
    assert '"refuse" (1)' in words(app)
    assert "n = 4)" in next(m.value for m in app.markdown if m.value.startswith("Against the labels"))


def test_classes_of_its_own(batch):
    app = score(batch("folder:own-labels"), jsonl(ROWS))
    assert "Refused is not defined" in words(app) and app.header[0].value == "4 rows"
    assert not any("x.example" in m.value.replace("\\", "") and "![" in m.value for m in app.markdown)
    select(app, 0)
    assert [list(box.options) for box in app.get("button_group") if box.label == "Right label"]


def test_another_checkpoint_marks_the_result_and_scores_the_same_rows_again(batch):
    app = score(batch(), jsonl(ROWS))
    first = task_of(app)
    app.selectbox(key=state.CHECKPOINT).set_value("folder:own-labels").run()
    assert "These are the answers of the checkpoint tiny-bert" in words(app)
    app.button(key="batch_again").click().run()
    finish(app)
    second = task_of(app)
    assert second is not first and second.choice.shown == "own-labels"
    assert [row.row for row in second.batch.rows] == [row.row for row in first.batch.rows]


def test_a_file_below_a_data_root(batch, tiny_checkpoint):
    folder = tiny_checkpoint.parent / "batches"
    folder.mkdir(exist_ok=True)
    (folder / "rows.jsonl").write_bytes(jsonl(ROWS))
    cache._files.clear()
    app = batch()
    app.selectbox(key=state.BATCH_FILE).set_value("batches/rows.jsonl").run()
    app.button(key="batch_go").click().run()
    finish(app)
    assert len(task_of(app).batch.rows) == 4 and str(folder / "rows.jsonl") in words(app)
