import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refusal_core.climb import Settings, demonstrate
from refusal_core.climb.demonstration import BOOTSTRAP, CURVE_POINTS, FANOUTS, Paired, curve_budgets
from refusal_core.climb.policy import UNIT
from refusal_core.climb.report import report_json
from refusal_core.climb.search import BASELINES, METHODS, search
from refusal_core.errors import Cancelled, InputError
from refusal_core.jobs import Job
from refusal_core.metrics.bootstrap import bootstrap_means
from refusal_core.metrics.intervals import Interval, Rate, rate

SMALL = st.builds(
    Settings,
    seeds=st.integers(1, 6),
    budget=st.integers(1, 60),
    fanout=st.integers(1, 20),
    length=st.integers(1, 6),
    vocabulary=st.integers(2, 6),
    interactions=st.sampled_from([0.0, 1.0]),
    noise=st.sampled_from([0.0, 0.5]),
    objective=st.sampled_from(["raise", "lower"]),
    policy_seed=st.integers(0, 99),
)


@pytest.fixture(scope="module")
def noisy():
    return demonstrate(Settings(noise=0.4))


@pytest.fixture(scope="module")
def lowered():
    return demonstrate(Settings(noise=0.4, objective="lower"))


@pytest.mark.parametrize("which", ["noisy", "lowered"])
def test_summaries_are_those_of_the_seeds(which, request):
    d = request.getfixturevalue(which)
    side = 1 if which == "noisy" else -1
    for method in METHODS:
        runs, summary = d.runs[method], d.summaries[method]
        regret = [side * (d.optimum.value - int(v)) for v in runs.best]
        assert min(regret) >= 0
        assert summary.regret.value == pytest.approx(np.mean(regret) / UNIT, rel=1e-12)
        assert summary.reached == rate(regret.count(0), 20)
        assert summary.spread.median == pytest.approx(np.median(regret) / UNIT)
        assert (summary.spread.least, summary.spread.largest) == (min(regret) / UNIT, max(regret) / UNIT)
        flattery = [side * int(a - b) for a, b in zip(runs.reported, runs.fresh, strict=True)]
        assert summary.flattery.value == pytest.approx(np.mean(flattery) / UNIT, rel=1e-12)
        alone = bootstrap_means(np.array([regret], dtype=float).T, **BOOTSTRAP)[0]
        assert summary.regret.interval.low == pytest.approx(alone.low / UNIT, rel=1e-12)
        assert summary.regret.interval.high == pytest.approx(alone.high / UNIT, rel=1e-12)


def test_comparisons_are_paired_by_seed(noisy):
    climb = noisy.regret(noisy.runs["climb"].best)
    assert [p.method for p in noisy.paired] == list(BASELINES)
    for paired in noisy.paired:
        change = noisy.regret(noisy.runs[paired.method].best) - climb
        assert paired.difference.value == pytest.approx(change.mean() / UNIT, rel=1e-12)
        counts = ((change > 0).sum(), (change == 0).sum(), (change < 0).sum())
        assert (paired.closer, paired.equal, paired.farther) == counts
        alone = bootstrap_means(change[:, None].astype(float), **BOOTSTRAP)[0]
        assert paired.difference.interval.low == pytest.approx(alone.low / UNIT, rel=1e-12)


def test_verdicts_follow_the_interval(noisy):
    [random] = [p for p in noisy.paired if p.method == "random"]
    assert random.difference.interval.low > 0
    assert random.verdict == "the climb came closer"
    for paired in noisy.paired:
        low, high = paired.difference.interval.low, paired.difference.interval.high
        assert (paired.verdict == "not told apart") == (low <= 0 <= high)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.1, 0.2, "the climb came closer"),
        (-0.2, -0.1, "the climb stayed farther away"),
        (-0.1, 0.1, "not told apart"),
        (0.0, 0.1, "not told apart"),
        (-0.1, 0.0, "not told apart"),
    ],
)
def test_an_interval_that_reaches_zero_tells_nothing_apart(low, high, verdict):
    difference = Rate((low + high) / 2, 9, Interval(low, high, 0.95, "bootstrap"))
    assert Paired("random", difference, 5, 0, 4).verdict == verdict


def test_the_climb_can_lose():
    """Without interactions greedy is at the optimum after one round, and a climb of fan-out 16 is not."""
    d = demonstrate(Settings(seeds=60, budget=89, fanout=16, interactions=0.0))
    [greedy] = [p for p in d.paired if p.method == "greedy"]
    assert d.summaries["greedy"].reached.value == 1
    assert greedy.verdict == "the climb stayed farther away"


def test_where_all_seeds_agree_the_verdict_says_so():
    d = demonstrate(Settings(budget=300, length=2, vocabulary=3))
    assert {p.verdict for p in d.paired} == {"equal on every seed"}
    assert {(p.closer, p.equal, p.farther) for p in d.paired} == {(0, 20, 0)}
    assert d.summaries["climb"].regret.interval is None
    assert str(d.summaries["climb"].regret) == "0.00 (n = 20)"
    one = demonstrate(Settings(seeds=1, budget=50))
    assert {p.verdict for p in one.paired} == {"not told apart"}


