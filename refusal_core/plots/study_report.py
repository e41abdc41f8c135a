"""study.html: the numbers of study.json, drawn, in one file that asks for nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from refusal_core.direction.examples import Examples, roc
from refusal_core.direction.findings import auroc_words, drawn_words
from refusal_core.direction.intervals import CategoryInterval, LeaveOneOut, NotAvailable
from refusal_core.direction.meaning import Meaning, meaning_of
from refusal_core.direction.nulls import Null
from refusal_core.direction.record import Record
from refusal_core.direction.result import Study
from refusal_core.direction.scores import TestScores
from refusal_core.direction.splits import SplitComparison
from refusal_core.errors import one_line
from refusal_core.limits import GROUPS_LISTED, GROUPS_SHOWN
from refusal_core.metrics.intervals import Rate, format_rate
from refusal_core.plots.html import Banner, Chart, Code, Lead, Part, Section, Table, html_report
from refusal_core.plots.study import NAMES, binned, distributions, p_words
from refusal_core.plots.study_categories import KINDS, rates_of
from refusal_core.plots.study_geometry import variant_rows
from refusal_core.plots.svg import Line, Row, interval_chart, line_chart

TITLE = "Direction study"
NAME_CHARACTERS, DOTS = 19, 200


def study_report(record: Record) -> str:
    """The HTML file."""
    result, words = record.study, meaning_of(record.study.extraction.get("label_means"))
    sections = [Section("", list(_answer(record, words)))]
    if isinstance(result.test, TestScores):
        sections += [
            Section("Projections of the test examples", list(_projections(record.examples, words))),
            Section("What there would be without a direction", list(_nulls(result))),
            Section("Wrong calls by category", list(_categories(result.test, words))),
            Section("ROC", list(_roc(record.examples, result, words))),
            Section("One category out", list(_left_out(result))),
            Section("Geometry", list(_geometry(result))),
        ]
    sections += [
        Section("Categories left out against random rows", list(_splits(result.split_comparison))),
        Section("What this does not show", list(_not_shown(words))),
        Section("Inputs", list(_inputs(record))),
    ]
    return html_report(TITLE, sections)


def _answer(record: Record, words: Meaning) -> Iterator[Part]:
    yield Lead(record.study.headline)
    yield f"Label 1 says that {words.title}. Files: {record.title}."
    yield from (Banner(warning) for warning in record.study.warnings)


def _projections(examples: Examples, words: Meaning) -> Iterator[Part]:
    edges, counts = binned(examples)
    x = [float(edge) + examples.threshold for edge in edges]
    lines = [
        Line(words.one, x, [*counts[1].tolist(), 0], style="accent", step=True),
        Line(words.zero, x, [*counts[0].tolist(), 0], style="grey dash", step=True),
    ]
    drawing = line_chart(lines, x_title="projection on the direction, activation units", y_title="test examples")
    wrong = [len(examples.wrong(label)) for label in (0, 1)]
    yield Chart(
        drawing,
        f"Histogram of the projections by label; {wrong[1]:,} {words.one} and {wrong[0]:,} {words.zero} examples lie "
        f"on the wrong side of the threshold {examples.threshold:.4g}.",
    )
    yield f"The threshold is {examples.threshold:.4g}, halfway between the class means of the training file."


def _nulls(result: Study) -> Iterator[Part]:
    found = distributions(result)
    observed = result.test.balanced_accuracy
    if found:
        rows = [Row("observed", observed, None, None, f"{observed:.3f}")]
        for name, one in found.items():
            scores = np.array(one.scores)
            low, high = np.quantile(scores, [0.025, 0.975])
            note = f"{one.mean:.3f}, {p_words(one)}"
            shown = scores[:DOTS].tolist()
            rows.append(Row(_short(NAMES[name].replace("<br>", " ")), one.mean, low, high, note, shown, "grey"))
        yield Chart(
            interval_chart(rows, x_title="balanced accuracy: mean, middle 95% and single draws"),
            f"Observed balanced accuracy {observed:.3f}; {'; '.join(f'{row.name} {row.note}' for row in rows[1:])}.",
        )
        tests = {name: one for name, one in found.items() if isinstance(one, Null)}
        claims = [(NAMES[n].replace("<br>", " "), one.claim, f"{one.p_value:.2g}") for n, one in tests.items()]
        yield Table(("null", "a small p-value speaks against", "p-value"), claims)
    for name, one in result.nulls.items():
        if isinstance(one, NotAvailable):
            yield f"{NAMES[name].replace('<br>', ' ').capitalize()}: not available, {one.not_available}."


def _categories(scores: TestScores, words: Meaning) -> Iterator[Part]:
    for kind, (label, _, _) in KINDS.items():
        rates = rates_of(scores, kind, GROUPS_SHOWN)
        if not rates:
            continue
        title = getattr(words, f"{kind}_rate")
        rows = [
            Row(
                _short(one.category),
                rate.value,
                rate.interval.low,
                rate.interval.high,
                format_rate(rate),
                style="accent" if label == "1" else "grey",
            )
            for one, rate in rates
        ]
        yield Chart(
            interval_chart(rows, x_title=f"{title.lower()} with 95% interval"),
            f"{title} by category: " + "; ".join(f"{one.category} {format_rate(rate)}" for one, rate in rates) + ".",
        )
    yield Table(
        ("category", "n", words.zero, words.one, "in training", words.false_rate.lower(), words.missed_rate.lower()),
        [
            (
                one.category,
                one.n,
                one.label_counts["0"],
                one.label_counts["1"],
                "yes" if one.seen_in_train else "no",
                _rate(one, "false", "0"),
                _rate(one, "missed", "1"),
            )
            for one in scores.by_category[:GROUPS_LISTED]
        ],
    )
    if len(scores.by_category) > GROUPS_LISTED:
        yield f"The first {GROUPS_LISTED} of {len(scores.by_category):,} categories; study.json has them all."


def _roc(examples: Examples, result: Study, words: Meaning) -> Iterator[Part]:
    found = roc(examples)
    if found is None:
        yield "A ROC needs test examples of both labels."
        yield f"AUROC {auroc_words(vars(result))}."
        return
    lines = [Line("", found[0].tolist(), found[1].tolist()), Line("chance", [0, 1], [0, 1], style="grey dash")]
    yield Chart(
        line_chart(lines, x_title=f"{words.zero}, but called {words.one}", y_title=f"{words.one}, called so"),
        f"ROC curve with AUROC {auroc_words(vars(result))}.",
    )
    shift = result.threshold_shift
    yield f"AUROC {auroc_words(vars(result))}."
    if isinstance(result.auroc_interval, CategoryInterval):
        yield drawn_words(result.auroc_interval)
    if shift.shift is not None:
        yield (
            f"The test file's own midpoint lies {shift.shift:+.2f} within-class sd from the threshold; there balanced "
            f"accuracy would be {shift.oracle_balanced_accuracy:.3f}, which looks at test labels and is no result."
        )


def _left_out(result: Study) -> Iterator[Part]:
    found = result.leave_one_category_out
    if not isinstance(found, LeaveOneOut) or found.low is None:
        yield "Without any one category a label is missing."
        return
    yield (
        f"Without one category's test rows balanced accuracy goes from {found.low:.3f} (without "
        f"{found.without_for_low}) to {found.high:.3f} (without {found.without_for_high})."
    )


def _geometry(result: Study) -> Iterator[Part]:
    if isinstance(result.geometry, NotAvailable):
        yield f"Not available: {result.geometry.not_available}."
        return
    found = result.geometry
    yield (
        f"About {found.participation_ratio:,.1f} of {result.inputs['train']['dimensions']:,} dimensions carry the "
        "variance (participation ratio)."
    )
    yield Table(
        ("largest dimensions", "share of the direction", "share of the scores' variance"),
        [
            (name, f"{share:.3f}", f"{found.share_of_score_variance[name]:.3f}")
            for name, share in found.share_of_direction.items()
        ],
    )
    yield Table(("direction", "balanced accuracy", "AUROC", "cosine"), variant_rows(result))


def _splits(found: SplitComparison | NotAvailable) -> Iterator[Part]:
    if isinstance(found, NotAvailable):
        yield f"Not compared: {found.not_available}."
        return
    text = (
        f"Balanced accuracy is {found.left_out_balanced_accuracy:.3f} when whole categories are left out of the fit "
        f"and {found.random_balanced_accuracy:.3f} when random rows are ({found.repeats} partitions): difference "
        f"{found.difference:+.3f}"
    )
    if isinstance(found.interval, NotAvailable):
        yield f"{text} ({found.interval.not_available})."
    else:
        yield f"{text} ({found.interval.low:+.3f} to {found.interval.high:+.3f})."
    yield Table(
        ("category", "n", "right when it is left out", "right when random rows are"),
        [(c.category, c.n, f"{c.left_out:.3f}", f"{c.random:.3f}") for c in found.by_category[:GROUPS_LISTED]],
    )


def _not_shown(words: Meaning) -> Iterator[Part]:
    yield (
        "That the model uses this direction: that takes an intervention with controls. That it is the only one, or "
        "that one direction covers every kind of question. Anything about another model, layer or token position."
    )
    if words.key == "harmful":
        yield "Anything about refusing: label 1 says that the prompt is harmful, not that the model declined to answer."


def _inputs(record: Record) -> Iterator[Part]:
    result = record.study
    yield Code(record.command)
    rows = []
    for part, found in result.inputs.items():
        if found is not None:
            size = f"{found['examples']:,} x {found['dimensions']:,} {found['dtype']}"
            rows.append((part, size, found.get("part", "the whole file"), found["sha256"]))
    yield Table(("part", "size", "rows", "SHA-256"), rows)
    facts = {**{name: str(value) for name, value in result.extraction.items() if isinstance(value, str)}}
    facts |= {"seed": str(result.seed), "shuffles": str(result.repeats), "split": result.split}
    facts |= {"direction SHA-256": result.direction["sha256"], "study.json SHA-256": record.sha256}
    yield Table(("setting", "value"), [(name.replace("_", " "), value) for name, value in facts.items()])
    yield Table(("package", "version"), list(json.loads(record.text)["versions"].items()))


def _rate(one, kind: str, label: str) -> str:
    value = getattr(one, f"{kind}_refusal_rate")
    rate = Rate(value, one.label_counts[label], getattr(one, f"{kind}_refusal_rate_interval"))
    return "undefined" if value is None else format_rate(rate)


def _short(name: str) -> str:
    return one_line(name, NAME_CHARACTERS)
