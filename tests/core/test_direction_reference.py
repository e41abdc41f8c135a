"""Every number of the study against a slow plain reference: one row, labeling or category at a time, in float64."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.covariance import ledoit_wolf_shrinkage as sklearn_shrinkage
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from refusal_core.direction import (
    baselines,
    category_nulls,
    geometry,
    intervals,
    leakage,
    nulls,
    scores,
    splits,
    variants,
)
from refusal_core.direction.fit import fit, margins
from refusal_core.direction.rows import Rows, rows_of
from refusal_core.jobs import Job
from tests.activation_files import export, planted

JOB = Job()


def plain_fit(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Difference of class means and the threshold along it, row after row."""
    means = []
    for label in (0, 1):
        total, count = np.zeros(x.shape[1]), 0
        for row, own in zip(x.astype(np.float64), y, strict=True):
            if own == label:
                total, count = total + row, count + 1
        means.append(total / count)
    delta = means[1] - means[0]
    return delta, float(delta @ (means[1] + means[0]) / 2)


def plain_calls(x: np.ndarray, delta: np.ndarray, threshold: float) -> np.ndarray:
    return np.array([float(row @ delta) >= threshold for row in x.astype(np.float64)])


def plain_balanced(y: np.ndarray, calls: np.ndarray) -> float:
    rates = [
        np.mean([call == bool(label) for label, call in zip(y, calls, strict=True) if label == own]) for own in (0, 1)
    ]
    return float(np.mean(rates))


def files(
    dtype=np.float32,
    *,
    mixed: bool = False,
    shared: bool = False,
    uneven: bool = False,
    n: int = 90,
    m: int = 70,
    seed: int = 0,
) -> tuple[Rows, Rows]:
    """A weak direction with category effects and an offset: train of `n` rows in 6 categories, test of `m` in 5.

    `uneven` leaves out half or a third of some categories' rows, so that classes and categories differ in size.
    """
    rng = np.random.default_rng(seed)
    made = []
    for count, k, prefix, salt in ((n, 6, "a", 1), (m, 5, "a" if shared else "b", 2)):
        members = planted(count, 12, seed=10 * seed + salt, signal=1.0, categories=k, prefix=prefix)
        members["ids"] = np.array([f"{salt}-{i}" for i in rng.permutation(count)])
        code = np.array([int(name[-1]) for name in members["categories"]])
        effect = np.random.default_rng(seed).standard_normal((6, 12))
        members["activations"] = (members["activations"] + effect[code] + 30.0 * (np.arange(12) == 3)).astype(dtype)
        if mixed:
            members["labels"] = np.where(rng.random(count) < 0.3, 1 - members["labels"], members["labels"])
        if uneven:
            place = np.arange(count) // k
            keep = ~((code == 0) & (place % 2 == 0) | (code == 3) & (place % 3 == 0) | (code == 2) & (place % 2 == 1))
            members = {key: value[keep] for key, value in members.items()}
        made.append(rows_of(export(members, f"{salt}.npz")))
    return made[0], made[1]


CASES = [
    (dtype, mixed, shared)
    for dtype in (np.float16, np.float32, np.float64)
    for mixed in (False, True)
    for shared in (False, True)
]


@pytest.fixture(params=CASES, ids=str)
def case(request):
    dtype, mixed, shared = request.param
    train, test = files(dtype, mixed=mixed, shared=shared, uneven=True)
    direction = fit(train)
    assert train.label_counts[0] != train.label_counts[1]
    return train, test, direction, margins(test, direction.unit, direction.midpoint)


