"""Data of the PCA benchmark: columns mapped to [-1, 1] by the smallest and largest value."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits

from skdpnoise.datasets import fetch_california

MNIST = "train-images-idx3-ubyte.gz"


def load(name: str, data_dir: str | Path | None) -> NDArray[np.float64] | None:
    """Return the mapped rows, or None where the file is not there."""
    if name == "california":
        X, _ = fetch_california(data_home=data_dir, return_X_y=True)
    elif name == "digits":
        X = load_digits().data
    elif name == "breast cancer":
        X = load_breast_cancer().data
    else:
        folder = data_dir or os.environ.get("SKDPNOISE_DATA")
        path = Path(folder) / MNIST if folder else None
        if path is None or not path.is_file():
            return None
        with gzip.open(path) as file:
            X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    X = np.asarray(X, dtype=np.float64)
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return np.where(width > 0.0, 2.0 * (X - low) / np.where(width > 0.0, width, 1.0) - 1.0, 0.0)


def captured(components: NDArray[np.float64], covariance: NDArray[np.float64]) -> float:
    """Return the variance that components keep, relative to the best of as many."""
    k = len(components)
    best = float(np.linalg.eigvalsh(covariance)[-k:].sum())
    return float(np.trace(components @ covariance @ components.T)) / best