def test_curves_end_where_the_summaries_are(noisy):
    for summary in (*noisy.summaries.values(), *noisy.fanouts.values()):
        assert summary.curve.budgets[-1] == 200
        assert summary.curve.regret[-1] == pytest.approx(summary.regret.value, rel=1e-12)
        assert summary.curve.low[-1] == pytest.approx(summary.regret.interval.low, rel=1e-12)
        assert (summary.curve.low <= summary.curve.regret).all()
        assert (summary.curve.regret <= summary.curve.high).all()


def test_curves_are_those_of_shorter_runs(noisy):
    curve = noisy.fanouts[2].curve
    for point in (0, 7, 15):
        budget = int(curve.budgets[point])
        runs = search(noisy.policy, "climb", np.arange(20), budget, fanout=2, noise=0.4)
        assert curve.regret[point] == pytest.approx(noisy.regret(runs.best).mean() / UNIT, rel=1e-12)
        assert curve.reported[point] == pytest.approx(runs.reported.mean() / UNIT, rel=1e-12)
        assert curve.exact[point] == pytest.approx(runs.best.mean() / UNIT, rel=1e-12)


def test_without_noise_regret_only_falls_and_nothing_flatters():
    d = demonstrate(Settings())
    for summary in d.summaries.values():
        assert (np.diff(summary.curve.regret) <= 1e-12).all()
        assert (summary.curve.reported == summary.curve.exact).all()
        assert summary.flattery is None


@given(st.integers(1, 100_000))
def test_curve_budgets_go_from_one_to_the_budget(budget):
    budgets = curve_budgets(budget)
    assert (budgets[0], budgets[-1]) == (1, budget)
    assert (np.diff(budgets) > 0).all()
    assert len(budgets) <= CURVE_POINTS


def test_other_fanouts_stand_beside_the_chosen_one():
    d = demonstrate(Settings(seeds=3, budget=40, fanout=6))
    assert list(d.fanouts) == sorted({*FANOUTS, 6})
    assert d.fanouts[6].regret == d.summaries["climb"].regret
    assert list(demonstrate(Settings(seeds=3, budget=40, fanout=4)).fanouts) == list(FANOUTS)


@given(SMALL)
@settings(max_examples=30)
def test_the_same_settings_give_the_same_bytes(chosen):
    assert report_json(demonstrate(chosen)) == report_json(demonstrate(chosen))


def test_progress_counts_evaluations_and_can_be_stopped():
    shown = []
    demonstrate(Settings(seeds=2, budget=30), Job(show=shown.append, every=0))
    assert (shown[-1].done, shown[-1].total, shown[-1].unit) == (8 * 60, 8 * 60, "evaluations")
    job = Job()
    job.cancel.set()
    with pytest.raises(Cancelled):
        demonstrate(Settings(seeds=2, budget=30), job)


def test_the_sentence_has_regret_share_and_n(noisy):
    sentence = noisy.sentence()
    assert str(noisy.summaries["climb"].regret) in sentence
    assert str(noisy.summaries["climb"].reached) in sentence
    assert "n = 20" in sentence


# Settings


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("seeds", 0, "seeds: 0 is out of range; it goes from 1 to 10,000."),
        ("budget", 100_001, "budget: 100,001 is out of range; it goes from 1 to 100,000."),
        ("fanout", -1, "fanout: -1 is out of range; it goes from 1 to 1,000."),
        ("length", 65, "length: 65 is out of range; it goes from 1 to 64."),
        ("vocabulary", 1, "vocabulary: 1 is out of range; it goes from 2 to 64."),
        ("policy_seed", -1, "policy-seed: -1 is out of range; it goes from 0 to 4,294,967,295."),
        ("seeds", 2.5, "seeds: 2.5 is no whole number."),
        ("noise", -0.1, "noise: -0.1 is out of range; it goes from 0 to 100."),
        ("noise", float("nan"), "noise: nan is out of range; it goes from 0 to 100."),
        ("noise", 1e-9, "noise: 1e-09 is too small to be told from none; use 0."),
        ("interactions", "much", "interactions: 'much' is no number."),
        ("objective", "up", 'objective: "up" is no objective; use raise or lower.'),
    ],
)
def test_a_setting_out_of_range_is_one_sentence(name, value, said):
    with pytest.raises(InputError) as caught:
        Settings(**{name: value})
    assert str(caught.value) == said


def test_too_many_evaluations_are_refused():
    with pytest.raises(InputError, match="at most 20,000,000 are run"):
        Settings(seeds=10_000, budget=2_001)
    assert Settings(seeds=10_000, budget=2_000).seeds == 10_000


def test_one_hash_for_one_configuration():
    assert Settings(noise=0).sha256 == Settings(noise=-0.0).sha256 == Settings(noise=np.float64(0)).sha256
    changed = [
        Settings(seeds=21), Settings(budget=201), Settings(fanout=5), Settings(length=9), Settings(vocabulary=13),
        Settings(interactions=2), Settings(noise=1), Settings(objective="lower"), Settings(policy_seed=1),
    ]  # fmt: skip
    assert len({s.sha256 for s in (*changed, Settings())}) == 10


def test_the_command_names_what_is_not_the_default():
    assert Settings().command() == "python -m refusal_core.cli run --seeds 20 --budget 200 --fanout 4 --out results"
    line = Settings(noise=0.5, policy_seed=7, objective="lower").command("elsewhere")
    assert line.endswith("--fanout 4 --noise 0.5 --objective lower --policy-seed 7 --out elsewhere")