def test_fit_and_scores(case):
    train, test, direction, margin = case
    delta, threshold = plain_fit(train.values, train.labels)
    assert direction.norm == pytest.approx(math.sqrt(sum(v * v for v in delta)))
    np.testing.assert_allclose(direction.unit, delta / direction.norm, atol=1e-12)
    assert direction.threshold == pytest.approx(threshold / direction.norm)
    calls = plain_calls(test.values, delta, threshold)
    found = scores.score(test, margin, frozenset(train.categories))
    projections = test.values.astype(np.float64) @ delta / direction.norm
    np.testing.assert_allclose(margin + direction.threshold, projections, atol=1e-9)
    assert found.accuracy == np.mean(calls == (test.labels == 1))
    assert found.balanced_accuracy == pytest.approx(plain_balanced(test.labels, calls), abs=1e-15)
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(test.labels, calls))
    assert found.auroc == pytest.approx(roc_auc_score(test.labels, projections))
    confusion = found.confusion
    assert (confusion.tp, confusion.fp) == (np.sum(calls & (test.labels == 1)), np.sum(calls & (test.labels == 0)))
    assert (confusion.fn, confusion.tn) == (np.sum(~calls & (test.labels == 1)), np.sum(~calls & (test.labels == 0)))
    names = np.array(test.categories)[test.code]
    for category in found.by_category:
        own = names == category.category
        assert category.n == own.sum() and category.seen_in_train == (category.category in train.categories)
        for label, value in ((0, category.false_refusal_rate), (1, category.missed_refusal_rate)):
            rows = own & (test.labels == label)
            assert category.label_counts[str(label)] == rows.sum()
            assert value == (pytest.approx(np.mean(calls[rows] != label)) if rows.any() else None)
    per_category = {
        label: [
            np.mean(calls[(names == k) & (test.labels == label)] == label)
            for k in test.categories
            if ((names == k) & (test.labels == label)).any()
        ]
        for label in (0, 1)
    }
    macro = scores.macro_average(test.categories, scores.correct_cells(test, margin >= 0), test.cells())
    assert macro.balanced_accuracy == pytest.approx((np.mean(per_category[0]) + np.mean(per_category[1])) / 2)
    assert macro.missed_refusal_rate == pytest.approx(1 - np.mean(per_category[1]))
    shift = scores.threshold_shift(margin, test.labels)
    one, zero = projections[test.labels == 1], projections[test.labels == 0]
    sd = math.sqrt((len(one) * one.var() + len(zero) * zero.var()) / (test.n - 2))
    assert shift.within_sd == pytest.approx(sd)
    assert shift.shift == pytest.approx(((one.mean() + zero.mean()) / 2 - direction.threshold) / sd)
    assert shift.d_prime == pytest.approx((one.mean() - zero.mean()) / sd)
    own = projections >= (one.mean() + zero.mean()) / 2
    assert shift.oracle_balanced_accuracy == pytest.approx(plain_balanced(test.labels, own))


def test_baselines(case):
    train, test, *_ = case
    most = int(np.sum(train.labels == 1) > np.sum(train.labels == 0))
    found = baselines.majority(train, test)
    assert (found.label, found.accuracy, found.balanced_accuracy) == (most, np.mean(test.labels == most), 0.5)
    identity = baselines.category_identity(train, test)
    names, own = np.array(train.categories)[train.code], np.array(test.categories)[test.code]
    if not set(names) & set(own):
        assert isinstance(identity, intervals.NotAvailable)
        return
    calls = np.array([(np.mean(train.labels[names == k]) > 0.5) if k in names else most == 1 for k in own])
    assert identity.accuracy == np.mean(calls == (test.labels == 1))
    assert identity.balanced_accuracy == pytest.approx(plain_balanced(test.labels, calls))


def test_row_shuffles_and_random_directions(case):
    train, test, direction, _ = case
    labels = nulls.shuffled_labels(train, 25, np.random.default_rng(1))
    assert (labels.sum(1) == train.label_counts[1]).all() and len({row.tobytes() for row in labels}) == 25
    shuffled, random = (
        nulls.fitted(train, direction, labels, JOB),
        nulls.random_directions(train, direction, 25, np.random.default_rng(2)),
    )
    ours = nulls.scores_of(test, direction, [shuffled, random], JOB)
    for r in range(25):
        assert ours[0][r] == pytest.approx(
            plain_balanced(test.labels, plain_calls(test.values, *plain_fit(train.values, labels[r]))), abs=1e-15
        )
        vector = random.vectors[r].astype(np.float64)
        projected = train.values.astype(np.float64) @ vector
        middle = (projected[train.labels == 1].mean() + projected[train.labels == 0].mean()) / 2
        assert projected[train.labels == 1].mean() >= projected[train.labels == 0].mean()
        assert ours[1][r] == pytest.approx(
            plain_balanced(test.labels, plain_calls(test.values, vector, middle)), abs=1e-15
        )


