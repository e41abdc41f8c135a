"""Two directions beside the plain one: each dimension scaled by its variance, and a shrunk covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from refusal_core.direction.fit import Direction, margins
from refusal_core.direction.geometry import Spread
from refusal_core.direction.rows import Rows
from refusal_core.direction.scores import auroc, balanced_accuracy, correct_cells
from refusal_core.jobs import Job

COVARIANCE_ROWS = 2_000


@dataclass(frozen=True)
class Variant:
    """Test scores of another direction w, with the threshold w . midpoint. `cosine` is with the plain direction.

    `shrinkage` 0 to 1 is the weight of the diagonal, `rows` how many training rows the covariance is from; None where
    there is none. `constant_dimensions` do not vary within the classes and have weight 0.
    """

    accuracy: float
    balanced_accuracy: float | None
    auroc: float | None
    cosine: float
    constant_dimensions: int
    shrinkage: float | None = None
    rows: int | None = None


def scaled(test: Rows, direction: Direction, spread: Spread, job: Job | None = None) -> Variant | None:
    """w = delta / s^2, s^2 the within-class variances; None when no dimension varies.

    The independence rule of Bickel and Levina (2004), "Some theory for Fisher's linear discriminant function, 'naive
    Bayes', and some alternatives when there are many more variables than observations".
    """
    inverse = _inverse_sd(spread)
    if not inverse.any():
        return None
    weights = direction.delta * inverse * inverse
    return _scored(test, direction, weights, inverse, job or Job())


def shrunk(
    train: Rows, test: Rows, direction: Direction, spread: Spread, rng: np.random.Generator, job: Job | None = None
) -> Variant | None:
    """w = ((1 - q) S + q diag S)^-1 delta, S the within-class covariance and q from Ledoit and Wolf; None as `scaled`.

    Ledoit and Wolf (2004), "A well-conditioned estimator for large-dimensional covariance matrices", applied to the
    dimensions scaled to within-class variance 1, where their target is the diagonal. Solved through the n x n products
    of rows (Woodbury), of at most 2,000 training rows, drawn in the order of ids.
    """
    inverse = _inverse_sd(spread)
    if not inverse.any():
        return None
    picked = np.arange(train.n)
    if train.n > COVARIANCE_ROWS:
        picked = np.sort(train.order[rng.choice(train.n, COVARIANCE_ROWS, replace=False)])
    rows = _standardised(train, picked, direction, inverse)
    n, d = len(rows), int(np.count_nonzero(inverse))
    gram = (rows @ rows.T).astype(np.float64)
    q = ledoit_wolf_shrinkage(gram, d)
    (job or Job()).check()
    target = direction.delta * inverse
    if q < 1:
        # (q I + c Z'Z)^-1 v = (v - Z' ((q / c) I + Z Z')^-1 Z v) / q with c = (1 - q) / n.
        ridge = max(q, 1e-6) * n / (1 - q)
        system = gram + ridge * np.eye(n)
        target = target - rows.T @ cho_solve(cho_factor(system), rows @ target)
    return _scored(test, direction, target * inverse, inverse, job or Job(), shrinkage=q, rows=n)


def ledoit_wolf_shrinkage(gram: np.ndarray, d: int) -> float:
    """The weight of mu I, mu = tr(S) / d, from the n x n products of n centred rows of d dimensions; 0 to 1.

    As in Ledoit and Wolf (2004), lemma 3.2 and section 3.3: b^2 / d^2 with |S|^2 = |Z Z'|^2 / n^2.
    """
    n = len(gram)
    norms = np.diag(gram)
    mu = norms.sum() / n / d
    squared = (gram**2).sum() / n**2
    distance = squared / d - mu**2
    noise = ((norms**2).sum() / n - squared) / n / d
    return float(min(max(noise, 0.0), distance) / distance) if distance > 0 else 1.0


def _inverse_sd(spread: Spread) -> np.ndarray:
    """1 / within-class sd [d], 0 for a dimension that does not vary within the classes."""
    sd = np.sqrt(spread.within)
    return np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > sd.max() * 1e-12)


def _standardised(train: Rows, picked: np.ndarray, direction: Direction, inverse: np.ndarray) -> np.ndarray:
    """float32 [n, d]: rows less their class mean, each dimension with within-class variance 1."""
    means = np.stack([direction.midpoint - direction.delta / 2, direction.midpoint + direction.delta / 2])
    out = np.empty((len(picked), train.d), np.float32)
    for start in range(0, len(picked), 256):
        piece = picked[start : start + 256]
        centred = train.values[piece].astype(np.float64) - means[train.labels[piece]]
        np.multiply(centred, inverse, out=out[start : start + 256], casting="same_kind")
    return out


def _scored(
    test: Rows, direction: Direction, weights: np.ndarray, inverse: np.ndarray, job: Job,
    shrinkage: float | None = None, rows: int | None = None,
) -> Variant:  # fmt: skip
    unit = weights / np.abs(weights).max()
    unit = unit / np.linalg.norm(unit)
    margin = margins(test, unit, direction.midpoint, job)
    correct, counts = correct_cells(test, margin >= 0).sum(0), test.cells().sum(0)
    return Variant(
        accuracy=float(correct.sum() / test.n),
        balanced_accuracy=balanced_accuracy(correct, counts),
        auroc=auroc(margin, test.labels),
        cosine=float(unit @ direction.unit),
        constant_dimensions=int(np.count_nonzero(inverse == 0)),
        shrinkage=shrinkage,
        rows=rows,
    )
