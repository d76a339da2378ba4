"""The command that plans a fit."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from skdpnoise.cli._estimators import load_estimator
from skdpnoise.cli._files import path_of
from skdpnoise.cli._output import MEMORY, NO_MEMORY, print_json, print_sheet

__all__ = ["add_arguments", "run"]

_ENDING = """
The estimator is made by a function without arguments, or a class, of a module that Python can
import; the current folder is searched first. Its code runs on this machine: name nothing that you
do not trust. No data are read: the records are made up. A schema is a JSON object of columns by
name: [low, high] for two numbers, a list of categories (longer, or of texts), "log", or null.
"""


def add_arguments(commands: Any, storage: str | None) -> None:
    parser: ArgumentParser = commands.add_parser(
        "plan",
        help="what a fit would release, hide and reach, before anything is spent",
        description="Plan a fit: its noise, its cost and a simulated score.",
        epilog=_ENDING,
    )
    parser.add_argument("estimator", metavar="MODULE:FACTORY", help="what makes the estimator")
    parser.add_argument("--n-samples", type=int, required=True, metavar="N", help="rows")
    shape = parser.add_mutually_exclusive_group(required=True)
    shape.add_argument("--n-features", type=int, metavar="N", help="columns")
    shape.add_argument("--names", nargs="+", metavar="NAME", help="names of the columns")
    shape.add_argument(
        "--schema", type=path_of, metavar="FILE", help="what is public of columns, JSON"
    )
    parser.add_argument("--epsilon", type=float, help="default: that of the estimator")
    parser.add_argument("--delta", type=float, help="default: that of the estimator")
    parser.add_argument(
        "--epsilons", type=float, nargs="+", metavar="E", help="where to simulate the score"
    )
    parser.add_argument("--classes", type=int, metavar="N", help="number of classes")
    parser.add_argument(
        "--signal", type=float, default=0.5, help="how much columns explain (default: 0.5)"
    )
    parser.add_argument("--scoring", metavar="NAME", help="a scorer of scikit-learn")
    parser.add_argument("--n-fits", type=int, metavar="N", help="at each epsilon")
    parser.add_argument("--n-groups", type=int, metavar="N", help="groups of rows")
    parser.add_argument("--score", type=float, help="print the epsilon that reaches it, too")
    parser.add_argument("--dataset", metavar="NAME", help="what its ledger still covers")
    parser.add_argument(
        "--storage",
        dest="ledger_storage",  # needed with --dataset only
        metavar="URL",
        default=storage,
        help="where that ledger is (default: the variable SKDPNOISE_LEDGER)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, dest="random_state", metavar="SEED", help="default: 0"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=("_plan", "run"), parser=parser)


def run(args: Namespace) -> None:
    from skdpnoise.ledger import PrivacyLedger
    from skdpnoise.planning import plan
    from skdpnoise.reporting.sheet import sheet_of

    estimator = load_estimator(args.estimator)
    asked = {name: getattr(args, name) for name in ("epsilon", "delta")}
    estimator.set_params(**{name: value for name, value in asked.items() if value is not None})
    ledger = None
    if args.dataset is not None:
        if not args.ledger_storage:
            raise ValueError("--dataset needs --storage (or the variable SKDPNOISE_LEDGER).")
        if args.ledger_storage == MEMORY:
            raise ValueError(NO_MEMORY)
        ledger = PrivacyLedger.open(args.dataset, args.ledger_storage)
    features = args.names or args.n_features
    if args.schema is not None:
        features = _schema(args.schema)
    names = ("epsilons", "classes", "signal", "scoring", "n_fits", "n_groups", "random_state")
    options = {name: getattr(args, name) for name in names}
    found = plan(estimator, args.n_samples, features, ledger=ledger, **options)
    reaching = None if args.score is None else found.epsilon_for(args.score)
    if args.json:
        print_json(found.to_dict() | ({} if reaching is None else {"epsilon_for": reaching}))
        return
    print_sheet(sheet_of(found))
    if reaching is not None:
        print(f"epsilon for a score of {args.score:g}: {reaching:.3g}")


def _schema(path: Path) -> dict[str, Any]:
    """Return a schema from a file, in which JSON has lists only."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError(f"the schema must be a JSON object. Got a {type(found).__name__}.")
    return {name: tuple(spec) if _is_pair(spec) else spec for name, spec in found.items()}


def _is_pair(spec: Any) -> bool:
    return (
        isinstance(spec, list)
        and len(spec) == 2
        and all(isinstance(end, int | float) and not isinstance(end, bool) for end in spec)
    )