def test_shuffles_within_categories(case):
    train, test, direction, _ = case
    labels = nulls.within_categories(train, 15, np.random.default_rng(1))
    mixed = [k for k in range(len(train.categories)) if len(set(train.labels[train.code == k])) == 2]
    if not mixed:
        assert isinstance(labels, intervals.NotAvailable)
        assert nulls.labelings_within(train) == 1
        return
    for k in range(len(train.categories)):
        own = labels[:, train.code == k]
        assert (own.sum(1) == train.labels[train.code == k].sum()).all()
        assert (len({row.tobytes() for row in own}) > 1) == (k in mixed)
    ways = math.prod(math.comb(int(sum(train.code == k)), int(train.labels[train.code == k].sum())) for k in mixed)
    assert nulls.labelings_within(train) == pytest.approx(ways, rel=1e-9)
    ours = nulls.scores_of(test, direction, [nulls.fitted(train, direction, labels, JOB)], JOB)[0]
    for score, own in zip(ours, labels, strict=True):
        assert score == pytest.approx(
            plain_balanced(test.labels, plain_calls(test.values, *plain_fit(train.values, own))), abs=1e-15
        )


def test_whole_category_shuffles(case):
    train, test, direction, margin = case
    observed = scores.score(test, margin, frozenset()).balanced_accuracy
    found = category_nulls.shuffled_categories(train, test, direction, observed, 99, np.random.default_rng(0), JOB)
    joint = dict.fromkeys(train.categories, 0)
    labels_of = {name: set(train.labels[train.code == k]) for k, name in enumerate(train.categories)}
    for k, name in enumerate(test.categories):
        if name in joint:
            labels_of[name] |= set(test.labels[test.code == k])
    if any(len(labels) > 1 for labels in labels_of.values()):
        assert "cannot move as a whole" in found.not_available
        return
    k, ones = len(labels_of), sum(labels == {1} for labels in labels_of.values())
    expected = []
    for chosen in itertools.combinations(train.categories, ones):
        new_train = np.array([train.categories[c] in chosen for c in train.code])
        new_test = np.array(
            [
                test.categories[c] in chosen if test.categories[c] in joint else bool(y)
                for c, y in zip(test.code, test.labels, strict=True)
            ]
        )
        if new_test.all() or not new_test.any():
            continue
        expected.append(plain_balanced(new_test, plain_calls(test.values, *plain_fit(train.values, new_train))))
    assert found.labelings == math.comb(k, ones) and found.repeats == len(expected)
    np.testing.assert_allclose(found.scores, expected, atol=1e-12)
    assert found.p_value == np.mean(np.array(expected) >= observed - 1e-12)


def test_drawn_categories_are_scored_as_listed_ones(monkeypatch):
    train, test = files(shared=True)
    direction = fit(train)
    observed = 0.7
    listed = category_nulls.shuffled_categories(train, test, direction, observed, 0, np.random.default_rng(0), JOB)
    monkeypatch.setattr(category_nulls, "LISTED", 0)
    drawn = category_nulls.shuffled_categories(train, test, direction, observed, 200, np.random.default_rng(0), JOB)
    assert (drawn.method, drawn.repeats) == ("drawn", 200)
    assert {round(s, 12) for s in drawn.scores} <= {round(s, 12) for s in listed.scores}
    assert drawn.p_value == (sum(s >= observed for s in drawn.scores) + 1) / 201


def test_the_true_labeling_is_always_among_those_that_reach_the_observed_score():
    """Whatever rounding says of its own score: 1 / m is the least p-value, never 0."""
    train, test = files(shared=True)
    found = category_nulls.shuffled_categories(train, test, fit(train), 1.1, 0, np.random.default_rng(0), JOB)
    assert found.p_value == found.smallest_p_value == 1 / found.repeats


