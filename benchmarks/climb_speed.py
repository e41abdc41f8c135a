"""How much faster the search over all seeds at once is than a plain loop over seeds, steps and substitutions.

    python -m benchmarks.climb_speed [--seeds 2000] [--budget 2000] [--fanout 4] [--noise 0]

Prints one JSON object. Both run in this process and draw from the same streams. The plain loop is timed twice: scoring
each sequence whole, as one would write it first, and scoring only what a substitution changes. It runs over the first
`--plain-seeds` seeds and its time is scaled up to all of them; the results of those seeds must be equal, or the
benchmark fails.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np

from refusal_core.climb import streams
from refusal_core.climb.policy import Policy, make_policy
from refusal_core.climb.search import search
from refusal_core.reports import to_json

Improvement = tuple[int, int, int, int, tuple[int, ...]]  # evaluation, score, value, restart, sequence


def plain_climb(
    policy: Policy, seed: int, budget: int, fanout: int, noise: float, *, whole: bool = True
) -> tuple[list[Improvement], int, int]:
    """The climb of one seed, raising the logit: its improvements, the evaluations it made and its restarts.

    Written from the description of the method, without numpy in the loop. `whole` scores each sequence from nothing.
    """
    length, vocabulary, total = policy.length, policy.vocabulary, policy.neighbours
    weights, pairs = policy.weights.tolist(), policy.interactions.tolist()
    one, rows = np.array([seed]), budget // (1 + total) + 1
    course = streams.courses(one, rows, length, vocabulary)
    starts, order = course.starts[0].tolist(), course.orders[0].tolist()
    errors = streams.noise(one, budget, noise)[0].tolist() if noise else [0] * budget
    improvements: list[Improvement] = []
    used, restart, best, cursor = 0, 0, None, 0

    def logit(sequence: list[int]) -> int:
        value = policy.bias
        for place, token in enumerate(sequence):
            value += weights[place][token]
            if place:
                value += pairs[sequence[place - 1]][token]
        return value

    def logit_after(value: int, sequence: list[int], place: int, new: int) -> int:
        old = sequence[place]
        value += weights[place][new] - weights[place][old]
        if place:
            value += pairs[sequence[place - 1]][new] - pairs[sequence[place - 1]][old]
        if place + 1 < length:
            value += pairs[new][sequence[place + 1]] - pairs[old][sequence[place + 1]]
        return value

    while used < budget:
        current = starts[restart]
        value = logit(current)
        score = value + errors[used]
        used += 1
        if best is None or score > best:
            best = score
            improvements.append((used, score, value, restart, tuple(current)))
        since = 0
        while since < total and used < budget:
            top = None
            for _ in range(min(fanout, total - since, budget - used)):
                place, shift = divmod(order[cursor], vocabulary - 1)
                new = (current[place] + shift + 1) % vocabulary
                if whole:
                    changed = current.copy()
                    changed[place] = new
                    new_value = logit(changed)
                else:
                    new_value = logit_after(value, current, place, new)
                new_score = new_value + errors[used]
                used += 1
                since += 1
                cursor = (cursor + 1) % total
                if new_score > best:
                    best = new_score
                    changed = current.copy()
                    changed[place] = new
                    improvements.append((used, new_score, new_value, restart, tuple(changed)))
                if top is None or new_score > top[0]:
                    top = new_score, new_value, place, new
            if top[0] > score:
                score, value, place, new = top
                current = current.copy()
                current[place] = new
                since = 0
        if used < budget:
            restart += 1
    return improvements, used, restart


def improvements_of(runs, place: int) -> list[Improvement]:
    """The improvements of one seed of `runs` in the plain loop's form."""
    return [
        (
            int(runs.at[r]),
            int(runs.score[r]),
            int(runs.value[r]),
            int(runs.restart[r]),
            tuple(map(int, runs.sequence[r])),
        )
        for r in runs.rows(place)
    ]


def _timed(work: Callable[[], object]) -> tuple[float, object]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def main() -> int:
    parser = argparse.ArgumentParser(description="Search over all seeds at once against a plain loop.")
    for name, value in (("seeds", 2000), ("budget", 2000), ("fanout", 4), ("length", 8), ("vocabulary", 12)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--plain-seeds", type=int, default=200, help="seeds that the plain loop runs (default: 200)")
    parser.add_argument("--repeats", type=int, default=3, help="timings of which the fastest counts (default: 3)")
    args = parser.parse_args()
    policy = make_policy(0, args.length, args.vocabulary)
    some = range(min(args.plain_seeds, args.seeds))

    def at_once():
        options = {"fanout": args.fanout, "noise": args.noise}
        return search(policy, "climb", np.arange(args.seeds), args.budget, **options)

    def loop(whole: bool):
        return [plain_climb(policy, seed, args.budget, args.fanout, args.noise, whole=whole) for seed in some]

    fast = min((_timed(at_once) for _ in range(args.repeats)), key=lambda timing: timing[0])
    plain, changes = (
        min((_timed(lambda whole=whole: loop(whole)) for _ in range(args.repeats)), key=lambda timing: timing[0])
        for whole in (True, False)
    )
    for seed in some:
        expected = improvements_of(fast[1], seed), int(fast[1].evaluations[seed]), int(fast[1].restarts[seed])
        if not plain[1][seed] == changes[1][seed] == expected:
            print(f"seed {seed} came out different", file=sys.stderr)
            return 1
    scale = args.seeds / len(some)
    print(
        to_json(
            {
                "settings": vars(args),
                "seconds_at_once": round(fast[0], 3),
                "seconds_plain": round(plain[0] * scale, 2),
                "seconds_plain_changes_only": round(changes[0] * scale, 2),
                "times_faster": round(plain[0] * scale / fast[0], 1),
                "times_faster_than_changes_only": round(changes[0] * scale / fast[0], 1),
                "equal_results": len(some),
            },
            indent=2,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
