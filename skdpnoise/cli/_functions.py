"""The commands that call a function of the library with an estimator: audit and plan."""

from __future__ import annotations

import importlib
import json
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from skdpnoise._utils.checks import pandas_for
from skdpnoise.cli._output import MEMORY, NO_MEMORY, print_json, print_sheet, taken_by
from skdpnoise.inspection import audit, plan
from skdpnoise.ledger import PrivacyLedger
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.reporting.sheet import sheet_of

__all__ = ["run_audit", "run_plan"]


def run_audit(args: Namespace) -> int:
    """Audit, and print the report; 1 if the claim was refuted, or a declaration is broken."""
    args.estimator = _load_estimator(args.estimator)
    X, y = _read(args.data, args.target)
    progress = sys.stderr.isatty() and not args.json
    report = audit(X=X, y=y, progress=progress, **taken_by(audit, args))
    if args.json:
        print_json(report.to_dict())
    else:
        print_sheet(sheet_of(report))
    return 0 if report.passed else 1


def run_plan(args: Namespace) -> None:
    args.estimator = _load_estimator(args.estimator)
    args.estimator.set_params(**taken_by(PrivacyGuarantee, args))
    if args.dataset is not None:
        if not args.ledger_storage:
            raise ValueError("--dataset needs --storage (or the variable SKDPNOISE_LEDGER).")
        if args.ledger_storage == MEMORY:
            raise ValueError(NO_MEMORY)
        args.ledger = PrivacyLedger.open(args.dataset, args.ledger_storage)
    if isinstance(args.features, Path):
        args.features = _schema(args.features)
    found = plan(**taken_by(plan, args))
    reaching = {} if args.score is None else {"epsilon_for": found.epsilon_for(args.score)}
    if args.json:
        print_json(found.to_dict() | reaching)
        return
    print_sheet(sheet_of(found))
    for epsilon in reaching.values():
        print(f"epsilon for a score of {args.score:g}: {epsilon:.3g}")


def _load_estimator(text: str) -> Any:
    module_name, colon, name = text.partition(":")
    if not (module_name and colon and name):
        raise ValueError(
            f"the estimator must be given as MODULE:FACTORY, such as "
            f"skdpnoise:DPStandardScaler. Got {text!r}."
        )
    # As `python -m` does: a module of one's own lies in the folder where one works.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    factory: Any = importlib.import_module(module_name)
    for part in name.split("."):
        if not hasattr(factory, part):
            raise ValueError(f"the module {module_name!r} has no {name!r}.")
        factory = getattr(factory, part)
    estimator = factory() if callable(factory) else factory
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise ValueError(
            f"{text!r} made an object of type {type(estimator).__name__}, which is no estimator: "
            "it has no fit or no get_params."
        )
    return estimator


def _read(path: Path, target: str | None) -> tuple[Any, Any]:
    table, y = pandas_for("skdpnoise audit").read_csv(path), None
    if target is not None:
        if target not in table.columns:
            raise ValueError(f"the table has no column {target!r} for --target.")
        y = table.pop(target).to_numpy()
    other = [name for name, kind in table.dtypes.items() if kind.kind not in "iufb"]
    if other:
        raise ValueError(f"these columns are not numbers: {', '.join(map(repr, other))}.")
    return table.to_numpy(dtype=float), y


def _schema(path: Path) -> dict[str, Any]:
    """Return a schema from a file, in which JSON has lists only: pairs of numbers are bounds."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError(f"the schema must be a JSON object. Got a {type(found).__name__}.")
    for name, spec in found.items():
        kinds = [type(end) for end in spec] if isinstance(spec, list) else []
        if len(kinds) == 2 and set(kinds) <= {int, float}:
            found[name] = tuple(spec)
    return found
