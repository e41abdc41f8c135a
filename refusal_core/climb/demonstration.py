"""The whole demonstration as one function: the search, its baselines and other fan-outs, over the same seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from refusal_core.climb.policy import UNIT, Optimum, Policy, make_policy, sign
from refusal_core.climb.runs import Runs
from refusal_core.climb.search import BASELINES, METHODS, search
from refusal_core.climb.settings import Settings
from refusal_core.jobs import Job
from refusal_core.metrics.bootstrap import bootstrap_means
from refusal_core.metrics.intervals import Interval, Rate, rate

SIMULATED = (
    "Simulated: the scores come from a made-up table of numbers, not from a language model. Nothing here says anything "
    "about how a real model behaves."
)
FANOUTS = (1, 2, 4, 8, 16)
CURVE_POINTS = 25
BOOTSTRAP = {"resamples": 4_000, "seed": 0}


@dataclass(frozen=True)
class Spread:
    """Of one number a seed, in logits: least, quartiles and largest."""

    least: float
    lower_quartile: float
    median: float
    upper_quartile: float
    largest: float


@dataclass(frozen=True, eq=False)
class Curve:
    """Means over the seeds, in logits, after each of `budgets` evaluations: arrays [points] of one length.

    `regret` is that of the sequence that the search would report by then, with the ends `low` and `high` of its
    interval (NaN where there is none); `reported` is the score it would report, `exact` the logit behind that score.
    """

    budgets: np.ndarray
    regret: np.ndarray
    low: np.ndarray
    high: np.ndarray
    reported: np.ndarray
    exact: np.ndarray


@dataclass(frozen=True)
class Summary:
    """One method, or the climb with one fan-out, over all seeds.

    `regret` is the mean distance from the optimum in logits, from 0, `spread` its spread over seeds; `reached` is the
    share of seeds whose result is optimal. `flattery` is how much better the reported score looks than a fresh
    evaluation of the same result, the mean over seeds in logits: None without noise, where it is 0 by construction.
    """

    regret: Rate
    spread: Spread
    reached: Rate
    flattery: Rate | None
    curve: Curve


@dataclass(frozen=True)
class Paired:
    """The climb against a baseline over the same seeds.

    `difference` is the mean of the baseline's regret less the climb's, in logits: above 0 the climb came closer.
    `closer`, `equal` and `farther` count the seeds where the climb's regret was lower, the same and higher.
    """

    method: str
    difference: Rate
    closer: int
    equal: int
    farther: int

    @property
    def verdict(self) -> str:
        """In words, by the interval: a difference counts when 0 is outside."""
        interval = self.difference.interval
        if interval is None and self.difference.n > 1:
            return "equal on every seed" if self.equal == self.difference.n else "the same difference on every seed"
        if interval is None or interval.low <= 0 <= interval.high:
            return "not told apart"
        return "the climb came closer" if interval.low > 0 else "the climb stayed farther away"


@dataclass(frozen=True, eq=False)
class Demonstration:
    """Everything that the page shows and the report holds. Mappings go by method, or by fan-out in ascending order."""

    settings: Settings
    policy: Policy
    optimum: Optimum
    runs: Mapping[str, Runs]
    summaries: Mapping[str, Summary]
    paired: tuple[Paired, ...]
    fanouts: Mapping[int, Summary]

    @property
    def side(self) -> int:
        return sign(self.settings.objective)

    def regret(self, values: np.ndarray) -> np.ndarray:
        """How far exact logits are from the optimum, in millionths, int64, from 0."""
        return self.side * (self.optimum.value - values)

    def sentence(self) -> str:
        """The answer in one sentence."""
        climb, settings = self.summaries["climb"], self.settings
        return (
            f"With a budget of {settings.budget:,} the search ends {climb.regret} logits from the optimum on average, "
            f"and reaches it on {climb.reached} of the seeds."
        )


def demonstrate(settings: Settings, job: Job | None = None) -> Demonstration:
    """Run every method and fan-out and measure them; the same settings give the same result. Raises Cancelled."""
    policy = make_policy(settings.policy_seed, settings.length, settings.vocabulary, settings.interactions)
    seeds = np.arange(settings.seeds)
    fanouts = sorted({*FANOUTS, settings.fanout})
    if job:
        job.start((len(METHODS) + len(fanouts) - 1) * settings.seeds * settings.budget, "evaluations")

    def run(method: str, fanout: int = settings.fanout) -> Runs:
        given = {"fanout": fanout, "noise": settings.noise, "objective": settings.objective}
        return search(policy, method, seeds, settings.budget, job=job, **given)

    runs = {method: run(method) for method in METHODS}
    by_fanout = {fanout: runs["climb"] if fanout == settings.fanout else run("climb", fanout) for fanout in fanouts}
    optimum, side = policy.optimum(settings.objective), sign(settings.objective)
    measures = {method: _Measure(runs[method], optimum, side, settings) for method in METHODS}
    of_fanouts = {fanout: _Measure(found, optimum, side, settings) for fanout, found in by_fanout.items()}
    differences = {method: measures[method].regret - measures["climb"].regret for method in BASELINES}

    # One matrix, so that every interval comes from the same resampled seeds.
    everything = [*measures.values(), *of_fanouts.values()]
    columns = np.column_stack([*(m.columns for m in everything), *differences.values()])
    intervals = iter([_in_logits(interval) for interval in bootstrap_means(columns, **BOOTSTRAP)])
    summaries = [measure.summary(intervals) for measure in everything]
    return Demonstration(
        settings=settings,
        policy=policy,
        optimum=optimum,
        runs=runs,
        summaries=dict(zip(METHODS, summaries, strict=False)),
        paired=tuple(_paired(method, change, next(intervals)) for method, change in differences.items()),
        fanouts=dict(zip(fanouts, summaries[len(METHODS) :], strict=True)),
    )


class _Measure:
    """The numbers of one set of runs, one a seed, in millionths; `columns` are those that get an interval."""

    def __init__(self, runs: Runs, optimum: Optimum, side: int, settings: Settings) -> None:
        self.budgets = curve_budgets(settings.budget)
        rows = runs.standing(self.budgets)
        self.curve_regret = side * (optimum.value - runs.value[rows])
        self.reported, self.exact = runs.score[rows], runs.value[rows]
        self.regret = side * (optimum.value - runs.best)
        self.flattery = side * (runs.reported - runs.fresh) if settings.noise else None
        parts = [self.regret, self.curve_regret] + ([] if self.flattery is None else [self.flattery])
        self.columns = np.column_stack(parts)

    def summary(self, intervals) -> Summary:
        """Takes as many of `intervals` as there are columns."""
        regret = _mean(self.regret, next(intervals))
        ends = [next(intervals) for _ in self.budgets]
        curve = Curve(
            budgets=self.budgets,
            regret=_means(self.curve_regret),
            low=np.array([np.nan if end is None else end.low for end in ends]),
            high=np.array([np.nan if end is None else end.high for end in ends]),
            reported=_means(self.reported),
            exact=_means(self.exact),
        )
        flattery = None if self.flattery is None else _mean(self.flattery, next(intervals))
        spread = Spread(*(float(q) for q in np.quantile(self.regret, [0, 0.25, 0.5, 0.75, 1]) / UNIT))
        return Summary(regret, spread, rate(int((self.regret == 0).sum()), len(self.regret)), flattery, curve)


def curve_budgets(budget: int) -> np.ndarray:
    """At most CURVE_POINTS whole numbers from 1 to `budget`, both included, evenly spaced on a log scale."""
    return np.unique(np.rint(np.geomspace(1, budget, CURVE_POINTS)).astype(np.int64))


def _paired(method: str, difference: np.ndarray, interval: Interval | None) -> Paired:
    counts = (int((difference > 0).sum()), int((difference == 0).sum()), int((difference < 0).sum()))
    return Paired(method, _mean(difference, interval), *counts)


def _mean(millionths: np.ndarray, interval: Interval | None) -> Rate:
    return Rate(float(_means(millionths)), len(millionths), interval)


def _means(millionths: np.ndarray) -> np.ndarray:
    """Over the seeds; sums of whole numbers, so exact."""
    return millionths.sum(axis=0) / len(millionths) / UNIT


def _in_logits(interval: Interval | None) -> Interval | None:
    return interval and Interval(interval.low / UNIT, interval.high / UNIT, interval.level, interval.method)
