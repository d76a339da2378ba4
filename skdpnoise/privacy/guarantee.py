"""The guarantee a user asks for."""

from __future__ import annotations

from dataclasses import dataclass

from skdpnoise._utils.checks import Adjacency, check_adjacency, check_real


@dataclass(frozen=True, slots=True)
class PrivacyGuarantee:
    r"""(ε, δ)-differential privacy with respect to one record.

    .. math:: \Pr[M(D) \in S] \le e^{\varepsilon} \Pr[M(D') \in S] + \delta

    for every set S of outputs and every pair of neighbouring data sets D, D'.

    Parameters
    ----------
    epsilon : float
        Largest multiplicative change ε of any output's probability; finite and positive.
    delta : float, default=0.0
        Probability δ in [0, 1) with which the factor may be exceeded; 0 is pure privacy.
    adjacency : {"replace_one", "add_remove"}, default="replace_one"
        Which data sets are neighbours: those where one record is replaced by another (the number
        of records is public), or those where one record is present or absent (it is private).

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Definition 2.4.

    Examples
    --------
    >>> guarantee = PrivacyGuarantee(epsilon=1.0, delta=1e-6)
    >>> print(guarantee)
    (ε=1, δ=1e-06)-DP, replace_one
    """

    epsilon: float
    delta: float = 0.0
    adjacency: Adjacency = "replace_one"

    def __post_init__(self) -> None:
        owner = type(self).__name__
        epsilon = check_real(owner, "epsilon", self.epsilon)
        delta = check_real(owner, "delta", self.delta, high=1.0, low_closed=True)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "adjacency", check_adjacency(owner, self.adjacency))

    def __str__(self) -> str:
        delta = f", δ={self.delta:.6g}" if self.delta else ""
        return f"(ε={self.epsilon:.6g}{delta})-DP, {self.adjacency}"
