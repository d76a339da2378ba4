"""Bins of equal mass, and maps to quantiles."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdpnoise import DPKBinsDiscretizer, DPQuantileTransformer
from tests._cases import each_value
from tests.contracts._register import Forbidden

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

rng = np.random.default_rng(0)
X = np.column_stack([rng.exponential(3.0, 20_000), rng.normal(-1e6, 10.0, 20_000)])


@each_value(1)
@pytest.mark.parametrize("n_bins", [2, 5, 16])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_bins_hold_about_as_many_records_each(n_bins, adjacency):
    bins = DPKBinsDiscretizer(n_bins, 2.0, adjacency=adjacency, random_state=0).fit(X)
    shares = bins.transform(X).mean(axis=0).reshape(2, n_bins)
    assert np.abs(shares - 1.0 / n_bins).max() < 0.03
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    numbers = DPKBinsDiscretizer(
        n_bins, 2.0, adjacency=adjacency, encode="ordinal", random_state=0
    ).fit_transform(X)
    encoded = bins.transform(X).reshape(len(X), 2, n_bins)
    np.testing.assert_array_equal(numbers, encoded.argmax(axis=2))


def test_the_number_of_columns_hangs_on_no_record():
    frequent = np.where(rng.random(20_000) < 0.9, 0.0, X[:, 0])[:, np.newaxis]
    bins = DPKBinsDiscretizer(6, random_state=0).fit(frequent)
    assert bins.transform(frequent).shape == (20_000, 6)
    assert len(bins.get_feature_names_out()) == 6
    np.testing.assert_array_equal(bins.transform(frequent).sum(axis=1), 1.0)


def test_bins_of_equal_width_between_public_bounds_cost_nothing():
    bins = DPKBinsDiscretizer(
        4, strategy="uniform", feature_bounds=([0.0, -2e6], [8.0, 0.0]), ledger=Forbidden()
    ).fit(X)
    assert bins.bin_edges_[0].tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert not bins.privacy_.releases
    with pytest.raises(ValueError, match=r"'feature_bounds'.*strategy='quantile'"):
        DPKBinsDiscretizer(strategy="uniform", ledger=Forbidden()).fit(X)


@pytest.mark.parametrize("encode", ["onehot-dense", "ordinal"])
def test_the_middle_of_a_bin_comes_back(encode):
    bins = DPKBinsDiscretizer(4, encode=encode, random_state=0).fit(X)
    back = bins.inverse_transform(bins.transform(X))
    for k, edges in enumerate(bins.bin_edges_):
        place = np.searchsorted(edges[1:-1], X[:, k], side="right")
        np.testing.assert_allclose(back[:, k], 0.5 * (edges[:-1] + edges[1:])[place])


@pytest.mark.parametrize("law", ["uniform", "normal"])
def test_quantiles_are_spread_as_asked_for(law):
    transformer = DPQuantileTransformer(epsilon=2.0, output_distribution=law, random_state=0)
    found = transformer.fit_transform(X)
    wanted = np.quantile(found, [0.1, 0.5, 0.9], axis=0)
    exact = [0.1, 0.5, 0.9] if law == "uniform" else [-1.2816, 0.0, 1.2816]
    assert np.abs(wanted - np.array(exact)[:, np.newaxis]).max() < 0.1
    public = transformer.public_output_
    assert (found >= public.low).all()
    assert (found <= public.high).all()
    inner = (np.quantile(X, 0.05, axis=0) < X) & (np.quantile(X, 0.95, axis=0) > X)
    back = transformer.inverse_transform(found)
    assert np.abs(back - X)[inner].max() < 1.0


@pytest.mark.parametrize("make", [DPKBinsDiscretizer, DPQuantileTransformer])
def test_frames_keep_their_names_and_public_output_its_bounds(make):
    frame = pd.DataFrame(X, columns=["a", "b"])
    fitted = make(random_state=0).set_output(transform="pandas").fit(frame)
    found = fitted.transform(frame)
    assert list(found.columns) == fitted.get_feature_names_out().tolist()
    public = fitted.public_output_
    assert (found.to_numpy() >= public.low).all()
    assert (found.to_numpy() <= public.high).all()
    for group in public.column_groups:
        np.testing.assert_array_equal(found.to_numpy()[:, list(group)].sum(axis=1), 1.0)
