"""One base for all that is released and charged for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from skdpnoise._utils.sealed import Sealed
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss
from skdpnoise.sensitivity import SensitivityProfile


class Mechanism(Sealed, ABC):
    """A release that states its own cost, so that noise and charge cannot disagree.

    Noise on vectors, on matrices and on sums over samples, and private choices, inherit from it.
    An :class:`~skdpnoise.ledger.Account` charges for the object that samples.

    Examples
    --------
    >>> from skdpnoise.mechanisms import AdditiveMechanism, ExponentialMechanism
    >>> issubclass(AdditiveMechanism, Mechanism), issubclass(ExponentialMechanism, Mechanism)
    (True, True)
    """

    __slots__ = ()

    @property
    @abstractmethod
    def noise(self) -> str:
        """Name of the noise."""

    @property
    @abstractmethod
    def sensitivity(self) -> SensitivityProfile | float:
        """How far one record can move one release; a number if all values move alike."""

    @property
    @abstractmethod
    def scale(self) -> Any:
        """Noise scale, a number or an array."""

    @property
    @abstractmethod
    def grid_size(self) -> Any:
        """Size of one integer step, a number or an array."""

    @property
    def n_releases(self) -> int:
        """Number of releases that are charged for."""
        return 1

    @abstractmethod
    def privacy_loss(self) -> PrivacyLoss:
        """Return the cost of all ``n_releases`` releases together."""

    def own_loss(self) -> PrivacyLoss:
        """Return the loss of the noise itself, at most :meth:`privacy_loss`."""
        return self.privacy_loss()

    @property
    def recipe(self) -> Recipe | None:
        """How it was calibrated to a guarantee; None if it was not."""
        return None

    @property
    def counted(self) -> tuple[str, int]:
        """Kind and number of the things in one release, for reports."""
        profile = self.sensitivity
        return "numbers", profile.n_coordinates if isinstance(profile, SensitivityProfile) else 1


class Recipe(NamedTuple):
    """A guarantee, and what makes a mechanism for any."""

    guarantee: PrivacyGuarantee
    make: Callable[[PrivacyGuarantee], Mechanism]

    def loss(self, guarantee: PrivacyGuarantee) -> PrivacyLoss:
        """Return what the noise discloses of the mechanism for another guarantee."""
        return self.make(guarantee).own_loss()
