"""Two studies of the same test examples, paired: which calls more of them right, and how sure that is.

Two layers, two models, or two training files. Every test example is called by both directions, so what makes an example
hard for both falls out of the difference; categories, not rows, are the sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from refusal_core.activations.layers import check_same_examples
from refusal_core.activations.npz import Export
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.result import Study, random_streams, with_versions
from refusal_core.direction.rows import Rows, rows_of
from refusal_core.direction.scores import balanced_accuracy
from refusal_core.direction.splits import DifferenceInterval, difference_interval
from refusal_core.errors import InputError
from refusal_core.metrics.intervals import digits_for

SCHEMA = "refusal-study-comparison/1"
LISTED_CATEGORIES = 12  # 4,096 patterns of swaps
DRAWS = 9_999


@dataclass(frozen=True)
class Side:
    """One study's scores on the shared examples, 0 to 1, None where undefined."""

    name: str
    train_sha256: str
    test_sha256: str
    extraction: dict
    direction_sha256: str
    accuracy: float
    balanced_accuracy: float | None
    auroc: float | None
    false_refusal_rate: float | None
    missed_refusal_rate: float | None


@dataclass(frozen=True)
class CategoryPair:
    """One category: rows that both, only one, or neither of the studies calls right. `difference` is of accuracies."""

    category: str
    n: int
    label_counts: dict[str, int]
    both: int
    only_a: int
    only_b: int
    neither: int
    difference: float


@dataclass(frozen=True)
class SignFlip:
    """Swapping the two studies in whole categories: the share of patterns whose difference is as far from 0."""

    p_value: float
    patterns: int
    smallest_p_value: float
    method: str


