"""One record of its class says all that compositions know of an estimator."""

import pytest
from sklearn.linear_model import Ridge

from skdpnoise import DPOneHotEncoder, DPOrdinalEncoder, DPRidge, DPStandardScaler
from skdpnoise.base.tags import PrivateTags, tags_of
from skdpnoise.neural_network import DPMLPClassifier, DPNeuralRegressor
from skdpnoise.preprocessing import DPTableVectorizer

COUNTS = {"reads_labels": True, "normal_noise": "iid_gaussian"}
GIVEN = [["a", "b"]]


@pytest.mark.parametrize(
    ("estimator", "tags"),
    [
        (Ridge(), {}),
        (DPRidge(), {}),
        (DPStandardScaler(), {}),
        (DPOneHotEncoder(), {**COUNTS, "reveals_by_chance": True}),
        (DPOneHotEncoder(categories=GIVEN), COUNTS),
        (DPOrdinalEncoder(categories=[*GIVEN, "auto"]), {**COUNTS, "reveals_by_chance": True}),
        (DPOrdinalEncoder(categories={"a": GIVEN[0]}), {**COUNTS, "reveals_by_chance": True}),
        (DPTableVectorizer(), {"reads_labels": True, "reveals_by_chance": True, "weight": 0.25}),
        (DPTableVectorizer(delta=0.0), {"reads_labels": True, "weight": 0.25}),
        (DPMLPClassifier(), {"samples_records": True, "declares": ("module",)}),
        (DPNeuralRegressor(), {"samples_records": True, "declares": ("module",)}),
    ],
)
def test_the_tags_of_an_estimator_follow_from_its_class_and_its_parameters(estimator, tags):
    assert tags_of(estimator) == PrivateTags(**tags)


def test_an_object_cannot_change_its_tags():
    encoder = DPOneHotEncoder()
    encoder.__private_tags__ = PrivateTags
    assert tags_of(encoder).reveals_by_chance
