"""What all estimators share: checks of data and bounds, and how a fit is paid for.

Messages never show a value of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import validate_data

from skdpnoise.compose._advice import advise, advise_on_bought_number, advise_on_public_number
from skdpnoise.compose._surroundings import (
    PrivacyWarning,
    warn_if_cloned_to_be_scored,
    warn_of_company,
)
from skdpnoise.ledger import Account
from skdpnoise.mechanisms.groups import GroupedRows, group_codes
from skdpnoise.privacy import PrivacyGuarantee

__all__ = [
    "PrivacyWarning",
    "PrivateFitMixin",
    "as_bounds",
    "check_range",
    "check_unpaid_arguments",
    "validated",
]

_LARGEST = 1e100  # squares and sums of more rows than fit in memory stay finite
_SMALLEST = np.finfo(np.float64).tiny
# scikit-learn's messages that quote the data, and what is said instead
_QUOTING = {
    "could not convert": (
        "{name} needs numbers, got text that is not a number. Encode categories first, with public "
        "categories: for example OneHotEncoder(categories=...)."
    ),
    "Complex data not supported": (
        "Complex data not supported by {name}. Give the real and the imaginary part as two columns."
    ),
    "Expected 2D array, got": (
        "Expected 2D array, got an array with fewer dimensions in {name}. Reshape your data with "
        "X.reshape(-1, 1) if it has one feature, or X.reshape(1, -1) if it is one sample."
    ),
}


class PrivateFitMixin:
    """Parameters and conduct of every estimator whose ``fit`` spends privacy."""

    epsilon: float
    delta: float
    adjacency: Any
    rows_per_group: int
    ledger: Any
    _validate_params: Callable[[], None]  # of scikit-learn's base class
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rows_per_group": [Interval(Integral, 1, None, closed="left")],
        "ledger": [None, HasMethods("charge")],
    }

    def __sklearn_clone__(self) -> Any:
        """Return an unfitted copy with the same ledger, not with a copy of it."""
        warn_if_cloned_to_be_scored(self)
        copy = BaseEstimator.__sklearn_clone__(self)
        copy.ledger = self.ledger
        return copy

    @contextmanager
    def _private_fit(self, groups: Any, unpaid: dict[str, Any]) -> Iterator[Account]:
        """Check the parameters; give the account of the fit.

        Whatever is raised within leaves the estimator as it was, with an earlier fit intact, and
        says what stays spent.
        """
        warn_of_company(self)
        check_unpaid_arguments(self, unpaid)
        self._validate_params()
        if groups is None and self.rows_per_group != 1:
            raise ValueError(
                f"The 'rows_per_group' parameter of {type(self).__name__} must be 1 where fit gets "
                f"no 'groups'. Got {self.rows_per_group!r} instead. Pass groups= to fit; in a "
                "pipeline or a search, request them by set_fit_request(groups=True)."
            )
        account = Account(
            PrivacyGuarantee(self.epsilon, self.delta, self.adjacency),
            rows_per_group=None if groups is None else int(self.rows_per_group),
            ledger=self.ledger,
            estimator=self,
        )
        advise(self)
        before = dict(vars(self))
        try:
            with account.noted():
                yield account
                advise_on_bought_number(self, account.n_records, grouped=groups is not None)
        except BaseException:
            _restore(self, before)
            raise

    def _grouped(self, groups: Any, n_rows: int) -> GroupedRows:
        """Check the groups; return which rows belong together."""
        if groups is None:
            advise_on_public_number(self, n_rows)
            return GroupedRows(None, 1, n_rows)
        name = type(self).__name__
        codes = group_codes(f"{name}.fit", groups, n_rows)
        rows = GroupedRows(codes, int(self.rows_per_group), n_rows)
        if rows.n_kept < 2:
            raise ValueError(
                f"{name}.fit needs 2 rows at least, but rows_per_group={self.rows_per_group} keeps "
                f"{rows.n_kept} of these 'groups'. Give data of more groups, or keep more rows."
            )
        advise_on_public_number(self, n_rows, codes)
        return rows


def _restore(estimator: Any, before: dict[str, Any]) -> None:
    """Undo what a fit that failed has set, but for what callbacks need to end."""
    now = vars(estimator)
    for name in [name for name in now if "callback" not in name]:
        del now[name]
    now.update({name: value for name, value in before.items() if "callback" not in name})


def check_unpaid_arguments(estimator: Any, arguments: dict[str, Any]) -> None:
    """Refuse what fit cannot take, sample weights above all."""
    if "sample_weight" in arguments:
        raise TypeError(
            f"{type(estimator).__name__}.fit does not support 'sample_weight': a record's weight "
            "multiplies what it can change, and no sensitivity with weights is proven yet. Fit "
            "without weights."
        )
    if arguments:
        names = ", ".join(repr(name) for name in arguments)
        raise TypeError(f"{type(estimator).__name__}.fit got unexpected arguments: {names}.")


def validated(estimator: Any, *data: Any, **options: Any) -> Any:
    """Call scikit-learn's ``validate_data`` and take values of the data out of its messages."""
    problem: ValueError | TypeError
    try:
        return validate_data(estimator, *data, **options)
    except (ValueError, TypeError) as error:
        text = next((new for old, new in _QUOTING.items() if old in str(error)), None)
        if text is None:
            raise
        problem = type(error)(text.format(name=type(estimator).__name__))
    raise problem  # outside the handler, so that the quoting error is not attached to it


