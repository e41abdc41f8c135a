"""Before a study: how long it will take. After one: how many categories an interval of a wanted width would need."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit, logit, stdtrit

from refusal_core.direction.intervals import CategoryInterval

MOST_FACTOR = 1_000  # times the categories of the study; beyond it no number is given
_BYTES_A_SECOND = 4e8  # hashing, checking and reading a file once
_PASSES = 14  # over each row in float64 beside the matrix products


@dataclass(frozen=True)
class Wanted:
    """`categories_per_class` ("0", "1") that would bring the interval to `width`; None when over MOST_FACTOR times."""

    width: float
    categories_per_class: dict[str, int] | None
    reached: bool  # by the study as it is


def categories_for(interval: CategoryInterval, value: float, width: float) -> Wanted:
    """How many categories a class would bring the 95% interval of balanced accuracy `value` to `width` (0 to 1).

    The variance over categories falls with their number when new ones scatter as these do and are as large; the degrees
    of freedom grow with it. A plan, not a promise: it rests on the scatter of the categories at hand.
    """
    now = interval.categories_per_class
    if interval.high - interval.low <= width:
        return Wanted(width, dict(now), True)
    centre, scale = float(logit(value)), stdtrit(interval.degrees_of_freedom, (1 + interval.level) / 2)
    error = (float(logit(interval.high)) - float(logit(interval.low))) / 2 / float(scale)

    def width_at(factor: float) -> float:
        freedom = interval.degrees_of_freedom * factor
        half = float(stdtrit(freedom, (1 + interval.level) / 2)) * error / math.sqrt(factor)
        return float(expit(centre + half) - expit(centre - half))

    smaller, larger = 1.0, 2.0
    while width_at(larger) > width:
        smaller, larger = larger, larger * 2
        if smaller > MOST_FACTOR:
            return Wanted(width, None, False)
    while larger / smaller > 1.001:
        middle = math.sqrt(smaller * larger)
        smaller, larger = (middle, larger) if width_at(middle) > width else (smaller, middle)
    return Wanted(width, {label: math.ceil(count * larger - 1e-9) for label, count in now.items()}, False)


def estimated_seconds(
    train: tuple[int, int], test: tuple[int, int] | None, *, repeats: int, split_repeats: int, shared: bool, size: int
) -> float:
    """About how long a study takes on this machine: shapes [rows, dimensions], `size` of the files in bytes.

    `shared` says that splits will be compared, as they are on one file (`test` None) and where categories are shared.
    """
    rows, d = train[0] + (test[0] if test else 0), train[1]
    wide = _PASSES * rows * d * 8
    products = 0.0
    if test:
        # Shuffles within categories are drawn only where a category holds both labels; they are counted all the same.
        products = 2.0 * d * repeats * (2 * train[0] + 3 * test[0])
        looked = min(train[0], 2_000) + min(test[0], 2_000)
        products += 2.0 * d * train[0] * looked
        products += 2.0 * min(train[0], 2_000) ** 2 * d
    if shared or not test:
        wide += 2 * (1 + split_repeats) * rows * d * 8
    return size / _BYTES_A_SECOND + products / _products_a_second() + wide / _wide_bytes_a_second() + 0.05


@cache
def _products_a_second() -> float:
    """float32 multiplications and additions a second of one thread, measured once.

    The matrices are so small that BLAS takes one thread by itself: its number of threads, which belongs to the whole
    process, may be a running study's to set.
    """
    a = np.random.default_rng(0).standard_normal((64, 64), np.float32)
    return 2.0 * 64**3 * 32 / _best(lambda: [a @ a for _ in range(32)])


@cache
def _wide_bytes_a_second() -> float:
    """Bytes a second of a pass in float64, measured once."""
    a, out = np.ones((512, 1024), np.float32), np.empty((512, 1024))
    return a.size * 8 / _best(lambda: np.subtract(a, 1.0, out=out, dtype=np.float64))


def _best(work) -> float:
    times = []
    for _ in range(8):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return max(min(times), 1e-7)
