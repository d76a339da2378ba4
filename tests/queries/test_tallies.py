"""What counts and histograms count, and what they refuse to."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.privacy import PrivacyGuarantee, PureLoss
from skdpnoise.queries import noisy_histogram, private_count, private_histogram

# The default noise is compared over all families, which takes seconds.
LAPLACE = {"noise": "inid_laplace"}


@pytest.mark.usefixtures("the_same_words")
def test_a_histogram_counts_public_bins_and_categories():
    guarantee = PrivacyGuarantee(1.0)
    values = [0.0, 0.5, 1.0, 2.0, 3.0, -1.0, 99.0]
    given = {"random_state": 0, **LAPLACE}
    found = private_histogram(values, guarantee, bins=[0, 1, 3], **given)
    expected, mechanism = noisy_histogram([2, 3], guarantee, **given)
    assert (found.value == expected).all()
    assert (found.standard_error == mechanism.standard_deviation).all()
    edges = [-np.inf, 0.0, np.inf]
    everything = private_histogram(values, guarantee, bins=edges, **given)
    assert (everything.value == noisy_histogram([1, 6], guarantee, **given)[0]).all()
    names = private_histogram(["b", "a", "b", "z"], guarantee, categories=["a", "b"], **given)
    assert (names.value == noisy_histogram([1, 2], guarantee, **given)[0]).all()
    nobody = private_histogram(
        [], PureLoss(1.0), bins=[0, 1, 2], adjacency="add_remove", noise="inid_laplace"
    )
    assert nobody.mechanism.scale == pytest.approx([1.0, 1.0])


def test_what_is_no_count_and_no_mask_is_refused():
    guarantee = PrivacyGuarantee(1.0)
    for records in (3.0, [1, 2], "3", [[True]]):
        with pytest.raises(TypeError, match="'records' parameter of private_count"):
            private_count(records, guarantee)
    with pytest.raises(ValueError, match="'records' parameter of private_count"):
        private_count(-3, guarantee)


def test_bins_and_categories_that_cannot_be_counted_are_refused():
    guarantee = PrivacyGuarantee(1.0)
    with pytest.raises(ValueError, match="Exactly one of the 'bins' and 'categories'"):
        private_histogram([1.0], guarantee)
    with pytest.raises(ValueError, match=r"'bins' parameter.*numpy\.linspace"):
        private_histogram([1.0], guarantee, bins=10)
    with pytest.raises(ValueError, match=r"'bins' parameter.*increase"):
        private_histogram([1.0], guarantee, bins=[0, 1, 1])
    with pytest.raises(ValueError, match=r"'values' parameter of private_histogram.*NaN"):
        private_histogram([np.nan], guarantee, bins=[0, 1])
    with pytest.raises(ValueError, match=r"'categories' parameter.*distinct"):
        private_histogram(["a"], guarantee, categories=["a", "a"])
    with pytest.raises(ValueError, match=r"'values' parameter.*one-dimensional"):
        private_histogram([["a"]], guarantee, categories=["a"])
