"""Scattering features: of one record alone, what the formulas say, and an example that runs."""

import numpy as np
import pytest

from examples.scattering import FIRST_OF_GROUP, N_ANGLES, N_CHANNELS, normalise, scattering
from tests._cases import each_value


def some_images(n_images, side=28, seed=0):
    return np.random.default_rng(seed).random((n_images, side, side), dtype=np.float32)


def in_space(side, deviation, angle, slant, frequency):
    """A Gaussian and a Morlet wavelet on a torus, from sums over its windings."""
    values = np.zeros((2, side, side), dtype=complex)
    for down, right in np.ndindex(7, 7):
        y, x = np.mgrid[:side, :side]
        y, x = y + side * (down - 3), x + side * (right - 3)
        along = x * np.cos(angle) + y * np.sin(angle)
        across = -x * np.sin(angle) + y * np.cos(angle)
        size = np.exp(-(along**2 + slant**2 * across**2) / (2 * deviation**2))
        size *= slant / (2 * np.pi * deviation**2)
        values += size, size * np.exp(1j * frequency * along)
    gaussian, wave = values
    return gaussian.real, wave - wave.sum() / gaussian.sum() * gaussian


def convolved(image, kernel):
    """A convolution on a torus, term by term."""
    total = np.zeros(image.shape, dtype=complex)
    for (y, x), weight in np.ndenumerate(kernel):
        total += weight * np.roll(image, (y, x), axis=(0, 1))
    return total


def by_the_formulas(image):
    """All channels of one image in double precision, by convolutions in space."""
    image = np.pad(image.astype(float), 4, mode="reflect")
    side = len(image)
    blur, _ = in_space(side, 1.6, 0.0, 1.0, 0.0)
    blur /= blur.sum()
    angles = [np.pi * k / 8 for k in range(8)]
    fine = [in_space(side, 0.8, angle, 0.5, 0.75 * np.pi)[1] for angle in angles]
    coarse = [in_space(side, 1.6, angle, 0.5, 0.375 * np.pi)[1] for angle in angles]
    first = [np.abs(convolved(image, wave)) for wave in fine]
    second = [np.abs(convolved(image, wave))[::2, ::2] for wave in coarse]
    second += [np.abs(convolved(one, wave))[::2, ::2] for one in first for wave in coarse]
    low = [convolved(one, blur)[::4, ::4] for one in [image, *first]]
    low += [convolved(one, 4 * blur[::2, ::2])[::2, ::2] for one in second]
    return np.real(low)[:, 1:-1, 1:-1]


@pytest.mark.slow
def test_features_are_what_convolutions_in_space_give():
    image = some_images(1, side=12)[0]
    expected = by_the_formulas(image)
    found = scattering(image[np.newaxis])[0]
    assert found.dtype == np.float32
    assert found.shape == expected.shape == (N_CHANNELS, 3, 3)
    assert np.abs(expected[1:]).max() > 0.1
    np.testing.assert_allclose(found, expected, atol=1e-5)


@each_value(1)
@pytest.mark.parametrize("n_images", [1, 2, 5, 33])
@pytest.mark.parametrize("place", [0, -1])
def test_a_record_has_the_same_bits_wherever_it_lies(n_images, place):
    whole = some_images(40)
    alone = normalise(scattering(whole[7:8]))[0]
    others = some_images(n_images, seed=n_images) * 1e3
    others[place] = whole[7]
    beside = normalise(scattering(others))[place]
    assert beside.tobytes() == alone.tobytes()
    # Nor does it matter how its image lies in memory.
    turned = np.asfortranarray(others)
    assert normalise(scattering(turned))[place].tobytes() == alone.tobytes()


def test_a_record_has_the_same_bits_beside_values_that_are_no_numbers():
    images = some_images(3)
    alone = normalise(scattering(images[1:2]))[0]
    images[0], images[2] = np.nan, np.inf
    with np.errstate(all="ignore"):
        beside = normalise(scattering(images))[1]
    assert beside.tobytes() == alone.tobytes()


def test_features_of_the_same_images_are_the_same():
    images = some_images(4)
    kept = images.copy()
    assert scattering(images).tobytes() == scattering(images).tobytes()
    np.testing.assert_array_equal(images, kept)


def test_an_image_without_edges_has_only_its_brightness():
    features = scattering(np.full((1, 28, 28), 0.7))[0]
    np.testing.assert_allclose(features[0], 0.7, atol=1e-6)
    np.testing.assert_allclose(features[1:], 0.0, atol=1e-6)
    assert not normalise(scattering(np.zeros((1, 28, 28)))).any()


def test_a_wave_is_found_at_its_size_and_angle():
    y, x = np.mgrid[:28, :28]
    for size, angle in np.ndindex(2, N_ANGLES):
        frequency, direction = 0.75 * np.pi / 2**size, np.pi * angle / N_ANGLES
        wave = np.cos(frequency * (x * np.cos(direction) + y * np.sin(direction)))
        inner = scattering(wave[np.newaxis])[0, 1 : 1 + 2 * N_ANGLES, 2:-2, 2:-2]
        assert inner.mean(axis=(1, 2)).argmax() == size * N_ANGLES + angle


def test_features_move_less_than_the_image_does():
    image = np.zeros((28, 28))
    image[8:20, 12:16] = 1.0
    moved = np.roll(image, 1, axis=1)
    before, after = scattering(np.stack([image, moved]))
    change = np.linalg.norm(after - before) / np.linalg.norm(before)
    assert change < np.linalg.norm(moved - image) / np.linalg.norm(image)


def test_each_group_of_channels_has_root_mean_square_1():
    rows = normalise(scattering(some_images(3))).reshape(3, N_CHANNELS, -1).astype(float)
    ends = [*FIRST_OF_GROUP[1:], N_CHANNELS]
    for begin, end in zip(FIRST_OF_GROUP, ends, strict=True):
        np.testing.assert_allclose((rows[:, begin:end] ** 2).mean(axis=(1, 2)), 1.0, rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 30, 28), (1, 28, 27), (1, 4, 28)])
def test_sizes_that_are_no_multiples_of_4_are_refused(shape):
    with pytest.raises(ValueError, match="multiples of 4"):
        scattering(np.zeros(shape))
