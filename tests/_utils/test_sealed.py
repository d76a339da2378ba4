"""Arrays of what was checked cannot be written to, whatever is done to the records."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from skdpnoise.mechanisms import calibrate, calibrate_second_moments, correlated_sum
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee
from skdpnoise.sensitivity import RowBounds, SensitivityProfile
from tests._cases import each_value

PROFILE = SensitivityProfile([1.0, 4.0])
RECORDS = [
    PROFILE,
    RowBounds(2, 1.0, [0.5, 1.0]),
    calibrate("inid_gaussian", PROFILE, GaussianLoss(0.5)),
    calibrate_second_moments("inid_gaussian", RowBounds(2, 1.0), PrivacyGuarantee(1.0, 1e-6)),
    correlated_sum([1.0, 1.0, 4.0], PrivacyGuarantee(1.0, 1e-6, "add_remove")),
]
WAYS = {
    "itself": lambda record: record,
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda record: pickle.loads(pickle.dumps(record)),
    "replace": dataclasses.replace,
    "deep copy of a pickle": lambda record: copy.deepcopy(pickle.loads(pickle.dumps(record))),
}


def arrays(record):
    """All arrays of a record, and of the records within it."""
    found = []
    for one in dataclasses.fields(record):
        value = getattr(record, one.name)
        if dataclasses.is_dataclass(value):
            found += arrays(value)
        elif isinstance(value, np.ndarray):
            found.append(value)
    return found


@each_value(2)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
@pytest.mark.parametrize("way", WAYS)
def test_no_array_of_a_record_or_of_its_copies_can_be_written_to(record, way):
    made = WAYS[way](record)
    assert type(made) is type(record)
    assert arrays(made)
    for array, original in zip(arrays(made), arrays(record), strict=True):
        np.testing.assert_array_equal(array, original)
        with pytest.raises(ValueError, match="read-only"):
            array *= 1e-9
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
        base = array.base
        while isinstance(base, np.ndarray):
            assert not base.flags.writeable
            base = base.base
        assert isinstance(base, bytes)


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_a_mechanism_charges_and_draws_as_the_mechanism(way):
    mechanism = RECORDS[2]
    made = WAYS[way](mechanism)
    assert made.privacy_loss() == mechanism.privacy_loss()
    assert made.own_loss() == mechanism.own_loss()
    released = [one.release([1.0, 2.0], random_state=0) for one in (made, mechanism)]
    np.testing.assert_array_equal(*released)
