"""What is known of a number stays known, and is all that is drawn of it."""

from __future__ import annotations

import pytest

from skdpnoise.sampling import SeededWords
from skdpnoise.sampling.lazy import (
    CAPACITY,
    UNDECIDED,
    Digits,
    is_smaller,
    leading_bits,
    new_numbers,
)
from tests._cases import each_value


def value(row, width):
    """The integer that the known digits of a number are, and how many bits these have."""
    known = 0
    for digit in row[1 : 1 + row[0]].tolist():
        known = known << width | digit
    return known, int(row[0]) * width


@each_value(2)
@pytest.mark.parametrize("width", [1, 4, 8])
@pytest.mark.parametrize("seed", range(5))
def test_comparisons_keep_the_digits_that_are_known_and_agree_with_each_other(width, seed):
    words, numbers = SeededWords(seed).take(100), new_numbers(4, width)
    position, answers, before = 0, {}, numbers.copy()
    pairs = [(one, other) for one in range(4) for other in range(4) if one != other]
    for one, other in pairs + pairs:
        smaller, moved = is_smaller(Digits(words, width, numbers), position, one, other)
        drawn = int(numbers[:, 0].sum() - before[:, 0].sum())
        assert moved - position == drawn * width  # nothing is drawn that is not kept
        for row in range(4):
            n = before[row, 0]
            assert (numbers[row, 1 : 1 + n] == before[row, 1 : 1 + n]).all()
        assert answers.setdefault((one, other), smaller) == smaller
        assert answers.get((other, one), 1 - smaller) == 1 - smaller
        position, before = moved, numbers.copy()
    # All answers fit one order, that of the numbers as far as they are known.
    sizes = [value(row, width) for row in numbers]
    for (one, other), smaller in answers.items():
        (a, m), (b, n) = sizes[one], sizes[other]
        assert smaller == (a << max(n - m, 0) < b << max(m - n, 0))


def test_numbers_that_agree_in_every_digit_are_not_told_apart():
    numbers = new_numbers(0, 8, (12345, 12345))
    assert is_smaller(Digits(SeededWords(0).take(1), 8, numbers), 0, 0, 1) == (UNDECIDED, 0)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 24, 53])
def test_leading_bits_are_those_that_are_known_and_then_new_ones(n):
    words, constant = SeededWords(1).take(4), int.from_bytes(b"0123456789abcdef" * 2, "big")
    numbers = new_numbers(0, 8, (constant,))
    assert leading_bits(Digits(words, 8, numbers), 5, 0, n) == (constant >> (CAPACITY - n), 5)
    numbers[0, 0] = 2  # the digits "0" and "1"
    found, position = leading_bits(Digits(words, 8, numbers), 0, 0, n)
    assert position == max(n - 16, 0)
    known = int.from_bytes(b"01", "big")
    assert found >> max(n - 16, 0) == known >> max(16 - n, 0)
