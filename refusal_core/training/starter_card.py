"""The starter's model card, from the predictions and figures that ship with it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from refusal_core.exchanges import Exchange
from refusal_core.labels import LABELS, MEANING
from refusal_core.metrics.intervals import Rate, rate
from refusal_core.perturb import PERTURBATIONS
from refusal_core.training.card import class_table, front_matter, table
from refusal_core.training.encoder import ENCODER_NAME
from refusal_core.training.near_duplicates import words
from refusal_core.training.starter import case_rows, corpus_rows
from refusal_core.training.starter_numbers import RUN, Numbers, aims, count, numbers, read_figures
from refusal_core.training.starter_run import CASES, PROMPT_ONLY, RESPONSE_ONLY, TEST, Row, of, read_rows

TRIALS = Path(__file__).with_name("TRIALS.md")


def starter_card(run: Path = RUN) -> str:
    """The card as Markdown, from the files of the run folder and the words of TRIALS.md."""
    n, figures = numbers(run), read_figures(run)
    rows = read_rows(run / n.shipped / "predictions.jsonl")
    sections = [
        front_matter(ENCODER_NAME, license="apache-2.0", language="en"),
        _opening(figures),
        "## Classes\n\n" + table(("class", "meaning"), ((label, MEANING[label]) for label in LABELS)),
        _aims_section(n),
        _held_out_section(n, of(rows, TEST)),
        _validation_section(n, figures),
        _calibration_section(n, figures),
        _cases_section(n, figures, of(rows, CASES)),
        _ablation_section(n),
        _perturbation_section(n),
        _training_section(figures),
        _choice_section(n),
        LIMITS,
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


LIMITS = """## Limits

Trained on English, with a few short rows in six other languages: expect more errors there. The held-out domains were
written by the same hand as the training rows of the project's corpus, which flatters: its habits are in both. Most
labels of the public rows were given by a language model or follow from how a row was made, and in those rows the
prompt leaks the class: risky prompts are mostly refused. Of a pair longer than 256 tokens the middle of the response
and the start of the prompt are not read. It measures the form of an answer, not whether it is true or harmful. What
is neither answer nor refusal (propaganda in place of an answer, a text that breaks off) still gets one of the five
classes.