def check_range(values: np.ndarray, name: str, estimator: Any) -> None:
    """Refuse values whose sums would overflow, or that have lost their digits."""
    for column in np.atleast_2d(values.T):  # one at a time: no temporary of the size of X
        magnitude = np.abs(column)
        if float(magnitude.max()) > _LARGEST:
            raise ValueError(
                f"Input {name} of {type(estimator).__name__} contains values beyond "
                f"{_LARGEST:g} in magnitude, which sums would not survive. Rescale {name}."
            )
        if np.any((magnitude > 0) & (magnitude < _smallest(values.dtype))):
            raise ValueError(
                f"Input {name} of {type(estimator).__name__} contains subnormal values (not zero, "
                f"but below {_smallest(values.dtype):.3g}), which have lost their digits. Rescale "
                f"{name}, or set them to zero."
            )


def _smallest(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).tiny)


def _shape(bounds: Any) -> str:
    try:
        return f"shapes {[np.shape(end) for end in bounds]}"
    except (TypeError, ValueError):
        return f"an object of type {type(bounds).__name__}"


def as_bounds(bounds: Any, n_columns: int, name: str, estimator: Any) -> np.ndarray:
    """Return (low, high), of shape (2, n_columns), infinite where no bound is given."""
    if bounds is None:
        return np.tile([[-np.inf], [np.inf]], n_columns)
    owner = type(estimator).__name__
    expected = (
        f"The {name!r} parameter of {owner} must be a pair (low, high) of numbers or of arrays of "
        f"shape ({n_columns},), public and with low < high"
    )
    try:
        low, high = bounds
        low = np.broadcast_to(np.asarray(low, dtype=np.float64), n_columns)
        high = np.broadcast_to(np.asarray(high, dtype=np.float64), n_columns)
    except (TypeError, ValueError):
        raise ValueError(f"{expected}. Got {_shape(bounds)}.") from None
    if np.isnan(low).any() or np.isnan(high).any():
        raise ValueError(f"{expected}. Got NaN; use -inf and inf where there is no public bound.")
    if not (low < high).all():
        column = int(np.argmin(low < high))
        raise ValueError(
            f"{expected}. Got low={low[column]:g}, high={high[column]:g} in column {column}: check "
            "whether they are swapped."
        )
    if (
        np.abs(np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])).max(initial=0.0)
        > _LARGEST
        or (high - low).min() < _SMALLEST / 1e-16
    ):
        raise ValueError(f"{expected}, within ±{_LARGEST:g} and not closer than 1e-290.")
    return np.stack([low, high])
