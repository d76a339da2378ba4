"""Networks and the groups of their parameters: made, checked, and refused where records mix."""

from __future__ import annotations

import copy
import math
import pickle
import random
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from io import BytesIO
from itertools import pairwise
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.checks import complaint

_CODE = (type, BuiltinFunctionType, ModuleType, property, staticmethod, classmethod)

ACTIVATIONS = {"identity": "Identity", "logistic": "Sigmoid", "tanh": "Tanh", "relu": "ReLU"}
"""scikit-learn's names, and those of torch's modules."""


def load_torch(owner: str) -> Any:
    try:
        import torch
        import torch.func
    except ImportError as error:
        raise ImportError(
            f"{owner} needs torch, which is not installed: pip install 'skdpnoise[torch]'"
        ) from error
    return torch


def make_module(estimator: Any, n_inputs: int, n_outputs: int) -> Any:
    torch = load_torch(type(estimator).__name__)
    factory = getattr(estimator, "module", None)
    if factory is None:
        sizes = getattr(estimator, "hidden_layer_sizes", (100,))
        widths = [n_inputs, *np.atleast_1d(sizes).tolist(), n_outputs]
        between = getattr(torch.nn, ACTIVATIONS[getattr(estimator, "activation", "tanh")])
        layers: list[Any] = []
        for before, after in pairwise(widths):
            layers += [torch.nn.Linear(before, after), between()]
        return torch.nn.Sequential(*layers[:-1])
    prefix = "module__"
    options = {
        name.removeprefix(prefix): value
        for name, value in estimator.get_params(deep=False).items()
        if name.startswith(prefix)
    }
    module = copy.deepcopy(factory(**options))  # a training changes nothing that a user holds
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"The 'module' parameter of {type(estimator).__name__} must make a torch.nn.Module. "
            f"Got an object of type {type(module).__name__} from it."
        )
    return module


def refuse_mixing(owner: str, module: Any) -> None:
    torch = load_torch(owner)
    for name, layer in module.named_modules():
        if fault := _mixing(torch, layer):
            must, remedy = fault
            raise ValueError(
                complaint(owner, "module", must, f"{type(layer).__name__} as {name!r}", remedy)
            )


def _mixing(torch: Any, layer: Any) -> tuple[str, str] | None:
    """Return what must not be, or be, of a layer that mixes records, and what helps."""
    if isinstance(layer, torch.nn.modules.instancenorm._InstanceNorm):
        keeps = layer.track_running_stats and layer.training
        keeping = "not keep statistics of records", "Use track_running_stats=False."
        return keeping if keeps else None
    if not isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
        return None
    if layer.training:
        return "not have batch norm in training, which mixes the records of a batch", (
            "Use torch.nn.GroupNorm; or, where the layer is pretrained on public data, call "
            ".eval() on it and freeze its parameters."
        )
    if any(one.requires_grad for one in layer.parameters()):
        return "freeze batch norm in eval mode, whose statistics are those of public data", (
            "Call .requires_grad_(False) on its parameters, or use torch.nn.GroupNorm."
        )
    if layer.running_mean is None:
        must = "not have batch norm without statistics of its own, which takes those of a batch"
        return must, "Use torch.nn.GroupNorm."
    return None


@contextmanager
def keeping_nothing(owner: str, module: Any) -> Iterator[None]:
    """Refuse a network that keeps something of a call, or takes numbers of a shared generator."""
    # Else what one record adds would hang on who came before it, in the same batch or an earlier
    # one. What is kept outside of a module and its class cannot be seen.
    before, drawn = _kept(module), _generators()
    yield
    after = _kept(module)
    must = f"The 'module' parameter of {owner} must"
    for name, value in after.items():
        if name not in before or before[name] != value:
            what = "buffers" if name in dict(module.named_buffers()) else "attributes"
            raise ValueError(
                f"{must} not change its {what} in forward, which would keep what records are like. "
                f"Got one that does, or that cannot be looked into, {name!r}: leave it constant."
            )
    if _generators() != drawn:
        raise ValueError(
            f"{must} not take numbers of Python's or numpy's generator in forward, which all "
            "records of a call would share. Use torch's, such as torch.nn.Dropout."
        )


def _generators() -> tuple[Any, ...]:
    """Return the states of the generators that a process shares."""
    kind, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002 (that others use)
    return random.getstate(), kind, np.asarray(keys).tobytes(), *rest