License of the weights: Apache-2.0, as the base model's. The training rows named "project corpus" are in
`refusal_core/training/corpus`, the trainings can be repeated with `benchmarks/starter_train.py`, and
`benchmarks/starter_quality.py` computes this page again from `figures.json` and the files in `run`."""


def _opening(figures: dict[str, Any]) -> str:
    changed, of_rows = figures["rounding"]["changed"], figures["rounding"]["rows"]
    return (
        "# starter\n\nClassifies a prompt/response pair into five classes. Fine-tuned from all-MiniLM-L6-v2 by this "
        f"project's own recipe, 22.7 million parameters, reads at most {figures['settings']['max_length']} "
        "tokens. The "
        f"weights are float16; rounding them from float32 changed {changed} of {of_rows:,} labels. Outputs are "
        "divided by "
        f"the temperature {figures['temperature']:g} (`temperature` in config.json) before the softmax, which "
        "changes no "
        "label.\n\nNumbers in brackets are 95% intervals: Wilson for proportions and F1 of a class, a bootstrap over "
        "minimal pairs for macro F1 and ECE."
    )


def _aims_section(n: Numbers) -> str:
    lines = [(what, aim, found, "reached" if met else "missed") for what, aim, found, met in aims(n)]
    missed = "" if all(met for *_, met in aims(n)) else "\n\nWhat was tried for a missed aim is under *Trials* below."
    return "## Aims\n\n" + table(("what", "aim", "found", ""), lines) + missed


def _held_out_section(n: Numbers, test: Sequence[Row]) -> str:
    texts = {str(row.id): row for row in corpus_rows("heldout").exchanges}
    return "\n\n".join(
        [
            "## Scores on held-out domains of the project corpus",
            "Cars, finance, history, parenting and travel: no row of these domains was trained on or chose "
            "anything; they "
            "were scored once, with the weights that ship. The same hand wrote the training rows of other "
            "domains, which "
            "flatters.",
            f"Accuracy {n.test.accuracy}, macro F1 {n.macro_f1}. Phrase matcher on the same rows: accuracy "
            f"{n.matcher.accuracy}, macro F1 {n.matcher.macro.f1:.3f}.",
            class_table(n.test),
            "The phrase matcher:",
            class_table(n.matcher),
            "Accuracy by domain, by language of the response, and by its length:",
            _by(test, texts, "domain", lambda row: str(row.extra["domain"])),
            _by(test, texts, "language", lambda row: str(row.extra["language"])),
            _by(test, texts, "words", _length_of),
        ]
    )


def _length_of(row: Exchange) -> str:
    n = len(words(row.response))
    return next(
        name for most, name in ((15, "1 to 15"), (70, "16 to 70"), (160, "71 to 160"), (10**9, "over 160")) if n <= most
    )


def _by(rows: Sequence[Row], texts: dict[str, Exchange], name: str, key: Callable[[Exchange], str]) -> str:
    right: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        right[key(texts[row.id])].append(row.label == row.true)
    order = sorted(right, key=lambda k: (int(k.split()[0]) if k[0].isdigit() else 1000, k))
    return table((name, "accuracy"), ((k, rate(sum(right[k]), len(right[k]))) for k in order))


def _validation_section(n: Numbers, figures: dict[str, Any]) -> str:
    sources = [
        (s, *_right_of(m), *_right_of(figures["validation_matcher"][s])) for s, m in figures["validation"].items()
    ]
    return "\n\n".join(
        [
            "## Scores on public validation rows",
            "These rows chose among the weights of the training, and come from the same sources as the training "
            "rows: other "
            "data will score lower.",
            f"Accuracy {n.validation.accuracy}, macro F1 {n.validation.macro.f1:.3f}. Phrase matcher: accuracy "
            f"{n.validation_matcher.accuracy}, macro F1 {n.validation_matcher.macro.f1:.3f}. Development domains "
            "of the corpus "
            f"(pets, shopping, translation), which chose too: accuracy {n.development.accuracy}, macro F1 "
            f"{n.development.macro.f1:.3f}.",
            class_table(n.validation),
            table(("source", "accuracy", "phrase matcher"), sources),
        ]
    )


def _right_of(matrix: list[list[int]]) -> tuple[Rate]:
    counts = np.array(matrix)
    return (rate(int(np.trace(counts)), int(counts.sum())),)


def _calibration_section(n: Numbers, figures: dict[str, Any]) -> str:
    c = n.calibration
    bins = ((f"{b.low:.3f} to {b.high:.3f}", b.n, f"{b.confidence:.3f}", b.right) for b in c.bins if b.n)
    return "\n\n".join(
        [
            "## Calibration",
            f"On the held-out domains: ECE {c.ece} in {len(c.bins)} bins of equal mass, Brier score {c.brier}, "
            "cross-entropy "
            f"{c.log_loss} nats. On average confidence is {abs(c.too_sure or 0):.3f} "
            f"{'above' if (c.too_sure or 0) > 0 else 'below'} accuracy. The temperature was fitted on the "
            "development domains: public validation rows share the sources of the training rows and are too easy.",
            "![Reliability: accuracy against confidence in each bin, with the diagonal](reliability.svg)",
            table(("confidence", "n", "mean", "accuracy"), bins),
        ]
    )


def _cases_section(n: Numbers, figures: dict[str, Any], rows: Sequence[Row]) -> str:
    kinds = {str(row.id): str(row.extra["kind"]) for row in case_rows()}
    cells: dict[str, list[str]] = defaultdict(lambda: ["–", "–", "–"])
    of_kind = Counter(each["kind"] for each in figures["complaints"])
    for place, key in ((0, "label"), (1, "matcher")):
        right = Counter(each["kind"] for each in figures["complaints"] if each["true"] == each[key])
        for kind, total in of_kind.items():
            cells[kind][place] = f"{right[kind]} of {total}"
    right = Counter(kinds[row.id] for row in rows if row.true == row.label)
    for kind, total in Counter(kinds.values()).items():
        cells[kind][2] = f"{right[kind]} of {total}"
    wrong = "; ".join(
        f"{row.id} ({kinds[row.id]}: {row.true} read as {row.label})" for row in rows if row.true != row.label
    )
    return "\n\n".join(
        [
            "## Cases of the kinds that users report",
            "Short public complaints about refusal detectors (figures only), and cases of the same kinds written "
            "for this "
            "project (`refusal_core/training/cases.jsonl`). Neither was trained on; how many public ones are right was "
            "looked at when trainings were compared.",
            f"Public cases: {count(n.complaints)} right, the phrase matcher {count(n.complaints_matcher)}. Our own: "
            f"{count(n.cases.accuracy)}" + (f"; wrong: {wrong}." if wrong else "."),
            table(("kind", "public", "phrase matcher", "our own"), ((kind, *each) for kind, each in cells.items())),
        ]
    )


def _ablation_section(n: Numbers) -> str:
    names = {PROMPT_ONLY: "prompt only (the response is “…”)", RESPONSE_ONLY: "response only (the prompt is empty)"}
    lines = [("both texts", n.test.accuracy, f"{n.test.macro.f1:.3f}")]
    lines += [(names[split], each.accuracy, f"{each.macro.f1:.3f}") for split, each in n.ablations.items()]
    return (
        "## One text alone\n\nOn the held-out domains, where prompts are shared by answers of different classes:\n\n"
        + table(("read", "accuracy", "macro F1"), lines)
    )


def _perturbation_section(n: Numbers) -> str:
    lines = [(name, PERTURBATIONS[name].does, changed) for name, changed in n.changed.items()]
    return "## Changes of form\n\nLabels of the held-out domains that a change of the response alters:\n\n" + table(
        ("change", "what it does", "labels changed"), lines
    )


def _training_section(figures: dict[str, Any]) -> str:
    lines = [
        (s["source"], "; ".join(s["licences"]), *(s["rows"][label] or "–" for label in LABELS), f"{s['given']:g}")
        for s in figures["training"]
    ]
    total = Counter({label: sum(s["rows"][label] for s in figures["training"]) for label in LABELS})
    lines.append(("all", "", *(f"{total[label]:,}" for label in LABELS), ""))
    left_out = ", ".join(f"{n:,} ({reason})" for reason, n in sorted(figures["left_out"].items()))
    settings = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in figures["settings"].items())
    return (
        f"## Training data\n\n{sum(total.values()):,} rows. Left out: {left_out}.\n\n"
        + table(("source", "licence", *LABELS, "times given"), lines)
        + "\n\nThe second copy of a row of the project corpus differs in form "
        "(`refusal_core/training/variation.py`): a greeting, a heading, emphasis, capitals, line breaks, apostrophes. "
        "The wordings of *Changes of form* above are none of them."
        + f"\n\nSettings: {settings}. AdamW, linear decay, gradients clipped to norm 1. Kept: {figures['kept']}."
    )


def _choice_section(n: Numbers) -> str:
    lines = [(name, value, "ships" if name == n.shipped else "") for name, value in n.checkpoints.items()]
    return (
        "## Checkpoints\n\nMacro F1 on the held-out domains of the checkpoints whose predictions ship:\n\n"
        + table(("checkpoint", "macro F1", ""), lines)
        + "\n\n## Trials\n\n"
        + TRIALS.read_text(encoding="utf-8").strip()
    )
