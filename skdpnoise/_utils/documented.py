"""Where the documentation of an estimator is, so that its box in a notebook links to it."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["SITE", "DocumentedMixin"]

SITE = "https://skdpnoise.readthedocs.io/en/stable"


class DocumentedMixin:
    """Names the page of an estimator, for the boxes by which scikit-learn shows it."""

    # scikit-learn fills in the names; a class from another package than ours gets no link.
    _doc_link_module: ClassVar[str] = "skdpnoise"
    _doc_link_template: ClassVar[str] = (
        SITE + "/api/generated/{estimator_module}.{estimator_name}.html"
    )
