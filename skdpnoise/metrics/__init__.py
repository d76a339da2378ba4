"""Scores of predictions for private records."""

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
    "PrivateScore",
    "private_accuracy_score",
    "private_balanced_accuracy_score",
    "private_confusion_matrix",
    "private_log_loss",
    "private_mean_absolute_error",
    "private_r2_score",
    "private_roc_auc_score",
    "private_root_mean_squared_error",
]
