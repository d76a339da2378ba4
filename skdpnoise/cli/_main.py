"""Arguments and exit codes of the command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from skdpnoise import __version__
from skdpnoise.cli._files import path_of
from skdpnoise.cli._output import FORMATS, MEMORY, NO_MEMORY, printable

__all__ = ["STORAGE", "main"]

# `skdpnoise.ledger.storage.STORAGE`, written again because --help waits for no import.
STORAGE = "SKDPNOISE_LEDGER"

Options = Mapping[str, Mapping[str, Any]]
"""Keywords of ``argparse`` for each option."""

_OF_LEDGERS = """
The storage is a URL of SQLAlchemy, such as sqlite:///budget.db (a file in this folder) or
postgresql+psycopg://user@host/database. Where --storage is not given, the environment
variable SKDPNOISE_LEDGER is read: the place for a URL with a password, since everyone on
the machine sees the arguments of a command. --json prints JSON and nothing else.
"""
_OF_ESTIMATORS = """
The estimator is made by a function without arguments, or a class, of a module that Python can
import; the current folder is searched first. Its code runs on this machine: name nothing that you
do not trust. """
_OF_AUDITS = """(Pickles are not read: opening one runs code too, that nobody sees.) The table is a
CSV file with a header, numbers only but for the target. The report is not private unless the table
is public. The command ends with 1 if something was found against the claim.
"""
_OF_PLANS = """No data are read: the records are made up. A schema is a JSON object of columns by
name: [low, high] for two numbers, a list of categories (longer, or of texts), "log", or null.
"""


def _of(text: str, kind: Any = None, metavar: str | None = None, **more: Any) -> dict[str, Any]:
    # No defaults: what is not given has that of the function that is called.
    return {"help": text, "type": kind, "metavar": metavar, **more}


def _flag(text: str) -> dict[str, Any]:
    return {"help": text, "action": "store_const", "const": True}


def _count(least: int, text: str) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
    return int(text)


_RELATIONS, _UNITS = ("replace_one", "add_remove"), ("record", "group")
_METHODS = ("replay", "black_box", "one_run")

_BUDGET: Options = {
    "--epsilon": _of("of the budget, above 0", float, required=True),
    "--delta": _of("of the budget, in [0, 1)", float, required=True),
    "--adjacency": _of("which data sets are neighbours (default: replace_one)", choices=_RELATIONS),
    "--unit": _of("what is protected (default: record)", choices=_UNITS),
    "--adaptive": _flag("hold also if budgets of fits are chosen by looking at results"),
    "--most-returned": _of("reservations (default: any number)", partial(_count, 0), "N"),
}
_FILE: Options = {
    "--format": _of("default: the ending of --out, else csv", choices=FORMATS),
    "--out": _of("default: the standard output", path_of, "FILE"),
    "--force": _flag("replace the file if there is one"),
}
_FACTORY: Options = {"estimator": _of("what makes the estimator", metavar="MODULE:FACTORY")}
_AUDIT: Options = {
    "--data": _of("a table of public records, CSV", path_of, "FILE", required=True),
    "--target": _of("column of the target or labels", metavar="COLUMN"),
    "--method": _of("default: what applies", nargs="+", choices=_METHODS),
    "--n-fits": _of("on each of two data sets (default: 1000)", int),
    "--n-canaries": _of("of the one run (default: 1000)", int),
    "--epsilon": _of("claimed, if the estimator does not say", float),
    "--delta": _of("claimed, if the estimator does not say", float),
    "--adjacency": _of("which are neighbours, if the estimator does not say", choices=_RELATIONS),
    "--false-alarm": _of("that a sound estimator is refuted (default: 0.001)", float),
    "--seed": _of("of everything", int, "SEED", dest="random_state"),
    "--n-jobs": _of("processes", int),
}
_COLUMNS: Options = {
    "--n-features": _of("columns", int, "N", dest="features"),
    "--names": _of("names of the columns", None, "NAME", dest="features", nargs="+"),
    "--schema": _of("what is public of columns, JSON", path_of, "FILE", dest="features"),
}
_PLAN: Options = {
    "--n-samples": _of("rows", int, "N", required=True),
    "--epsilon": _of("default: that of the estimator", float),
    "--delta": _of("default: that of the estimator", float),
    "--epsilons": _of("where to simulate the score", float, "E", nargs="+"),
    "--classes": _of("number of classes", int, "N"),
    "--signal": _of("how much columns explain (default: 0.5)", float),
    "--scoring": _of("a scorer of scikit-learn", metavar="NAME"),
    "--n-fits": _of("at each epsilon", int, "N"),
    "--n-groups": _of("groups of rows", int, "N"),
    "--score": _of("print the epsilon that reaches it, too", float),
    "--dataset": _of("what its ledger still covers", metavar="NAME"),
    "--seed": _of("default: 0", int, "SEED", dest="random_state"),
}
_JSON: Options = {"--json": _flag("print JSON")}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments without the name of the program; None reads those of the process.

    Returns
    -------
    int
        0, or 1 after an error, which is said on the standard error, and after an audit that
        refutes a claim; 2 ends the process if arguments are not understood.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> trips = ["--storage", f"sqlite:///{folder.name}/budget.db", "--dataset", "trips"]
    >>> main(["ledger", "create", *trips, "--epsilon", "2", "--delta", "1e-6"])
    created 'trips': epsilon=2, delta=1e-06, replace_one, protects one record, in sqlite:////...
    0
    >>> folder.cleanup()
    """
    parser = _parser()
    args = parser.parse_args(argv)
    if not getattr(args, "storage", True):
        missing = f"--storage (or the variable {STORAGE})"
        args.parser.error(f"the following arguments are required: {missing}")
    if getattr(args, "storage", None) == MEMORY:
        args.parser.error(NO_MEMORY)
    try:
        # The libraries that commands need are imported now: --help waits for none.
        module, name = args.run
        code = getattr(import_module(f"skdpnoise.cli.{module}"), name)(args) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has enough of it, as `head` has. What is still in the buffer
        # would raise again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, ImportError) as error:
        print(f"{parser.prog}: error: {printable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return int(code)


def _parser() -> argparse.ArgumentParser:
    purpose = "Differentially private estimators: budgets, plans and audits."
    parser = argparse.ArgumentParser(prog="skdpnoise", description=purpose)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    rooms = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    ledger = rooms.add_parser("ledger", help="the budgets of data sets, and what was spent")
    commands = ledger.add_subparsers(title="commands", metavar="COMMAND", required=True)
    where = f"where the ledger is (default: the variable {STORAGE})"
    storage = _of(where, metavar="URL", default=os.environ.get(STORAGE))
    last: Options = {"--last": _of("the last N charges only", partial(_count, 1), "N")}
    for name, text, more in (
        ("create", "set the budget of a data set, once and for all", _BUDGET),
        ("show", "budget, spent and left; of all data sets without --dataset", {}),
        ("history", "every charge, and what was spent after it", last),
        ("export", "every charge with all that is known, as a file", _FILE),
    ):
        dataset = _of("name of the data set", metavar="NAME", required=name != "show")
        made = _command(commands, ("_ledger", name), text, _OF_LEDGERS)
        _add(made, {"--storage": storage, "--dataset": dataset, **_JSON, **more})
    text = "what an estimator claims, beside what replays and many fits find"
    made = _command(rooms, ("_functions", "run_audit"), text, _OF_ESTIMATORS + _OF_AUDITS)
    _add(made, {**_FACTORY, **_AUDIT, **_JSON})
    text = "what a fit would release, hide and reach, before anything is spent"
    made = _command(rooms, ("_functions", "run_plan"), text, _OF_ESTIMATORS + _OF_PLANS)
    storage["dest"] = "ledger_storage"  # needed with --dataset only
    _add(made, {**_FACTORY, **_PLAN, "--storage": storage, **_JSON})
    _add(made.add_mutually_exclusive_group(required=True), _COLUMNS)
    return parser


def _command(
    commands: Any, run: tuple[str, str], text: str, ending: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        run[1].removeprefix("run_"),
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=ending,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


def _add(parser: Any, options: Options) -> None:
    for name, told in options.items():
        parser.add_argument(name, **told)
