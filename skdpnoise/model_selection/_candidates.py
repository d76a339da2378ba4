"""The candidates of a search: copied once, then checked, and never looked up again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection._search import BaseSearchCV

from skdpnoise._utils.numbers import strange_type
from skdpnoise.accounting.declared import LABELS
from skdpnoise.base.compositions import named_estimators, private_estimators
from skdpnoise.base.steps import Part, relation_of, taken_apart
from skdpnoise.base.tags import tags_of
from skdpnoise.compose.fitting import read_unpaid
from skdpnoise.compose.shares import check_shareable, pure_noise, samples_records, shows_by_chance
from skdpnoise.compose.statement import declared_of, in_order
from skdpnoise.data.targets import public_classes

_SET_BY_SEARCH = frozenset(
    {"epsilon", "delta", "adjacency", "ledger", "rows_per_group", "random_state", "classes"}
)
_ALLOWED_ATTRIBUTES = frozenset({"_metadata_request", "_sklearn_output_config"})


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    parameters: dict[str, Any]  # what it sets: a copy of the values of the grid
    # Unfitted, with these parameters. It is cloned for each fit.
    estimator: Any
    parts: tuple[Part, ...]  # its leaves: private, public, or declared public by the user
    pure: bool  # whether the noise of the private parts calls for a pure budget
    samples: bool  # whether one of them samples records

    @property
    def private(self) -> list[Part]:
        return [part for part in self.parts if part.kind == "private"]


def sealed_candidates(search: Any, given: Sequence[Mapping[str, Any]]) -> tuple[Candidate, ...]:
    """Return the candidates of a search, all of them checked; nothing is fitted or charged."""
    owner = type(search).__name__
    if not given:
        raise ValueError(f"{owner} needs one candidate at least. Got an empty grid.")
    candidates = []
    for parameters in given:
        for name, value in parameters.items():
            if isinstance(value, type) and hasattr(value, "fit"):
                raise TypeError(
                    f"Candidates of {owner} must hold estimators, not their classes. Got the class "
                    f"{value.__name__} as {name!r}: write {value.__name__}()."
                )
        fixed = clone(dict(parameters), safe=False)
        estimator = clone(search.estimator)
        estimator.set_params(**clone(fixed, safe=False))
        parts = _parts(owner, estimator, search.public)
        # What a run may cost is then divided in ε and in δ.
        chances = shows_by_chance(estimator)
        kind = pure_noise(estimator) and not chances, samples_records(estimator) or chances
        candidate = Candidate(fixed, estimator, parts, *kind)
        _check_private_parts(owner, candidate, search.adjacency)
        _check_objects(owner, candidate)
        candidates.append(candidate)
    for name in search.public:
        if not any(_led_to(name, candidate.estimator) for candidate in candidates):
            raise ValueError(
                f"The 'public' parameter of {owner} must hold names of steps. Got {name!r}, which "
                "no candidate has."
            )
    _check_alike(owner, candidates)
    return tuple(candidates)


def _parts(owner: str, estimator: Any, public: Collection[str]) -> tuple[Part, ...]:
    """Return the parts of a candidate; refuse it if they are not known to pay or learn nothing."""
    for name, one in named_estimators(estimator):
        if isinstance(one, BaseSearchCV):
            raise TypeError(
                f"The 'estimator' parameter of {owner} must not contain a search. Got "
                f"{_named(name, one)}: put all parameters into one grid of the outer search, whose "
                "guarantee covers any number of candidates."
            )
    # A step may be in some of the candidates only.
    here = [name for name in public if _led_to(name, estimator)]
    return taken_apart(estimator, public=here, owner=owner, parameter="estimator")


def _check_objects(owner: str, candidate: Candidate) -> None:
    """Refuse what could change, act or tell while the search runs, wherever it is held."""
    inner = dict(named_estimators(candidate.estimator))
    known = {id(one) for one in inner.values()}
    vouched = declared_of(candidate.parts)
    for name, one in inner.items():
        if any(name == label or name.startswith(f"{label}__") for label in vouched):
            continue
        if getattr(one, "_skl_callbacks", None):
            raise ValueError(
                f"The 'estimator' parameter of {owner} must have no callbacks of its own, nor its "
                "steps or candidates: they see exact scores, which are not private. Got "
                f"callbacks of {_named(name, one)}: set them on {owner}."
            )
        given = one.get_params(deep=False)
        own = set(vars(one)) - set(given) - _ALLOWED_ATTRIBUTES
        if own:
            raise TypeError(
                f"The 'estimator' parameter of {owner} must be unchanged by a clone. Got "
                f"{_named(name, one)}, whose clone has attributes of its own: {sorted(own)}."
            )
        own_code = tags_of(one).declares  # of exact classes: others are refused
        for key, value in given.items():
            if key.partition("__")[0] in own_code:
                continue
            strange = strange_type(value, known)
            if strange is not None:
                raise TypeError(
                    f"Parameters of candidates of {owner} must be numbers, text, arrays or "
                    "collections of these, which cannot change or act while the search runs. Got "
                    f"an object of type {strange} in {key!r} of {_named(name, one)}."
                )
        if "verbose" in given:
            one.set_params(verbose=False)  # what is printed would tell how many runs there are


def _check_private_parts(owner: str, candidate: Candidate, adjacency: str) -> None:
    """Refuse a candidate without a private part, or one with settings that the search makes."""
    # One that leaves its relation open gets that of the search.
    check_shareable(owner, "estimator", candidate.parts, adjacency)
    labels = [name for name, _ in private_estimators(candidate.estimator)]
    taken = {f"{label}__{name}" if label else name for label in labels for name in _SET_BY_SEARCH}
    clash = sorted(taken & set(candidate.parameters))
    if clash:
        raise ValueError(
            f"The parameters that {owner} varies (param_grid, param_distributions) must not be "
            f"among {sorted(_SET_BY_SEARCH)} of a private step, which are the same for all. Got "
            f"{', '.join(clash)}."
        )
    for part in candidate.private:
        where = _named(part.label, part.estimator)
        given = part.estimator
        asked: str = relation_of(given)
        if given.adjacency is None and asked == "replace_one":  # open, also for another one
            asked = adjacency
            given.set_params(adjacency=asked)
        if asked != adjacency:
            raise ValueError(
                f"The 'adjacency' parameter of {owner} must be that of its estimator, of all steps "
                f"and candidates. Got {adjacency!r}, and {asked!r} in {where}."
            )
        if getattr(given, "rows_per_group", 1) != 1:
            raise ValueError(
                f"The 'estimator' parameter of {owner} must leave 'rows_per_group' at 1 in all its "
                f"steps and candidates. Got {given.rows_per_group!r} in {where}: give it to "
                f"{owner}, with groups= in fit."
            )
    for part in candidate.parts:
        if part.kind != "declared" and hasattr(part.estimator, "_validate_params"):
            part.estimator._validate_params()


def _check_alike(owner: str, candidates: Sequence[Candidate]) -> None:
    first = candidates[0]
    for other in candidates[1:]:
        if is_classifier(other.estimator) != is_classifier(first.estimator):
            raise ValueError(
                f"Candidates of {owner} must be all classifiers or all regressors: they are "
                "compared by one score. Search them separately."
            )
        if other.pure != first.pure:
            raise ValueError(
                f"Candidates of {owner} must all have noise of the same kind of loss, pure "
                "(Laplace) or Gaussian: one run has one loss. Search them separately."
            )


def declared_by(candidates: Sequence[Candidate], X: Any, y: Any, labels: Any) -> tuple[str, ...]:
    """Return what is public by the word of the user, given the labels that candidates know."""
    found: set[str] = set()
    for one in candidates:
        found.update(declared_of(one.parts), read_unpaid(one.estimator, X, y))
    return in_order(sorted(found if labels is None else found - {LABELS}))


def public_labels(owner: str, candidates: Sequence[Candidate]) -> Any:
    given = [
        labels
        for candidate in candidates
        for _, one in private_estimators(candidate.estimator)
        if (labels := public_classes(type(one).__name__, getattr(one, "classes", None))) is not None
    ]
    if any(not np.array_equal(labels, given[0]) for labels in given[1:]):
        raise ValueError(
            f"The 'classes' parameter must be the same in all steps and candidates of {owner}: the "
            "labels that are possible are public and the same for all."
        )
    return given[0] if given else None


def _led_to(name: str, estimator: Any) -> bool:
    return any(
        name in (found, found.rpartition("__")[2]) for found, _ in named_estimators(estimator)
    )


def _named(name: str, estimator: Any) -> str:
    return f"{name} ({type(estimator).__name__})" if name else type(estimator).__name__
