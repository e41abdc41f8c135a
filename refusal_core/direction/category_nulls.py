"""Labels moved as whole categories: is there more than category identity?

Every labeling of K categories gives a direction that is a sum of K category sums, so the test rows are projected on
those K sums once, in float64, and a labeling costs n K more, whatever the dimension.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from refusal_core.direction.fit import Direction
from refusal_core.direction.intervals import NotAvailable
from refusal_core.direction.nulls import Null, null
from refusal_core.direction.rows import Rows, group_sums, wide_blocks
from refusal_core.jobs import Job

LISTED = 5_000  # labelings that are all listed rather than drawn
_DRAWS_PER_REPEAT = 100
_CALLS = 1 << 22  # calls held at once
CLAIM = "the direction separates categories of one label from the other no better than any split of whole categories"


@dataclass(frozen=True, eq=False)
class Movable:
    """The training categories' labels as they move: `label` bool [K], `rows` [K] their training rows; `joint` [K_test]
    is the index of the training category that a test category follows, -1 for one that keeps its labels.
    """

    label: np.ndarray
    rows: np.ndarray
    joint: np.ndarray


def movable(train: Rows, test: Rows) -> Movable | NotAvailable:
    """How whole-category labels move, or why they cannot: a category that holds both labels is no block."""
    own = train.cells()
    place = {name: k for k, name in enumerate(train.categories)}
    joint = np.array([place.get(name, -1) for name in test.categories])
    both = own.copy()
    np.add.at(both, joint[joint >= 0], test.cells()[joint >= 0])
    mixed = np.flatnonzero((both > 0).all(1))
    if len(mixed):
        name = train.categories[mixed[0]]
        more = f" and {len(mixed) - 1} more" if len(mixed) > 1 else ""
        return NotAvailable(f'categories with both labels cannot move as a whole ("{name}"{more})')
    return Movable(own[:, 1] > 0, own.sum(1), joint)


def shuffled_categories(
    train: Rows, test: Rows, direction: Direction, observed: float, repeats: int, rng: np.random.Generator, job: Job
) -> Null | NotAvailable:
    """The null over whole-category labelings; a category of both files moves in both.

    All labelings are listed when there are at most 5,000, otherwise `repeats` are drawn. Block permutation as in
    Winkler et al. (2015), "Multi-level block permutation". Labelings that leave the test file one class are left
    out of both.
    """
    moves = movable(train, test)
    if isinstance(moves, NotAvailable):
        return moves
    found = labelings(moves, test, repeats, rng)
    if isinstance(found, NotAvailable):
        return found
    labels, listed, count = found
    scores = _scores(train, test, direction, moves, labels, job)
    if listed:
        # The true labeling scores what was observed; by another order of sums it might differ by rounding.
        scores[(labels == moves.label).all(1)] = observed
    return null(scores, observed, claim=CLAIM, labelings=float(count), listed=listed)


def labelings(
    moves: Movable, test: Rows, repeats: int, rng: np.random.Generator
) -> tuple[np.ndarray, bool, int] | NotAvailable:
    """bool [m, K] labels of the training categories, whether they are all there are, and how many there could be.

    Draws that leave the test file one class are not among them. The same for every layer of the same examples.
    """
    count = math.comb(len(moves.label), int(moves.label.sum()))
    listed = count <= LISTED
    labels = _all_labelings(moves.label) if listed else _drawn(moves, test, repeats, rng)
    if listed:
        labels = labels[_two_classes(labels, moves, test)]
    if len(labels) < 2:
        return NotAvailable("no other labeling of whole categories leaves both labels in both files")
    return labels, listed, count


def _all_labelings(label: np.ndarray) -> np.ndarray:
    k, ones = len(label), int(label.sum())
    chosen = np.fromiter(chain.from_iterable(combinations(range(k), ones)), np.intp).reshape(-1, ones)
    labels = np.zeros((len(chosen), k), bool)
    labels[np.arange(len(chosen))[:, None], chosen] = True
    return labels


def _drawn(moves: Movable, test: Rows, repeats: int, rng: np.random.Generator) -> np.ndarray:
    found = np.empty((0, len(moves.label)), bool)
    for _ in range(_DRAWS_PER_REPEAT):
        draws = rng.permuted(np.tile(moves.label, (repeats, 1)), axis=1)
        found = np.concatenate([found, draws[_two_classes(draws, moves, test)]])[:repeats]
        if len(found) == repeats:
            break
    return found


def _two_classes(labels: np.ndarray, moves: Movable, test: Rows) -> np.ndarray:
    n1 = _test_ones(labels, moves, test).sum(1)
    return (n1 > 0) & (n1 < test.n)


def _test_ones(labels: np.ndarray, moves: Movable, test: Rows) -> np.ndarray:
    """int [m, K_test]: test rows of label 1 in each test category under each labeling."""
    cells = test.cells()
    ones = np.tile(cells[:, 1], (len(labels), 1))
    follows = moves.joint >= 0
    ones[:, follows] = labels[:, moves.joint[follows]] * cells[follows].sum(1)
    return ones


def _scores(train: Rows, test: Rows, direction: Direction, moves: Movable, labels: np.ndarray, job: Job) -> np.ndarray:
    k = len(moves.label)
    sums = group_sums(train, train.code, k, job) - moves.rows[:, None] * direction.mean
    sums /= train.largest  # squares of any scale stay in range
    projected = np.empty((test.n, k))
    for where, centred in wide_blocks(test, job, direction.mean):
        centred /= train.largest
        projected[where] = centred @ sums.T
    by_category = np.argsort(test.code, kind="stable")
    starts = np.searchsorted(test.code[by_category], np.arange(len(test.categories)))
    projected, gram = projected[by_category], sums @ sums.T
    cells = test.cells()
    fixed = moves.joint < 0
    held = {label: test.labels[by_category] == label for label in (0, 1)}
    scores = np.empty(len(labels))
    step = max(1, _CALLS // test.n)
    for first in range(0, len(labels), step):
        job.check()
        own = labels[first : first + step].astype(np.float64)
        n1 = own @ moves.rows
        n0 = train.n - n1
        cut = (n0 - n1) / (2 * n1 * n0) * np.einsum("ij,jk,ik->i", own, gram, own, optimize=True)
        calls = projected @ own.T >= cut
        # Categories that keep their labels may hold both, so their rows are counted by label.
        by_label = [np.add.reduceat(calls & held[label][:, None], starts, axis=0, dtype=np.int64).T for label in (0, 1)]
        called = by_label[0] + by_label[1]
        ones = np.where(fixed, cells[:, 1], _test_ones(own > 0, moves, test))
        sizes = cells.sum(1)
        as_one = ones == sizes
        true_positive = np.where(fixed, by_label[1], np.where(as_one, called, 0)).sum(1)
        false_positive = np.where(fixed, by_label[0], np.where(as_one, 0, called)).sum(1)
        positives = ones.sum(1)
        negatives = test.n - positives
        scores[first : first + step] = (true_positive / positives + (negatives - false_positive) / negatives) / 2
    return scores
