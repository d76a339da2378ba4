"""Clip, noise, and signal over noise of the groups of parameters of a private network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.plotting import _panels
from skdpnoise.plotting._display import Display, Panels, Texts
from skdpnoise.sampling.words import with_caveat

_PANELS = ("n_parameters", "clip", "noise", "signal_to_noise")
_TITLES = ("parameters", "clip C", "noise of a parameter", "signal / noise of a batch")


@shared_texts
@dataclass(kw_only=True, eq=False, repr=False)
class GroupsDisplay(Display):
    r"""Parameters, clip, noise and signal over noise of the groups of a private network.

    .. math:: \frac{q n \, C_g}{s_g \sqrt{d_g}}

    is the last: the norm of the sum of a batch whose clipped gradients all agree, over the norm
    that its noise has about, with d_g parameters in group g. All are public numbers. For Laplace
    noise, whose clip is an l1 norm, entries are taken to be alike.

    Parameters
    ----------
    %(displays: name)s
    group : sequence of str
        Labels of the groups.
    n_parameters, clip, noise, signal_to_noise : array-like of shape (n_groups,)
        d, C, the standard deviation s of the noise, and the ratio above.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        Where it was drawn: parameters, clip, noise, and ratio.
    %(displays: figure_)s
    lines_ : list of matplotlib Line2D
        The numbers of each panel.

    References
    ----------
    Muthukrishnan and Kalyani, arXiv:2302.03511, Section VI-C.

    Examples
    --------
    >>> display = GroupsDisplay(
    ...     group=["first", "last"],
    ...     n_parameters=[900, 100],
    ...     clip=[0.7, 0.7],
    ...     noise=[0.5, 0.9],
    ...     signal_to_noise=[2.0, 3.0],
    ... )
    >>> [ax.get_xlabel() for ax in display.plot().ax_]
    ['parameters', 'clip C', 'noise of a parameter', 'signal / noise of a batch']
    """

    group: Texts
    n_parameters: ArrayLike
    clip: ArrayLike
    noise: ArrayLike
    signal_to_noise: ArrayLike

    def _layout(self) -> Panels:
        return Panels((1, 4), (11.0, 1.4 + 0.26 * max(len(self.group), 3)), title_at="left")

    def _draw(self, axes: Any, /, **kwargs: Any) -> None:
        self.lines_ = []
        for number, (ax, field, what) in enumerate(zip(axes, _PANELS, _TITLES, strict=True)):
            values, names = np.asarray(getattr(self, field)), self.group
            given = {"color": _panels.COLOURS[number]} | kwargs
            shown = names if number == 0 else [""] * len(names)
            self.lines_.append(_panels.spread(ax, values, values, what, shown, **given))
            ax.set_xlabel(what)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw the groups of a fitted network.

        Parameters
        ----------
        %(displays: estimator)s
        %(panels: ax)s
        %(displays: name, **kwargs, Returns, Raises, NotFittedError)s
        """
        owner = "GroupsDisplay.from_estimator"
        report = _panels.report_of(owner, estimator)
        allocation = getattr(estimator, "allocation_", None)
        if not isinstance(allocation, dict):
            allowed = "a fitted network, such as DPMLPClassifier"
            raise _panels.wrong_kind(owner, "estimator", estimator, allowed)
        own = f"{report.estimator}, ε = {report.guarantee.epsilon:g}"
        display = cls(name=with_caveat(own, secure=report.secure), **allocation)
        return display.plot(ax, name=name, **kwargs)
