"""ONE register of the estimators whose fits are private, and of what each can do.

A new estimator is added here, and every contract test finds it. Tests ask an entry what it can do;
they do not ask which class it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from skdpnoise import (
    DPPCA,
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPCovariance,
    DPElasticNet,
    DPGridSearchCV,
    DPHuberRegressor,
    DPKBinsDiscretizer,
    DPLasso,
    DPLassoPath,
    DPLinearSVC,
    DPLogisticCD,
    DPMinMaxScaler,
    DPMLPClassifier,
    DPMLPRegressor,
    DPNeuralClassifier,
    DPNeuralRegressor,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPPipeline,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPQuantileTransformer,
    DPRandomizedSearchCV,
    DPRidge,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
)


@dataclass(frozen=True)
class Target:
    """What y is.

    Parameters
    ----------
    of : callable
        Makes y of one number for each record.
    ends : tuple
        Two values of y that are as far apart as any.
    public : dict
        Parameters that make the scale of y public.
    """

    of: Callable[[Any], Any]
    ends: tuple[float, float]
    public: dict[str, Any] = field(default_factory=dict)


TARGETS = {
    "numbers": Target(lambda x: x + 1.0, (-1e100, 1e100), {"target_bounds": (-1.0, 1.0)}),
    "counts": Target(
        lambda x: np.maximum(x + 1.0, 0.0), (0.0, 1e100), {"target_bounds": (0.0, 4.0)}
    ),
    "labels": Target(lambda x: (x > 0.0).astype(int), (0, 1)),
    None: Target(lambda x: None, (0, 0)),
}


@dataclass(frozen=True)
class Entry:
    """An estimator, and what its fits need.

    Parameters
    ----------
    make : callable
        The class.
    target : {"numbers", "counts", "labels"} or None
        What y is; None where it is ignored.
    settings : dict
        Parameters beside the defaults.
    spends : bool
        Whether a fit spends privacy.
    refuses_extremes : bool
        Whether values whose sums could overflow are refused; else they are clipped.
    descends : bool
        Whether the defaults release clipped gradients.
    pure : bool
        Whether it can give pure privacy.
    reads_sparse : bool
        Whether it may predict sparse rows; and, where columns have public scales, learn from them.
    enough : float
        The score on clear data with little noise that shows that it learns.
    uncentred : dict
        Parameters without which it would look for the mean; of the estimators of second moments.
    adjacencies : tuple of str
        The relations that it can protect; the first is its default.
    by_torch : bool
        Whether it is a network: batches drawn by coins, and floats computed by torch.
    reads : {"numbers", "gaps", "labels", "tables"}
        What its columns hold: finite numbers; numbers that may be missing; single values of any
        kind, which it compares and does not compute with; or each of these, and dates.
    """

    make: Callable[..., BaseEstimator]
    target: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    spends: bool = True
    refuses_extremes: bool = True
    descends: bool = False
    pure: bool = True
    reads_sparse: bool = False
    enough: float = 0.87
    uncentred: dict[str, Any] = field(default_factory=dict)
    adjacencies: tuple[str, ...] = ("replace_one", "add_remove")
    by_torch: bool = False
    reads: str = "numbers"
    alone: ClassVar[bool] = True  # not made of other estimators

    @property
    def name(self) -> str:
        """The name of the class, and what is not default."""
        return " ".join([self.make.__name__, *map(str, self.settings.values())])

    def estimator(self, **parameters: Any) -> BaseEstimator:
        """Return an unfitted estimator."""
        if not self.takes(**parameters):
            pytest.skip("it has no such noise, or does not protect this relation")
        if self.reads in ("labels", "tables"):
            parameters.pop("feature_bounds", None)  # it has no such parameter
        return self.make(**{**self.settings, **parameters})

    def takes(
        self, *, delta: Any = 1e-6, noise: Any = "auto", adjacency: Any = None, **_: Any
    ) -> bool:
        """Whether it can have this noise and protect this relation."""
        if adjacency in ("replace_one", "add_remove") and adjacency not in self.adjacencies:
            return False
        return self.pure or (delta != 0.0 and "laplace" not in str(noise))

    @property
    def transforms(self) -> bool:
        """Whether it may stand before a model."""
        return hasattr(self.make, "transform")

    @property
    def facts(self) -> Target:
        """What its y is."""
        return TARGETS[self.target]

    def y(self, X: Any) -> Any:
        """Return a target for rows of numbers; None where y is ignored."""
        return self.facts.of(np.asarray(X)[:, 0])


@dataclass(frozen=True)
class PipelineEntry(Entry):
    """A pipeline, whose steps take what is public of the data."""

    alone: ClassVar[bool] = False

    def estimator(self, **parameters: Any) -> BaseEstimator:
        """Return an unfitted pipeline."""
        public = {name: parameters.pop(name, None) for name in ("feature_bounds", "classes")}
        steps = [
            ("scale", DPStandardScaler(feature_bounds=public["feature_bounds"])),
            ("model", DPLogisticCD(n_passes=2, classes=public["classes"])),
        ]
        return self.make(**{"steps": steps, **parameters})


@dataclass(frozen=True)
class SearchEntry(Entry):
    """A search over penalties of a model, which takes what is public of the features and labels."""

    model: Callable[..., BaseEstimator] = DPLogisticCD
    grid: str = "param_grid"
    alone: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The names of both classes."""
        return f"{self.make.__name__} {self.model.__name__}"

    def estimator(self, **parameters: Any) -> BaseEstimator:
        """Return an unfitted search."""
        names = {"feature_bounds", "classes"} & parameters.keys()
        public = {name: parameters.pop(name) for name in names}
        if "adjacency" in parameters:  # must be the same
            public["adjacency"] = parameters["adjacency"]
        given = {"estimator": self.model(**public), self.grid: {"alpha": [0.0, 0.1]}}
        return self.make(**{**given, **self.settings, **parameters})


