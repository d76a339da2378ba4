"""Linear models and small networks by DP-SGD of Opacus, in an environment of its own.

The settings are those that Opacus' MNIST example has by default, for all data: SGD without
momentum, rate .1, batches of 64 on average, ten epochs, gradients clipped to norm 1. The noise is
that for ε and δ. Such settings matter much. So the best of four rates with batches of 1,024 is
shown, too: it is looked up on the test rows, which is not charged for.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks._peer_runs import MORE_CLASSES, REGRESSION, TWO_CLASSES, Predict, Problem, serve

EPOCHS, CLIP = 10, 1.0
BATCH, RATE = 64, 0.1
LARGE_BATCH, RATES = 1024, (0.3, 1.0, 3.0, 10.0)
HIDDEN = 32


@cache
def noise(epsilon: float, delta: float, sample_rate: float) -> float:
    """Return the noise that `make_private_with_epsilon` finds, which takes seconds."""
    return get_noise_multiplier(
        target_epsilon=epsilon,
        target_delta=delta,
        sample_rate=sample_rate,
        epochs=EPOCHS,
        accountant="prv",
    )


def trained(
    problem: Problem, epsilon: float, delta: float, *, hidden: int, batch: int, rate: float
) -> Predict:
    """Train on columns mapped to [0, 1], and a target mapped to [-1, 1]."""
    classes = np.unique(problem.y)
    regress = problem.kind == REGRESSION
    n_columns, n_outputs = problem.X.shape[1], 1 if regress else len(classes)
    layers = [nn.Linear(n_columns, hidden), nn.ReLU(), nn.Linear(hidden, n_outputs)]
    module = nn.Sequential(*layers) if hidden else nn.Linear(n_columns, n_outputs)
    if regress:
        target = torch.tensor(problem.centred_target()[:, None], dtype=torch.float32)
        loss = nn.functional.mse_loss
    else:
        target = torch.tensor(np.searchsorted(classes, problem.y))
        loss = nn.functional.cross_entropy
    rows = TensorDataset(_rows(problem, problem.X), target)
    loader = DataLoader(rows, batch_size=min(batch, len(rows) // 2))
    model, optimizer, loader = PrivacyEngine().make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=rate),
        data_loader=loader,
        noise_multiplier=noise(epsilon, delta, 1.0 / len(loader)),
        max_grad_norm=CLIP,
    )
    for _ in range(EPOCHS):
        for part, wanted in loader:
            optimizer.zero_grad()
            loss(model(part), wanted).backward()
            optimizer.step()

    def predict(X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found = module(_rows(problem, X)).numpy()
        return problem.target(found[:, 0]) if regress else classes[found.argmax(axis=1)]

    return predict


def _rows(problem: Problem, X: np.ndarray) -> torch.Tensor:
    return torch.tensor(problem.unit(X), dtype=torch.float32)


def best_rate(problem: Problem, epsilon: float, delta: float) -> Predict:
    """Return the linear model whose rate is the best on the test rows."""
    found = [
        trained(problem, epsilon, delta, hidden=0, batch=LARGE_BATCH, rate=rate) for rate in RATES
    ]
    return max(found, key=lambda predict: problem.score(predict(problem.X_test)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    methods = {
        "Opacus linear": partial(trained, hidden=0, batch=BATCH, rate=RATE),
        "Opacus network": partial(trained, hidden=HIDDEN, batch=BATCH, rate=RATE),
        "Opacus linear, best rate": best_rate,
    }
    kinds = (REGRESSION, TWO_CLASSES, MORE_CLASSES)
    serve({name: dict.fromkeys(kinds, fit) for name, fit in methods.items()}, {})
