"""Temperature scaling: one number that makes probabilities as sure as they are right, and changes no label."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

KEY = "temperature"
LEAST_ROWS = 30  # fewer say too little: the temperature stays 1
_BOUNDS = (0.5, 10.0)


def fit_temperature(log_probabilities: np.ndarray, true: Sequence[int]) -> float:
    """The temperature, 0.5 to 10, with the least cross-entropy on these rows; to four digits.

    log_probabilities: [n, k], any constant a row (so logits will do); true: n places. 1.0 for fewer than LEAST_ROWS.
    """
    if len(true) < LEAST_ROWS:
        return 1.0
    rows = np.arange(len(true))

    def loss(log_temperature: float) -> float:
        return -float(log_softmax(log_probabilities / np.exp(log_temperature), axis=1)[rows, list(true)].mean())

    found = minimize_scalar(loss, bounds=np.log(_BOUNDS), method="bounded", options={"xatol": 1e-6})
    return round(float(np.exp(found.x)), 4)


def write_temperature(folder: Path, temperature: float) -> None:
    """Into the checkpoint's config.json, where `Classifier` reads it."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, KEY: temperature}, indent=2, sort_keys=True) + "\n", encoding="utf-8")
