"""ResNet-20 for images of 32 x 32 in three colours, with norms of groups that mix no records.

He, Zhang, Ren and Sun, "Deep residual learning for image recognition", arXiv:1512.03385, section
4.2, with two projections on the shortcuts where the width changes, and group norm (Wu and He,
arXiv:1803.08494) for batch norm, which would mix the records of a batch. It needs torch. With
``--cifar FOLDER`` it trains four arms of clipping and noise on CIFAR-10; that needs the data and,
for hours, a GPU.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np
from torch import nn

from skdpnoise import DPNeuralClassifier


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, before: int, width: int, n_groups: int) -> None:
        super().__init__()
        stride = 1 if before == width else 2
        self.first = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.first_norm = nn.GroupNorm(n_groups, width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(n_groups, width)
        self.shortcut = nn.Identity()
        if before != width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, width, 1, stride, bias=False), nn.GroupNorm(n_groups, width)
            )

    def forward(self, images):
        """Return what both ways make together."""
        inner = nn.functional.relu(self.first_norm(self.first(images)))
        return nn.functional.relu(self.second_norm(self.second(inner)) + self.shortcut(images))


class ResNet20(nn.Module):
    """Twenty layers: 22 tensors of weights, 270,896 numbers, and those of the norms."""

    def __init__(self, n_classes: int = 10, n_groups: int = 16) -> None:
        super().__init__()
        widths = [16, *[16] * 3, *[32] * 3, *[64] * 3]
        self.first = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(n_groups, 16)
        self.blocks = nn.Sequential(*(Block(*pair, n_groups) for pair in pairwise(widths)))
        self.last = nn.Linear(64, n_classes)

    def forward(self, images):
        """Return one number for each class."""
        inner = self.blocks(nn.functional.relu(self.norm(self.first(images))))
        return self.last(inner.mean(dim=(-2, -1)))


def images_of(folder: Path, names: list[str]):
    """Return images and labels of files of CIFAR-10 in its binary version."""
    # A record is a label and three colours of 32 x 32 bytes (www.cs.toronto.edu/~kriz/cifar.html).
    records = np.concatenate([np.fromfile(folder / name, np.uint8) for name in names])
    records = records.reshape(-1, 1 + 3 * 32 * 32)
    images = records[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 127.5 - 1.0
    return images, records[:, 0].astype(int)


def train_on_cifar(args) -> None:
    """Train each arm of clipping and noise on CIFAR-10, and print its accuracy on test images."""
    images, labels = images_of(args.cifar, [f"data_batch_{k}.bin" for k in range(1, 6)])
    test = images_of(args.cifar, ["test_batch.bin"])
    for clip_groups, noise in (
        ("global", "iid_gaussian"),
        ("layer", "spr_gaussian"),
        ("layer", "inid_gaussian"),
        ("tensor", "inid_gaussian"),
    ):
        model = DPNeuralClassifier(
            ResNet20,
            classes=list(range(10)),
            epsilon=args.epsilon,
            delta=1e-5,
            clip_groups=clip_groups,
            noise=noise,
            max_iter=args.epochs,
            batch_size=args.rate,
            device=args.device,
        )
        model.fit(images, labels)
        print(f"{clip_groups:6} {noise:13} accuracy {model.score(*test):.4f}", flush=True)


def show_noise() -> None:
    """Make a few private steps on made-up images, and show where the noise goes."""
    rng = np.random.default_rng()
    images = rng.normal(size=(64, 3, 32, 32)).astype(np.float32)
    labels = rng.integers(10, size=64)
    model = DPNeuralClassifier(
        ResNet20,
        classes=list(range(10)),
        epsilon=8.0,
        delta=1e-5,
        clip_groups="tensor",
        max_iter=1,
        batch_size=0.25,
    )
    model.fit(images, labels)
    shown = model.allocation_
    print(f"{'group':32} {'numbers':>8} {'clip':>7} {'noise':>7} {'signal':>7}")
    for row in zip(*shown.values(), strict=True):
        print("{:32} {:8d} {:7.3f} {:7.3f} {:7.4f}".format(*row))


def main(argv=None) -> None:
    """Show the noise, or train on CIFAR-10, which needs its files and a GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cifar", type=Path, help="folder of CIFAR-10's binary version")
    parser.add_argument("--device", default="cuda", help="where torch trains")
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.04, help="of each sample")
    args = parser.parse_args(argv)
    if args.cifar is None:
        show_noise()
    else:
        train_on_cifar(args)


if __name__ == "__main__":
    main()
