"""Checkpoints side by side with a baseline, and the settings in which runs differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from refusal_core.plots import runs_tables as plots
from refusal_core.runs import view_compare
from refusal_core.runs.model import Run
from refusal_core.runs.view import spoken
from refusal_core.runs.view_compare import COMPARED, Candidate, Entry, SideBySide
from ui import show
from ui.runs import Reading
from ui.runs_state import choose, key, value

SETTINGS_SHOWN, IDS_SHOWN, RUNS_COMPARED = 60, 200, 8


def candidates_of(reading: Reading) -> tuple[Candidate, ...]:
    return reading.once("candidates", lambda: view_compare.candidates(reading.runs))


def draw_checkpoints(reading: Reading) -> None:
    """One metric of every checkpoint against a baseline: a figure, a table, and which items flipped."""
    found = candidates_of(reading)
    metrics = view_compare.offered(found)
    if not metrics:
        st.markdown("No file here scores a checkpoint: add eval_results.json, a report, a matrix or predictions.jsonl.")
        return
    names = {one.key: one.name for one in found}
    left, right = st.columns(2)
    choose("metric", metrics, _deciding(reading, metrics))
    metric = left.selectbox("Compare by", metrics, format_func=spoken, key=key("metric"), persist_state="session")
    choose("baseline", list(names), default_baseline(found, metric))
    right.selectbox("Baseline", list(names), format_func=names.get, key=key("baseline"), persist_state="session")
    table = compared(reading)
    if len(found) > 1:
        show.figure(plots.differences(table), key="runs_differences")
    _table(table)
    _how(table)
    _flips(table)


def _deciding(reading: Reading, metrics: Sequence[str]) -> str:
    """The metric that the best checkpoint was found by, where it can be compared by; else the first."""
    by = [run.best.metric.split(" ")[-1] for run in reading.runs if run.best]
    return next((metric for metric in by if metric in metrics), metrics[0])


def default_baseline(found: Sequence[Candidate], metric: str) -> str:
    """The first checkpoint that has the metric."""
    for one in found:
        if view_compare.offered([one]) and metric in view_compare.offered([one]):
            return one.key
    return found[0].key


def leading(reading: Reading) -> set[tuple[str, str]]:
    """Run and checkpoint with the best value of the first metric that there is; none without."""
    found = candidates_of(reading)
    metrics = view_compare.offered(found)
    if not metrics:
        return set()
    table = _computed(reading, metrics[0], default_baseline(found, metrics[0]))
    return set() if table.best is None else {(found[table.best].run, found[table.best].checkpoint)}


def compared(reading: Reading) -> SideBySide:
    """The comparison that is chosen, computed once."""
    return _computed(reading, value("metric"), value("baseline"))


def _computed(reading: Reading, metric: str, baseline: str) -> SideBySide:
    make = lambda: view_compare.side_by_side(candidates_of(reading), metric, baseline)  # noqa: E731
    return reading.once(("side by side", metric, baseline), make)


def _table(table: SideBySide) -> None:
    best = table.best
    rows = [
        {
            "checkpoint": one.name + (" ★" if place == best and len(table.candidates) > 1 else ""),
            "step": one.step,
            spoken(table.metric): view_compare.value_words(entry),
            "difference": "baseline" if one is table.baseline else view_compare.difference_words(entry),
            "verdict": _verdict(entry, one is table.baseline),
            "worse": len(entry.compared.worse) if entry.compared and entry.compared.paired else None,
            "better": len(entry.compared.better) if entry.compared and entry.compared.paired else None,
            "from": entry.basis or "",
        }
        for place, (one, entry) in enumerate(zip(table.candidates, table.entries, strict=True))
    ]
    rows = sorted(rows, key=lambda row: row[spoken(table.metric)] in ("–", "not a number"))
    said = "; ".join(f"{row['checkpoint']} {row[spoken(table.metric)]}, {row['difference']}" for row in rows[:20])
    st.dataframe(
        rows,
        hide_index=True,
        key="runs_side_by_side",
        placeholder="",
        column_config={
            "verdict": st.column_config.TextColumn(width=150),
            "worse": st.column_config.NumberColumn(help="Items that went from right to wrong", width="small"),
            "better": st.column_config.NumberColumn(help="Items that went from wrong to right", width="small"),
            "step": st.column_config.NumberColumn(format="%d", width="small"),
        },
        alt=f"{spoken(table.metric)} of each checkpoint and its difference from the baseline: {said}.",
    )


def _verdict(entry: Entry, is_baseline: bool) -> str:
    if is_baseline:
        return ""
    if entry.value is not None and not math.isfinite(entry.value):
        return "not comparable"
    return entry.verdict or ("no interval" if entry.difference is not None else "")


def _how(table: SideBySide) -> None:
    metric = COMPARED.get(table.metric)
    rule = f" {metric.rule}." if metric is not None and metric.rule else ""
    show.sentence(
        ":small[:gray[A difference above 0 is better. Intervals are 95%; where both checkpoints have predictions of "
        "the same items they are paired by item.{rule} ★ has the best value.]]",
        rule=rule,
    )
    reasons = {entry.why_not for entry in table.entries if entry.why_not}
    for reason in sorted(reasons)[:3]:
        show.text(f"No interval on some differences: {reason}.")


def _flips(table: SideBySide) -> None:
    flipped = [(one, found) for one, found in view_compare.flips(table) if found.worse or found.better]
    if not flipped:
        return
    with st.expander("Items that changed sides"):
        for one, found in flipped[:20]:
            p = "" if found.mcnemar_p is None else f", McNemar’s exact p {found.mcnemar_p:.3g}"
            few = " (too few to reach 0.05 whatever they were)" if p and found.too_few_flips else ""
            show.text(f"{one.name} against {table.baseline.name}: {len(found.worse):,} from right to wrong, "
                      f"{len(found.better):,} from wrong to right{p}{few}")  # fmt: skip
            if found.left_out:
                show.text(f"{found.left_out:,} items are in one of the two only, and are left out.")
            for word, ids in (("Worse", found.worse), ("Better", found.better)):
                if ids:
                    more = f" and {len(ids) - IDS_SHOWN:,} more" if len(ids) > IDS_SHOWN else ""
                    show.code(f"{word}: {', '.join(ids[:IDS_SHOWN])}{more}")


def draw_settings(runs: Sequence[Run]) -> None:
    """Where the settings of the chosen runs differ, and all settings of each."""
    if not any(run.settings for run in runs):
        st.markdown("These files state no settings.")
        return
    shown = list(runs[:RUNS_COMPARED])
    rows = view_compare.differing(shown)
    if len(shown) > 1 and rows:
        named = [run.name for run in shown]
        st.dataframe(
            [{"setting": name, **dict(zip(named, map(_setting, values), strict=True))} for name, values in rows],
            hide_index=True,
            key="runs_settings",
            alt="Settings that differ between the chosen runs: " + ", ".join(name for name, _ in rows[:20]) + ".",
        )  # fmt: skip
    elif len(shown) > 1:
        st.markdown("The chosen runs state the same settings.")
    for place, run in enumerate(shown):
        if run.settings:
            with st.expander("All settings of one run", expanded=len(shown) == 1):
                show.text(run.name)
                st.dataframe(
                    [{"setting": name, "value": _setting(value)} for name, value in run.settings.items()],
                    hide_index=True,
                    key=f"runs_settings_{place}",
                    alt=f"{len(run.settings)} settings of {run.name}.",
                )


def _setting(value: object) -> str:
    return "–" if value is None else str(value)[:SETTINGS_SHOWN]
