"""Searches over the sequences of a policy, for many seeds at once: the climb and the methods it is compared with.

The budget counts evaluations: each score that a search asks for costs one, whether it sees that sequence for the first
time or again, and none is asked for beyond the budget. A search sees scores only: the exact logit plus the normal error
of that evaluation. Everything is compared as whole millionths of a logit, and only a strictly better score replaces
another: among equals the first evaluated stays.
"""

from __future__ import annotations

import numpy as np

from refusal_core.climb import streams
from refusal_core.climb.neighbours import Neighbours
from refusal_core.climb.policy import Policy, sign, units
from refusal_core.climb.runs import NEVER, Recorder, Runs, joined
from refusal_core.jobs import Job

METHODS = ("climb", "random", "greedy", "annealing")
BASELINES = METHODS[1:]

_BLOCK_BYTES = 64_000_000  # of random draws held at once
_HOT, _COLD = 1.0, 0.05  # temperatures of annealing, in sds of a weight


def search(
    policy: Policy,
    method: str,
    seeds: np.ndarray,
    budget: int,
    *,
    fanout: int = 4,
    noise: float = 0.0,
    objective: str = "raise",
    job: Job | None = None,
) -> Runs:
    """Run `method` once for each of `seeds` (whole numbers from 0) with `budget` evaluations each (from 1).

    climb: from a random sequence, each step tries `fanout` sequences that differ from the current one in one token and
    moves to the best of them if it scores better. They come in an order that is drawn once a seed and gone through
    round and round, so that none is tried twice before a move; when all length * (vocabulary - 1) were tried since the
    last move, the search is stuck and restarts from a new random sequence. A step is shorter when fewer are left to
    try, or less budget.
    random: each evaluation is a new random sequence.
    greedy: place by place, round and round from the first, tries every other token there and takes the best if it
    scores better; restarts after as many places without a change as there are.
    annealing (S. Kirkpatrick et al. 1983, Science 220, 671-680): each evaluation is a random substitution, accepted
    when better, or with probability exp(difference / T), T falling geometrically over the budget from 1 to 0.05 times
    1/sqrt(length), the sd of a weight.

    The run of a seed does not depend on the other seeds. Advances `job` by evaluations. Raises ValueError for another
    method or objective.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    seeds = np.asarray(seeds, dtype=np.int64)
    block = max(1, _BLOCK_BYTES // _bytes_of_one(policy, method, budget, noise))
    parts = []
    for first in range(0, len(seeds), block):
        some = seeds[first : first + block]
        parts.append(_run(policy, method, some, budget, fanout, noise, sign(objective)))
        if job:
            job.advance(len(some) * budget)
    return joined(parts)


def _bytes_of_one(policy: Policy, method: str, budget: int, noise: float) -> int:
    """About what the tables of one seed take."""
    tables = 8 * (policy.length + 2) * policy.vocabulary + 40 * policy.neighbours
    drawn = {"random": budget * (policy.length + 24), "annealing": budget * 48}
    return tables + drawn.get(method, _starts(policy, budget) * (policy.length + 8)) + (16 * budget if noise else 0)


def _starts(policy: Policy, budget: int) -> int:
    """Starts that a climb can need: each but the last is followed by at least all neighbours."""
    return budget // (1 + policy.neighbours) + 1


def _run(policy: Policy, method: str, seeds: np.ndarray, budget: int, fanout: int, noise: float, side: int) -> Runs:
    rows = budget if method == "random" else 1 if method == "annealing" else _starts(policy, budget)
    courses = streams.courses(seeds, rows, policy.length, policy.vocabulary)
    field = _Field(policy, seeds, courses.starts, budget, noise, side)
    if method == "random":
        restarts = _random(field)
    else:
        neighbours = Neighbours(policy, courses.starts[:, 0], side)
        if method == "climb":
            restarts = _climb(field, neighbours, courses.orders, fanout)
        elif method == "greedy":
            in_turn = np.broadcast_to(np.arange(policy.neighbours), courses.orders.shape)
            restarts = _climb(field, neighbours, in_turn, policy.vocabulary - 1)
        else:
            draws = streams.proposals(seeds, budget, policy.neighbours)
            restarts = _anneal(field, neighbours, *draws, policy.length**-0.5)
    return field.recorder.runs(method, seeds, field.used, restarts, units(courses.fresh * noise), side)


class _Field:
    """What the searches of some seeds share: current sequences, errors of the evaluations, and how many were used."""

    def __init__(
        self, policy: Policy, seeds: np.ndarray, starts: np.ndarray, budget: int, noise: float, side: int
    ) -> None:
        self.budget, self.starts = budget, starts
        self.everyone = np.arange(len(seeds))
        self.logits = side * policy.logits(starts)  # looked up in one go; each is counted when the search comes to it
        self.errors = streams.noise(seeds, budget, noise).ravel() if noise else None
        self.used = np.zeros(len(seeds), dtype=np.int64)
        self.recorder = Recorder(len(seeds))

    def observed(self, who: np.ndarray, value: np.ndarray, ahead: np.ndarray | int = 0) -> np.ndarray:
        """Scores of `value` as the next evaluation but `ahead` of the seeds at `who`; the caller counts them."""
        if self.errors is None:
            return value
        return value + self.errors.take(who * self.budget + np.minimum(self.used[who] + ahead, self.budget - 1))

    def start(self, who: np.ndarray, restart: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate once the starts number `restart` [who] of the seeds at `who`; (exact logits, scores)."""
        value = self.logits[who, restart]
        score = self.observed(who, value)
        self.used[who] += 1
        better = np.flatnonzero(score > self.recorder.best[who])
        if len(better):
            them, which = who[better], restart[better]
            found = (self.used[them], score[better], value[better], which, self.starts[them, which])
            self.recorder.add(them, *found)
        return value, score


