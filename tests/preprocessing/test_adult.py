"""A private pipeline on mixed columns: Adult, with public categories, reaches the project's bar."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdpnoise import BoundsClipper, DPLogisticCD, DPRobustScaler, total_guarantee
from skdpnoise.datasets import ADULT_CATEGORIES, fetch_adult

# At a tenth of ε a column that is 0 for 95 % of the records may not stand out.
pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

NUMERIC = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]


def recipe(epsilon, seed):
    """A tenth of ε for the scaler; scaled numbers clipped to ±3, indicators between 0 and 1."""
    encoder = OneHotEncoder(
        categories=[list(known) for known in ADULT_CATEGORIES.values()],
        handle_unknown="ignore",
        sparse_output=False,
    )
    scaler = make_pipeline(
        DPRobustScaler(0.1 * epsilon, random_state=seed), BoundsClipper((-3.0, 3.0))
    )
    columns = ColumnTransformer(
        [("numbers", scaler, NUMERIC), ("kinds", encoder, list(ADULT_CATEGORIES))]
    )
    n_kinds = sum(map(len, ADULT_CATEGORIES.values()))
    low, high = np.r_[np.full(6, -3.0), np.zeros(n_kinds)], np.r_[np.full(6, 3.0), np.ones(n_kinds)]
    model = DPLogisticCD(0.9 * epsilon, feature_bounds=(low, high), random_state=seed)
    return make_pipeline(columns, model)


@pytest.mark.parametrize("seed", range(3))
def test_adult_with_public_categories(real_data, seed):
    parts = [
        fetch_adult(subset=subset, data_home=real_data, as_frame=True, return_X_y=True)
        for subset in ("train", "test")
    ]
    pipeline = recipe(1.0, seed).fit(*parts[0])
    assert pipeline.score(*parts[1]) >= 0.82
    total = total_guarantee(pipeline)
    assert total.basic.epsilon == pytest.approx(1.0)
    assert total.epsilon < 0.95
    assert [report.estimator for _, report in total.steps] == ["DPRobustScaler", "DPLogisticCD"]
    assert "columntransformer__kinds" in total.free
