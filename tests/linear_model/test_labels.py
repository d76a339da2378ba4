"""Class docstrings name every release that a fit can charge for."""

import inspect

import numpy as np
import pytest

from skdpnoise import DPCoordinateDescentRegressor, DPLassoPath, DPLogisticCD
from skdpnoise.queries.searched_location import search_location

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")
N = 2000
X = np.random.default_rng(0).normal([0.0, 1e6, 5.0], [1.0, 10.0, 1.0], size=(N, 3))
SOME = ([-5.0, -np.inf, -np.inf], [5.0, np.inf, np.inf])
SETTINGS = [
    {"epsilon": 5.0, "delta": 0.0, "adjacency": "add_remove"},
    {"epsilon": 5.0, "feature_bounds": SOME, "target_bounds": (-10.0, 10.0)},
    {"epsilon": 5.0, "target_bounds": (-1e9, 1e9)},
    {"epsilon": 0.3, "feature_bounds": (-1e7, 1e7)},
]
MORE = {
    DPCoordinateDescentRegressor: [{"solver": "gradient"}, {"solver": "gram"}],
    DPLassoPath: [{}],
    DPLogisticCD: [{}],
}


@pytest.mark.slow
@pytest.mark.parametrize("Estimator", MORE)
def test_every_label_that_is_charged_occurs_in_the_docstring_of_the_class(Estimator):
    text = " ".join(inspect.getdoc(Estimator).split())
    y = X[:, 0] > 0  # labels, or numbers
    labels = set()
    for settings in SETTINGS:
        known = Estimator().get_params()
        settings = {name: value for name, value in settings.items() if name in known}
        for more in MORE[Estimator]:
            model = Estimator(random_state=0, **settings, **more).fit(X, y)
            labels |= {release.label for release in model.privacy_.releases}
    assert len(labels) >= 10
    for label in labels:
        stem = label.removesuffix(" of bounded columns")
        assert f'"{stem}"' in text, label
        if stem != label:
            assert '"of bounded columns"' in text


def test_the_search_of_a_target_names_its_releases():
    for label in ("median", "spread", "mean square", "mean"):
        assert f"*{label}*" in inspect.getmodule(search_location).__doc__