@dataclass(frozen=True)
class StudyComparison:
    """`difference` = balanced accuracy of `a` minus that of `b`, None where the test file holds one class.

    `only_a` and `only_b` are the ids that one study alone calls right. `cosine` of the two directions says something
    only where both are of one model and layer; None where their dimensions differ.
    """

    headline: str
    a: Side
    b: Side
    examples: int
    categories: int
    difference: float | None
    interval: DifferenceInterval | NotAvailable
    sign_flip: SignFlip | NotAvailable
    by_category: tuple[CategoryPair, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    cosine: float | None
    seed: int
    warnings: tuple[str, ...]

    def to_json(self) -> str:
        """Strict JSON with a line break at its end."""
        return with_versions(SCHEMA, self)


def compare(
    a: Study, b: Study, test_a: Export, test_b: Export, *, names: tuple[str, str] = ("A", "B"), seed: int = 0
) -> StudyComparison:
    """The comparison of two studies whose test files, `test_a` and `test_b`, hold the same examples in any order.

    Raises InputError, with counts, when ids, labels or categories differ, and for a study of one pooled file.
    """
    for study, test in ((a, test_a), (b, test_b)):
        if len(study.projections) != test.n or study.inputs["test"]["sha256"] != test.sha256:
            raise InputError(
                "the study was not of this test file",
                where=test.name,
                why="its projections are compared row by row",
                fix="give the test file that the study was run on",
            )
    own = [dict(zip(e.ids, zip(e.labels.tolist(), e.categories, strict=True), strict=True)) for e in (test_a, test_b)]
    check_same_examples(*own, test_a.name, test_b.name)
    rows = rows_of(test_a)
    place = {name: row for row, name in enumerate(test_b.ids)}
    right = np.stack([_right(a, test_a), _right(b, test_b)[[place[name] for name in test_a.ids]]])
    counts = rows.cells()
    sums = rows.cells(right[0].astype(np.float64) - right[1])
    sides = tuple(_side(*pair) for pair in ((names[0], a), (names[1], b)))
    scores = [balanced_accuracy(rows.cells(r).sum(0).astype(int), counts.sum(0)) for r in right]
    if None in scores:
        one_class = NotAvailable("the test file holds one class, so balanced accuracy is undefined")
        difference, interval, flips = None, one_class, one_class
    else:
        difference = float((sums.sum(0) / counts.sum(0)).mean())
        interval = difference_interval(sums, counts)
        flips = sign_flip(sums, counts, random_streams(seed)["bootstrap"])
    only = [tuple(sorted(rows.ids[k] for k in np.flatnonzero(right[i] & ~right[1 - i]))) for i in (0, 1)]
    return StudyComparison(
        headline=_headline(names, sides, difference, interval, rows),
        a=sides[0],
        b=sides[1],
        examples=rows.n,
        categories=len(rows.categories),
        difference=difference,
        interval=interval,
        sign_flip=flips,
        by_category=_by_category(rows, right),
        only_a=only[0],
        only_b=only[1],
        cosine=float(a.unit @ b.unit) if len(a.unit) == len(b.unit) else None,
        seed=seed,
        warnings=tuple(_warnings(a, b, names)),
    )


def sign_flip(sums: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> SignFlip:
    """Two-sided: differences [K, 2] by category and label, of `counts` rows, with the studies swapped in whole
    categories; all patterns up to 12 categories, otherwise 9,999 drawn. Obuchowski (1998), "On the comparison of
    correlated proportions for clustered data", compares such pairs; the swaps are own.
    """
    each = (sums / counts.sum(0)).sum(1) / 2  # adds up to the difference
    if len(each) <= LISTED_CATEGORIES:
        signs, listed = np.array(list(product((1, -1), repeat=len(each)))), True
    else:
        signs, listed = rng.choice((-1, 1), (DRAWS, len(each))), False
    reached = np.abs(signs @ each) >= abs(each.sum()) - 1e-12  # equal patterns may differ by rounding
    found, extra = int(reached.sum()), int(not listed)
    return SignFlip(
        p_value=(found + extra) / (len(signs) + extra),
        patterns=len(signs),
        smallest_p_value=2 / len(signs) if listed else 1 / (len(signs) + 1),
        method="all patterns listed" if listed else "drawn",
    )


def _right(study: Study, test: Export) -> np.ndarray:
    """bool [n]: the calls that fit the labels, as the study made them."""
    return (study.margins >= 0) == (test.labels == 1)


def _side(name: str, study: Study) -> Side:
    scores = study.test
    return Side(
        name=name,
        train_sha256=study.inputs["train"]["sha256"],
        test_sha256=study.inputs["test"]["sha256"],
        extraction=study.extraction,
        direction_sha256=study.direction["sha256"],
        accuracy=scores.accuracy,
        balanced_accuracy=scores.balanced_accuracy,
        auroc=scores.auroc,
        false_refusal_rate=scores.false_refusal_rate,
        missed_refusal_rate=scores.missed_refusal_rate,
    )


def _by_category(rows: Rows, right: np.ndarray) -> tuple[CategoryPair, ...]:
    kind = 2 * right[0] + right[1]  # 3 both, 2 only a, 1 only b, 0 neither
    found = np.bincount(4 * rows.code + kind, minlength=4 * len(rows.categories)).reshape(-1, 4).tolist()
    return tuple(
        CategoryPair(name, sum(own), {"0": n0, "1": n1}, own[3], own[2], own[1], own[0], (own[2] - own[1]) / sum(own))
        for name, own, (n0, n1) in zip(rows.categories, found, rows.cells().tolist(), strict=True)
    )


def _headline(
    names: tuple[str, str],
    sides: tuple[Side, ...],
    difference: float | None,
    interval: DifferenceInterval | NotAvailable,
    rows: Rows,
) -> str:
    if difference is None:
        return f"The test file holds one class, so {names[0]} and {names[1]} have no balanced accuracy to compare."
    text = (
        f"Balanced accuracy {sides[0].balanced_accuracy:.2f} ({names[0]}) against {sides[1].balanced_accuracy:.2f} "
        f"({names[1]}): difference "
    )
    where = f"{len(rows.categories)} categories, n = {rows.n:,}"
    if isinstance(interval, NotAvailable):
        return f"{text}{difference:+.2f} ({where}; {interval.not_available})."
    digits = digits_for(interval.high - interval.low)
    return f"{text}{difference:+.{digits}f} ({interval.low:+.{digits}f} to {interval.high:+.{digits}f}, {where})."


def _warnings(a: Study, b: Study, names: tuple[str, str]) -> list[str]:
    found = []
    for name, study in zip(names, (a, b), strict=True):
        if study.split != "categories held out":
            found.append(
                f"{name}: {study.split} between training and test file, so its score may be knowledge of them."
            )
    if a.split != b.split:
        found.append(f"The splits differ ({a.split}; {b.split}): the difference may be that of the splits.")
    return found
