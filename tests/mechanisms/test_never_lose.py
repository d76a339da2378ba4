"""The choice "search" never loses to a family, nor "inid" to "iid", nor a joint bound to the box.

``python -m benchmarks never_lose`` does the same with all families and up to 10,000 coordinates.
"""

from __future__ import annotations

import pytest

from benchmarks.never_lose import SAME, check, random_case
from skdpnoise.mechanisms import calibrate
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import quick


def error(noise, sensitivity, guarantee):
    return calibrate(noise, sensitivity, guarantee).expected_error()


# They have each shape of a profile, joint bounds of one norm and of both, and either guarantee.
FEW = [*range(10, 15)]
OTHERS = [seed for seed in range(50) if seed not in FEW]


@quick("laplace-few")
@pytest.mark.parametrize(
    ("family", "seeds"),
    [("laplace", FEW), ("laplace", OTHERS), ("gaussian", FEW + OTHERS)],
    ids=["laplace-few", "laplace-others", "gaussian"],
)
def test_inid_with_joint_bounds_never_loses_to_iid_nor_to_the_box(family, seeds):
    for seed in seeds:
        sensitivity, guarantee = random_case(seed, most=2000)
        if family == "gaussian" and guarantee.delta == 0.0:
            continue
        best = error(f"inid_{family}", sensitivity, guarantee)
        box = SensitivityProfile(sensitivity.per_coordinate)
        others = {
            "iid": error(f"iid_{family}", sensitivity, guarantee),
            "spr": error(f"spr_{family}", sensitivity, guarantee),
            "box": error(f"inid_{family}", box, guarantee),
        }
        assert best <= min(others.values()) * SAME, (seed, best, others)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 5, 10])
def test_a_search_never_loses_to_a_single_family_nor_to_auto(seed):
    assert check(seed, most=2)["lost"] == []
