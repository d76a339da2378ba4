"""Arguments and exit codes of the command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from skdpnoise import __version__
from skdpnoise.cli import _audit, _plan
from skdpnoise.cli._files import path_of
from skdpnoise.cli._output import FORMATS, MEMORY, NO_MEMORY, printable

__all__ = ["STORAGE", "main"]

# `skdpnoise.ledger.storage.STORAGE`, written again because --help waits for no import.
STORAGE = "SKDPNOISE_LEDGER"

_ENDING = """
The storage is a URL of SQLAlchemy, such as sqlite:///budget.db (a file in this folder) or
postgresql+psycopg://user@host/database. Where --storage is not given, the environment
variable SKDPNOISE_LEDGER is read: the place for a URL with a password, since everyone on
the machine sees the arguments of a command. --json prints JSON and nothing else.
"""


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

    made = _command(commands, "create", "set the budget of a data set, once and for all")
    made.add_argument("--epsilon", type=float, required=True, help="of the budget, above 0")
    made.add_argument("--delta", type=float, required=True, help="of the budget, in [0, 1)")
    made.add_argument(
        "--adjacency",
        choices=["replace_one", "add_remove"],
        help="which data sets are neighbours (default: replace_one)",
    )
    made.add_argument(
        "--unit", choices=["record", "group"], help="what is protected (default: record)"
    )
    made.add_argument(
        "--adaptive",
        action="store_true",
        default=None,
        help="hold also if budgets of fits are chosen by looking at earlier results",
    )

    _command(commands, "show", "budget, spent and left; of all data sets without --dataset", False)
    told = _command(commands, "history", "every charge, and what was spent after it")
    told.add_argument("--last", type=_count, metavar="N", help="the last N charges only")

    _audit.add_arguments(rooms)
    _plan.add_arguments(rooms, os.environ.get(STORAGE))
    out = _command(commands, "export", "every charge with all that is known, as a file")
    out.add_argument("--format", choices=FORMATS, help="default: the ending of --out, else csv")
    out.add_argument("--out", type=path_of, metavar="FILE", help="default: the standard output")
    out.add_argument("--force", action="store_true", help="replace the file if there is one")
    return parser


def _command(commands: Any, name: str, text: str, one: bool = True) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=_ENDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--storage",
        metavar="URL",
        default=os.environ.get(STORAGE),
        help=f"where the ledger is (default: the variable {STORAGE})",
    )
    parser.add_argument("--dataset", metavar="NAME", required=one, help="name of the data set")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=("_ledger", name), parser=parser)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
