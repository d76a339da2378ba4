"""ResNet-20 for images of 32 x 32 in three colours, with norms of groups that mix no records.

He, Zhang, Ren and Sun, "Deep residual learning for image recognition", arXiv:1512.03385, section
4.2, with two projections on the shortcuts where the width changes, and group norm (Wu and He,
arXiv:1803.08494) for batch norm, which would mix the records of a batch. It needs torch.
"""

from __future__ import annotations

from itertools import pairwise

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


def main() -> None:
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


if __name__ == "__main__":
    main()
