"""Losses as text and back, exactly: what a ledger writes down must compose as tightly later."""

from __future__ import annotations

import dataclasses
import json
from functools import lru_cache
from typing import Any

import numpy as np

from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyLoss, PureLoss
from skdpnoise.privacy.curves import LossCurve, NormalShift, Promised, RandomisedResponse
from skdpnoise.privacy.repetition.curve import Composed, Repetition
from skdpnoise.privacy.repetition.laws import PoissonRepetitions, TruncatedNegativeBinomial
from skdpnoise.privacy.sampled import PoissonSampled

__all__ = ["decode_loss", "encode_loss"]

_UNKNOWN = "which this version of skdpnoise does not know: install the one that wrote it"

# Curves that are no noise family, by the name they are stored under: a name never changes.
CURVES: dict[str, type] = {
    "randomised_response": RandomisedResponse,
    "normal_shift": NormalShift,
    "repetition": Repetition,
    "composed_runs": Composed,
    "truncated_negative_binomial": TruncatedNegativeBinomial,
    "poisson_repetitions": PoissonRepetitions,
    "poisson_sampled": PoissonSampled,
    "promised": Promised,
}


def encode_loss(loss: PrivacyLoss) -> str:
    """Return a loss as JSON text, to the last bit.

    Parameters
    ----------
    loss : PureLoss, GaussianLoss or NumericLoss
        Its curves must be noise families, or others that this module knows.

    Returns
    -------
    str

    Raises
    ------
    TypeError
        If the loss, or one of its curves, is of an unknown kind.

    Examples
    --------
    >>> encode_loss(PureLoss(0.1))
    '{"kind": "pure", "epsilon": 0.1}'
    """
    return json.dumps(_loss_to_json(loss))


@lru_cache(maxsize=4096)
def decode_loss(text: str) -> PrivacyLoss:
    """Return the loss that a text stands for.

    Parameters
    ----------
    text : str
        Of :func:`encode_loss`.

    Returns
    -------
    PrivacyLoss

    Raises
    ------
    ValueError
        If the text is no loss, or one of a kind that this version does not know.

    Examples
    --------
    >>> decode_loss(encode_loss(GaussianLoss(0.1) + PureLoss(0.3))).terms
    ((RandomisedResponse(), 0.3, 1), (NormalShift(), 0.1..., 1))
    """
    return _loss_from_json(json.loads(text))


def _loss_to_json(loss: object) -> dict[str, Any]:
    if isinstance(loss, PureLoss):
        return {"kind": "pure", "epsilon": loss.pure_epsilon}
    if isinstance(loss, GaussianLoss):
        return {"kind": "gaussian", "mu": loss.mu}
    if isinstance(loss, NumericLoss):
        return {"kind": "numeric", "terms": _terms_to_json(loss.terms)}
    raise TypeError(
        "The 'loss' parameter of encode_loss must be a PureLoss, a GaussianLoss or a NumericLoss. "
        f"Got {type(loss).__name__} instead; loss.numeric() may be one."
    )


def _loss_from_json(stored: dict[str, Any]) -> PrivacyLoss:
    kind = stored.get("kind")
    if kind == "pure":
        return PureLoss(stored["epsilon"])
    if kind == "gaussian":
        return GaussianLoss(stored["mu"])
    if kind == "numeric":
        terms = tuple(_terms_from_json(stored["terms"]))
        loss = NumericLoss(terms)
        object.__setattr__(loss, "terms", terms)  # as they were: merged, and rounded up once
        return loss
    raise ValueError(f"The stored loss is of the kind {kind!r}, {_UNKNOWN}.")


def _terms_to_json(terms: Any) -> list[list[Any]]:
    """Return terms grouped by curve: ``[curve, shifts, counts]``."""
    grouped: dict[LossCurve, tuple[list[float], list[int]]] = {}
    for curve, shift, count in terms:
        shifts, counts = grouped.setdefault(curve, ([], []))
        shifts.append(shift)
        counts.append(count)
    return [[_to_json(curve), *columns] for curve, columns in grouped.items()]


def _terms_from_json(stored: list[list[Any]]) -> list[tuple[LossCurve, float, int]]:
    terms = []
    for curve, shifts, counts in stored:
        read = _from_json(curve)
        terms += [(read, shift, count) for shift, count in zip(shifts, counts, strict=True)]
    return terms


def _to_json(value: Any) -> Any:
    """Return a field of a curve, or a curve: its name and what differs from the defaults."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, PureLoss | GaussianLoss | NumericLoss):
        return _loss_to_json(value)
    names = [field.name for field in dataclasses.fields(value) if field.init]
    fields = {name: _to_json(getattr(value, name)) for name in names}
    kind: Any = type(value)
    return {"curve": _curve_name(kind), **fields}


def _from_json(stored: Any) -> Any:
    if isinstance(stored, list):
        return tuple(_from_json(item) for item in stored)
    if not isinstance(stored, dict):
        return stored
    if "kind" in stored:
        return _loss_from_json(stored)
    known = _curves().get(stored["curve"])
    if known is None:
        had = f"The stored loss has the curve {stored['curve']!r}"
        raise ValueError(f"{had}, {_UNKNOWN}, or register the family.")
    return known(**{name: _from_json(value) for name, value in stored.items() if name != "curve"})


def _curves() -> dict[str, type]:
    return {**CURVES, **{f"noise:{name}": type(get_noise(name)) for name in noise_names()}}


@lru_cache(maxsize=256)
def _curve_name(kind: type) -> str:
    for name, known in _curves().items():
        if known is kind and dataclasses.is_dataclass(kind):
            return name
    raise TypeError(
        f"A ledger cannot write down a loss with the curve {kind.__name__}: it knows the noise "
        f"families ({', '.join(noise_names())}) and {', '.join(CURVES)}. Register the curve's "
        "class as a noise family, or charge a bound such as PureLoss or GaussianLoss."
    )
