"""Independent noise of calibrated scales on the coordinates of a query."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_array, check_count, check_type, complaint
from skdpnoise._utils.sealed import Made, sealed, stated
from skdpnoise.mechanisms._scale_search import gaussian_mu
from skdpnoise.mechanisms.allocation import RULES, counted_by, shifts, worst_case_norm, worst_shift
from skdpnoise.mechanisms.base import Recipe
from skdpnoise.mechanisms.grid_sizes import are_integers, check_precision, check_whole_steps
from skdpnoise.mechanisms.requests import MIXTURE, fits_gaussian
from skdpnoise.mechanisms.vectors import VectorMechanism
from skdpnoise.noises import Noise, get_noise, noise_names
from skdpnoise.privacy import GaussianLoss, LossBudget, NumericLoss, PrivacyLoss, PureLoss
from skdpnoise.privacy.curves import LossCurve, NormalShift
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import GroupedProfile, SensitivityProfile

_OWNER = "AdditiveMechanism"
_MOST_BITS = 52
_SMALLEST, _LARGEST = 1e-290, 1e280  # of grid steps and scales: far from the limits of doubles
_MANY = 20_000  # shifts; more are rounded up to a grid
_GRID = 1e-4


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AdditiveMechanism(VectorMechanism):
    r"""Release a query with independent noise of one family, exactly, in integers.

    .. math:: M(D)_j = q_j \left(\mathrm{round}(f_j(D)/q_j) + \mathrm{round}(2^B Z_j)\right),
              \qquad q_j = 2^{-B} s_j

    with Z_j of unit scale, s the scales and B the bits. Made by
    :func:`~skdpnoise.mechanisms.calibrate`, which says why it chose this noise: :meth:`explain`.

    **Guarantee.** Neighbours are those of the sensitivity profile: per release and coordinate, one
    record moves f by at most λ_j, and jointly within its l1 and l2 bounds. Clipping and rounding to
    integer grid steps then moves it by at most λ_j/s_j + 2^-B in units of the noise. (Noise on the
    integers has q_j = 1 and a query that is integer already.) Rounded noise on an integer is the
    rounding of real noise on it, which is post-processing, as is multiplying by q_j. So the loss is
    that of the real noise for the worst change:

    - Normal noise: :math:`|d/s|_2` decides, and its worst case over box and balls is computed.
    - Without a joint bound, the worst case is the corner d = λ, since every coordinate's curve
      grows with its change, and the losses of the coordinates compose.
    - Within a group that is bounded by its norm, and with log-concave noise, d is no worse than one
      coordinate moved by :math:`|d_g/s|_1`; the losses of the groups compose. Other noise counts
      every coordinate at the bound of its group.
    - With a joint bound, and log-concave noise: d is no worse than one coordinate moved by
      :math:`|d/s|_1`, whose worst case is computed. For log-concave noise T(F, F(. - a)) is α ->
      F(F^-1(1 - α) - a), so the trade-off functions of the shifts a and b compose, as for groups,
      to that of a + b; and the tensor product of two trade-off functions lies above that
      composition (go from (0, 0) to (a, b) by way of (a, 0)).

    The charge covers ``n_releases`` releases, chosen adaptively, each made once. Where scales
    differ between releases, release t must get the noise of row t, by ``first``. The profile must
    bound the value *as computed*: sum integers, or add the floating-point error of the sum to λ. A
    coordinate with scale 0 (under "spr" and "inid", one with λ_j = 0) is released unchanged: that
    is private only if the coordinate is truly constant.

    Parameters
    ----------
    noise : str
        ``"<rule>_<family>"``; the family is sampled and charged for.
    scale : ndarray of shape (n_coordinates,) or (n_releases, n_coordinates)
        s, in the units of the query.
    bits : int
        B: the standard unit of the noise spans 2**bits grid steps.
    sensitivity : SensitivityProfile or GroupedProfile
        How far one record can move one release.
    n_releases : int, default=1
        Number of releases that are charged for.
    families : tuple of Noise or None, default=None
        The family of each coordinate, or one for all; None is that of the name.
    promise : PureLoss, GaussianLoss or None, default=None
        A loss that contains this mechanism's own and is charged in its place, for adaptive budgets.
    considered : tuple of (str, float or str), default=()
        Compared names with their expected errors, or with the reason of their refusal.

    Raises
    ------
    ValueError
        If fields contradict one another, or the mechanism's own loss exceeds the promise.

    References
    ----------
    Mironov, "On significance of the least significant bits for differential privacy", CCS 2012 (why
    integers). Dong, Roth and Su, "Gaussian differential privacy", arXiv:1905.02383, Theorem 2.14
    and Lemma A.5 (groups, and the triangle inequality of trade-off functions).

    Examples
    --------
    >>> from skdpnoise.mechanisms import calibrate
    >>> from skdpnoise.privacy import PrivacyGuarantee
    >>> profile = SensitivityProfile([1.0, 4.0])
    >>> mechanism = calibrate("inid_laplace", profile, PrivacyGuarantee(epsilon=1.0))
    >>> mechanism.release([10.0, 20.0], random_state=0).shape
    (2,)
    >>> print(mechanism.explain())
    inid_laplace: scale 3.51984 to 5.5874, 2 coordinates, 1 release, 1-DP
    expected squared error 87.2167 in all
    """

    # Without field() the property of the base would be taken for the default.
    noise: str = field()
    scale: NDArray[np.float64] = field()
    bits: int
    sensitivity: SensitivityProfile = field()
    n_releases: int = 1
    families: tuple[Noise, ...] | None = None
    promise: LossBudget | None = None
    considered: tuple[tuple[str, float | str], ...] = ()
    recipe: Recipe | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        _check_fields(self)
        _check_promise(self)

    @property
    def family(self) -> Noise:
        """The noise family of the first coordinate."""
        return self._families[0]

    @property
    def grid_size(self) -> NDArray[np.float64]:
        """Size of one integer step of each coordinate, of the shape and in the units of scale."""
        return np.ldexp(self.scale, -self.bits)

    @property
    def standard_deviation(self) -> NDArray[np.float64]:
        """Standard deviation of the noise, of the shape and in the units of scale."""
        return self.scale * np.sqrt(self._unit_moments(2.0))

    def privacy_loss(self) -> PrivacyLoss:
        """Return the cost of all ``n_releases`` releases: the promise, or else the own loss."""
        return self.own_loss() if self.promise is None else self.promise

    def own_loss(self) -> PrivacyLoss:
        if self._costs_by(2.0):
            return GaussianLoss(self._worst_shift(2.0))
        terms: list[tuple[LossCurve, float, int]] = []
        for family, values, counts in self._groups():
            curve = NormalShift() if family.norm_order == 2.0 else family
            unique, inverse = np.unique(_rounded_up(values), return_inverse=True)
            totals = np.bincount(inverse, weights=counts)
            pairs = zip(unique, totals, strict=True)
            terms += [(curve, float(value), round(total)) for value, total in pairs]
        return NumericLoss(tuple(terms))

    @property
    def mean_squared_error(self) -> float:
        """Expected squared error per coordinate and release."""
        return self.expected_error() / (self.n_releases * self.sensitivity.n_coordinates)

    def explain(self) -> str:
        """Return the choice of noise, its cost, and what else was considered; public facts only."""
        size, families = self.sensitivity.n_coordinates, self._families
        lines = [
            f"{self.noise}: scale {self.scale.min():.6g} to {self.scale.max():.6g}, {size} "
            f"coordinate{'s' if size > 1 else ''}, {self.n_releases} release"
            f"{'s' if self.n_releases > 1 else ''}, {self.privacy_loss()}"
        ]
        counted = Counter(families)
        if 1 < len(counted) <= 4:
            lines += [f"{count} coordinates: {family}" for family, count in counted.items()]
        elif len(counted) > 4:
            lines.append(f"{len(counted)} shapes, such as {self.family}")
        elif self.family.shape_range is not None:
            lines.append(f"shape: {self.family}")
        if any(float(family.hockey_stick(1e4, 1.0)) > 0.0 for family in counted):
            lines.append("its delta is a chance of total disclosure")
        lines.append(f"expected squared error {self.expected_error():.6g} in all")
        if self.considered:
            numbers = [(x, name) for name, x in self.considered if not isinstance(x, str)]
            best = min(x for x, _ in numbers)
            lines.append("considered, by expected error:")
            for x, name in sorted(numbers, key=itemgetter(0)):
                lines.append(f"  {name}: {x:.6g} ({100.0 * (x / best - 1.0):+.3g} %)")
            refused = [(name, x) for name, x in self.considered if isinstance(x, str)]
            lines += [f"  {name}: refused: {reason}" for name, reason in refused]
        return "\n".join(lines)

    def _facts(self) -> str:
        return (
            f"noise={self.noise!r}, scale={self.scale.min():.6g} to {self.scale.max():.6g}, "
            f"n_coordinates={self.sensitivity.n_coordinates}"
        )

    def _moments(self, p: float) -> NDArray[np.float64]:
        return self.scale**p * self._unit_moments(p)

    def _unit_moments(self, p: float) -> NDArray[np.float64]:
        """Return E|Z_j|^p, of shape (1,) or (n_coordinates,)."""
        known = {family: family.absolute_moment(p) for family in set(self._families)}
        return np.array([known[family] for family in self._families])

    def _draw(self, rng: RandomWords, start: int, count: int) -> NDArray[np.int64]:
        draws = np.empty((count, self.sensitivity.n_coordinates), dtype=np.int64)
        for family, members in self._members():
            shape = draws[:, members].shape
            draws[:, members] = family.sample_rounded(rng, shape, self.bits)
        scale = self.scale if self.scale.ndim == 1 else self.scale[start : start + count]
        draws[np.broadcast_to(scale == 0.0, draws.shape)] = 0
        return draws

    @property
    def _families(self) -> tuple[Noise, ...]:
        assert self.families is not None
        return self.families

    def _members(self) -> Iterator[tuple[Noise, slice | NDArray[np.bool_]]]:
        if len(self._families) == 1:
            yield self.family, slice(None)
            return
        for family in dict.fromkeys(self._families):
            yield family, np.array([other == family for other in self._families])

    def _costs_by(self, order: float) -> bool:
        """Return whether the cost of all noise follows from the worst |d/s|_q."""
        return len(self._families) == 1 and self.family.norm_order == order

    def _worst_shift(self, order: float) -> float:
        return worst_shift(self.scale, self.sensitivity, self.n_releases, self.bits, order)

    def _groups(self) -> Iterator[tuple[Noise, NDArray[np.float64], NDArray[np.float64]]]:
        """Yield families, increasing shifts in their units, and how often each is composed."""
        if self.family.lattice:
            values = np.broadcast_to(self.sensitivity.per_coordinate, self.scale.shape)
            counts = np.full(values.shape, float(self.n_releases if self.scale.ndim == 1 else 1))
        else:
            by = counted_by(self.sensitivity, self._families)
            values, counts = shifts(self.scale, self.sensitivity, self.n_releases, self.bits, by=by)
        for family, members in self._members():
            unique, inverse = np.unique(values[..., members].ravel(), return_inverse=True)
            totals = np.bincount(inverse, weights=counts[..., members].ravel()).astype(np.float64)
            if (unique > 0.0).any():
                yield family, unique[unique > 0.0], totals[unique > 0.0]

    def _checked(self, value: ArrayLike) -> NDArray[Any]:
        # A dataclass with slots is made twice, so that super() would not find itself.
        rows = VectorMechanism._checked(self, value)
        if self.family.lattice and not are_integers(rows):
            raise ValueError(
                "The 'value' parameter of AdditiveMechanism.release must be integer in every entry "
                f"for noise={self.noise!r}, which lives on the integers. Use another noise."
            )
        return rows


def _check_fields(mechanism: AdditiveMechanism) -> None:
    owner = _OWNER
    check_type(owner, "sensitivity", mechanism.sensitivity, SensitivityProfile, GroupedProfile)
    n_releases = check_count(owner, "n_releases", mechanism.n_releases)
    n_coordinates = mechanism.sensitivity.n_coordinates
    families = _checked_families(mechanism.noise, mechanism.families, n_coordinates)
    lattice = families[0].lattice
    most = 0 if lattice else _MOST_BITS
    bits = check_count(owner, "bits", mechanism.bits, low=0, high=most)
    shapes = (n_coordinates,), (n_releases, n_coordinates)
    scale = check_array(owner, "scale", mechanism.scale, *shapes, sign="non-negative")
    _check_scale(scale, mechanism.sensitivity, bits, lattice=lattice)
    stated(mechanism, scale=sealed(scale), bits=bits, families=families, n_releases=n_releases)


def _check_promise(mechanism: AdditiveMechanism) -> None:
    """Refuse a promise that does not contain the loss that follows from the scales."""
    promise = mechanism.promise
    if promise is None:
        return
    check_type(_OWNER, "promise", promise, PureLoss, GaussianLoss)
    if isinstance(promise, PureLoss):
        least, most = least_epsilon(mechanism), promise.pure_epsilon
    else:
        least, most = least_mu(mechanism), promise.mu
    if not least <= most:
        kind = f"{type(promise)(least)} does" if math.isfinite(least) else "no such loss does"
        must = f"contain the loss that follows from its scales, for all releases together: {kind}"
        remedy = "Let calibrate choose the scales for a promise, or leave it out."
        raise ValueError(complaint(_OWNER, "promise", must, str(promise), remedy))


def compared(
    names: Iterable[str], make: Callable[[str], Made], error: Callable[[Made], float]
) -> tuple[list[Made], tuple[tuple[str, float | str], ...]]:
    """Return what can be made, and every name with its error, or with the reason of its refusal."""
    made: list[Made] = []
    considered: list[tuple[str, float | str]] = []
    for name in names:
        try:
            made.append(make(name))
        except ValueError as refusal:
            considered.append((name, str(refusal)))
        else:
            considered.append((name, error(made[-1])))
    if not made:
        reasons = list(dict.fromkeys(str(reason) for _, reason in considered))
        several = ["No noise can give the guarantee."] if len(considered) > 1 else []
        raise ValueError(" ".join(several + reasons))
    return made, tuple(considered)


def _checked_families(
    noise: object, families: tuple[Noise, ...] | None, n_coordinates: int
) -> tuple[Noise, ...]:
    if not isinstance(noise, str):
        raise TypeError(complaint(_OWNER, "noise", "be a str", repr(noise)))
    rule, _, name = noise.partition("_")
    if families is None:
        families = (get_noise(name),)
    if not isinstance(families, tuple) or len(families) not in (1, n_coordinates):
        must = f"be a tuple of one noise, or of one for each of n_coordinates={n_coordinates}"
        given = f"{type(families).__name__} of length {len(families)}"
        raise ValueError(complaint(_OWNER, "families", must, given))
    kinds = {type(family) for family in families}
    known = _known_families(tuple(noise_names()))
    got = sorted(kind.__name__ for kind in kinds)
    # An unregistered family may have any name, but must have all members of a Noise.
    strangers = [family for family in families if type(family) not in known]
    if not all(isinstance(family, Noise) for family in strangers):
        raise TypeError(complaint(_OWNER, "families", "hold noise families", f"types {got}"))
    allowed = {"gaussian", "laplace"} if noise == MIXTURE else {name}
    named = {known.get(kind, name if name not in noise_names() else "") for kind in kinds}
    if rule not in RULES or not named <= allowed:
        must = f"be '<rule>_<family>' with a rule among {list(RULES)} and the name of the families"
        raise ValueError(complaint(_OWNER, "noise", must, f"{noise!r} and families {got}"))
    if len({family.lattice for family in families}) > 1:
        must = "live on the integers, or on the real numbers, in all coordinates alike"
        raise ValueError(complaint(_OWNER, "families", must, str(got)))
    return families


@lru_cache(maxsize=8)
def _known_families(names: tuple[str, ...]) -> dict[type, str]:
    return {type(get_noise(name)): name for name in names}


def _check_scale(
    scale: NDArray[np.float64], sensitivity: SensitivityProfile, bits: int, *, lattice: bool
) -> None:
    limit, positive = sensitivity.per_coordinate, scale[scale > 0.0]
    given = f"{scale.min():g} to {scale.max():g}"
    if (scale[..., limit > 0.0] == 0.0).any() or positive.size == 0:
        must = "be positive in every coordinate that a record can move"
        raise ValueError(complaint(_OWNER, "scale", must, given))
    check_precision(_OWNER, "scale", positive, bits, (_SMALLEST, _LARGEST))
    if lattice and (positive != 1.0).any():
        must = "be 1 for noise on the integers, whose shape says how wide it is"
        raise ValueError(complaint(_OWNER, "scale", must, given))
    if lattice:
        check_whole_steps(_OWNER, limit)


def _rounded_up(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return positive values, rounded up to a fine grid if there are very many."""
    if values.size <= _MANY:
        return values
    exponent = np.ceil(np.log(values / values.max()) / _GRID)
    return np.asarray(np.maximum(values.max() * np.exp(_GRID * exponent), values))


