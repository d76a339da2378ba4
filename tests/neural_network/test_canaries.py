"""An audit in one training: honest networks are believed, one with too little noise is caught."""

import numpy as np
import pytest

pytest.importorskip("torch")

from benchmarks.canaries import FACTOR, N_FEATURES, audited, quieter, true_epsilon

pytestmark = pytest.mark.usefixtures("the_same_words")

WIDTH = 32


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("clip_groups", ["global", "layer", "tensor"])
def test_no_claim_is_contradicted(family, clip_groups):
    settings = {"clip_groups": clip_groups, "noise": f"inid_{family}"}
    assert audited(settings, 1.0, 0, width=WIDTH)["shown"] <= 1.0


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_canaries_are_seen_where_the_claim_is_large(rate):
    settings = {"clip_groups": "global", "noise": "iid_gaussian"}
    shown = audited(settings, 20.0, 0, width=WIDTH, rate=rate)["shown"]
    assert 1.0 < shown <= 20.0


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
def test_too_little_noise_in_one_group_is_caught(family):
    group = np.arange(N_FEATURES * WIDTH)
    with quieter(group, FACTOR):
        found = audited({"clip_groups": "tensor", "noise": f"inid_{family}"}, 1.0, 0, width=WIDTH)
    # A tenth of the budget counts labels, whose noise is honest.
    assert true_epsilon(found["model"], "inner.0.weight", FACTOR) > 18.0
    assert found["shown"] > 1.0