def _climb(field: _Field, neighbours: Neighbours, order: np.ndarray, fanout: int) -> np.ndarray:
    """Climb, trying neighbours by `order` [seeds, neighbours], round and round; the number of restarts, [seeds]."""
    everyone, total = field.everyone, order.shape[1]
    restarts = np.zeros(len(everyone), dtype=np.int64)
    cursor, since = restarts.copy(), restarts.copy()
    value, score = field.start(everyone, restarts)
    most = min(fanout, total)
    ahead = np.arange(most)[:, None]  # arrays of a step are [most, seeds]: numpy is slow along a short last axis
    order = np.concatenate([order, order[:, :most]], axis=1)  # a step may run over the end of a round
    line = everyone * order.shape[1]
    all_rows, all_turns = (part.ravel() for part in neighbours.decoded(order))

    while True:
        tried = np.minimum(np.minimum(field.budget - field.used, total - since), most)
        if not tried.any():
            return restarts
        next_ones = ahead + (line + cursor)
        rows = all_rows.take(next_ones)
        values, new = neighbours.gains(rows, all_turns.take(next_ones))
        values += value
        scores = field.observed(everyone, values, ahead)
        if tried.min() < most:
            scores = np.where(ahead < tried, scores, NEVER)
        top = scores.max(axis=0)
        rising = (top > field.recorder.best).nonzero()[0]
        if len(rising):
            columns = (part[:, rising] for part in (scores, values, rows, new))
            _record_step(field, neighbours, rising, *columns, restarts)
        field.used += tried
        since += tried
        cursor += tried
        cursor -= (cursor >= total) * total
        moved = (top > score).nonzero()[0]
        if len(moved):
            best = scores[:, moved].argmax(axis=0), moved  # the first one among equals
            neighbours.move(rows[best], new[best])
            value[moved], score[moved], since[moved] = values[best], top[moved], 0
        stuck = ((since == total) & (field.used < field.budget)).nonzero()[0]
        if len(stuck):
            restarts[stuck] += 1
            since[stuck] = 0
            neighbours.reset(stuck, field.starts[stuck, restarts[stuck]])
            value[stuck], score[stuck] = field.start(stuck, restarts[stuck])


def _record_step(field: _Field, neighbours: Neighbours, who, scores, values, rows, new, restarts) -> None:
    """Record each score of a step, [tried, who] like the next three, that is above all before it in its run."""
    before = np.maximum.accumulate(np.vstack([field.recorder.best[who], scores]))
    here = np.nonzero(scores > before[:-1])
    them = who[here[1]]
    found = (field.used[them] + here[0] + 1, scores[here], values[here], restarts[them])
    field.recorder.add(them, *found, neighbours.sequences(them, rows[here], new[here]))


def _random(field: _Field) -> np.ndarray:
    """Evaluate all starts; each after the first counts as a restart."""
    values = field.logits
    scores = values if field.errors is None else values + field.errors.reshape(values.shape)
    before = np.maximum.accumulate(np.column_stack([field.recorder.best, scores]), axis=1)
    who, at = np.nonzero(scores > before[:, :-1])
    field.recorder.add(who, at + 1, scores[who, at], values[who, at], at, field.starts[who, at])
    field.used += field.budget
    return np.full(len(field.everyone), field.budget - 1)


def _anneal(
    field: _Field, neighbours: Neighbours, proposed: np.ndarray, chances: np.ndarray, scale: float
) -> np.ndarray:
    """Anneal from the first start by substitutions `proposed` [seeds, budget], accepted by `chances`, above 0 to 1.

    `scale` is the sd of a weight in logits. There are no restarts: zeros, [seeds].
    """
    everyone, none = field.everyone, np.zeros(len(field.everyone), dtype=np.int64)
    value, score = field.start(everyone, none)
    heat = np.geomspace(_HOT, _COLD, field.budget) * scale
    worst = units(np.log(chances) * heat)  # the largest loss that is accepted
    all_rows, all_turns = (np.ascontiguousarray(part.T) for part in neighbours.decoded(proposed))
    for turn in range(1, field.budget):
        rows = all_rows[turn]
        gains, new = neighbours.gains(rows, all_turns[turn])
        values = value + gains
        scores = field.observed(everyone, values)
        rising = np.flatnonzero(scores > field.recorder.best)
        if len(rising):
            columns = (part[None, rising] for part in (scores, values, rows, new))
            _record_step(field, neighbours, rising, *columns, none)
        field.used += 1
        taken = np.flatnonzero(scores - score >= worst[:, turn])
        neighbours.move(rows[taken], new[taken])
        value[taken], score[taken] = values[taken], scores[taken]
    return none
