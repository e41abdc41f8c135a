import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from refusal_core.errors import InputError
from refusal_core.metrics.intervals import f1_interval, wilson
from refusal_core.metrics.items import Items
from refusal_core.metrics.scores import NAMES, Metric, score, score_matrix, undefined_classes, value
from tests.core.metrics.cases import any_items, items_of, noisy_items

RULES = {"undefined": math.nan, 0: 0.0, 1: 1.0}


def same(ours, theirs):
    theirs = None if math.isnan(theirs) else theirs
    assert (ours is None) == (theirs is None), (ours, theirs)
    assert ours is None or ours == pytest.approx(theirs, abs=1e-9)


@settings(max_examples=35)
@given(any_items(), st.sampled_from([*RULES]))
def test_scores_of_answers_are_scikit_learns(items, rule):
    places = range(len(items.labels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, theirs in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)):
            options = {"labels": list(places), "zero_division": RULES[rule]}
            for average in ("macro", "weighted", "micro"):
                ours = value(items, Metric(name, average, zero_division=rule))
                if average == "weighted" and ours is None:
                    continue  # all weight is on classes that have no score; scikit-learn then drops the weights
                same(ours, theirs(items.true, items.predicted, average=average, **options))
            of_classes = theirs(items.true, items.predicted, average=None, **options)
            for label, expected in zip(items.labels, of_classes, strict=True):
                same(value(items, Metric(name, label=label, zero_division=rule)), expected)
        same(value(items, Metric("accuracy")), sk.accuracy_score(items.true, items.predicted))
        same(value(items, Metric("balanced_accuracy")), sk.balanced_accuracy_score(items.true, items.predicted))
        same(value(items, Metric("kappa")), sk.cohen_kappa_score(items.true, items.predicted))
        one_class = len(set(items.true)) == 1 or len(set(items.predicted)) == 1
        expected = math.nan if one_class else sk.matthews_corrcoef(items.true, items.predicted)
        same(value(items, Metric("mcc")), expected)
        assert value(items, Metric("mcc", zero_division=0)) == pytest.approx(0 if one_class else expected)


@settings(max_examples=30)
@given(any_items(probabilities=True))
def test_scores_of_probabilities_are_scikit_learns(items):
    places, p = list(range(len(items.labels))), items.probabilities
    same(value(items, Metric("log_loss")), sk.log_loss(items.true, p, labels=places))
    same(value(items, Metric("brier")), sk.brier_score_loss(items.true, p, labels=places, scale_by_half=False))
    aucs = []
    for c, label in enumerate(items.labels):
        both = 0 < (items.true == c).sum() < len(items)
        aucs.append(sk.roc_auc_score(items.true == c, p[:, c]) if both else math.nan)
        same(value(items, Metric("roc_auc", label=label)), aucs[-1])
    same(value(items, Metric("roc_auc")), np.nanmean(aucs) if not np.isnan(aucs).all() else math.nan)


def test_ece_by_hand_and_its_bins():
    p = np.array([0.55, 0.65, 0.95, 0.95])
    items = items_of([0, 1, 0, 0], [0, 0, 0, 0], "ab", probabilities=np.c_[p, 1 - p])
    wide = Metric("ece", bins=2, binning="equal_width")
    # All are in (0.5, 1]: mean confidence 0.775, 3 of 4 right.
    assert value(items, wide) == pytest.approx(0.025)
    # (0.5, 0.6], (0.6, 0.7] and (0.9, 1.0].
    assert value(items, Metric("ece", bins=10, binning="equal_width")) == pytest.approx((0.45 + 0.65 + 0.10) / 4)
    assert value(items, Metric("ece")) == pytest.approx(0.025)  # fewer than 20 items: one bin
    tied = noisy_items(100)
    one = Items(tied.labels, tied.ids, tied.true, tied.predicted, np.full((100, 5), 0.2))
    assert value(one, Metric("ece")) == pytest.approx(abs(0.2 - value(one, Metric("accuracy"))))


def test_intervals_of_proportions_are_exact_ones():
    items = noisy_items()
    m = items.matrix
    assert score(items, Metric("accuracy")).interval == wilson(int(np.trace(m)), 400)
    assert score(items, Metric("f1", "micro")).interval == wilson(int(np.trace(m)), 400)
    recall, precision = score(items, Metric("recall", label="b")), score(items, Metric("precision", label="b"))
    assert (recall.n, recall.interval) == (m[1].sum(), wilson(int(m[1, 1]), int(m[1].sum())))
    assert (precision.n, precision.interval) == (m[:, 1].sum(), wilson(int(m[1, 1]), int(m[:, 1].sum())))
    f1, tp = score(items, Metric("f1", label="b")), int(m[1, 1])
    assert f1.interval == f1_interval(tp, int(m[:, 1].sum()) - tp, int(m[1].sum()) - tp)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clustered", [False, True])
