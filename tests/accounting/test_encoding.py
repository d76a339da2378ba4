"""Losses are written down to the last bit, and what is unknown is said so."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

import numpy as np
import pytest

from skdpnoise.accounting.encoding import CURVES
from skdpnoise.ledger import decode_loss, encode_loss
from skdpnoise.mechanisms import repeated_loss
from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import (
    GaussianLoss,
    NormalShift,
    NumericLoss,
    PoissonRepetitions,
    PureLoss,
    RandomisedResponse,
    TruncatedNegativeBinomial,
)
from tests._cases import each_value

NUMBERS = (0.1, 1.0 / 3.0, 5e-324, 1.7e308, np.nextafter(1.0, 2.0), 0.0)


@each_value(1)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("kind", [PureLoss, GaussianLoss])
def test_closed_forms_come_back_exactly(kind, number):
    assert decode_loss(encode_loss(kind(number))) == kind(number)


@pytest.mark.parametrize("name", noise_names())
def test_every_noise_family_comes_back_exactly(name):
    family = get_noise(name)
    shaped = [family]
    if fields(family):
        shaped += [get_noise(name, shape) for shape in (2.0, 1.3)]
        if family.shape_range is not None:
            low, high = family.shape_range
            shaped.append(get_noise(name, low + (high - low) / 7.0))
    for noise in shaped:
        loss = NumericLoss(((noise, 1.0 / 3.0, 7), (noise, 3.0, 1)))
        again = decode_loss(encode_loss(loss))
        assert again == loss
        assert again.delta(0.3) == loss.delta(0.3)


def test_a_mixture_does_not_drift_however_often_it_is_written_down():
    loss = PureLoss(0.1) + GaussianLoss(0.3) + PureLoss(0.2).numeric().compose(5)
    text = encode_loss(loss)
    for _ in range(5):
        again = decode_loss(text)
        assert again == loss
        text = encode_loss(again)


def test_no_loss_at_all_comes_back():
    assert decode_loss(encode_loss(NumericLoss(()))) == NumericLoss(())


def test_numbers_of_numpy_are_numbers():
    loss = NumericLoss(((get_noise("staircase", np.float64(2.0), np.float32(0.5)), 1.0, 2),))
    assert decode_loss(encode_loss(loss)).terms == loss.terms


def test_names_of_stored_curves_are_those_that_ledgers_hold_already():
    # A renamed curve would make every kept ledger unreadable.
    assert {"randomised_response": RandomisedResponse, "normal_shift": NormalShift}.items() <= (
        CURVES.items()
    )
    text = '{"kind": "numeric", "terms": [[{"curve": "noise:laplace"}, [0.5], [3]]]}'
    assert decode_loss(text).terms == ((get_noise("laplace"), 0.5, 3),)
    assert encode_loss(decode_loss(text)) == text


@dataclass(frozen=True)
class Unregistered(RandomisedResponse):
    """A curve that nobody registered."""


def test_an_unknown_curve_is_refused_before_it_is_written():
    with pytest.raises(TypeError, match=r"Unregistered.*noise families .*laplace"):
        encode_loss(NumericLoss(((Unregistered(), 0.5, 1),)))


def test_a_loss_of_another_kind_is_refused():
    class Other:
        pass

    with pytest.raises(TypeError, match=r"must be a PureLoss.*Got Other instead"):
        encode_loss(Other())


@pytest.mark.parametrize(
    ("stored", "unknown"),
    [
        ({"kind": "grid_size"}, "'grid_size'"),
        ({"kind": "numeric", "terms": [[{"curve": "noise:pink"}, [1.0], [1]]]}, "'noise:pink'"),
        ({"kind": "numeric", "terms": [[{"curve": "wave"}, [1.0], [1]]]}, "'wave'"),
    ],
)
def test_what_a_newer_version_wrote_is_not_misread(stored, unknown):
    with pytest.raises(ValueError, match=f"{unknown}, which this version.*does not know"):
        decode_loss(json.dumps(stored))


@pytest.mark.slow
@pytest.mark.parametrize("law", [TruncatedNegativeBinomial(2.0, 0.05), PoissonRepetitions(10.0)])
def test_the_loss_of_a_search_comes_back_exactly(law):
    for base in (GaussianLoss(0.1), PureLoss(0.2), PureLoss(0.1) + GaussianLoss(0.1)):
        loss = repeated_loss(base, law)
        again = decode_loss(encode_loss(loss))
        assert again == loss
        assert again.delta(0.7) == loss.delta(0.7)