def _kept(module: Any) -> dict[str, Any]:
    return {name: _written(value) for name, value in _held(module).items()}


def _held(module: Any) -> dict[str, Any]:
    """Return buffers, and the attributes of each layer and of its class, by their names."""
    found = dict(module.named_buffers())
    own = {"_parameters", "_buffers", "_modules"}
    for name, layer in module.named_modules():
        kinds = [one for one in type(layer).__mro__ if not one.__module__.startswith("torch.")]
        held = [vars(kind) for kind in reversed(kinds) if kind is not object] + [vars(layer)]
        for key, value in (pair for one in held for pair in one.items()):
            if key not in own and not key.startswith("__"):
                found[f"{name}.{key}".lstrip(".")] = value
    return found


def _written(value: Any) -> Any:
    """Return all that a value holds as bytes; what cannot be looked into is equal to nothing."""
    file = BytesIO()
    try:
        _Writer(file).dump(value)
    except Exception:
        return object()
    return file.getvalue()


class _Writer(pickle.Pickler):
    """Writes down what objects hold, for no one to read: of code only which it is."""

    def persistent_id(self, value: Any) -> int | None:
        if isinstance(value, ref):  # which keeps nothing
            return 0
        return id(value) if isinstance(value, _CODE) else None

    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules["torch"]
        if isinstance(value, FunctionType | MethodType):
            return id, (id(value),), _kept_by(value)
        if isinstance(value, torch.nn.Module):
            return id, (id(value),), _held(value)
        if isinstance(value, _lru_cache_wrapper):
            return id, (id(value),), value.cache_info()
        if isinstance(value, torch.Generator):
            return id, (id(value),), value.get_state()
        if isinstance(value, torch.Tensor):
            try:
                return bytes, (value.detach().cpu().numpy().tobytes(), tuple(value.shape))
            except (RuntimeError, TypeError):  # of a transformation that has ended, or no numbers
                return id, (id(value),)
        return NotImplemented


def _kept_by(function: Any) -> list[Any]:
    """Return what a function keeps: attributes, values of an enclosing function, and defaults."""
    plain = getattr(function, "__func__", function)
    cells = plain.__closure__ or ()
    enclosed = [cell.cell_contents for cell in cells if cell != CellType()]
    return [vars(plain), enclosed, plain.__defaults__, plain.__kwdefaults__]


@dataclass(frozen=True, slots=True, eq=False)
class ParameterGroups:
    """The parameters that are trained, in an order in which groups are adjacent."""

    labels: tuple[str, ...]  # of the groups
    names: tuple[str, ...]  # of the tensors, group by group
    shapes: tuple[tuple[int, ...], ...]  # of these
    members: NDArray[np.int64]  # (n_tensors,): the group of each tensor

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.array([math.prod(shape) for shape in self.shapes], dtype=np.int64)

    @property
    def n_parameters(self) -> NDArray[np.int64]:
        return np.bincount(self.members, weights=self.sizes).astype(np.int64)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each group begins among all parameters, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_parameters)])

    @property
    def of_coordinates(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.labels)), self.n_parameters)


def grouped(
    owner: str, module: Any, clip_groups: str | Callable[[str], Hashable]
) -> ParameterGroups:
    tensors = {
        name: tuple(one.shape) for name, one in module.named_parameters() if one.requires_grad
    }
    if not tensors:
        raise ValueError(
            f"The 'module' parameter of {owner} must have parameters to train: all of them are "
            "frozen, or there are none."
        )
    labels = [_label(owner, clip_groups, name) for name in tensors]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    members = np.array([numbers[label] for label in labels], dtype=np.int64)
    order = np.argsort(members, kind="stable")
    names: Sequence[str] = list(tensors)
    return ParameterGroups(
        tuple(map(str, numbers)),
        tuple(names[i] for i in order),
        tuple(tensors[names[i]] for i in order),
        members[order],
    )


def _label(owner: str, clip_groups: str | Callable[[str], Hashable], name: str) -> Hashable:
    if callable(clip_groups):
        label = clip_groups(name)
        if not isinstance(label, Hashable):
            raise TypeError(
                f"The 'clip_groups' parameter of {owner} must return a label that can be hashed. "
                f"Got one of type {type(label).__name__} for {name!r}."
            )
        return label
    layer = name.rpartition(".")[0] or name
    return {"tensor": name, "layer": layer, "global": "all parameters"}[clip_groups]
