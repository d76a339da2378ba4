"""Epochs of a small convolutional network: ordinary, and by Opacus, in an environment of its own.

The last line that is printed holds the seconds of each epoch after the first, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

N, BATCH, CLASSES = 12_000, 300, 10


def data() -> tuple[Any, Any]:
    """Return images and labels like those of MNIST; what they show does not matter here."""
    import torch

    torch.manual_seed(0)
    return torch.rand(N, 1, 28, 28), torch.randint(0, CLASSES, (N,))


def network() -> Any:
    """Return two convolutions and two layers, with bounded activations: 26,010 numbers."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, CLASSES),
    )


def opacus_epochs(count: int) -> Iterator[float]:
    """Yield the seconds of each epoch: Poisson samples, gradients of single records by hooks."""
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    made = network()
    model, optimizer, loader = PrivacyEngine().make_private(
        module=made,
        optimizer=torch.optim.SGD(made.parameters(), lr=0.1, momentum=0.9),
        data_loader=DataLoader(TensorDataset(*data()), batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    for _ in range(count):
        start = time.perf_counter()
        for rows, labels in loader:
            _step(model, optimizer, rows, labels)
        yield time.perf_counter() - start


def ordinary_epochs(count: int) -> Iterator[float]:
    """Yield the seconds of each epoch of ordinary training."""
    import torch

    model, (rows, labels) = network(), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(count):
        start = time.perf_counter()
        for part in torch.randperm(N).split(BATCH):
            _step(model, optimizer, rows[part], labels[part])
        yield time.perf_counter() - start


def _step(model: Any, optimizer: Any, rows: Any, labels: Any) -> None:
    """Make one step along the gradient of a batch."""
    import torch

    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(rows), labels).backward()
    optimizer.step()


if __name__ == "__main__":
    import warnings

    import torch

    warnings.simplefilter("ignore")
    name, n_threads, n_epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(n_threads)
    measured = {"opacus": opacus_epochs, "ordinary": ordinary_epochs}[name]
    print(json.dumps(list(measured(n_epochs + 1))[1:]))
