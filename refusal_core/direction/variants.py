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
LEAST_SHRINKAGE = 1e-4  # keeps the float32 products positive definite


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
    dimensions scaled to within-class variance 1, where their target is the diagonal. Solved in the smaller of rows and
    dimensions (Woodbury), from at most 2,000 training rows, drawn in the order of ids.
    """
    inverse = _inverse_sd(spread)
    if not inverse.any():
        return None
    picked = np.arange(train.n)
    if train.n > COVARIANCE_ROWS:
        picked = np.sort(train.order[rng.choice(train.n, COVARIANCE_ROWS, replace=False)])
    rows = _standardised(train, picked, direction, inverse)[:, inverse > 0]
    n, d = rows.shape
    products = (rows @ rows.T if n < d else rows.T @ rows).astype(np.float64)
    q = ledoit_wolf_shrinkage(products, np.einsum("ij,ij->i", rows, rows, dtype=np.float64), d)
    (job or Job()).check()
    weights = np.zeros(train.d)
    weights[inverse > 0] = _solved(rows, products, q, (direction.delta * inverse)[inverse > 0])
    return _scored(test, direction, weights * inverse, inverse, job or Job(), shrinkage=q, rows=n)


def ledoit_wolf_shrinkage(products: np.ndarray, squares: np.ndarray, d: int) -> float:
    """The weight of mu I, mu = tr(S) / d, for n centred rows Z of d dimensions; from LEAST_SHRINKAGE to 1.

    Ledoit and Wolf (2004), section 3.3. `products` is Z Z' or Z' Z, which have the same sum of squares; `squares` [n]
    are the rows' squared lengths.
    """
    n = len(squares)
    mu = squares.sum() / n / d
    squared = (products**2).sum() / n**2
    distance = squared / d - mu**2
    noise = ((squares**2).sum() / n - squared) / n / d
    return float(np.clip(noise / distance, LEAST_SHRINKAGE, 1.0)) if distance > 0 else 1.0


def _solved(rows: np.ndarray, products: np.ndarray, q: float, target: np.ndarray) -> np.ndarray:
    """(q I + c Z'Z)^-1 target up to scale, c = (1 - q) / n; for n < d as target - Z' (q/c I + Z Z')^-1 Z target."""
    if q == 1:
        return target
    n, d = rows.shape
    system = products.copy()
    system[np.diag_indices(len(system))] += q * n / (1 - q)
    if n < d:
        return target - rows.T @ cho_solve(cho_factor(system), rows @ target)
    return cho_solve(cho_factor(system), target)


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
    test: Rows,
    direction: Direction,
    weights: np.ndarray,
    inverse: np.ndarray,
    job: Job,
    shrinkage: float | None = None,
    rows: int | None = None,
) -> Variant:
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