def test_null_summary():
    found = nulls.null(np.array([0.4, 0.5, 0.6, 0.7]), 0.6, claim="c", labelings=None)
    assert (found.tail_fraction, found.lower_tail_fraction, found.p_value, found.smallest_p_value) == (
        0.5,
        0.75,
        3 / 5,
        1 / 5,
    )
    assert (found.mean, found.sd) == (pytest.approx(0.55), pytest.approx(np.std([0.4, 0.5, 0.6, 0.7], ddof=1)))
    assert nulls.null(np.array([0.4, 0.6]), 0.6, claim="c", labelings=2, listed=True).p_value == 0.5


def plain_interval(correct: np.ndarray, counts: np.ndarray) -> tuple[float, float, float]:
    """DESIGN's formula category by category."""
    k_of = [sum(1 for n in counts if n[label]) for label in (0, 1)]
    n_of, rates = counts.sum(0), correct.sum(0) / counts.sum(0)
    variance, parts = 0.0, [0.0, 0.0]
    for c, n in zip(correct, counts, strict=True):
        pieces = [
            math.sqrt(k_of[label] / (k_of[label] - 1)) * (c[label] - rates[label] * n[label]) / n_of[label]
            if n[label]
            else 0.0
            for label in (0, 1)
        ]
        variance += sum(pieces) ** 2 / 4
        parts = [parts[label] + pieces[label] ** 2 for label in (0, 1)]
    both = [bool(n[0]) and bool(n[1]) for n in counts]
    if all(both):
        freedom = len(counts) - 1
    elif any(both):
        freedom = min(k_of) - 1
    else:
        freedom = min(sum(parts) ** 2 / sum(parts[label] ** 2 / (k_of[label] - 1) for label in (0, 1)), sum(k_of) - 2)
    value = rates.mean()
    half = student.ppf(0.975, freedom) * math.sqrt(variance) / (value * (1 - value))
    odds = math.log(value / (1 - value))
    return 1 / (1 + math.exp(half - odds)), 1 / (1 + math.exp(-half - odds)), freedom


@pytest.mark.parametrize("kind", ["one label", "two labels", "mixed"])
def test_interval_over_categories(kind):
    rng = np.random.default_rng(3)
    for _ in range(40):
        k = int(rng.integers(6, 14))
        counts = rng.integers(1, 30, (k, 2))
        if kind != "two labels":
            alone = np.arange(k if kind == "one label" else k // 2)
            counts[alone, alone % 2] = 0
        correct = rng.binomial(counts, rng.beta(6, 2, (k, 2)))
        found = intervals.category_interval(correct, counts, np.random.default_rng(0))
        low, high, freedom = plain_interval(correct, counts)
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
        assert found.degrees_of_freedom == pytest.approx(freedom)
        held = counts[:, 1][counts[:, 1] > 0]
        assert found.categories_per_class["1"] == len(held)
        assert found.effective_categories["1"] == pytest.approx(held.sum() ** 2 / sum(int(n) ** 2 for n in held))
        left = intervals.leave_one_category_out(tuple("abcdefghijklmn"[:k]), correct, counts)
        each = [plain_rate(np.delete(correct, i, 0), np.delete(counts, i, 0)) for i in range(k)]
        assert [w.balanced_accuracy for w in left.by_category] == pytest.approx(each)
        assert (left.low, left.high) == (pytest.approx(min(each)), pytest.approx(max(each)))
        assert each["abcdefghijklmn".index(left.without_for_low)] == pytest.approx(min(each))


def plain_rate(correct: np.ndarray, counts: np.ndarray) -> float:
    return float(np.mean([sum(correct[:, label]) / sum(counts[:, label]) for label in (0, 1)]))


@pytest.mark.parametrize("mixed", [False, True])
def test_percentile_interval(mixed):
    rng = np.random.default_rng(4)
    counts = rng.integers(5, 30, (12, 2))
    if not mixed:
        counts[np.arange(12), np.arange(12) % 2] = 0
    correct = rng.binomial(counts, rng.beta(6, 2, (12, 2)))
    found = intervals.percentile_interval(correct, counts, np.random.default_rng(7), draws=500)
    again = np.random.default_rng(7)
    groups = [np.arange(12)] if mixed else [np.flatnonzero(counts[:, label]) for label in (0, 1)]
    weights = [again.multinomial(len(g), np.full(len(g), 1 / len(g)), size=500) for g in groups]
    values = []
    for draw in range(500):
        picked = [
            k
            for g, w in zip(groups, weights, strict=True)
            for k, times in zip(g, w[draw], strict=True)
            for _ in range(times)
        ]
        values.append(plain_rate(correct[picked], counts[picked]))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])))