def test_every_score_has_an_interval_that_holds_it(name, clustered):
    items = noisy_items(groups=np.arange(400) // 3 if clustered else None)
    metric = Metric(name, "weighted" if name in ("precision", "recall", "f1") else None)
    rate = score(items, metric, resamples=300)
    assert rate.n == 400 and rate.value == pytest.approx(value(items, metric))
    assert rate.interval.low <= rate.value <= rate.interval.high and rate.interval.width > 0
    assert score(items, metric, resamples=300) == rate
    wider = score(items, metric, resamples=300, level=0.99).interval
    assert wider.low <= rate.interval.low and rate.interval.high <= wider.high
    other = score(items, metric, resamples=300, seed=1).interval
    assert abs(other.low - rate.interval.low) < rate.interval.width


def test_clusters_that_say_the_same_count_once():
    base = noisy_items(200)
    times = np.repeat(np.arange(200), 4)
    copied = Items(base.labels, tuple(map(str, range(800))), base.true[times], base.predicted[times], None, times)
    alone = Items(copied.labels, copied.ids, copied.true, copied.predicted)
    for metric in (Metric("f1", "macro"), Metric("recall", label="a"), Metric("accuracy")):
        once, four = score(base, metric).interval, score(copied, metric).interval
        assert four.width == pytest.approx(once.width, rel=0.2)
        assert score(alone, metric).interval.width < 0.65 * four.width
    few = noisy_items(groups=np.arange(400) // 45)
    assert score(few, Metric("accuracy")).interval is None
    assert score(noisy_items(groups=np.arange(400)), Metric("accuracy")) == score(noisy_items(), Metric("accuracy"))


def test_no_spread_decides_nothing():
    perfect = items_of([0, 1, 2, 3, 4] * 10, [0, 1, 2, 3, 4] * 10)
    assert score(perfect, Metric("f1", "macro")).interval is None
    assert score(perfect, Metric("f1", "macro")).value == 1
    assert score(perfect, Metric("accuracy")).interval.low > 0.9  # Wilson's knows


def test_undefined_stays_undefined_and_the_rule_is_named():
    # y_true [0,1,0,3], y_pred [0,1,2,2]: class 2 has no recall, class 3 no precision.
    items = items_of([0, 1, 0, 3], [0, 1, 2, 2], "abcd")
    recall, precision = Metric("recall", label="c"), Metric("precision", label="d")
    assert (score(items, recall).value, score(items, recall).n, score(items, recall).interval) == (None, 0, None)
    assert score(items, precision).value is None
    assert score(items, Metric("recall", label="c", zero_division=0)).value == 0
    assert score(items, Metric("recall", label="c", zero_division=1)).value == 1
    assert value(items, Metric("recall", "macro")) == pytest.approx((0.5 + 1 + 0) / 3)
    assert value(items, Metric("recall", "macro", zero_division=0)) == pytest.approx(1.5 / 4)
    assert value(items, Metric("recall", "macro", zero_division=1)) == pytest.approx(2.5 / 4)
    assert undefined_classes(items.matrix, items.labels, Metric("recall", "macro")) == ("c",)
    assert undefined_classes(items.matrix, items.labels, Metric("precision", "macro")) == ("d",)
    assert undefined_classes(items.matrix, items.labels, Metric("f1", "macro")) == ()
    assert Metric("f1", "macro").rule == "0/0 is left out of the average"
    assert Metric("f1", "macro", zero_division=0).rule == "0/0 counts as 0"
    assert Metric("recall", label="c").rule == "0/0 is undefined"
    assert Metric("accuracy").rule is None
    empty = items_of([], [])
    for metric in (Metric("accuracy"), Metric("f1", "macro", zero_division=0), Metric("mcc")):
        assert score(empty, metric).value is None


def test_the_published_macro_f1_of_a_collapsed_model_under_both_rules(shared_data):
    from json import loads

    matrix = loads((shared_data / "runs/trainer_demo/confusion_matrix.json").read_text())["matrix"]
    labels = [str(i) for i in range(len(matrix))]
    assert score_matrix(matrix, labels, Metric("f1", "macro", zero_division=0)).value == pytest.approx(0.0981, abs=5e-5)
    assert score_matrix(matrix, labels, Metric("f1", "macro")).value == pytest.approx(0.1226, abs=5e-5)


def test_items_refuse_what_they_cannot_be():
    for wrong in (
        lambda: items_of([0, 1], [0, 1], ids=["same", "same"]),
        lambda: items_of([0, 5], [0, 1]),
        lambda: items_of([0, 1], [0]),
        lambda: items_of([0], [0], "aa"),
        lambda: items_of([0], [0], "ab", probabilities=[[0.9, 0.9]]),
        lambda: items_of([0], [0], "ab", probabilities=[[np.nan, 1.0]]),
        lambda: items_of([0], [0], "ab", probabilities=[[1.0]]),
        lambda: Metric("f2"),
        lambda: Metric("f1"),
        lambda: Metric("f1", "macro", label="a"),
        lambda: Metric("accuracy", "macro"),
        lambda: Metric("roc_auc", "micro"),
        lambda: Metric("f1", "macro", zero_division=2),
        lambda: score(noisy_items(), Metric("recall", label="nobody")),
        lambda: score(items_of([0], [0]), Metric("brier")),
    ):
        with pytest.raises(InputError):
            wrong()
    part = noisy_items(groups=np.arange(400) // 2)
    assert part.take(part.true == 4).labels == part.labels and set(part.take(part.true == 4).true) == {4}
    assert part.take(slice(3, 9)).ids == part.ids[3:9] and part.take([5, 2]).groups.tolist() == [2, 1]
    with pytest.raises(ValueError):
        part.true[0] = 1


def test_names_as_they_are_printed():
    assert str(Metric("f1", "macro")) == "macro F1"
    assert str(Metric("recall", label="full_refusal")) == "recall of full_refusal"
    assert str(Metric("roc_auc")) == "macro ROC AUC"
    assert str(Metric("ece")) == "ECE" and not Metric("ece").greater_is_better and Metric("kappa").greater_is_better
