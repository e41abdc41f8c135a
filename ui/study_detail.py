"""The detail of a direction study: wrong calls with their prompts, the plan, the numbers behind it, and downloads."""

from __future__ import annotations

import streamlit as st

from refusal_core import limits
from refusal_core.direction import vector
from refusal_core.direction.examples import projections_csv
from refusal_core.direction.prompts import read_prompts
from refusal_core.direction.record import Record
from refusal_core.direction.scores import TestScores
from refusal_core.errors import RefusalCoreError
from refusal_core.limits import TABLE_ROWS
from refusal_core.metrics.intervals import Rate, format_rate
from refusal_core.plots.study_report import study_report
from ui import inputs, show, state
from ui import study as logic

PROMPTS = "study_prompts"  # (file id, prompts by id), of the table that is uploaded now


def draw_wrong(record: Record, *, demo: bool, is_sample: bool) -> None:
    """The examples on the wrong side, with their prompts when a table of them is uploaded."""
    examples, words = record.examples, logic.meaning(record)
    if examples is None:
        st.markdown("One pooled file has no test examples of its own.")
        return
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    with left:
        kinds = st.pills(
            "Which",
            (0, 1),
            format_func=lambda label: words.missed if label else words.false,
            selection_mode="multi",
            key=state.STUDY_KINDS,
            persist_state="session",
        )
    with right:
        st.file_uploader(
            "Prompts by id, to read beside them: JSONL, CSV or Parquet with id and prompt",
            key=state.STUDY_UPLOAD["prompts"],
            max_upload_size=inputs.most_megabytes(demo=demo, in_demo=limits.DEMO_STUDY_BYTES),
        )
    try:
        prompts = known_prompts(is_sample)
    except RefusalCoreError as error:
        show.problem("These prompts cannot be read", str(error))
        prompts = {}
    if prompts:
        known = sum(name in prompts for name in examples.ids)
        show.sentence(
            "{known} of {n} test examples have a prompt. Prompts stay in memory and are never stored.",
            known=f"{known:,}",
            n=f"{examples.n:,}",
        )
    rows = logic.wrong_rows(examples, words, prompts, sorted(kinds), TABLE_ROWS)
    if not rows:
        st.markdown("None.")
        return
    count = sum(len(examples.wrong(label)) for label in kinds)
    st.dataframe(
        rows,
        hide_index=True,
        height=min(420, 38 + 35 * len(rows)),
        key="study_wrong",
        column_config={"from the threshold": st.column_config.NumberColumn(format="%.3f")},
        alt="Test examples on the wrong side of the threshold, the farthest first, with id, category, label and call.",
    )
    if count > len(rows):
        show.sentence(":small[The {n} farthest of {all}.]", n=f"{len(rows):,}", all=f"{count:,}")


def known_prompts(is_sample: bool) -> dict[str, str]:
    """The prompts of the uploaded table, or of the sample. Raises InputError for a table that cannot be read."""
    upload = st.session_state.get(state.STUDY_UPLOAD["prompts"])
    if upload is None:
        return logic.sample_prompts() if is_sample else {}
    known = st.session_state.get(PROMPTS)
    if known is None or known[0] != upload.file_id:
        known = (upload.file_id, read_prompts(upload, upload.name))
        st.session_state[PROMPTS] = known
    return known[1]


def draw_plan(record: Record) -> None:
    """What the interval is, and how many categories a narrower one would need."""
    result = record.study
    if not isinstance(result.test, TestScores):
        st.markdown("The interval of one pooled file is that of the difference between the splits.")
        return
    show.text(logic.interval_words(result))
    rows = logic.plan_rows(result)
    if not rows:
        return
    words = logic.meaning(record)
    header = ("wanted width", f"categories {words.zero}", f"categories {words.one}")
    show.facts(header, rows, right=header)
    now = result.interval.categories_per_class
    show.sentence(
        "Here are {zero} and {one}. More rows of the same categories help little: the interval is over categories. "
        "The plan assumes that new categories scatter as these do.",
        zero=now["0"],
        one=now["1"],
    )


def draw_numbers(record: Record) -> None:
    """Every category with its rates, the inputs, and the other baselines."""
    result, words = record.study, logic.meaning(record)
    if isinstance(result.test, TestScores):
        rows = [
            {
                "category": one.category,
                "n": one.n,
                words.zero: one.label_counts["0"],
                words.one: one.label_counts["1"],
                "in training": "yes" if one.seen_in_train else "no",
                words.false_rate.lower(): _rate(one, "false", "0"),
                words.missed_rate.lower(): _rate(one, "missed", "1"),
            }
            for one in result.test.by_category
        ]
        st.dataframe(rows, hide_index=True, key="study_categories", alt="Each test category with its counts and rates.")
    facts = []
    for part, found in result.inputs.items():
        if found is None:
            continue
        what = found.get("part", "the whole file")
        facts.append((part, f"{found['examples']:,} × {found['dimensions']:,}", found["dtype"], what))
    with st.container(gap="xsmall"):
        for part, size, dtype, what in facts:
            show.text(f"{part}: {size} {dtype}, {what}, SHA-256 {result.inputs[part]['sha256']}")
        for name in ("model", "layer", "pooling"):
            show.text(f"{name}: {result.extraction[name]}")
        show.text(f"threshold {result.direction['threshold']:.6g}, norm {result.direction['norm']:.6g}")
        show.text(f"direction SHA-256 {result.direction['sha256']}")


def _rate(one, kind: str, label: str) -> str:
    value = getattr(one, f"{kind}_refusal_rate")
    if value is None:
        return "undefined"
    return format_rate(Rate(value, one.label_counts[label], getattr(one, f"{kind}_refusal_rate_interval")))


def draw_downloads(record: Record, *, is_sample: bool) -> None:
    """The result, its rows, the direction with its card, and the report."""
    result, sha256 = record.study, record.sha256
    try:
        prompts = known_prompts(is_sample)
    except RefusalCoreError:  # said beside the table of wrong calls
        prompts = {}
    with st.container(horizontal=True):
        show.download("Download study.json", record.text, "study.json", key="study_json")
        if record.examples is not None:
            show.download(
                "Download projections.csv",
                lambda: projections_csv(record.examples, prompts),
                "projections.csv",
                key="study_csv",
            )
        show.download("Download study.html", lambda: study_report(record), "study.html", key="study_html")
    st.markdown("The direction, with a card that says what it is of:")
    with st.container(horizontal=True):
        show.download("Download direction.npy", lambda: vector.as_npy(result), "direction.npy", key="study_npy")
        show.download(
            "Download direction.json", lambda: vector.card_json(result, sha256), "direction.json", key="study_card"
        )
        show.download(
            "Download direction.safetensors",
            lambda: vector.as_safetensors(result, sha256),
            "direction.safetensors",
            key="study_safetensors",
        )
    st.markdown(
        ":small[`direction.npy` holds the unit vector in float64 and `direction.json` its card; the safetensors file "
        "holds both. A call is 1 when x · direction is at or above the threshold.]"
    )
    show.text(f"study.json has the SHA-256 {sha256}")


def draw_command(record: Record) -> None:
    """The same study in a terminal."""
    st.markdown("The same as this command, which writes the same study.json to the byte:")
    show.code(record.command, "bash")
