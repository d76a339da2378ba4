"""Scores and curves of predictions for private records."""

from skdpnoise.metrics.curves import (
    PrivateCalibrationCurve,
    PrivateRocCurve,
    private_calibration_curve,
    private_roc_curve,
)
from skdpnoise.metrics.scores import (
    PrivateScore,
    private_accuracy_score,
    private_balanced_accuracy_score,
    private_confusion_matrix,
    private_log_loss,
    private_mean_absolute_error,
    private_r2_score,
    private_roc_auc_score,
    private_root_mean_squared_error,
)

__all__ = [
    "PrivateCalibrationCurve",
    "PrivateRocCurve",
    "PrivateScore",
    "private_accuracy_score",
    "private_balanced_accuracy_score",
    "private_calibration_curve",
    "private_confusion_matrix",
    "private_log_loss",
    "private_mean_absolute_error",
    "private_r2_score",
    "private_roc_auc_score",
    "private_roc_curve",
    "private_root_mean_squared_error",
]
