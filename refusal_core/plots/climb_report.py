"""report.html of the search demonstration: the same numbers as report.json, drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from refusal_core.climb.demonstration import SIMULATED, Demonstration, Summary
from refusal_core.climb.policy import in_logits
from refusal_core.climb.report import WATCHED
from refusal_core.metrics.intervals import Rate, format_rate
from refusal_core.plots.html import Banner, Chart, Code, Lead, Part, Section, Table, html_report
from refusal_core.plots.svg import Line, Row, interval_chart, line_chart
from refusal_core.versions import versions

TITLE = "Search demonstration (simulated)"
DRAWN_SEEDS, LISTED_SEEDS = 50, 100
DOTS = 200
RAMP = ("accent ramp1", "accent ramp2", "accent ramp3", "accent", "ink ramp3", "ink")  # by fan-out, ascending


def climb_report(demonstration: Demonstration) -> str:
    """The HTML file; below 300 kB whatever the number of seeds."""
    d = demonstration
    return html_report(
        TITLE,
        [
            Section("", [Banner(SIMULATED), Lead(d.sentence()), *_setting(d)]),
            Section("Each search, evaluation by evaluation", _searches(d)),
            Section("Against baselines with the same budget and the same seeds", _methods(d)),
            Section("Budget and fan-out", _fanouts(d)),
            Section("What the search reports, and what a fresh evaluation says", _flattery(d)),
            Section("Seeds", _seeds(d)),
            Section("Configuration", _configuration(d)),
        ],
    )


def _setting(d: Demonstration) -> Iterator[Part]:
    s = d.settings
    best = "highest" if s.objective == "raise" else "lowest"
    yield (
        f"{s.seeds:,} searches, one a seed, look for the sequence of {s.length} made-up tokens with the {best} refusal "
        f"logit. The table behind the scores is known, so the exact optimum is too: {in_logits(d.optimum.value):.6f}. "
        "Regret is how far the exact logit of a result is from it. Intervals are 95% over seeds: they speak of other "
        "seeds on this one policy."
    )


def _searches(d: Demonstration) -> Iterator[Part]:
    runs, shown = d.runs["climb"], min(d.settings.seeds, DRAWN_SEEDS)
    lines = []
    for place in range(shown):
        rows = runs.rows(place)
        x = [*(int(runs.at[r]) for r in rows), d.settings.budget]
        y = [float(in_logits(runs.value[r])) for r in rows]
        lines.append(Line("", x, [*y, y[-1]], style="accent thin" if shown > 1 else "accent", step=True))
    optimum, spread = float(in_logits(d.optimum.value)), d.summaries["climb"].spread
    quartiles = f"{spread.lower_quartile:.3f}, {spread.median:.3f} and {spread.upper_quartile:.3f}"
    drawing = line_chart(
        lines, x_title="evaluations", y_title="exact logit of the best so far", level=(optimum, "optimum")
    )
    yield Chart(
        drawing,
        f"Curves of {shown} seeds: the exact logit of the best sequence so far, against evaluations, with the optimum "
        f"at {optimum:.3f}. At the end the quartiles of regret are {quartiles}.",
    )
    if shown < d.settings.seeds:
        yield f"The first {shown} of {d.settings.seeds:,} seeds."


def _methods(d: Demonstration) -> Iterator[Part]:
    rows = []
    for method, summary in d.summaries.items():
        regrets = [float(r) for r in in_logits(d.regret(d.runs[method].best))[:DOTS]]
        rows.append(_row(method, summary.regret, dots=regrets, style="accent" if method == "climb" else "grey"))
    yield Chart(
        interval_chart(rows, x_title="regret, logits: mean with 95% interval, and each seed"),
        "Mean regret: " + "; ".join(f"{m} {s.regret}" for m, s in d.summaries.items()) + ".",
    )
    yield Table(
        ("method", "mean regret", "optimum reached", "quartiles of regret"),
        [(m, str(s.regret), str(s.reached), _quartiles(s)) for m, s in d.summaries.items()],
    )
    yield "Seed by seed, the baseline's regret less the climb's: above 0 the climb came closer to the optimum."
    yield Chart(
        interval_chart(
            [_row(f"{p.method} - climb", p.difference) for p in d.paired], x_title="difference in regret, logits"
        ),
        "Paired differences: " + "; ".join(f"{p.method} {p.difference}, {p.verdict}" for p in d.paired) + ".",
    )
    yield Table(
        ("baseline", "difference", "climb closer", "equal", "climb farther", "verdict"),
        [(p.method, str(p.difference), p.closer, p.equal, p.farther, p.verdict) for p in d.paired],
    )


def _fanouts(d: Demonstration) -> Iterator[Part]:
    lines = [
        Line(f"fan-out {fanout}", *_points(summary), style=style)
        for (fanout, summary), style in zip(d.fanouts.items(), RAMP[-len(d.fanouts) :], strict=True)
    ]
    yield Chart(
        line_chart(lines, x_title="budget, evaluations a seed", y_title="mean regret, logits", log_x=True),
        "Mean regret against budget: "
        + "; ".join(f"fan-out {f} ends at {s.regret}" for f, s in d.fanouts.items())
        + ".",
    )
    yield "A larger fan-out looks at more of the neighbourhood before it moves, so it moves less often for its budget."
    yield Table(
        ("fan-out", "mean regret", "optimum reached", "flattery"),
        [(fanout, str(s.regret), str(s.reached), _flattery_of(s)) for fanout, s in d.fanouts.items()],
        caption=f"At the whole budget of {d.settings.budget:,} evaluations a seed.",
    )


def _flattery(d: Demonstration) -> Iterator[Part]:
    climb = d.summaries["climb"]
    if climb.flattery is None:
        yield "Without evaluation noise a fresh evaluation repeats the score: there is nothing to be flattered by."
        return
    curve = climb.curve
    lines = [
        Line("reported", curve.budgets.tolist(), curve.reported.tolist(), style="grey dash"),
        Line("exact", curve.budgets.tolist(), curve.exact.tolist(), style="accent"),
    ]
    optimum = float(in_logits(d.optimum.value))
    yield Chart(
        line_chart(
            lines, x_title="evaluations", y_title="logit, mean over seeds", log_x=True, level=(optimum, "optimum")
        ),
        f"The score that the climb would report, and the exact logit behind it: at the end {curve.reported[-1]:.3f} "
        f"and {curve.exact[-1]:.3f}.",
    )
    yield (
        "The search keeps the best of many noisy scores, and the best of many is also the luckiest: its score flatters "
        "it. Flattery is how much better the reported score looks than a fresh evaluation of the same result."
    )
    yield Chart(
        interval_chart(
            [_row(m, s.flattery, style="accent" if m == "climb" else "grey") for m, s in d.summaries.items()],
            x_title="flattery, logits: mean with 95% interval",
        ),
        "Flattery: " + "; ".join(f"{m} {s.flattery}" for m, s in d.summaries.items()) + ".",
    )


def _seeds(d: Demonstration) -> Iterator[Part]:
    runs, shown = d.runs["climb"], min(d.settings.seeds, LISTED_SEEDS)
    rows = []
    for place in range(shown):
        row = runs.result[place]
        numbers = (runs.value[row], d.regret(runs.value[row]), runs.score[row], runs.fresh[place])
        best, regret, reported, fresh = (float(in_logits(n)) for n in numbers)
        sequence = d.policy.words(runs.sequence[row])
        restarts = int(runs.restarts[place])
        rows.append(
            (int(runs.seeds[place]), *(f"{n:.3f}" for n in (best, regret, reported, fresh)), restarts, sequence)
        )
    yield Table(("seed", "exact logit", "regret", "reported", "fresh", "restarts", "result"), rows)
    if shown < d.settings.seeds:
        yield f"The first {shown} of {d.settings.seeds:,} seeds; report.json has them all."


def _configuration(d: Demonstration) -> Iterator[Part]:
    yield Code(d.settings.command())
    facts = {**asdict(d.settings), "configuration sha256": d.settings.sha256, "policy sha256": d.policy.sha256}
    yield Table(("setting", "value"), [(name.replace("_", " "), str(value)) for name, value in facts.items()])
    yield Table(("package", "version"), list(versions(WATCHED).items()))


def _row(name: str, rate: Rate, *, dots: list[float] | tuple = (), style: str = "accent") -> Row:
    ends = (rate.interval.low, rate.interval.high) if rate.interval else (None, None)
    return Row(name, rate.value, *ends, note=format_rate(rate), dots=dots, style=style)


def _points(summary: Summary) -> tuple[list[float], list[float]]:
    return summary.curve.budgets.tolist(), summary.curve.regret.tolist()


def _quartiles(summary: Summary) -> str:
    s = summary.spread
    return ", ".join(f"{n:.2f}" for n in (s.lower_quartile, s.median, s.upper_quartile))


def _flattery_of(summary: Summary) -> str:
    return "none: no noise" if summary.flattery is None else str(summary.flattery)
