"""Neural networks by private stochastic gradient descent: their one fit, and predictions."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from numbers import Integral, Real
from operator import itemgetter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skdpnoise._utils.parameters import as_bounds, check_memory
from skdpnoise.accounting.budget import BESIDE
from skdpnoise.accounting.session import FitSession
from skdpnoise.base.advice import warn_of_hidden_target
from skdpnoise.base.callbacks import CallbackSupportMixin, follow_epochs, with_callbacks
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.private_fit import PrivateEstimator
from skdpnoise.base.tags import PrivateTags
from skdpnoise.data.computed import asked_epsilon
from skdpnoise.data.groups import Groups
from skdpnoise.data.reading import NumberColumns, Supervised, read
from skdpnoise.data.schema import Schema
from skdpnoise.data.table import Table
from skdpnoise.data.tables import read_table
from skdpnoise.mechanisms.sampled import FAMILIES
from skdpnoise.neural_network._calibration import (
    AS_THEY_ARE,
    COUNTS,
    ScoresAlone,
    labels_by_score,
    log_odds,
)
from skdpnoise.neural_network._data import Scaling, members_of
from skdpnoise.neural_network._gradients import PersonGradients, slots_agree
from skdpnoise.neural_network._modules import (
    ParameterGroups,
    grouped,
    keeping_nothing,
    load_torch,
    make_module,
    refuse_mixing,
)
from skdpnoise.neural_network._plan import TrainingShares, planned_sampling, share_out
from skdpnoise.neural_network._training import People, Training, n_slots_for
from skdpnoise.privacy import Adjacency
from skdpnoise.queries import private_location_scale
from skdpnoise.queries.location_scale import LIMIT
from skdpnoise.queries.searched_location import search_location
from skdpnoise.sensitivity import GroupedProfile

_QUEUED = 4  # where slots are drawn, so many people in each are waited for on average
_PREDICTED = 64  # rows at once, always so many, so that others hardly change a row's prediction
_OF_IMAGES = 4  # axes of the weights of a layer of images
NOISES = {f"{rule}_{family}" for rule in ("iid", "spr", "inid") for family in FAMILIES}


@constructor_of_fields
class PrivateNetwork(CallbackSupportMixin, PrivateEstimator, BaseEstimator, ABC):
    """The one fit of all networks, their parameters and their function."""

    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    adjacency: Adjacency = "add_remove"
    clip_groups: Any = "global"
    clip: Any = "auto"
    batch_size: Any = "auto"
    max_iter: int = 20
    solver: str = "sgd"
    learning_rate_init: float | str = "auto"
    momentum: float = 0.9
    alpha: float = 0.0
    feature_bounds: Any = None
    n_samples: int | None = None
    device: str = "cpu"
    module: ClassVar[Any] = None
    _target_dtype: ClassVar[str]  # torch's name of the type of targets
    _parameter_constraints: ClassVar[Constraints] = {
        "adjacency": [StrOptions({"add_remove"})],
        "noise": [StrOptions({"auto"} | NOISES)],
        "clip_groups": [StrOptions({"global", "layer", "tensor"}), callable],
        "clip": [
            StrOptions({"auto", "adaptive"}),
            Interval(Real, 1e-12, 1e12, closed="both"),
            "array-like",
        ],
        "batch_size": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "max_iter": [Interval(Integral, 1, 10**6, closed="both")],
        "solver": [StrOptions({"sgd", "adam"})],
        "learning_rate_init": [StrOptions({"auto"}), Interval(Real, 0, 1e6, closed="neither")],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "alpha": [Interval(Real, 0, 1e6, closed="both")],
        "feature_bounds": [None, tuple, list, dict, np.ndarray],
        "n_samples": [None, Interval(Integral, 1, None, closed="left")],
        "device": [str],
    }

    def __private_tags__(self) -> PrivateTags:
        # A module is the user's code, and so are its parameters.
        return PrivateTags(samples_records=True, declares=("module",))

    def _validate_params(self) -> None:
        super()._validate_params()
        load_torch(type(self).__name__)  # before a composition around it pays for its other steps

    @with_callbacks
    def fit(self, X: Any, y: Any, groups: Any = None, **params: Any) -> Self:
        """Train the network on private data, spending the whole guarantee.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; finite. A module may take rows of more dimensions, such as images.
        y : array-like of shape (n_samples,)
            Target; finite. Of a classifier, labels of one kind: text, whole numbers or booleans.
        groups : array-like of shape (n_samples,) or None, default=None
            Labels of what owns the rows: people, households, devices. The guarantee then holds for
            them: a batch is a sample of people, each of whom counts with the mean gradient of at
            most ``rows_per_group`` rows.
        %(fits: **params)s

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ImportError
            If torch is not installed.
        %(fits: ValueError, BudgetExceededError, TypeError)s
        """
        with self._session(groups, params) as session:
            # check
            torch = load_torch(type(self).__name__)
            schema, rows = self._read(X, y, groups)
            shares = share_out(
                self,
                session.guarantee,
                features=schema.bounds is not None and not np.isfinite(schema.bounds).all(),
                target=schema.target_bounds is not None,
                labels=is_classifier(self) and schema.n_outputs == 2,
            )
            # Whose state a user may rely on; and no error tells that a gradient is not a number.
            with torch.random.fork_rng(devices=[]), torch.autograd.set_detect_anomaly(False):
                torch.manual_seed(int(session.rng.take(1)[0] >> np.uint64(1)))
                module, parts, gradients = self._network(torch, schema)
                pristine = copy.deepcopy(module)  # which no private row passes through
                profile = self._profile(shares.noise, parts)
                stages = shares.stages(profile)
                counting = shares.counting(COUNTS)
                session.reserve(stages, shares.noise, of_groups=range(len(stages)))
                # bound
                n_people = rows.rows.n_rows if rows.n_groups is None else rows.n_groups
                people = shares.counted(session, n_people)
                sampling = shares.sampling or planned_sampling(self, people.n_records)
                assert sampling is not None
                mechanism = shares.mechanism(sampling, profile)
                shares.fix(people.account, mechanism)
                terms = shares.terms_of_rows(people, rows.n_kept)
                members = members_of(rows, people.rng)
                table: Any = rows.rows
                used = table if rows.codes is None else table.rows(members[members >= 0])
                scalings = self._estimate_scalings(people, shares, terms, schema, used)
                X_units = torch.from_numpy(_in_units(table.leaf["X"], scalings[0]))
                y_units = torch.from_numpy(self._targets(schema, scalings[1], table.leaf["y"]))
                tensors = X_units.to(self.device), y_units.to(self.device)
                # charge, draw, solve
                draw = people.of_groups().each("gradients", mechanism)
                size = n_slots_for(int(parts.sizes.sum()), sampling.rate * people.n_records)
                batch = self._batch(torch, schema, size)
                agree = slots_agree(torch, gradients, gradients.trained, batch)
                training = Training(
                    estimator=copy.copy(self),  # callbacks may change parameters
                    groups=parts,
                    gradients=gradients,
                    people=People(torch, *tensors, members=members),
                    mechanism=mechanism,
                    draw=draw,
                    profile=profile,
                    rng=people.rng,
                    n_people=people.n_records,
                    n_slots=size if agree else 2 ** int(math.log2(max(1, size // _QUEUED))),
                    agree=agree,
                )
                n_epochs = int(self.max_iter)

                def model(state: tuple[dict[str, Any], NDArray[np.float64]]) -> dict[str, Any]:
                    fitted = copy.deepcopy(pristine)
                    fitted.load_state_dict(state[0])
                    own = {
                        "module_": fitted.eval(),
                        "allocation_": training.allocation(state[1]),
                        "n_iter_": n_epochs,
                        "n_steps_": mechanism.n_releases,
                        "sampling_rate_": mechanism.rate,
                        "_scalings": scalings,
                    }
                    if schema.classes is not None:
                        own |= {"classes_": schema.classes, "calibration_": AS_THEY_ARE}
                    return own

                epochs = training.epochs(module)
                fitted = follow_epochs(self, epochs, n_epochs, model, (X, y))
                if counting is not None:

                    def in_units(leaf: dict[str, Any]) -> tuple[Any, Any]:
                        y = self._targets(schema, scalings[1], leaf["y"])
                        return _in_units(leaf["X"], scalings[0]), y

                    place = self._batch(torch, schema, 1)[0][0]
                    alone = ScoresAlone(torch, fitted["module_"], place, torch.initial_seed())
                    query = labels_by_score(alone, in_units)
                    counts = people.released("labels by score", query, used, counting)
                    fitted["calibration_"] = log_odds(counts)
                # store
                report = session.report()
            self.__dict__.update(fitted, privacy_=report)
        return self

    @abstractmethod
    def _of_outputs(self, schema: Schema) -> Schema:
        """Return the schema with the public facts of the target."""

    @abstractmethod
    def _targets(self, schema: Schema, scaling: Scaling | None, y: NDArray[Any]) -> NDArray[Any]:
        """Return the target as the loss takes it."""

    @abstractmethod
    def _row_losses(self, torch: Any) -> Callable[..., Any]:
        """Return the function of outputs and targets that gives the loss of each row."""

    def _read(self, X: Any, y: Any, groups: Any) -> tuple[Schema, Groups[dict[str, Any]]]:
        wide = self.module is not None
        numbers = NumberColumns({"allow_nd": wide})
        form = Supervised(numbers, labels=is_classifier(self), in_memory=True)
        schema, rows = read(self, form, self._known, X=X, y=y, groups=groups)
        needed, most = 8.0 * rows.rows.n_rows * int(self.rows_per_group), int(self.rows_per_group)
        reason = f"rows_per_group={most}"
        check_memory(type(self).__name__, needed, reason, "Use fewer rows of each group.")
        n_columns = math.prod(schema.row_shape)
        bounds = as_bounds(self.feature_bounds, n_columns, "feature_bounds", self)
        as_they_are = wide and self.feature_bounds is None
        schema = replace(schema, bounds=None if as_they_are else bounds)
        return self._of_outputs(schema), rows

    def _network(self, torch: Any, schema: Schema) -> tuple[Any, ParameterGroups, PersonGradients]:
        """Return a new network and the groups of its parameters, tried on zeros."""
        owner = type(self).__name__
        module = make_module(self, math.prod(schema.row_shape), schema.n_outputs)
        module.to(device=self.device, dtype=torch.float32)
        refuse_mixing(owner, module)
        batch = self._batch(torch, schema, 1)
        rows = batch[0][0]
        with torch.no_grad():
            module(rows)  # lazy layers get their shapes
            with keeping_nothing(owner, module):
                found = tuple(module(rows).shape)
            finished = copy.deepcopy(module).eval()
            with keeping_nothing(owner, finished):
                finished(rows)
            # Layers of images are faster when the channels of a place lie side by side.
            for one in module.parameters():
                if one.ndim == _OF_IMAGES:
                    one.data = one.data.contiguous(memory_format=torch.channels_last)
        parts = grouped(owner, module, self.clip_groups)
        if found != (len(rows), schema.n_outputs):
            raise ValueError(
                f"The 'module' parameter of {owner} must make {schema.n_outputs} outputs of "
                f"each row, of shape {(len(rows), schema.n_outputs)} from rows of shape "
                f"{tuple(rows.shape)}. Got shape {found}."
            )
        gradients = PersonGradients(torch, module, parts, self._row_losses(torch))
        with keeping_nothing(owner, module):
            try:
                gradients(gradients.trained, *batch)
            except RuntimeError as error:
                raise ValueError(
                    f"The 'module' parameter of {owner} must work under torch.func.vmap, which "
                    "makes gradients of single records. Got a network that does not: a layer that "
                    "torch cannot vectorise, such as GRU (LSTM can), or a step that hangs on the "
                    "values of a row, such as 'if' (torch.where can)."
                ) from error
        return module, parts, gradients

    def _batch(self, torch: Any, schema: Schema, n_slots: int) -> tuple[Any, Any, Any]:
        shape = n_slots, int(self.rows_per_group)
        rows = torch.zeros((*shape, *schema.row_shape), dtype=torch.float32)
        targets = torch.zeros(shape, dtype=getattr(torch, self._target_dtype))
        ones = torch.ones(shape, dtype=torch.float32)
        return rows.to(self.device), targets.to(self.device), ones.to(self.device)

    def _profile(self, noise: str, parts: ParameterGroups) -> GroupedProfile:
        """Return what one person in a sample can do to each group."""
        order = 2 if noise.endswith("_gaussian") else 1
        sizes, n_groups = parts.n_parameters, len(parts.labels)
        if isinstance(self.clip, str):
            bounds = np.full(n_groups, 1.0 / np.sqrt(n_groups))
            if order == 1:  # of a gradient of that norm whose entries are alike
                bounds = bounds * np.sqrt(sizes)
        else:
            given = np.asarray(self.clip, dtype=np.float64)
            if given.shape not in ((), (n_groups,)) or not (given > 0.0).all():
                raise ValueError(
                    f"The 'clip' parameter of {type(self).__name__} must be 'auto', a positive "
                    f"number, or one for each of the {n_groups} groups {list(parts.labels)}. Got "
                    f"shape {given.shape}."
                )
            bounds = np.broadcast_to(given, n_groups)
        groups = parts.of_coordinates
        if isinstance(self.clip, str) and self.clip == "adaptive":
            # Counts of people within each clip, for little of the budget.
            bounds = np.append(bounds, BESIDE * np.linalg.norm(bounds, order))
            groups = np.append(groups, np.full(n_groups, n_groups))
        return GroupedProfile(bounds, groups, order)

    def _estimate_scalings(
        self,
        session: FitSession,
        shares: TrainingShares,
        terms: dict[str, Any],
        schema: Schema,
        rows: Table[dict[str, Any]],
    ) -> tuple[Scaling | None, Scaling | None]:
        features, target, bounds = None, None, schema.bounds
        if "features" in shares.losses:
            assert bounds is not None
            table, part = rows.map(_flat_features, bounds.shape[1]), shares.of_rows("features")
            found = private_location_scale(
                table, part, bounds=(bounds[0], bounds[1]), **terms, **session.terms
            )
            scale = np.where(found.found, found.scale, np.inf)  # what is hidden becomes 0
            features = Scaling(found.location, scale, LIMIT)
        elif bounds is not None:
            low, high = bounds
            middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
            features = Scaling(middle, half, 1.0)
            if self.module is None:
                # 0 stays 0 within bounds, as most numbers of images and indicators are: gradients
                # are not clipped for what all records have in common.
                zero = (low <= 0.0) & (high >= 0.0) & (half > 0.0)
                shift = np.divide(middle, half, out=np.zeros_like(half), where=zero)
                features = replace(features, shift=shift)
        if schema.target_bounds is not None:
            low, high = schema.target_bounds[:, 0].tolist()
            part, values = shares.of_rows("target"), rows.map(itemgetter("y"))
            own = session.under("target: ")
            one = search_location(values, part, (low, high), session=own, **terms)
            target = Scaling(np.array(one.location), np.array(one.scale), LIMIT)
            if one.hidden:
                warn_of_hidden_target(f"{type(self).__name__} learns little", asked_epsilon(self))
        return features, target

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        torch = load_torch(type(self).__name__)
        X = read_table(self, X, reset=False, allow_nd=self.module is not None)
        module = self.module_.to(device=self.device)
        found = []
        with torch.no_grad():
            for begin in range(0, len(X), _PREDICTED):
                some = _in_units(X[begin : begin + _PREDICTED], self._scalings[0])
                shape, kind = (_PREDICTED, *X.shape[1:]), {"dtype": torch.float32}
                rows = torch.zeros(shape, device=self.device, **kind)
                rows[: len(some)] = torch.from_numpy(some)
                found.append(module(rows)[: len(some)].cpu().numpy())
        return np.concatenate(found).astype(np.float64)


def _flat_features(leaf: dict[str, Any]) -> NDArray[Any]:
    X: NDArray[Any] = leaf["X"]
    return X.reshape(len(X), -1)


def _in_units(X: NDArray[Any], scaling: Scaling | None) -> NDArray[np.float32]:
    """Return rows as a network takes them, each by itself."""
    if scaling is None:
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(X, dtype=np.float32)
    return scaling(X.reshape(len(X), -1)).reshape(X.shape)
