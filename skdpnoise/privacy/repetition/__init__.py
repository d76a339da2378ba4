"""The best of many runs: how often they are made, and the curve of their winner."""

from skdpnoise.privacy.repetition.curve import Composed, Repetition, bound_of
from skdpnoise.privacy.repetition.laws import (
    PoissonRepetitions,
    RepetitionLaw,
    TruncatedNegativeBinomial,
)

__all__ = [
    "Composed",
    "PoissonRepetitions",
    "Repetition",
    "RepetitionLaw",
    "TruncatedNegativeBinomial",
    "bound_of",
]
