"""δ against ε of releases."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise._utils.checks import check_array, check_type, complaint
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.ledger.checks import loss_of
from skdpnoise.plotting._display import Display, Texts
from skdpnoise.plotting._panels import Vector, report_of, style, wrong_kind
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss
from skdpnoise.sampling.words import with_caveat

_FLOOR = 1e-12  # where curves are no longer followed
_POINTS = 41
_FAR = 1e3  # beyond any ε of use: δ here is a chance of total disclosure


@shared_texts
@dataclass(kw_only=True, eq=False, repr=False)
class PrivacyLossDisplay(Display):
    r"""δ against ε, for one or several mechanisms or losses.

    .. math:: \delta(\varepsilon) = \sup_{D \sim D',\, S}
              P(M(D) \in S) - e^{\varepsilon} P(M(D') \in S)

    A mechanism is (ε, δ)-differentially private at every point on or above its curve. One that is
    ε-private falls to zero at that ε; one that may disclose everything stays above that chance.

    Parameters
    ----------
    %(displays: name)s
    epsilon : array-like of shape (n_points,)
        Where the curves are known, ascending.
    delta : array-like of shape (n_curves, n_points)
        δ of each curve there.
    names : sequence of str
        Name of each curve.
    %(displays: target)s

    Attributes
    ----------
    %(displays: ax_, figure_)s
    lines_ : list of matplotlib Line2D
        One for each curve.
    target_ : matplotlib Line2D or None
        The mark of the target.

    References
    ----------
    Balle, Barthe and Gaboardi, "Privacy amplification by subsampling", NeurIPS 2018, Theorem 1
    (this δ is the hockey-stick divergence).

    Examples
    --------
    >>> from skdpnoise.mechanisms import calibrate
    >>> from skdpnoise.sensitivity import SensitivityProfile
    >>> profile, target = SensitivityProfile([1.0, 4.0]), PrivacyGuarantee(1.0, 1e-6)
    >>> display = PrivacyLossDisplay.from_mechanisms(
    ...     {name: calibrate(name, profile, target) for name in ("inid_gaussian", "inid_laplace")},
    ...     target=target,
    ... )
    >>> [line.get_label() for line in display.lines_]
    ['inid_gaussian', 'inid_laplace']
    """

    epsilon: ArrayLike
    delta: ArrayLike
    names: Texts
    target: PrivacyGuarantee | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.delta = np.atleast_2d(self.delta)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        %(displays: ax)s
        name : str or None, default=None
            Name of the curve, if there is one; of the picture, if there are several.
        %(displays: **kwargs, Returns)s
        """
        if name is not None and len(self.names) == 1:
            name, kwargs = None, {"label": name} | kwargs
        return super().plot(ax, name=name, **kwargs)

    def _draw(self, ax: Any, /, **kwargs: Any) -> None:
        epsilon = np.asarray(self.epsilon)
        self.lines_ = [
            ax.plot(epsilon, delta, **style(i, {"label": self.names[i]} | kwargs))[0]
            for i, delta in enumerate(np.asarray(self.delta))
        ]
        ax.set(yscale="log", xlabel="ε", ylabel="δ")
        ax.set_xlim(0.0, float(epsilon[-1]))
        ax.set_ylim(_floor(self.target), 2.0)
        self.target_ = None if self.target is None else _mark(ax, self.target)
        ax.legend(loc="best")
        ax.grid(alpha=0.25)

    @classmethod
    def from_mechanism(
        cls,
        mechanism: Any,
        *,
        epsilon: ArrayLike | None = None,
        target: PrivacyGuarantee | None = None,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute and draw the curve of one mechanism or loss.

        Parameters
        ----------
        mechanism : mechanism or PrivacyLoss
            Of a mechanism, what its noise discloses is drawn (``own_loss()``, where there is one).
            What it is charged, if that is more, is ``mechanism.privacy_loss()``: give that.
        %(displays: epsilon, target, ax)s
        name : str or None, default=None
            Name of the curve; None is that of the noise, or the loss in words.
        %(displays: **kwargs, Returns)s

        Raises
        ------
        %(mechanisms: TypeError)s
        ValueError
            If an epsilon is negative or not finite.
        """
        owner = "PrivacyLossDisplay.from_mechanism"
        loss, noise = loss_of(mechanism, owner, "mechanism")
        losses = {str(noise or loss) if name is None else name: loss}
        return cls._computed(owner, losses, epsilon, target).plot(ax, **kwargs)

    @classmethod
    def from_mechanisms(
        cls,
        mechanisms: Mapping[str, Any],
        *,
        epsilon: ArrayLike | None = None,
        target: PrivacyGuarantee | None = None,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute and draw the curves of several mechanisms or losses.

        Parameters
        ----------
        mechanisms : dict of str to mechanism or PrivacyLoss
            As in `from_mechanism`, under the names to show.
        %(displays: epsilon, target, ax, name, **kwargs, Returns)s

        Raises
        ------
        %(mechanisms: TypeError)s
        ValueError
            If there is no mechanism, or an epsilon is negative or not finite.
        """
        owner = "PrivacyLossDisplay.from_mechanisms"
        if not isinstance(mechanisms, Mapping):
            allowed = "a dict of names to mechanisms or losses"
            raise wrong_kind(owner, "mechanisms", mechanisms, allowed)
        if not mechanisms:
            raise ValueError(complaint(owner, "mechanisms", "hold at least one", "none"))
        losses = {
            str(key): loss_of(each, owner, "mechanisms")[0] for key, each in mechanisms.items()
        }
        display = cls._computed(owner, losses, epsilon, target)
        return display.plot(ax, name=name, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        epsilon: ArrayLike | None = None,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute and draw the curve of all that a fit released, with its guarantee marked.

        Parameters
        ----------
        %(displays: estimator, epsilon, ax)s
        name : str or None, default=None
            Name of the curve; None is that of the estimator's class.
        %(displays: **kwargs, Returns, Raises, NotFittedError)s
        """
        owner = "PrivacyLossDisplay.from_estimator"
        report = report_of(owner, estimator)
        name = with_caveat(report.estimator if name is None else name, secure=report.secure)
        losses = {name: report.allowed}  # not what was left by looking
        return cls._computed(owner, losses, epsilon, report.guarantee).plot(ax, **kwargs)

    @classmethod
    def _computed(
        cls,
        owner: str,
        losses: dict[str, PrivacyLoss],
        epsilon: ArrayLike | None,
        target: PrivacyGuarantee | None,
    ) -> Self:
        if target is not None:
            check_type(owner, "target", target, PrivacyGuarantee)
        grid = _grid(list(losses.values()), target) if epsilon is None else np.ravel(epsilon)
        grid = np.unique(check_array(owner, "epsilon", grid, sign="non-negative"))
        if grid.size < 2:
            must = "hold at least two different numbers"
            raise ValueError(complaint(owner, "epsilon", must, str(grid.size)))
        delta = [[loss.delta(float(point)) for point in grid] for loss in losses.values()]
        return cls(epsilon=grid, delta=delta, names=tuple(losses), target=target)


def _floor(target: PrivacyGuarantee | None) -> float:
    lowest = target.delta if target is not None and target.delta > 0.0 else 1.0
    return min(_FLOOR, 1e-2 * lowest)


def _grid(losses: list[PrivacyLoss], target: PrivacyGuarantee | None) -> Vector:
    """Return points from 0 to where every curve is low, close together where one falls to zero."""
    floor = _floor(target)
    ends = [_end(loss, floor) for loss in losses]
    last = max([*ends, 1e-6] if target is None else [*ends, target.epsilon])
    parts = [np.linspace(0.0, 1.05 * last, _POINTS)]
    parts += [np.linspace(0.0, end, _POINTS // 2) for end in ends if end < 0.5 * last]
    for loss, end in zip(losses, ends, strict=True):
        pure = getattr(loss, "pure_epsilon", math.inf)
        if pure <= end * (1.0 + 1e-3):
            parts += [pure * (1.0 - np.geomspace(0.3, 1e-12, 25)), np.array([pure])]
    return np.unique(np.concatenate(parts))


def _end(loss: PrivacyLoss, floor: float) -> float:
    """Return the ε at which δ is at the floor, or, if it never is, at which it is nearly level."""
    end = loss.epsilon(floor)
    if math.isfinite(end):
        return end
    return 1.5 * loss.epsilon(min(1.01 * loss.delta(_FAR), 0.99))


def _mark(ax: Any, target: PrivacyGuarantee) -> Any:
    epsilon, delta, grey = target.epsilon, target.delta, "0.25"
    label = f"target: ε = {epsilon:g}, δ = {delta:g}"
    if delta == 0.0:
        return ax.axvline(epsilon, color=grey, linestyle=":", label=label)
    ax.hlines(delta, 0.0, epsilon, color=grey, linestyle=":", linewidth=1)
    ax.vlines(epsilon, 0.0, delta, color=grey, linestyle=":", linewidth=1)
    return ax.plot(epsilon, delta, "*", color=grey, markersize=12, label=label, zorder=3)[0]
