"""The method by which every private estimator, pipeline and search plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skdpnoise._utils.documented import DocumentedMixin

if TYPE_CHECKING:
    from skdpnoise.planning.plans import PrivacyPlan


class PlanMixin(DocumentedMixin):
    def plan(self, n_samples: int, features: Any = None, **options: Any) -> PrivacyPlan:
        """Say what a fit would release, hide and reach, before anything is spent.

        Copies are fitted to made-up records of the same shape, and nothing is charged.

        Parameters
        ----------
        n_samples, features, **options : see :func:`skdpnoise.inspection.plan`

        Returns
        -------
        PrivacyPlan
        """
        from skdpnoise.planning.plan_fits import plan  # not before somebody plans

        return plan(self, n_samples, features, **options)