ENTRIES = [
    Entry(DPCoordinateDescentRegressor, "numbers", descends=True, reads_sparse=True),
    Entry(DPCoordinateDescentRegressor, "numbers", {"solver": "gram"}, reads_sparse=True),
    Entry(
        DPCoordinateDescentRegressor,
        "numbers",
        {"solver": "gradient", "n_passes": 2},
        reads_sparse=True,
    ),
    Entry(
        DPCoordinateDescentRegressor,
        "numbers",
        {"solver": "joint", "n_passes": 2},
        pure=False,
        reads_sparse=True,
    ),
    Entry(DPRidge, "numbers", reads_sparse=True),
    Entry(DPLasso, "numbers", {"alpha": 0.01}, reads_sparse=True),
    Entry(DPElasticNet, "numbers", {"alpha": 0.01}, reads_sparse=True),
    Entry(DPLogisticCD, "labels", {"n_passes": 2}, descends=True, reads_sparse=True),
    Entry(
        DPLogisticCD,
        "labels",
        {"n_passes": 2, "solver": "joint"},
        descends=True,
        pure=False,
        reads_sparse=True,
    ),
    Entry(
        DPLogisticCD,
        "labels",
        {"n_passes": 2, "solver": "coordinate"},
        descends=True,
        reads_sparse=True,
    ),
    Entry(DPLassoPath, "numbers", {"alphas": 3}),
    Entry(
        DPPoissonRegressor,
        "counts",
        {"n_passes": 2},
        descends=True,
        reads_sparse=True,
    ),
    Entry(
        DPPoissonRegressor,
        "counts",
        {"n_passes": 2, "solver": "coordinate"},
        descends=True,
        reads_sparse=True,
    ),
    Entry(
        DPHuberRegressor, "numbers", {"n_passes": 2}, descends=True, pure=False, reads_sparse=True
    ),
    Entry(
        DPQuantileRegressor,
        "numbers",
        {"n_passes": 2},
        descends=True,
        pure=False,
        reads_sparse=True,
        enough=0.6,
    ),
    Entry(DPLinearSVC, "labels", {"n_passes": 2}, descends=True, pure=False, reads_sparse=True),
    Entry(DPPCA, refuses_extremes=False, uncentred={"center": False}),
    Entry(DPCovariance, refuses_extremes=False, uncentred={"assume_centered": True}),
    Entry(DPStandardScaler),
    Entry(DPRobustScaler),
    Entry(DPMinMaxScaler),
    Entry(DPKBinsDiscretizer),
    Entry(DPQuantileTransformer),
    Entry(DPSimpleImputer, reads="gaps"),
    Entry(DPOneHotEncoder, pure=False, refuses_extremes=False, reads="labels"),
    Entry(DPOrdinalEncoder, pure=False, refuses_extremes=False, reads="labels"),
    Entry(DPTableVectorizer, refuses_extremes=False, reads="tables"),
    PipelineEntry(DPPipeline, "labels"),
    SearchEntry(DPGridSearchCV, "labels", reads_sparse=True),
    SearchEntry(DPGridSearchCV, "numbers", model=DPCoordinateDescentRegressor, reads_sparse=True),
    SearchEntry(
        *(DPRandomizedSearchCV, "counts", {"n_iter": 2}),
        model=DPPoissonRegressor,
        grid="param_distributions",
        reads_sparse=True,
    ),
    Entry(BoundsClipper, settings={"feature_bounds": (-1.0, 1.0)}, spends=False),
]
# `make test-torch` has an environment for them.
NETWORKS = [
    Entry(
        make,
        target,
        {"max_iter": 2, "batch_size": 0.25},
        pure=False,
        refuses_extremes=False,
        adjacencies=("add_remove",),
        by_torch=True,
    )
    for make, target in (
        (DPMLPClassifier, "labels"),
        (DPMLPRegressor, "numbers"),
        (DPNeuralClassifier, "labels"),
        (DPNeuralRegressor, "numbers"),
    )
]
if find_spec("torch") is not None:
    ENTRIES += NETWORKS
