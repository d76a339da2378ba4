"""Neural networks by private stochastic gradient descent, group by group (extra ``torch``)."""

from skdpnoise.neural_network._estimators import (
    DPMLPClassifier,
    DPMLPRegressor,
    DPNeuralClassifier,
    DPNeuralRegressor,
)

__all__ = ["DPMLPClassifier", "DPMLPRegressor", "DPNeuralClassifier", "DPNeuralRegressor"]
