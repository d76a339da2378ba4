"""Curves of predictions for private records, with bands of what noise adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdpnoise._utils.checks import check_type, complaint
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.base.register import is_private
from skdpnoise.data.redaction import without_values
from skdpnoise.data.sources import by_storage
from skdpnoise.metrics import (
    PrivateCalibrationCurve,
    PrivateRocCurve,
    private_calibration_curve,
    private_roc_curve,
)
from skdpnoise.plotting._display import Display
from skdpnoise.plotting._panels import check_axes, style, wrong_kind
from skdpnoise.privacy import LossBudget, PrivacyGuarantee
from skdpnoise.sampling.words import with_caveat

_BAND = 1.96  # standard errors on either side: 95 % of normal noise
_FAINT = 0.2
_EDGE = 0.02  # beside 0 and 1


@shared_texts
class _CurveDisplay(Display):
    """Draws a curve that was released for predictions, one Axes each."""

    _curve: ClassVar[type]
    _release: ClassVar[Callable[..., Any]]
    line_: Any

    @classmethod
    def from_curve(
        cls, curve: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw a curve that was released.

        Parameters
        ----------
        curve : PrivateRocCurve or PrivateCalibrationCurve
            As :func:`~skdpnoise.metrics.private_roc_curve` or
            :func:`~skdpnoise.metrics.private_calibration_curve` returns it.
        %(displays: ax, name, **kwargs, Returns, Raises)s
        """
        check_type(f"{cls.__name__}.from_curve", "curve", curve, cls._curve)
        title = with_caveat(f"{curve.privacy}, {curve.adjacency}", secure=curve.secure)
        names = {one.name for one in fields(cast(Any, cls))} & {one.name for one in fields(curve)}
        known = {name: getattr(curve, name) for name in names}
        return cls(**known | {"name": title}).plot(ax, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        guarantee: PrivacyGuarantee | LossBudget,
        *,
        ax: Any = None,
        name: str | None = None,
        curve_kwargs: dict[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Release and draw the curve of predictions, which spends the guarantee.

        Parameters
        ----------
        %(scores: y_true, y_score)s
        %(queries: guarantee)s
        %(displays: ax, name, curve_kwargs)s
        **options
            Passed to the function of :mod:`skdpnoise.metrics` that releases the curve, such as
            `ledger`, and `bins` or `n_bins`.
        %(displays: Returns)s
        %(asked: Raises)s
        """
        release = partial(cls._release, y_true, y_score, guarantee, **options)
        return cls._of_released(release, {"ax": ax, "name": name} | (curve_kwargs or {}))

    @classmethod
    def _of_released(cls, release: Callable[[], Any], drawing: dict[str, Any]) -> Self:
        """Draw a curve, which is released once the axes are known to be some."""
        if (ax := drawing["ax"]) is not None:
            check_axes(f"{cls.__name__}.from_predictions", [ax])
        return cls.from_curve(release(), **drawing)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        guarantee: PrivacyGuarantee | LossBudget,
        **options: Any,
    ) -> Self:
        """Release and draw the curve of a classifier, which spends the guarantee.

        Parameters
        ----------
        estimator : classifier
            A fitted one of two classes, public or private already, with ``predict_proba``.
        X : array-like or RowSource of shape (n_records, n_features)
            The private records.
        y : array-like or RowSource of shape (n_records,)
            Their labels.
        %(queries: guarantee)s
        **options
            As for `from_predictions`, also `ax`, `name` and `curve_kwargs`; `pos_label` is the
            second of the classes unless it is given.
        %(displays: Returns)s
        %(asked: Raises)s
        TypeError
            If the estimator gives no probabilities of two classes.
        %(displays: NotFittedError)s
        """
        owner = f"{cls.__name__}.from_estimator"
        label = options.setdefault("pos_label", _second_class(owner, estimator))
        chances = _chances(owner, estimator, X, label)
        return cls.from_predictions(y, chances, guarantee, **options)


@shared_texts
@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRocCurveDisplay(_CurveDisplay):
    """A private ROC curve, with a band of 1.96 standard errors of the noise in both rates.

    Parameters
    ----------
    %(displays: name)s
    fpr, tpr : array-like of shape (n_points,)
        Rates of negative and of positive records, from (0, 0) to (1, 1).
    fpr_standard_error, tpr_standard_error : array-like of shape (n_points,)
        Of the noise in them.
    roc_auc, roc_auc_standard_error : float or None, default=None
        The area under the curve, for the legend.

    Attributes
    ----------
    %(displays: ax_, figure_)s
    line_ : matplotlib Line2D
        The curve.
    band_ : matplotlib PolyCollection
        The band.
    chance_level_ : matplotlib Line2D
        The diagonal.

    Examples
    --------
    >>> y, chance = [0, 1] * 5000, [0.2, 0.4, 0.5, 0.9] * 2500
    >>> display = PrivateRocCurveDisplay.from_predictions(y, chance, PrivacyGuarantee(1.0))
    >>> display.line_.get_label()
    'AUC = 0.7... ± 0.0...'
    """

    fpr: ArrayLike
    tpr: ArrayLike
    fpr_standard_error: ArrayLike
    tpr_standard_error: ArrayLike
    roc_auc: float | None = None
    roc_auc_standard_error: float | None = None

    _curve = PrivateRocCurve
    _release = staticmethod(private_roc_curve)

    def _draw(self, ax: Any, /, **kwargs: Any) -> None:
        fpr, tpr = np.asarray(self.fpr), np.asarray(self.tpr)
        label = None
        if self.roc_auc is not None:
            label = f"AUC = {self.roc_auc:.3f}"
            if self.roc_auc_standard_error is not None:
                label += f" ± {self.roc_auc_standard_error:.2g}"
        (self.line_,) = ax.plot(fpr, tpr, **style(0, {"label": label, "linewidth": 2.0} | kwargs))
        # Between the curve with all points moved up and left, and with all moved down and right.
        right, up = (
            _BAND * np.asarray(error)
            for error in (self.fpr_standard_error, self.tpr_standard_error)
        )
        x = np.unique(np.clip(np.concatenate([fpr - right, fpr, fpr + right]), 0.0, 1.0))
        # Cut off at 0 and 1, and monotone as the rates themselves are.
        upper = np.interp(x, *_rising(fpr - right, tpr + up))
        lower = np.interp(x, *_rising(fpr + right, tpr - up))
        colour = self.line_.get_color()
        self.band_ = ax.fill_between(x, lower, upper, alpha=_FAINT, linewidth=0, color=colour)
        self.chance_level_ = _diagonal(ax, "chance")
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
        ax.legend(loc="lower right")


@shared_texts
@dataclass(kw_only=True, eq=False, repr=False)
class PrivateCalibrationDisplay(_CurveDisplay):
    """A private calibration curve, with bars of 1.96 standard errors of the noise.

    Parameters
    ----------
    %(displays: name)s
    prob_true : array-like of shape (n_bins,)
        Share of positive records in each bin; bins with NaN are left out.
    prob_pred : array-like of shape (n_bins,)
        Mean probability of the records in each bin.
    standard_error : array-like of shape (n_bins,)
        Of the noise in ``prob_true``.

    Attributes
    ----------
    %(displays: ax_, figure_)s
    line_ : matplotlib Line2D
        The curve.
    bars_ : matplotlib LineCollection
        The bars.
    reference_ : matplotlib Line2D
        The diagonal, on which probabilities are right.

    Examples
    --------
    >>> y, chance = [0, 1] * 4000 + [1, 0] * 1000, [0.3, 0.7] * 5000
    >>> display = PrivateCalibrationDisplay.from_predictions(y, chance, PrivacyGuarantee(1.0))
    >>> display.line_.get_xydata().round(1)
    array([[0.3, 0.2],
           [0.7, 0.8]])
    """

    prob_true: ArrayLike
    prob_pred: ArrayLike
    standard_error: ArrayLike

    _curve = PrivateCalibrationCurve
    _release = staticmethod(private_calibration_curve)

    def _draw(self, ax: Any, /, **kwargs: Any) -> None:
        columns = np.array([self.prob_pred, self.prob_true, self.standard_error])
        x, y, error = columns[:, np.isfinite(columns).all(axis=0)]
        given = {"marker": "o", "linewidth": 2.0} | kwargs
        (self.line_,) = ax.plot(x, y, **style(0, given))
        ends = (np.clip(y + side * _BAND * error, 0.0, 1.0) for side in (-1.0, 1.0))
        self.bars_ = ax.vlines(x, *ends, color=self.line_.get_color(), linewidth=1.2)
        self.reference_ = _diagonal(ax, "perfectly calibrated")
        ax.set(xlabel="mean predicted probability", ylabel="share of positive records")
        if not x.size:
            ax.text(0.7, 0.2, "noise hides all bins", ha="center", transform=ax.transAxes)
        ax.legend(loc="upper left")

    @classmethod
    def from_predictions(  # type: ignore[override]  # y_prob is scikit-learn's name
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        guarantee: PrivacyGuarantee | LossBudget,
        *,
        ax: Any = None,
        name: str | None = None,
        curve_kwargs: dict[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Release and draw the curve of predictions, which spends the guarantee.

        Parameters
        ----------
        %(scores: y_true)s
        y_prob : array-like of shape (n_records,)
            Probabilities that records are positive.
        %(queries: guarantee)s
        %(displays: ax, name, curve_kwargs)s
        **options
            Passed to :func:`~skdpnoise.metrics.private_calibration_curve`, such as `n_bins`.
        %(displays: Returns)s
        %(asked: Raises)s
        """
        release = partial(cls._release, y_true, y_prob, guarantee, **options)
        return cls._of_released(release, {"ax": ax, "name": name} | (curve_kwargs or {}))


def _second_class(owner: str, estimator: Any) -> Any:
    """Return the positive label of a fitted classifier of two classes, or refuse another."""
    check_is_fitted(estimator)
    classes: Any = getattr(estimator, "classes_", ())
    if not hasattr(estimator, "predict_proba") or len(classes) != 2:
        allowed = "a fitted classifier of two classes with predict_proba"
        raise wrong_kind(owner, "estimator", estimator, allowed)
    return classes[1]


def _chances(owner: str, estimator: Any, X: Any, label: Any) -> Any:
    classes, predict = list(estimator.classes_), estimator.predict_proba
    if label not in classes:
        must = "be one of the estimator's classes"
        raise ValueError(complaint(owner, "pos_label", must, repr(label)))
    refusal = f"{owner} cannot predict for X: give the columns that were fitted to."
    column, ours = partial(_column, classes.index(label)), is_private(estimator)

    def in_memory(rows: Any) -> Any:
        with without_values(refusal):
            return column(np.asarray(predict(rows)))

    return by_storage(
        X,
        in_memory,
        # Our own send a copy that knows no seed.
        lambda source: (predict(source) if ours else source.map(predict, 2)).map(column),
    )


def _column(place: int, table: Any) -> Any:
    return np.asarray(table)[:, place]


def _rising(x: Any, y: Any) -> list[Any]:
    """Return points sorted by x, with y within 0 and 1 and never falling."""
    order = np.argsort(x, kind="stable")
    return [x[order], np.maximum.accumulate(np.clip(y[order], 0.0, 1.0))]


def _diagonal(ax: Any, label: str) -> Any:
    (line,) = ax.plot([0, 1], [0, 1], color="0.4", linestyle=":", label=label, zorder=1.5)
    ax.set(xlim=(-_EDGE, 1 + _EDGE), ylim=(-_EDGE, 1 + _EDGE), aspect="equal")
    ax.grid(alpha=0.25)
    return line
