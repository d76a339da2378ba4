"""Recovery of a subspace from unit rows around it, at the same guarantee for all noises.

One record is added or removed, as in the published pairs. In the eigenbasis of the data, noise that
is equal on the upper triangle has a variance of about 1 - 1/p per entry and that of half variance
off the diagonal exactly 1/2, so that the ratio tends to .707 from above: .715 from p = 50 on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.kernels.second_moments import second_moments
from skdpnoise.mechanisms import SymmetricMatrixMechanism, calibrate_second_moments
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import RowBounds

LEVELS = (0.5, 0.25, 0.1)
SHAPES = ((5000, 64, 3), (10_000, 100, 5), (10_000, 100, 10), (20_000, 150, 5))
SPREAD = 0.05  # standard deviation of the rows outside the subspace, per direction times √p
L1_BALL = 0.73  # |x|_1² over p of rows of unit norm: 2/π for spread rows, below .73 with 99 %
BARS = {"gaussian": 0.715, "laplace": 0.75}
PUBLISHED = {
    "gaussian": ((0.4762, 0.3269), (0.2484, 0.1728), (0.1067, 0.0752)),
    "laplace": ((0.6185, 0.5034), (0.3272, 0.2523), (0.1389, 0.1093)),
}


def rows_around_a_subspace(n: int, p: int, k: int, seed: int = 0) -> NDArray[np.float64]:
    """Return unit rows near a random subspace."""
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.normal(size=(p, k)))
    rows = rng.normal(size=(n, k)) / math.sqrt(k) @ basis.T
    rows += SPREAD / math.sqrt(p) * rng.normal(size=(n, p))
    return rows / np.linalg.norm(rows, axis=1)[:, None]


class Recovery:
    """Errors |VV' - V*V*'| of the leading subspace for one data set and one noise."""

    def __init__(self, X: NDArray[np.float64], k: int, noise: str, bounds: RowBounds) -> None:
        self.X, self.k, self.noise, self.bounds = X, k, noise, bounds
        vectors = np.linalg.eigh(X.T @ X)[1][:, -k:]
        self.truth = vectors @ vectors.T

    def mechanism(self, strength: float) -> SymmetricMatrixMechanism:
        """Calibrate to μ, or to ε."""
        loss = PureLoss(strength) if "laplace" in self.noise else GaussianLoss(strength)
        return calibrate_second_moments(self.noise, self.bounds, loss, "add_remove")

    def errors(self, strength: float, n_trials: int) -> NDArray[np.float64]:
        """Return the errors of many releases."""
        mechanism = self.mechanism(strength)
        counts = second_moments(
            self.X,
            row_grid_size=mechanism.row_grid_size,
            norm=self.bounds.norm,
            columns=self.bounds.columns,
            l1_norm=self.bounds.l1_norm,
        )
        rng = SeededWords(0)
        found = np.empty(n_trials)
        for trial in range(n_trials):
            V = np.linalg.eigh(mechanism.release(counts, rng))[1][:, -self.k :]
            found[trial] = np.linalg.norm(V @ V.T - self.truth)
        return found

    def strength_for(self, level: float) -> float:
        """Return the μ (ε) at which the mean error is about the level."""
        low, high = 1e-6, 1e6
        for _ in range(28):
            middle = math.sqrt(low * high)
            if self.errors(middle, 8).mean() > level:
                low = middle
            else:
                high = middle
            if high < 1.01 * low:
                break
        return math.sqrt(low * high)


def compare(n: int, p: int, k: int, n_trials: int) -> list[dict[str, Any]]:
    """Return errors of the structured noises over the plain one, at each level of the latter."""
    X = rows_around_a_subspace(n, p, k)
    ball = RowBounds(p, 1.0)
    variants = {
        "gaussian": {"": ball},
        "laplace": {"l1 ball": RowBounds(p, 1.0, l1_norm=math.sqrt(L1_BALL * p))},
    }
    records = []
    for family, cases in variants.items():
        plain = Recovery(X, k, f"iid_{family}", ball)
        for level in LEVELS:
            strength = plain.strength_for(level)
            base = float(plain.errors(strength, n_trials).mean())
            for name, bounds in cases.items():
                ours = Recovery(X, k, f"inid_{family}", bounds)
                error = float(ours.errors(strength, n_trials).mean())
                records.append(
                    {
                        "n": n,
                        "p": p,
                        "rank": k,
                        "family": family,
                        "public": name,
                        "strength": strength,
                        "iid": base,
                        "inid": error,
                        "ratio": error / base,
                        "bar": BARS[family],
                    }
                )
    return records