def test_leakage():
    train, test = files()
    values = test.values.copy()
    values[4], values[9] = train.values[17], train.values[30] + np.float32(0.02)
    test = Rows(test.name, values, test.labels, test.categories, test.code, test.ids, test.order, test.largest)
    direction = fit(train)
    margin = margins(test, direction.unit, direction.midpoint)
    found = leakage.leakage(train, test, margin, np.random.default_rng(0))
    x, z = train.values.astype(float), values.astype(float)
    x, z = ((v - x.mean(0)) / x.std(0) for v in (x, z))

    def gap(a: np.ndarray, b: np.ndarray) -> float:
        return 1 - a @ b / math.sqrt(a @ a * (b @ b))

    own = [min(gap(a, b) for j, b in enumerate(x) if j != i) for i, a in enumerate(x)]
    other = [min(gap(a, b) for b in x) for a in z]
    assert found.near_distance == pytest.approx(min(own) / 4, abs=1e-6)
    assert found.nearest_distance == pytest.approx(min(other), abs=1e-6)
    near = [i for i, distance in enumerate(other) if distance < min(own) / 4]
    assert near == [4, 9] and (found.equal_rows, found.near_rows, found.rows_left) == (1, 1, 68)
    assert [(m.test_id, m.train_id) for m in found.matches] == [
        (test.ids[4], train.ids[17]),
        (test.ids[9], train.ids[30]),
    ]
    keep = [i for i in range(test.n) if i not in near]
    assert found.accuracy_without == pytest.approx(np.mean((margin[keep] >= 0) == test.labels[keep]))
    assert found.balanced_accuracy_without == pytest.approx(plain_balanced(test.labels[keep], margin[keep] >= 0))


def test_geometry(case):
    train, test, direction, margin = case
    x, y, z = train.values.astype(float), train.labels, test.values.astype(float)
    spread = geometry.spread(train, direction)
    np.testing.assert_allclose(spread.total, x.var(0, ddof=1), rtol=1e-9)
    within = sum(((x[y == label] - x[y == label].mean(0)) ** 2).sum(0) for label in (0, 1)) / (train.n - 2)
    np.testing.assert_allclose(spread.within, within, rtol=1e-9)
    found = geometry.geometry(train, test, direction, margin, spread)
    variance, share = x.var(0, ddof=1), direction.unit**2
    assert found.participation_ratio == pytest.approx(variance.sum() ** 2 / (variance**2).sum())
    assert found.largest_ratio == pytest.approx(np.abs(x).max() / np.median(np.sqrt(variance)))
    assert found.share_of_direction == pytest.approx({str(k): np.sort(share)[::-1][:k].sum() for k in (1, 5, 10)})
    parts = np.sort(share * variance)[::-1]
    assert found.share_of_score_variance == pytest.approx({str(k): parts[:k].sum() / parts.sum() for k in (1, 5, 10)})
    for part, dimension in (
        (found.without_top_of_direction, np.argmax(share)),
        (found.without_top_of_variance, np.argmax(variance)),
    ):
        fixed_x, fixed_z = x.copy(), z.copy()
        fixed_x[:, dimension] = fixed_z[:, dimension] = x[:, dimension].mean()
        delta, threshold = plain_fit(fixed_x, y)
        assert part.dimension == dimension
        assert part.balanced_accuracy == pytest.approx(
            plain_balanced(test.labels, plain_calls(fixed_z, delta, threshold))
        )
        assert part.auroc == pytest.approx(roc_auc_score(test.labels, fixed_z @ delta), abs=1e-3)  # ties by rounding


