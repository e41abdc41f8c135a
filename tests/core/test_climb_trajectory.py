from hypothesis import given

from refusal_core.climb.policy import TOKENS, UNIT
from refusal_core.climb.search import search
from refusal_core.climb.trajectory import steps
from tests.core.climb_cases import ANY, BUDGETS, FANOUTS, NOISES, SEEDS


@given(ANY, SEEDS, BUDGETS, FANOUTS, NOISES)
def test_steps_are_the_improvements_and_say_what_changed(policy, seeds, budget, fanout, noise):
    runs = search(policy, "climb", seeds, budget, fanout=fanout, noise=noise)
    for place in range(len(seeds)):
        told, rows = steps(runs, place), runs.rows(place)
        assert len(told) == len(rows)
        for step, row in zip(told, rows, strict=True):
            assert step.evaluation == runs.at[row]
            assert (step.score, step.value) == (runs.score[row] / UNIT, runs.value[row] / UNIT)
            assert step.tokens == tuple(TOKENS[t] for t in runs.sequence[row])
        assert told[0].new_start
        for before, step in zip(told, told[1:], strict=False):
            assert step.new_start == (step.restart != before.restart)
            if step.new_start:
                assert step.changed == set(range(policy.length))
            else:
                differing = {k for k in range(policy.length) if step.tokens[k] != before.tokens[k]}
                assert step.changed == differing
                assert step.changed or noise
