"""What a reader must be told: the answer as one sentence, and warnings in the order of their weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from refusal_core.activations.npz import Export
from refusal_core.direction.intervals import CategoryInterval, NotAvailable
from refusal_core.direction.meaning import meaning_of
from refusal_core.direction.nulls import Null, RandomDirections
from refusal_core.direction.splits import SplitComparison
from refusal_core.errors import one_line
from refusal_core.metrics.intervals import digits_for, rate

_HALF_ULP = {"float16": 2.0**-11, "bfloat16": 2.0**-9}
UNEVEN = 0.6


def headline(result: Mapping) -> str:
    """The answer, with its split, interval, n and the p-value of the null that holds for the split."""
    test, counts = result["test"], result["inputs"]["test"]
    n, where = counts["examples"], result["split"]
    if test.balanced_accuracy is None:
        meaning = meaning_of(result["extraction"].get("label_means"))
        wrong, name = (
            (test.false_refusal_rate, meaning.false_rate)
            if test.missed_refusal_rate is None
            else (test.missed_refusal_rate, meaning.missed_rate)
        )
        return (
            f"{name} {rate(round(wrong * n), n)}, {where}; the test file holds one class, so balanced accuracy is "
            "undefined."
        )
    return f"Balanced accuracy {_value(test.balanced_accuracy, result['interval'], n)}, {where}{_chance(result)}."


def auroc_words(result: Mapping) -> str:
    """The AUROC in the house form, "0.87 (0.79 to 0.93 over 4 + 4 categories, n = 120)"; where it or its interval is
    undefined, with the reason. `result` holds the sections of a study that scored a test file.
    """
    value, interval, n = result["test"].auroc, result["auroc_interval"], result["inputs"]["test"]["examples"]
    if isinstance(interval, CategoryInterval):
        return _value(value, interval, n)
    return f"{_plain(value)} (n = {n:,}; no interval: {interval.not_available})"


def auroc_short(value: float, interval: CategoryInterval | NotAvailable) -> str:
    """The same where there is room for little: "0.87 (0.79 to 0.93)", or the value alone."""
    if not isinstance(interval, CategoryInterval):
        return _plain(value)
    digits = digits_for(interval.high - interval.low)
    return f"{value:.{digits}f} ({interval.low:.{digits}f} to {interval.high:.{digits}f})"


def drawn_words(interval: CategoryInterval) -> str:
    """What the bootstrap beside an interval says, or why there is none."""
    found = interval.percentile
    if isinstance(found, NotAvailable):
        return f"No bootstrap beside it: {found.not_available}."
    return f"Drawing categories anew gives {found.low:.3f} to {found.high:.3f}."


def one_file_headline(comparison: SplitComparison | NotAvailable) -> str:
    """The same for one pooled file: what leaving categories out costs."""
    if isinstance(comparison, NotAvailable):
        return f"The splits of this file cannot be compared: {comparison.not_available}."
    return split_sentence(comparison)


def split_sentence(c: SplitComparison) -> str:
    """What leaving whole categories out costs against leaving out random rows, with its interval."""
    text = (
        f"Balanced accuracy is {c.left_out_balanced_accuracy:.3f} on categories left out and "
        f"{c.random_balanced_accuracy:.3f} on random rows left out: difference {c.difference:+.3f}"
    )
    if isinstance(c.interval, NotAvailable):
        return f"{text} ({c.interval.not_available})."
    return f"{text} ({c.interval.low:+.3f} to {c.interval.high:+.3f}, {c.categories} categories, n = {c.examples:,})."


def warnings(train: Export, test: Export, result: Mapping) -> Iterator[str]:
    """Warnings about the result, most weighty first."""
    scores, leak, shift = result["test"], result["leakage"], result["threshold_shift"]
    meaning = meaning_of(result["extraction"].get("label_means"))
    if result["split"] != "categories held out":
        shared, identity = len(result["seen_categories"]), result["baselines"]["category_identity"]
        yield (
            f"{shared} of {len(scores.by_category)} test categories are in the training file too: the score may be "
            "knowledge of these categories, and the p-value of shuffled labels does not guard against it; knowing the "
            f"category alone gives balanced accuracy {_plain(identity.balanced_accuracy)}."
        )
    if scores.balanced_accuracy is None:
        yield "The test file holds one class: balanced accuracy, AUROC and what hangs on them are undefined."
    if leak.equal_rows or leak.near_rows:
        yield (
            f"{leak.equal_rows:,} test rows equal a training row and {leak.near_rows:,} lie nearer to one than half of "
            f"what parts any two training rows; without them {leak.rows_left:,} rows give balanced accuracy "
            f"{_plain(leak.balanced_accuracy_without)}."
        )
    yield from _about_nulls(result)
    if scores.auroc is not None and shift.oracle_balanced_accuracy is not None and shift.shift is not None:
        gain = shift.oracle_balanced_accuracy - scores.balanced_accuracy
        if gain > 0.05 and abs(shift.shift) > 0.5:
            yield (
                f"The threshold did not travel: the test file's midpoint lies {shift.shift:+.2f} within-class sd from "
                f"it; AUROC is {scores.auroc:.2f}, and with its own midpoint balanced accuracy would be "
                f"{shift.oracle_balanced_accuracy:.2f}."
            )
    macro = result["macro_average"]
    if macro.led_by is not None:
        yield (
            f"With every category counted once balanced accuracy is {macro.balanced_accuracy:.2f} "
            f"({macro.difference:+.2f}); {one_line(macro.led_by, 80)} does most of that."
        )
    yield from _about_interval(result["interval"])
    if scores.ties:
        yield f"{scores.ties:,} test rows lie exactly at the threshold and are called {meaning.one}."
    yield from _about_storage(train, test, result["geometry"].largest_ratio)


def _about_nulls(result: Mapping) -> Iterator[str]:
    observed = result["test"].balanced_accuracy
    shuffled = result["nulls"].get("shuffled_labels")
    if isinstance(shuffled, Null) and observed < 0.5:
        below = round(shuffled.lower_tail_fraction * shuffled.repeats)
        if (below + 1) / (shuffled.repeats + 1) <= 0.05:
            yield (
                f"Balanced accuracy is {observed:.2f}, below 95% of label shuffles: the sign of the direction flips "
                "between the files."
            )
    random = result["baselines"].get("random_directions")
    if isinstance(random, RandomDirections) and observed <= np.quantile(random.scores, 0.95):
        share = float(np.mean(np.array(random.scores) >= observed))
        yield f"{share:.0%} of random directions do as well: the classes may differ broadly, not along one direction."


def _about_interval(interval: CategoryInterval | NotAvailable) -> Iterator[str]:
    if not isinstance(interval, CategoryInterval):
        return
    for label, k in interval.categories_per_class.items():
        if interval.effective_categories[label] < UNEVEN * k:
            yield (
                f"Categories of label {label} differ much in size "
                f"({k} weigh as {interval.effective_categories[label]:.1f}): such intervals cover 0.89 to 0.94 rather "
                "than 0.95."
            )


def _about_storage(train: Export, test: Export, ratio: float | None) -> Iterator[str]:
    if train.dtype != test.dtype:
        yield f"The files hold different types: {train.dtype} in {train.name}, {test.dtype} in {test.name}."
    for name in sorted({train.dtype, test.dtype} & set(_HALF_ULP)):
        if ratio is not None and ratio * _HALF_ULP[name] > 0.5:
            yield (
                f"The largest value is {ratio:,.0f} times the median standard deviation, so {name} rounds it by more "
                "than half of that: export in float32."
            )


def _chance(result: Mapping) -> str:
    """The p-value of the strictest null there is: whole categories where they are shared, else shuffled labels."""
    nulls = result["nulls"]
    names = {
        "shuffled_labels": "label shuffles",
        "within_categories": "shuffles within categories",
        "shuffled_categories": "shuffles of whole categories",
    }
    order = ["shuffled_labels"]
    if result["split"] != "categories held out":
        order = ["shuffled_categories", "within_categories", "shuffled_labels"]
    for name in order:
        found = nulls.get(name)
        if isinstance(found, Null):
            above = round(found.tail_fraction * found.repeats)
            return f"; {above:,} of {found.repeats:,} {names[name]} do as well (p = {found.p_value:.2g})"
    return ""


def _value(value: float, interval: CategoryInterval | NotAvailable, n: int) -> str:
    if not isinstance(interval, CategoryInterval):
        return f"{value:.2f} (n = {n:,})"
    digits = digits_for(interval.high - interval.low)
    k = " + ".join(str(count) for count in interval.categories_per_class.values())
    return (
        f"{value:.{digits}f} ({interval.low:.{digits}f} to {interval.high:.{digits}f} over {k} categories, n = {n:,})"
    )


def _plain(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
