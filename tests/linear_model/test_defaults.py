"""Automatic settings follow the noise level, which is public."""

from __future__ import annotations

import functools
import itertools
import operator

import numpy as np
import pytest

from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD
from skdpnoise.accounting.budget import HALF
from skdpnoise.kernels import LOSSES
from skdpnoise.linear_model._budget import split_budget
from skdpnoise.linear_model._records import Settings
from skdpnoise.linear_model._tuned import SHARES, choose_defaults, scaling_share
from skdpnoise.privacy import PrivacyGuarantee
from tests.linear_model._public import public_schema

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_more_noise_means_fewer_passes_and_a_smaller_clip(loss):
    chosen = [choose_defaults(level, loss) for level in np.geomspace(1e-6, 10.0, 30)]
    for less, more in itertools.pairwise(chosen):
        assert more.n_passes <= less.n_passes
        assert more.clip <= less.clip
        assert more.relaxation <= less.relaxation
    assert chosen[0].n_passes == 20
    assert chosen[-1].n_passes == 1


def test_public_bounds_leave_more_for_the_model_and_noise_that_drowns_columns_less():
    assert SHARES.scaling * HALF < scaling_share(0.0)
    shares = [scaling_share(level) for level in (0.0, 0.005, 0.015, 0.03, 1.0)]
    assert shares == sorted(shares)
    assert shares[0] == shares[1] == SHARES.scaling
    assert shares[-1] == SHARES.most_scaling


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_shares_make_the_whole_whatever_the_number_of_records(adjacency):
    open_bounds = np.tile([[-np.inf], [np.inf]], 4)
    settings = Settings.of(DPCoordinateDescentRegressor())
    for delta in (0.0, 1e-6):
        guarantee = PrivacyGuarantee(1.0, delta, adjacency)
        schema = public_schema(open_bounds, open_bounds[:, :1])
        budget = split_budget(settings, 1, schema, guarantee)
        for n_samples in (50.0, 500.0, 1e6):
            shares = budget.for_records(n_samples)
            parts = [shares.search, shares.features, shares.model]
            if shares.counting:
                parts.append(shares.total.share(shares.counting))
            total = functools.reduce(operator.add, parts)
            assert total.delta(1.0) <= delta
            assert total.epsilon(delta) > 0.999


@pytest.mark.parametrize(
    ("Estimator", "descends"),
    [
        (DPCoordinateDescentRegressor, {"solver": "gradient"}),
        (DPLogisticCD, {"solver": "coordinate"}),
    ],
)
def test_settings_depend_on_the_shape_of_the_data_only(Estimator, descends):
    rng = np.random.default_rng(0)
    runs = []
    for scale in (1.0, 1e5):
        X = scale * rng.standard_cauchy(size=(4000, 4))
        model = Estimator(feature_bounds=(-1.0, 1.0), random_state=0, **descends)
        model.fit(X, X[:, 0] > 0)
        releases = {r.label: r for r in model.privacy_.releases}
        runs.append((model.n_passes_, releases["gradients"].scale))
    assert runs[0] == runs[1]


@pytest.mark.usefixtures("the_same_words")
def test_settings_given_are_taken():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    model = DPLogisticCD(n_passes=7, clip=0.25, budget_growth=1.0, feature_bounds=(-3, 3))
    gradients = model.fit(X, X[:, 0] > 0).privacy_.releases[-2]
    assert gradients.n_releases == model.n_passes_ == 7
    double = model.set_params(clip=0.5).fit(X, X[:, 0] > 0).privacy_.releases[-2]
    assert double.scale[0] == pytest.approx(2.0 * gradients.scale[0])