PRIVATE = [entry for entry in ENTRIES if entry.spends]
# The first entry of every class.
CLASSES = list({entry.make: entry for entry in reversed(PRIVATE) if entry.alone}.values())[::-1]
MODELS = [entry for entry in CLASSES if entry.target is not None and not entry.by_torch]
DESCENTS = [entry for entry in CLASSES if entry.descends]
MATRICES = [entry for entry in CLASSES if entry.uncentred]


def each(entries: list[Entry]) -> Any:
    """Return a mark that runs a test with each of the entries."""
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.name)


def ways(entries: Iterable[Entry]) -> list[Entry]:
    """Return the first entry of each way through a fit, for what those who share it share.

    A way is a `fit` that is written down, what y is, and what columns hold.
    """
    found: dict[Any, Entry] = {}
    for entry in entries:
        owner = next(cls for cls in entry.make.__mro__ if "fit" in vars(cls))
        found.setdefault((owner, entry.target, entry.reads, entry.by_torch), entry)
    return list(found.values())


every_estimator = each(ENTRIES)
every_private_estimator = each(PRIVATE)
every_private_class = each(CLASSES)


class Notebook:
    """The least that a ledger must be: it remembers what it was charged."""

    dataset = "patients"

    def __init__(self) -> None:
        self.charges: list[dict[str, Any]] = []

    def charge(self, label: str, cost: Any, **facts: Any) -> None:
        """Remember a charge."""
        self.charges.append({"label": label, "cost": str(cost), **facts})


class Forbidden:
    """A ledger that fails the test when it is charged."""

    dataset = "patients"

    def charge(self, label: str, cost: Any, **facts: Any) -> None:
        """Fail."""
        pytest.fail(f"charged for {label!r}, which was then refused")

    def __deepcopy__(self, memo: Any) -> Forbidden:
        return self


def state(estimator: BaseEstimator) -> dict[str, Any]:
    """Return all that an estimator holds, and how it looks, so that a change can be seen."""
    return {name: (id(value), repr(value)) for name, value in vars(estimator).items()}


def said(error: BaseException) -> str:
    """Return all that an error says, with notes and the errors that it came from."""
    texts, chain = [], [error]
    while chain:
        one = chain.pop()
        texts += [str(one), repr(one), *getattr(one, "__notes__", [])]
        chain += [link for link in (one.__cause__, one.__context__) if link is not None]
    return "\n".join(texts)