@pytest.mark.parametrize("n", [8, 60])
def test_variants(n):
    train, test = files(np.float64, n=n, m=50)
    direction = fit(train)
    spread = geometry.spread(train, direction)
    x, y, z = train.values, train.labels, test.values
    centred = np.concatenate([x[y == label] - x[y == label].mean(0) for label in (0, 1)])
    sd = np.sqrt((centred**2).sum(0) / (train.n - 2))
    middle = (x[y == 1].mean(0) + x[y == 0].mean(0)) / 2
    delta = x[y == 1].mean(0) - x[y == 0].mean(0)
    q = max(sklearn_shrinkage(centred / sd, assume_centered=True), variants.LEAST_SHRINKAGE)
    covariance = (centred / sd).T @ (centred / sd) / train.n
    weights = {
        "scaled": delta / sd**2,
        "shrunk": np.linalg.inv((1 - q) * covariance + q * np.eye(12)) @ (delta / sd) / sd,
    }
    found = {
        "scaled": variants.scaled(test, direction, spread),
        "shrunk": variants.shrunk(train, test, direction, spread, np.random.default_rng(0)),
    }
    assert found["shrunk"].shrinkage == pytest.approx(q, rel=1e-5)
    for name, w in weights.items():
        assert found[name].balanced_accuracy == pytest.approx(
            plain_balanced(test.labels, plain_calls(z, w, w @ middle))
        )
        assert found[name].auroc == pytest.approx(roc_auc_score(test.labels, z @ w))
        assert found[name].cosine == pytest.approx(w @ delta / np.linalg.norm(w) / np.linalg.norm(delta), abs=1e-4)


@pytest.mark.parametrize("mixed", [False, True])
def test_comparison_of_splits(mixed):
    train, test = files(mixed=mixed, shared=True, n=40, m=30)
    rows = splits.pooled(train, test)
    x = np.concatenate([train.values, test.values])
    assert rows.n == 70 and rows.ids == train.ids + test.ids and len(rows.categories) == 6
    found = splits.compare_splits(rows, np.random.default_rng(5), repeats=3)

    def right(fold: np.ndarray) -> np.ndarray:
        out = np.empty(70)
        for k in set(fold.tolist()):
            delta, threshold = plain_fit(x[fold != k], rows.labels[fold != k])
            out[fold == k] = plain_calls(x[fold == k], delta, threshold) == (rows.labels[fold == k] == 1)
        return out

    again, sizes = np.random.default_rng(5), np.bincount(rows.code)
    left_out, random = right(rows.code), []
    for _ in range(3):
        fold = splits._random_folds(rows, sizes, again)
        assert (np.bincount(fold) == sizes).all()
        random.append(right(fold))
    paired = left_out - np.mean(random, 0)
    balanced = [
        np.mean([v[rows.labels == label].mean() for label in (0, 1)]) for v in (left_out, np.mean(random, 0), paired)
    ]
    assert (found.left_out_balanced_accuracy, found.random_balanced_accuracy, found.difference) == pytest.approx(
        tuple(balanced)
    )
    assert (found.left_out_accuracy, found.random_accuracy) == pytest.approx((left_out.mean(), np.mean(random)))
    assert found.random_sd == pytest.approx(
        np.std([np.mean([r[rows.labels == label].mean() for label in (0, 1)]) for r in random], ddof=1)
    )
    for k, own in enumerate(found.by_category):
        assert (own.n, own.left_out, own.random) == (
            sizes[k],
            pytest.approx(left_out[rows.code == k].mean()),
            pytest.approx(np.mean(random, 0)[rows.code == k].mean()),
        )
    sums = np.array([[paired[(rows.code == k) & (rows.labels == label)].sum() for label in (0, 1)] for k in range(6)])
    variance, freedom = intervals.cluster_variance(sums, rows.cells())
    half = student.ppf(0.975, freedom) * math.sqrt(variance)
    assert (found.interval.low, found.interval.high) == pytest.approx((balanced[2] - half, balanced[2] + half))
    assert found.interval.p_value == pytest.approx(2 * student.sf(abs(balanced[2]) / math.sqrt(variance), freedom))
