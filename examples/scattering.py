"""Features first: scattering features of images, and a private linear model of them.

A wavelet filter shows where an image has edges of one size and direction. The modulus of what it
gives, blurred, changes little when the image is moved or bent a little. 81 such channels need no
training (two sizes, eight directions, and pairs of a fine and a coarse filter). So they cost no
privacy: the features of a record are a function of its image alone, to the last bit.

MNIST is read from the folder that SKDPNOISE_DATA names; its fit takes minutes. Without it there are
scikit-learn's digits, enlarged, of which there are far fewer.

References: Bruna and Mallat, arXiv:1203.1513. Tramèr and Boneh, arXiv:2011.11660.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from functools import cache
from pathlib import Path

import numpy as np
from scipy.fft import fft2, ifft2
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skdpnoise import DPLogisticRegression

N_ANGLES = 8
N_CHANNELS = 1 + 2 * N_ANGLES + N_ANGLES**2
SMALLER = 4  # an image of 28 x 28 pixels has 7 x 7 places of each channel
FIRST_OF_GROUP = [0, 1, *range(1 + N_ANGLES, N_CHANNELS, N_ANGLES)]
HIGHEST = 3.0  # public bound of normalised features, in root mean squares of their group
N_PASSES = 300  # by itself a fit of so many entries makes fewer, to save time


def scattering(images: np.ndarray) -> np.ndarray:
    r"""Return the scattering features of images, each a function of its image alone.

    .. math:: x * \phi, \qquad |x * \psi_{ja}| * \phi, \qquad ||x * \psi_{0a}| * \psi_{1b}| * \phi

    with Morlet wavelets ψ of sizes j = 0, 1 and eight angles a, b, a Gaussian φ, and every fourth
    value kept. Borders are mirrored. One record is taken at a time, in arrays of one shape: no bit
    of its features depends on the records beside it.

    Parameters
    ----------
    images : ndarray of shape (n_images, height, width)
        Heights and widths that are multiples of 4, from 8 on.

    Returns
    -------
    ndarray of float32 of shape (n_images, 81, height / 4, width / 4)
        First the blurred image, then sizes and angles, then pairs of angles.

    Examples
    --------
    >>> scattering(np.ones((2, 28, 28))).shape
    (2, 81, 7, 7)
    """
    n_images, height, width = images.shape
    if min(height, width) < 2 * SMALLER or height % SMALLER or width % SMALLER:
        raise ValueError(
            f"Heights and widths must be multiples of 4, from 8 on, got {height} and {width}."
        )
    mirrored = [np.pad(np.arange(size), SMALLER, mode="reflect") for size in (height, width)]
    places, bank = np.ix_(*mirrored), _filters(mirrored[0].size, mirrored[1].size)
    shape = n_images, N_CHANNELS, height // SMALLER, width // SMALLER
    features = np.empty(shape, dtype=np.float32)
    for image, out in zip(images, features, strict=True):
        out[:] = _channels(image.astype(np.float32)[places], *bank)[:, 1:-1, 1:-1]
    return features


def normalise(features: np.ndarray) -> np.ndarray:
    """Divide each group of channels by its root mean square, of one record at a time, in place.

    Groups are the blurred image, the angles of each size, and the pairs with one fine angle. Public
    bounds of the result are 0 and 3: hardly anything is above, and fits clip it.

    Parameters
    ----------
    features : ndarray of float32 of shape (n_images, 81, height, width)
        What :func:`scattering` returns.

    Returns
    -------
    ndarray of shape (n_images, 81 * height * width)
        The same memory.

    Examples
    --------
    >>> normalise(scattering(np.ones((2, 28, 28)))).shape
    (2, 3969)
    """
    sizes = np.diff([*FIRST_OF_GROUP, N_CHANNELS])
    for record in features:
        squares = np.square(record, dtype=np.float64).mean(axis=(1, 2))
        means = np.add.reduceat(squares, FIRST_OF_GROUP) / sizes
        norms = np.repeat(np.sqrt(means + 1e-12), sizes)  # of a blank image, features are 0
        record /= norms[:, np.newaxis, np.newaxis].astype(np.float32)
    return features.reshape(len(features), -1)


def _channels(image: np.ndarray, blur: np.ndarray, waves: np.ndarray) -> np.ndarray:
    """Return all channels of a mirrored image."""
    # Filters are real in the frequency domain, so that products with them round once.
    spectrum = fft2(image)
    fine = fft2(_modulus(ifft2(spectrum * waves[0])))
    coarse = fft2(_modulus(ifft2(_halved(spectrum * waves[1]))))
    pairs = fft2(_modulus(ifft2(_halved(fine[:, np.newaxis] * waves[1]))))
    whole = np.concatenate([spectrum[np.newaxis], fine]) * blur
    half = np.concatenate([coarse, pairs.reshape(-1, *pairs.shape[-2:])]) * (4.0 * _halved(blur))
    low = np.concatenate([_halved(_halved(whole)), _halved(half)])
    return np.asarray(ifft2(low).real)


def _halved(spectrum: np.ndarray) -> np.ndarray:
    """Return the spectrum of every second value."""
    h, w = spectrum.shape[-2] // 2, spectrum.shape[-1] // 2
    left = spectrum[..., :h, :w] + spectrum[..., h:, :w]
    return np.asarray((left + (spectrum[..., :h, w:] + spectrum[..., h:, w:])) * np.float32(0.25))


def _modulus(waves: np.ndarray) -> np.ndarray:
    """Return absolute values, by operations that IEEE 754 defines to the last bit."""
    return np.asarray(np.sqrt(waves.real * waves.real + waves.imag * waves.imag))


@cache
def _filters(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the Gaussian and the wavelets of all sizes and angles, in the frequency domain."""
    blur, _ = _gaussian(height, width, 1.6, 0.0, 1.0)
    waves = np.empty((2, N_ANGLES, height, width), dtype=np.float32)
    for size, angle in np.ndindex(2, N_ANGLES):
        deviation, frequency = 0.8 * 2**size, 0.75 * np.pi / 2**size
        facts = deviation, np.pi * angle / N_ANGLES, 4.0 / N_ANGLES
        envelope, wave = _gaussian(height, width, *facts, frequency=frequency)
        wave = wave - wave.sum() / envelope.sum() * envelope  # so that its mean is 0
        waves[size, angle] = fft2(wave).real
    waves[..., 0, 0] = 0.0
    return fft2(blur / blur.sum()).real.astype(np.float32), waves


