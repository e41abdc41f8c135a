import numpy as np
import pytest

from refusal_core.errors import InputError
from refusal_core.metrics.calibration import calibration, thresholds
from refusal_core.metrics.matrices import share_difference, shares
from refusal_core.metrics.scores import Metric, score
from tests.core.metrics.cases import items_of, noisy_items


def model(n, sharpness, seed=0):
    """Answers drawn from the probabilities; those shown are raised to `sharpness`: 1 is calibrated, 3 too sure."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(3, 0.6), n)
    true = (p.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
    shown = p**sharpness / (p**sharpness).sum(axis=1, keepdims=True)
    return items_of(true, p.argmax(axis=1), "abc", probabilities=shown)


def test_a_calibrated_model_and_one_that_is_too_sure():
    honest, sure = (calibration(model(2_000, s), resamples=300) for s in (1, 3))
    assert honest.ece.interval.low == 0 and honest.ece.value < 0.05
    assert sure.ece.interval.low > 0.05 and sure.too_sure > 0.05 > abs(honest.too_sure)
    assert honest.brier.value < sure.brier.value and honest.log_loss.value < sure.log_loss.value
    assert honest.enough and not calibration(model(199, 1), resamples=100).enough


def test_ece_of_calibrated_models_is_held_by_its_interval():
    held = [score(model(300, 1, seed), Metric("ece"), resamples=200).interval.low == 0 for seed in range(60)]
    assert np.mean(held) >= 0.9


def test_bins_hold_every_item_once_and_make_the_ece():
    items = noisy_items(310)
    for binning in ("equal_mass", "equal_width"):
        found = calibration(items, bins=15, binning=binning, resamples=50)
        assert sum(b.n for b in found.bins) == 310 and len(found.bins) == 15
        assert found.bins[0].low == 0 and found.bins[-1].high == 1
        gaps = [b.n * abs(b.confidence - b.right.value) for b in found.bins if b.n]
        assert sum(gaps) / 310 == pytest.approx(found.ece.value)
        assert all(b.low < b.confidence <= b.high for b in found.bins if b.n)
    assert len(calibration(noisy_items(100), resamples=50).bins) == 5  # at most n / 20
    assert {b.n for b in calibration(items, resamples=50).bins} <= {20, 21}


def test_thresholds_count_what_is_withheld():
    p = np.array([0.9, 0.8, 0.6, 0.7])
    items = items_of([0, 0, 0, 1], [0, 0, 0, 0], "ab", probabilities=np.c_[p, 1 - p])
    points = thresholds(items, (0, 0.65, 0.9, 0.95), label="a")
    assert [x.abstained.value for x in points] == [0, 0.25, 0.75, 1]
    assert [x.accuracy.value for x in points] == [0.75, pytest.approx(2 / 3), 1, None]
    assert [x.precision.value for x in points] == [0.75, pytest.approx(2 / 3), 1, None]
    assert [x.recall.value for x in points] == [1, pytest.approx(2 / 3), pytest.approx(1 / 3), 0]
    assert len(thresholds(items)) == 100 and thresholds(items)[0].recall is None
    for wrong in (lambda: thresholds(items_of([0], [0])), lambda: thresholds(items, label="c")):
        with pytest.raises(InputError):
            wrong()
    with pytest.raises(InputError):
        calibration(items_of([0], [0]))
    assert calibration(items_of([], [], "ab", probabilities=np.empty((0, 2)))).ece.value is None


def test_shares_of_a_matrix():
    matrix = [[5, 1], [4, 90]]  # rows true: full_refusal, compliant
    rows, columns = shares(matrix, "rows"), shares(matrix, "columns")
    assert (rows[0][0].value, rows[0][0].n) == (pytest.approx(5 / 6), 6)
    assert (columns[0][0].value, columns[0][0].n) == (pytest.approx(5 / 9), 9)
    assert shares(matrix, "all")[1][1].value == 0.9
    assert shares([[0, 0], [1, 1]], "rows")[0][0].value is None
    assert share_difference(matrix, [[6, 0], [4, 90]], "rows")[0] == (pytest.approx(-1 / 6), pytest.approx(1 / 6))
    assert share_difference(matrix, [[0, 0], [4, 90]], "rows")[0] == (None, None)
    with pytest.raises(ValueError):
        share_difference(matrix, [[1]], "rows")
