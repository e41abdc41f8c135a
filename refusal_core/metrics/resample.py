"""Bootstrap of any statistic of weighted units: stratified draws, and Efron's BCa interval from them.

Which interval was decided by simulation (5 classes, n = 40 to 500, recalls 0.7 to 0.99; macro F1, MCC, balanced
accuracy): the nominal 95 % of the plain percentile interval cover 0.87 to 0.96, those of the expanded percentile 0.87
to 0.96, and those of BCa 0.90 to 0.96, with the misses even on both sides; near a score of 1, where the others promise
too much eight times in a hundred, BCa does so three times. What resampling alone cannot give: a class of two or three
items, all right or all wrong, shows no spread, and an average over it is then too sure of itself (0.74). So is the
difference of two checkpoints that differ in few items (0.3 to 0.8). So cells that could have been seen are drawn too,
with the chance of a quarter of an item: 0.92 to 0.99 for scores, 0.94 and more for differences. The value itself is
never changed. Over clusters: 0.85 to 0.95 with 60 of them, 0.8 to 0.93 with 25.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from refusal_core.metrics.intervals import LEVEL, Interval

METHOD = "BCa bootstrap"
RESAMPLES = 2_000
MIN_CLUSTERS = 10  # fewer say too little about how clusters differ
_CELLS = 4_000_000  # of one block of weights
_FEW = 16  # units of a cell
_DELETIONS = 400  # of the jackknife: above that many units, units are left out in groups
_MOST_UNDEFINED = 0.1  # of the resamples

# Weights of the units [r, m] -> the statistic [r]; NaN where it is undefined.
Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Units:
    """What is drawn: m kinds of unit, each `count` times there and in a `stratum`, whose size every resample keeps.

    A unit is an item, a cluster of items, or (where the statistic asks no more) all items of one confusion cell.
    `quarters` are quarters of a unit that a cell is likelier by than its count says.
    """

    stratum: NDArray[np.int64]
    count: NDArray[np.int64]
    quarters: NDArray[np.int64] | None = None

    @property
    def freedom(self) -> int:
        """Degrees of freedom: units less strata."""
        return int(self.count.sum()) - len(np.unique(self.stratum))

    @property
    def mass(self) -> NDArray[np.int64]:
        """What chances within a stratum are proportional to, in quarters of a unit."""
        return 4 * self.count + (0 if self.quarters is None else self.quarters)

    @property
    def expected(self) -> NDArray[np.float64]:
        """The mean weight of each kind over resamples."""
        _, at = np.unique(self.stratum, return_inverse=True)
        return self.mass * (np.bincount(at, weights=self.count) / np.bincount(at, weights=self.mass))[at]

    def weights(self, seed: int, resamples: int) -> Iterator[NDArray[np.float64]]:
        """How often each kind is drawn, in blocks [r, m]. The same seed and units give the same weights."""
        rng = np.random.default_rng(seed)
        block = max(1, _CELLS // max(1, len(self.count)))
        draw = self._draw_units if (self.count == 1).all() else self._draw_cells
        for done in range(0, resamples, block):
            yield draw(rng, min(block, resamples - done))

    def _draw_units(self, rng: np.random.Generator, r: int) -> NDArray[np.float64]:
        m = len(self.count)
        order = np.argsort(self.stratum, kind="stable")
        _, start, place, size = np.unique(
            self.stratum[order], return_index=True, return_inverse=True, return_counts=True
        )
        drawn = rng.random((r, m))
        drawn *= size[place]
        at = drawn.astype(np.int64)  # below size: random() is below 1 and size far below 2**53
        at += start[place]
        at = order[at]
        at += np.arange(r)[:, None] * m
        return np.bincount(at.ravel(), minlength=r * m).reshape(r, m).astype(np.float64)

    def _draw_cells(self, rng: np.random.Generator, r: int) -> NDArray[np.float64]:
        """Multinomial counts in each stratum. Cells of a few units are drawn as one, and that unit by unit: faster."""
        m, mass = len(self.count), self.mass
        weights = np.zeros((r, m))
        for stratum in np.unique(self.stratum):
            at = np.flatnonzero(self.stratum == stratum)
            at = at[np.argsort(-mass[at], kind="stable")]
            large = at[mass[at] >= 4 * _FEW]
            few = np.repeat(at[len(large) :], mass[at[len(large) :]])
            chances = np.array([*mass[large], len(few)]) / mass[at].sum()
            drawn = rng.multinomial(int(self.count[at].sum()), chances, size=r)
            weights[:, large] = drawn[:, :-1]
            if len(few):
                cell = few[rng.integers(len(few), size=int(drawn[:, -1].sum()))]
                cell += np.repeat(np.arange(r) * m, drawn[:, -1])
                weights += np.bincount(cell, minlength=r * m).reshape(r, m)
        return weights


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """The resampled values of a statistic, sorted, and what BCa needs to turn them into intervals and tails.

    `z0` is the bias correction, `acceleration` Efron's a from the jackknife over strata (Davison and Hinkley 1997,
    5.3.2). The normal quantiles of BCa are Student's with f = `freedom` degrees of freedom, times sqrt((f + 1) / f), so
    that few units give wider intervals (Hesterberg 2015). `spread` is whether any unit makes a difference.
    """

    value: float
    draws: NDArray[np.float64] = field(repr=False)
    z0: float
    acceleration: float
    freedom: int
    spread: bool

    @property
    def decides(self) -> bool:
        """Whether the resamples differ at all: an interval of no width would decide everything, and knows nothing."""
        return self.freedom > 0 and self.spread and self.draws[-1] - self.draws[0] > 1e-12

    def interval(self, level: float = LEVEL) -> Interval | None:
        """The BCa interval, or None where it would have no width."""
        if not self.decides:
            return None
        z = self._scale * float(stdtrit(self.freedom, (1 + level) / 2))
        low, high = (self._end(self.z0 + sign * z) for sign in (-1, 1))
        low, high = min(low, self.value), max(high, self.value)
        return Interval(low, high, level, METHOD) if high - low > 1e-12 else None

    def tail(self, margin: float) -> float | None:
        """One-sided p of "the true value is at most `margin`": small when the data say that it is above.

        It agrees with `interval`: below (1 - level) / 2 just when `margin` is below the interval. 1 - tail is the p of
        "at least `margin`". From 1/(R+1) to R/(R+1) for R resamples; None where there is no interval.
        """
        if not self.decides:
            return None
        r = len(self.draws)
        least, most = 1 / (r + 1), r / (r + 1)
        s = float(ndtri(min(max(self._part_below(margin), least), most))) - self.z0
        scale = 1 + self.acceleration * s
        if scale <= 0:
            return least if s < 0 else most
        return min(max(float(stdtr(self.freedom, (s / scale - self.z0) / self._scale)), least), most)

    @property
    def _scale(self) -> float:
        return float(np.sqrt((self.freedom + 1) / self.freedom))

    def _part_below(self, margin: float) -> float:
        """The part of the draws below `margin`, half of those that equal it; the inverse of numpy's quantile."""
        first, last = (int(np.searchsorted(self.draws, margin, side)) for side in ("left", "right"))
        if first < last:
            return (first + last - 1) / 2 / (len(self.draws) - 1)
        return float(np.interp(margin, self.draws, np.linspace(0, 1, len(self.draws))))

    def _end(self, x: float) -> float:
        scale = 1 - self.acceleration * x
        part = float(ndtr(self.z0 + x / scale)) if scale > 0 else float(x > 0)
        return float(np.quantile(self.draws, part))


