"""Neural networks by private stochastic gradient descent, group by group (extra ``torch``)."""

from skdpnoise.neural_network._mlp import DPMLPClassifier, DPMLPRegressor
from skdpnoise.neural_network._neural import DPNeuralClassifier, DPNeuralRegressor

__all__ = ["DPMLPClassifier", "DPMLPRegressor", "DPNeuralClassifier", "DPNeuralRegressor"]