def _gaussian(
    height: int,
    width: int,
    deviation: float,
    angle: float,
    slant: float,
    frequency: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a Gaussian on a torus, `slant` times as narrow along as across, and a wave in it."""
    y, x = np.mgrid[-2 * height : 3 * height, -2 * width : 3 * width]
    along = x * np.cos(angle) + y * np.sin(angle)
    across = y * np.cos(angle) - x * np.sin(angle)
    envelope = np.exp(-0.5 * (along**2 + (slant * across) ** 2) / deviation**2)
    envelope *= slant / (2.0 * np.pi * deviation**2)
    wave = envelope * np.exp(1j * frequency * along)
    shape = 5, height, 5, width
    return envelope.reshape(shape).sum(axis=(0, 2)), wave.reshape(shape).sum(axis=(0, 2))


def read_mnist(folder: str | Path) -> list[np.ndarray]:
    """Return training images and labels, then test images and labels; grey levels from 0 to 1."""
    parts = []
    for part in ("train", "t10k"):
        for kind, offset in (("images-idx3", 16), ("labels-idx1", 8)):
            content = gzip.decompress((Path(folder) / f"{part}-{kind}-ubyte.gz").read_bytes())
            parts.append(np.frombuffer(content, dtype=np.uint8, offset=offset))
    for place in (0, 2):
        parts[place] = parts[place].reshape(-1, 28, 28) / np.float32(255)
    return parts


def enlarged_digits() -> list[np.ndarray]:
    """Return scikit-learn's digits in the same form, each pixel as 3 x 3, with a border."""
    digits = load_digits()
    images = np.kron(digits.images / 16.0, np.ones((3, 3)))
    images = np.pad(images, ((0, 0), (2, 2), (2, 2)))
    X, X_test, y, y_test = train_test_split(images, digits.target, random_state=0)
    return [X, y, X_test, y_test]


def main() -> None:
    """Fit one private model, and print its accuracy and its guarantee."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, help="of either part, the first ones; default: all")
    parser.add_argument("--passes", type=int, default=N_PASSES)
    parser.add_argument("--epsilon", type=float, default=3.0)
    args = parser.parse_args()
    folder = os.environ.get("SKDPNOISE_DATA")
    parts = read_mnist(folder) if folder else enlarged_digits()
    X, y, X_test, y_test = (part[: args.records] for part in parts)
    start = time.perf_counter()
    X, X_test = normalise(scattering(X)), normalise(scattering(X_test))
    between = time.perf_counter()
    model = DPLogisticRegression(
        args.epsilon,
        delta=1e-5,
        adjacency="add_remove",
        feature_bounds=(0.0, HIGHEST),
        classes=list(range(10)),
        n_passes=args.passes,
    ).fit(X, y)
    print(f"{len(X):,} records x {X.shape[1]:,} features in {between - start:.0f} seconds")
    print(f"fitted in {time.perf_counter() - between:.0f} seconds")
    print(f"test accuracy: {model.score(X_test, y_test):.4f}\n")
    print(model.privacy_)


if __name__ == "__main__":
    main()