def bootstrap(units: Units, statistic: Statistic, *, seed: int = 0, resamples: int = RESAMPLES) -> Bootstrap | None:
    """Resample `units` and compute `statistic` for each; None where it is undefined, or so in many resamples."""
    value = float(statistic(units.count[None, :].astype(np.float64))[0]) if len(units.count) else np.nan
    if not np.isfinite(value):
        return None
    draws = np.concatenate([statistic(weights) for weights in units.weights(seed, resamples)])
    draws = np.sort(draws[np.isfinite(draws)])
    r = len(draws)
    if r < (1 - _MOST_UNDEFINED) * resamples or r < 2:
        return None
    centre = float(statistic(units.expected[None, :])[0])
    below = (np.searchsorted(draws, centre - 1e-12) + np.searchsorted(draws, centre + 1e-12)) / 2
    z0 = float(ndtri(min(max(below / r, 1 / (r + 1)), r / (r + 1))))
    draws.flags.writeable = False
    acceleration, spread = _jackknife(units, statistic)
    return Bootstrap(value, draws, z0, acceleration, units.freedom, spread)


def _jackknife(units: Units, statistic: Statistic) -> tuple[float, bool]:
    """Efron's a: how the spread changes with the value, from leaving out one unit (or one group of units) at a time.

    And whether there is any spread.
    """
    left_out, stratum, times = _deletions(units)
    with np.errstate(invalid="ignore", divide="ignore"):  # a stratum of one item leaves nothing
        values = statistic(units.count - left_out)
    second = third = 0.0
    for h in np.unique(stratum):
        at = (stratum == h) & (times > 0) & np.isfinite(values)
        n = times[at].sum()
        if n < 2:
            continue
        influence = (n - 1) * (np.average(values[at], weights=times[at]) - values[at])
        second += float(times[at] @ influence**2) / n**2
        third += float(times[at] @ influence**3) / n**3
    return (third / (6 * second**1.5), True) if second > 1e-24 else (0.0, False)


def _deletions(units: Units) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """What each step of the jackknife leaves out [d, m], the stratum it is in, and how often such a step is made."""
    m = len(units.count)
    if m <= _DELETIONS:
        return np.eye(m), units.stratum, units.count.astype(np.float64)
    # The sums of squares and cubes of the influences of groups are on average those of their members: a stays.
    shuffled = np.random.default_rng(0).permutation(m)
    order = shuffled[np.argsort(units.stratum[shuffled], kind="stable")]
    group = np.zeros(m, dtype=np.int64)
    stratum: list[int] = []
    for h in np.unique(units.stratum):
        at = order[units.stratum[order] == h]
        parts = min(len(at), max(2, round(_DELETIONS * len(at) / m)))
        group[at] = len(stratum) + np.arange(len(at)) * parts // len(at)
        stratum += [int(h)] * parts
    left_out = np.zeros((len(stratum), m))
    left_out[group, np.arange(m)] = units.count
    return left_out, np.array(stratum), np.ones(len(stratum))
