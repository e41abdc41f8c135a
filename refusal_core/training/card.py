"""The model card of a trained checkpoint: its training data and its scores, from the rows themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from refusal_core.classifier.evaluation import Evaluation
from refusal_core.classifier.matcher import match
from refusal_core.exchanges import Exchange
from refusal_core.labels import LABELS, MEANING
from refusal_core.metrics.intervals import Rate, rate
from refusal_core.metrics.items import Items
from refusal_core.metrics.metric import Metric
from refusal_core.metrics.report import ClassificationReport, report
from refusal_core.metrics.scores import score
from refusal_core.training.data import TrainingData
from refusal_core.training.settings import Settings


@dataclass(frozen=True)
class Scored:
    """A part of the data with its scores: `evaluation` scored `rows`, in that order. `remark` says how to take them."""

    title: str
    remark: str
    evaluation: Evaluation
    rows: Sequence[Exchange]


VALIDATION_REMARK = (
    "These rows chose the epoch, and most come from the same sources as the training rows: other data will score lower."
)
TEST_REMARK = "These rows were scored once, at the end, and decided nothing."


def model_card(
    name: str, base: str, data: TrainingData, parts: Sequence[Scored], settings: Settings, *, kept: str = ""
) -> str:
    """Markdown: classes, training data by source, scores of each part with the phrase matcher beside them.

    `kept` says which weights these are.
    """
    checkpoint = parts[0].evaluation.checkpoint
    sections = [
        front_matter(base),
        f"# {name}\n\nClassifies a prompt/response pair into five classes. Fine-tuned from {base}, float16 weights, "
        f"{checkpoint.parameters:,} parameters, reads at most {checkpoint.longest_input} tokens. Its outputs are "
        f"divided by the temperature {checkpoint.temperature:g} before the softmax, which changes no label.",
        "## Classes\n\n" + table(("class", "meaning"), ((label, MEANING[label]) for label in LABELS)),
        _training_section(data, settings, kept),
        *map(_scores_section, parts),
    ]
    return "\n\n".join(sections) + "\n"


def front_matter(base: str, **more: str) -> str:
    lines = {"base_model": base, "pipeline_tag": "text-classification", **more}
    return "\n".join(["---", *(f"{key}: {value}" for key, value in lines.items()), "---"])


def _training_section(data: TrainingData, settings: Settings, kept: str) -> str:
    licences: dict[str, set[str]] = defaultdict(set)
    counts: dict[str, Counter] = defaultdict(Counter)
    distinct = list(
        {(exchange.id, exchange.prompt, exchange.response): exchange for exchange in data.exchanges}.values()
    )
    for exchange in distinct:
        counts[_source(exchange)][exchange.label] += 1
        licences[_source(exchange)].add(str(exchange.extra.get("license", "not stated")))
    rows = [
        (source, "; ".join(sorted(licences[source])), *(counts[source][label] or "–" for label in LABELS))
        for source in sorted(counts, key=str.lower)
    ]
    totals = Counter(exchange.label for exchange in distinct)
    rows.append(("all", "", *(totals[label] for label in LABELS)))
    repeated = len(data.exchanges) - len(distinct)
    again = f", {repeated:,} of them given twice or more" if repeated else ""
    left_out = ", ".join(f"{n:,} ({reason})" for reason, n in sorted(data.left_out.items())) or "none"
    return (
        f"## Training data\n\n{len(distinct):,} rows{again}; left out: {left_out}.\n\n"
        + table(("source", "licence", *LABELS), rows)
        + "\n\nSettings: "
        + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in asdict(settings).items())
        + ". Linear decay of the learning rate, AdamW, gradients clipped to norm 1."
        + (f" Kept: {kept}." if kept else "")
    )


def _scores_section(part: Scored) -> str:
    scored = [
        (row, prediction.answer.label)
        for row, prediction in zip(part.rows, part.evaluation.predictions, strict=True)
        if prediction.answer.label is not None
    ]
    matcher = report([row.label for row, _ in scored], [match(row.response).label for row, _ in scored], LABELS)
    by_source: dict[str, list[bool]] = defaultdict(list)
    for row, label in scored:
        by_source[_source(row)].append(row.label == label)
    sources = [
        (s, rate(sum(right), len(right))) for s, right in sorted(by_source.items(), key=lambda item: item[0].lower())
    ]
    ours = part.evaluation
    lines = [
        f"## {part.title}",
        f"{part.remark} Intervals at 95%: Wilson for proportions and F1 of a class, for macro F1 a bootstrap in which "
        "rows of one prompt stay together.",
        f"Accuracy {ours.report.accuracy}, macro F1 {_macro_f1(part)}, cross-entropy {ours.loss:.3f} nats. "
        f"Phrase matcher on the same rows: accuracy {matcher.accuracy}, macro F1 {matcher.macro.f1:.3f}.",
        class_table(ours.report),
        "The phrase matcher:",
        class_table(matcher),
    ]
    if len(sources) > 1:
        lines += ["Accuracy by source:", table(("source", "accuracy"), sources)]
    return "\n\n".join(lines)


def _macro_f1(part: Scored) -> Rate:
    scored = [
        (row.prompt, LABELS.index(str(row.label)), LABELS.index(prediction.answer.label))
        for row, prediction in zip(part.rows, part.evaluation.predictions, strict=True)
        if prediction.answer.label is not None
    ]
    prompts, true, predicted = zip(*scored, strict=True)
    return score(
        Items(
            LABELS,
            ids=tuple(map(str, range(len(scored)))),
            true=np.array(true),
            predicted=np.array(predicted),
            groups=np.unique(prompts, return_inverse=True)[1],
        ),
        Metric("f1", average="macro", zero_division=0),
    )


def class_table(scores: ClassificationReport) -> str:
    return table(
        ("class", "precision", "recall", "F1", "support"),
        ((c.label, c.precision, c.recall, c.f1, c.support) for c in scores.classes),
    )


def _source(exchange: Exchange) -> str:
    return str(exchange.extra.get("source", "not stated"))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)
