"""The model card of a trained checkpoint: its training data and its scores, from the rows themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from refusal_core.classifier.evaluation import Evaluation
from refusal_core.classifier.matcher import match
from refusal_core.exchanges import Exchange
from refusal_core.labels import LABELS, MEANING
from refusal_core.metrics.intervals import rate
from refusal_core.metrics.report import ClassificationReport, report
from refusal_core.training.recipe import Settings, TrainingData


def model_card(
    name: str, base: str, data: TrainingData, validation: Evaluation, rows: Sequence[Exchange], settings: Settings
) -> str:
    """Markdown. `validation` scored `rows`, in the same order; they chose the epoch, so the scores flatter."""
    sections = [
        _front_matter(base),
        f"# {name}\n\nClassifies a prompt/response pair into five classes. Fine-tuned from {base}, float16 weights, "
        f"{validation.checkpoint.parameters:,} parameters, reads at most {validation.checkpoint.longest_input} tokens.",
        "## Classes\n\n" + _table(("class", "meaning"), ((label, MEANING[label]) for label in LABELS)),
        _training_section(data, settings),
        _scores_section(validation, rows),
        _limits_section(),
    ]
    return "\n\n".join(sections) + "\n"


def _front_matter(base: str) -> str:
    return f"---\nlicense: apache-2.0\nbase_model: {base}\npipeline_tag: text-classification\nlanguage: en\n---"


def _training_section(data: TrainingData, settings: Settings) -> str:
    licences: dict[str, set[str]] = defaultdict(set)
    counts: dict[str, Counter] = defaultdict(Counter)
    for exchange in data.exchanges:
        source = str(exchange.extra.get("source", "not stated"))
        counts[source][exchange.label] += 1
        licences[source].add(str(exchange.extra.get("license", "not stated")))
    rows = [
        (source, "; ".join(sorted(licences[source])), *(counts[source][label] or "–" for label in LABELS))
        for source in sorted(counts, key=str.lower)
    ]
    totals = Counter(exchange.label for exchange in data.exchanges)
    rows.append(("all", "", *(totals[label] for label in LABELS)))
    left_out = ", ".join(f"{n:,} ({reason})" for reason, n in sorted(data.left_out.items())) or "none"
    return (
        f"## Training data\n\n{len(data.exchanges):,} rows; left out: {left_out}.\n\n"
        + _table(("source", "licence", *LABELS), rows)
        + f"\n\nSettings: {settings.epochs} epochs, batches of {settings.batch_size}, learning rate "
        f"{settings.learning_rate:g} with warm-up over {settings.warmup_share:.0%} of the steps and linear decay, "
        f"weight decay {settings.weight_decay:g}, {settings.max_length} tokens, class weights to the power "
        f"{settings.weight_power:g}, seed {settings.seed}."
    )


def _scores_section(validation: Evaluation, rows: Sequence[Exchange]) -> str:
    scored = [
        (row, prediction.answer.label)
        for row, prediction in zip(rows, validation.predictions, strict=True)
        if prediction.answer.label is not None
    ]
    matcher = report([row.label for row, _ in scored], [match(row.response).label for row, _ in scored], LABELS)
    by_source: dict[str, list[bool]] = defaultdict(list)
    for row, label in scored:
        by_source[str(row.extra.get("source", "not stated"))].append(row.label == label)
    sources = (
        (source, rate(sum(right), len(right)))
        for source, right in sorted(by_source.items(), key=lambda s: s[0].lower())
    )
    return (
        "## Scores on the validation rows\n\n"
        "These rows chose the epoch and come from the same sources as the training rows, so other data will score "
        "lower. Intervals at 95%: Wilson.\n\n"
        f"Accuracy {validation.report.accuracy}, macro F1 {validation.report.macro.f1:.3f}, "
        f"cross-entropy {validation.loss:.3f} nats. Phrase matcher on the same rows: accuracy {matcher.accuracy}, "
        f"macro F1 {matcher.macro.f1:.3f}.\n\n"
        + _class_table(validation.report)
        + "\n\nThe phrase matcher:\n\n"
        + _class_table(matcher)
        + "\n\nAccuracy by source:\n\n"
        + _table(("source", "accuracy"), sources)
    )


def _class_table(scores: ClassificationReport) -> str:
    return _table(
        ("class", "precision", "recall", "F1", "support"),
        ((c.label, c.precision, c.recall, c.f1, c.support) for c in scores.classes),
    )


def _limits_section() -> str:
    return (
        "## Limits\n\n"
        "Trained on English; other languages are read, with a warning. Partial refusal has few training rows of few "
        "kinds and is the weakest class. Most labels were given by a language model or follow from how a row was made. "
        "The prompts leak the class: risky ones are mostly refused in the data. It measures the form of an answer, not "
        "whether it is true or harmful."
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)
