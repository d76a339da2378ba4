"""A network that learnt from public images gets a private head: few records, no noise on the body.

Digits from 0 to 4 stand for what is public: a small convolutional network learns them in the
ordinary way, batch norm included. Its body is frozen, in eval mode, and a head for the digits from
5 to 9 is trained on private images alone. Beside it the same network learns all of its parameters
privately. It needs torch.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from skdpnoise import DPNeuralClassifier


def body(norm=nn.BatchNorm2d) -> nn.Sequential:
    """Return two convolutions: from images of 8 x 8 to 64 features."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        norm(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1),
        norm(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.LayerNorm(64, elementwise_affine=False),
    )


def learnt_in_public(images, labels, n_steps: int) -> nn.Sequential:
    """Return a frozen body that learnt public images, in eval mode."""
    made, rows, targets = body(), torch.from_numpy(images), torch.from_numpy(labels)
    network = nn.Sequential(made, nn.Linear(64, 5))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(n_steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(rows), targets).backward()
        optimizer.step()
    return made.eval().requires_grad_(False)


def with_head(frozen: nn.Sequential) -> nn.Sequential:
    """Return the frozen body and a new head, which is all that is trained."""
    return nn.Sequential(frozen, nn.Linear(64, 5))


def from_scratch() -> nn.Sequential:
    """Return the same network with norms that mix no records, all of it to be trained."""
    return nn.Sequential(body(lambda width: nn.GroupNorm(4, width)), nn.Linear(64, 5))


def main(argv=None) -> None:
    """Print the accuracy of both on images that neither has seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=0.3)
    parser.add_argument("--steps", type=int, default=150, help="of the public training")
    parser.add_argument("--epochs", type=int, default=20, help="of the private trainings")
    args = parser.parse_args(argv)
    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    public = labels < 5
    frozen = learnt_in_public(images[public], labels[public], args.steps)
    X, X_test, y, y_test = train_test_split(
        images[~public], labels[~public], test_size=0.3, random_state=0
    )
    common = {
        "epsilon": args.epsilon,
        "delta": 1e-5,
        "classes": [5, 6, 7, 8, 9],
        "max_iter": args.epochs,
    }
    print(f"{len(X)} private images, epsilon={args.epsilon:g}: accuracy on {len(X_test)} others")
    head = DPNeuralClassifier(with_head, module__frozen=frozen, **common).fit(X, y)
    print(f"frozen body, private head:  {head.score(X_test, y_test):.3f}")
    whole = DPNeuralClassifier(from_scratch, **common).fit(X, y)
    print(f"all parameters privately:   {whole.score(X_test, y_test):.3f}")
    print("\n" + str(head.privacy_))


if __name__ == "__main__":
    main()
