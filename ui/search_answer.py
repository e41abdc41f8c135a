"""Draws a search demonstration: the answer first, then the figures that carry it, then the detail in tabs."""

from __future__ import annotations

import streamlit as st

from refusal_core.climb import Demonstration
from refusal_core.climb.policy import in_logits
from refusal_core.climb.report import report_json, trajectories_csv
from refusal_core.climb.trajectory import Step, steps
from refusal_core.limits import CLIMB_SEEDS
from refusal_core.plots import climb as plots
from refusal_core.plots.climb_report import climb_report
from ui import search, show, state
from ui.show import Strong

LISTED_STEPS = 60


def draw_answer(d: Demonstration) -> None:
    """How far the climb ended from the optimum, how often it got there, and how it compares."""
    climb, settings = d.summaries["climb"], d.settings
    show.headline("{regret} logits from the optimum", regret=climb.regret)
    show.sentence(
        "Mean regret of the climb with a budget of {budget} evaluations a seed and fan-out {fanout}. The optimum, "
        "{optimum}, is known exactly; a share of {reached} of the seeds reached it.",
        budget=f"{settings.budget:,}",
        fanout=f"{settings.fanout:,}",
        optimum=f"{in_logits(d.optimum.value):.3f}",
        reached=climb.reached,
    )
    if climb.flattery is not None:
        show.sentence(
            "Flattery: the reported score looks {flattery} logits better than a fresh evaluation of the same sequence.",
            flattery=climb.flattery,
        )
    if preset := search.preset_of(settings):
        show.sentence("What to look at: {teaches}", teaches=preset.teaches)


def draw_figures(d: Demonstration) -> None:
    """The evidence: on the left the course of the searches, on the right where they ended."""
    left, right = st.columns(2, gap="medium")
    with left:
        st.subheader("Each search, evaluation by evaluation", anchor=False)
        show.figure(plots.searches(d), key="search_searches")
        if d.settings.seeds > plots.DRAWN_SEEDS:
            show.sentence(":small[The first {n} seeds are drawn.]", n=plots.DRAWN_SEEDS)
        st.subheader("Regret against budget, by fan-out", anchor=False)
        show.figure(plots.fanouts(d), key="search_fanouts")
        st.markdown(":small[The thick line is the chosen fan-out, with its 95% interval.]")
    with right:
        st.subheader("Against baselines, same budget and seeds", anchor=False)
        show.figure(plots.methods(d), key="search_methods")
        st.markdown(":small[Mean with 95% interval; below it the seeds.]")
        st.subheader("Seed by seed: a baseline’s regret less the climb’s", anchor=False)
        show.figure(plots.paired(d), key="search_paired")
        for paired in d.paired:
            show.sentence(
                "{method}: {difference}, {verdict}.",
                method=Strong(paired.method),
                difference=paired.difference,
                verdict=paired.verdict,
            )
    st.subheader("What the search reports, and what a fresh evaluation says", anchor=False)
    _draw_flattery(d)


def _draw_flattery(d: Demonstration) -> None:
    if d.settings.noise == 0:
        st.markdown("Without noise a fresh evaluation repeats the score. A noise above 0 shows the winner’s curse.")
        return
    left, right = st.columns(2, gap="medium")
    with left:
        show.figure(plots.reported(d), key="search_reported")
    with right:
        show.figure(plots.flattery(d), key="search_flattery")
        st.markdown(
            "The search keeps the best of many noisy scores, and the best of many is also the luckiest. Flattery is "
            "how much better the reported score looks than a fresh evaluation of the same sequence."
        )


def draw_detail(d: Demonstration) -> None:
    """Tabs: one search told token by token, the seeds, the methods, downloads, the command, the link."""
    one, seeds, methods, files, command, link = st.tabs(
        ["One search", "Seeds", "Methods", "Downloads", "Command", "Link"]
    )
    with one:
        _draw_one(d)
    with seeds:
        _draw_seeds(d)
    with methods:
        _draw_methods(d)
    with files:
        show.download("Download report.json", lambda: report_json(d), "report.json", key="search_json")
        show.download("Download trajectories.csv", lambda: trajectories_csv(d), "trajectories.csv", key="search_csv")
        show.download("Download report.html", lambda: climb_report(d), "report.html", key="search_html")
        show.text(f"Configuration {d.settings.sha256}")
    with command:
        st.markdown("The same as this command, which writes the same files into a folder:")
        show.code(d.settings.command(), "bash")
    with link:
        st.markdown("Opening this address runs the same demonstration:")
        show.code(state.address(search.to_params(d.settings), st.context.url))


def _draw_one(d: Demonstration) -> None:
    seed = st.number_input("Seed", 0, CLIMB_SEEDS - 1, key=state.SEARCH_SEED, persist_state="session", width=160)
    if seed >= d.settings.seeds:
        show.sentence("There are the seeds 0 to {last}.", last=f"{d.settings.seeds - 1:,}")
        return
    runs = d.runs["climb"]
    told = steps(runs, seed)
    show.sentence(
        "Each evaluation that scored better than all before it in its run; bold is what differs from the row above. "
        "Restarts: {restarts}. At the end {regret} logits from the optimum.",
        restarts=f"{int(runs.restarts[seed]):,}",
        regret=f"{in_logits(d.regret(runs.best[seed])):.3f}",
    )
    numbers = ("evaluation", "score", "exact")
    show.facts((*numbers, "sequence"), map(_row, told[-LISTED_STEPS:]), right=numbers)
    if len(told) > LISTED_STEPS:
        show.sentence("The last {n} of {all} are shown.", n=LISTED_STEPS, all=len(told))


def _row(step: Step) -> tuple[object, ...]:
    marked = tuple(Strong(t) if k in step.changed and not step.new_start else t for k, t in enumerate(step.tokens))
    if step.new_start and step.restart:
        marked = (f"restart {step.restart:,}:", *marked)
    return f"{step.evaluation:,}", f"{step.score:.3f}", f"{step.value:.3f}", marked


def _draw_seeds(d: Demonstration) -> None:
    runs = d.runs["climb"]
    table = {
        "seed": runs.seeds,
        "exact logit": in_logits(runs.best),
        "regret": in_logits(d.regret(runs.best)),
        "reported": in_logits(runs.reported),
        "fresh": in_logits(runs.fresh),
        "restarts": runs.restarts,
        "result": [d.policy.words(runs.sequence[row]) for row in runs.result],
    }
    three = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        table,
        hide_index=True,
        column_config=dict.fromkeys(("exact logit", "regret", "reported", "fresh"), three),
        alt="Of each seed: exact logit of its result, regret, reported score, fresh evaluation, restarts, result.",
    )


def _draw_methods(d: Demonstration) -> None:
    rows = [(m, s.regret, s.reached, _or_none(s.flattery)) for m, s in d.summaries.items()]
    rows += [(f"climb, fan-out {f}", s.regret, s.reached, _or_none(s.flattery)) for f, s in d.fanouts.items()]
    show.facts(("method", "mean regret", "optimum reached", "flattery"), rows)


def _or_none(rate: object) -> object:
    return "no noise" if rate is None else rate