def least_epsilon(mechanism: AdditiveMechanism) -> float:
    """Return an ε of pure privacy that all releases together have."""
    if mechanism._costs_by(1.0):
        return mechanism._worst_shift(1.0)
    families, sensitivity = mechanism._families, mechanism.sensitivity
    whole = sum(float(n @ family.max_loss(a)) for family, a, n in mechanism._groups())
    if families[0].lattice:
        # A change by d is d changes by one: no more than d times the loss of one.
        per_step = np.array([float(family.max_loss(1.0)) for family in families])
        if np.isfinite(per_step).all():
            nominal = np.broadcast_to(1.0 / per_step, sensitivity.n_coordinates)
            whole = min(whole, mechanism.n_releases * worst_case_norm(nominal, sensitivity, 1.0))
    return whole * (1.0 + 4.0 * sensitivity.n_coordinates * float(np.finfo(np.float64).eps))


def least_mu(mechanism: AdditiveMechanism) -> float:
    """Return a μ of Gaussian privacy that all releases together have."""
    if mechanism._costs_by(2.0):
        return mechanism._worst_shift(2.0)
    if not all(map(fits_gaussian, set(mechanism._families))):
        return math.inf
    groups = mechanism._groups()
    return math.sqrt(sum(float(n @ gaussian_mu(family, a) ** 2) for family, a, n in groups))
