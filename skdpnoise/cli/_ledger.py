"""The commands about ledgers."""

from __future__ import annotations

import csv
import io
import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

from skdpnoise.accounting.encoding import encode_loss
from skdpnoise.cli._files import new_file
from skdpnoise.cli._output import (
    FORMATS,
    jsonable,
    print_json,
    print_sheet,
    print_table,
    printable,
    taken_by,
)
from skdpnoise.ledger import Charge, LedgerStorageError, PrivacyLedger, UnknownDatasetError
from skdpnoise.ledger.charge import history_columns
from skdpnoise.ledger.storage.database import DatabaseStorage
from skdpnoise.reporting.sheet import sheet_of
from skdpnoise.sampling.words import SEEDED

__all__ = ["create", "export", "history", "show"]

# What starts a formula in some spreadsheet; the last four are the wide forms of the first.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_COST = ("epsilon", "delta", "loss", "spent")
_TABLE = ("number", "time", "label", "estimator", "mechanism", *_COST, "who", "returned")


def create(args: Namespace) -> None:
    """Set the budget of a data set; the same budget may be set twice."""
    try:
        PrivacyLedger.open(args.dataset, args.storage)
        new = False
    except UnknownDatasetError:
        new = True
    # Of a data set that exists nothing may differ, or this raises.
    ledger = PrivacyLedger(**taken_by(PrivacyLedger, args))
    if args.json:
        print_json({**_facts(ledger), "created": new})
        return
    budget, done = ledger.guarantee, "created" if new else "there already:"
    promised = ", losses may be chosen by looking" if ledger.adaptive else ""
    if ledger.most_returned is not None:
        promised += f", at most {ledger.most_returned} reservations may be returned"
    print(
        f"{done} {ledger.dataset!r}: epsilon={budget.epsilon:g}, delta={budget.delta:g}, "
        f"{budget.adjacency}, protects one {ledger.unit}{promised}, in {ledger.storage}"
    )


def show(args: Namespace) -> None:
    names = DatabaseStorage(args.storage).names() if args.dataset is None else [args.dataset]
    ledgers = [PrivacyLedger.open(name, args.storage) for name in names]
    if args.dataset is not None and not args.json:
        print_sheet(sheet_of(ledgers[0]))
        return
    found = [_facts(ledger) for ledger in ledgers]
    if args.json:
        print_json(found if args.dataset is None else found[0])
    else:
        _print_all(found, args.storage)


def history(args: Namespace) -> None:
    ledger = PrivacyLedger.open(args.dataset, args.storage)
    first = 0 if args.last is None else -args.last
    records = _records(ledger, ledger.charges())[first:]
    if args.json:
        print_json(records)
        return
    for record in records:
        record["time"] = record["time"][:19].replace("T", " ")
    rows = [[record[name] for name in _TABLE] for record in records]
    headers = [{"time": "time (UTC)", "loss": "cost"}.get(name, name) for name in _TABLE]
    print_table(headers, rows, title=f"Charges of {ledger.dataset}")


def export(args: Namespace) -> None:
    """Write every charge with all that is known of it, losses to the last bit included."""
    ending = "" if args.out is None else args.out.suffix.removeprefix(".").lower()
    printed_json = args.json and args.out is None
    kind = args.format or (ending if ending in FORMATS else "json" if printed_json else "csv")
    if printed_json and kind != "json":
        args.parser.error("argument --json: not allowed with --format csv unless --out is given")
    if args.out is None and args.force:
        args.parser.error("argument --force: not allowed without --out")
    ledger = PrivacyLedger.open(args.dataset, args.storage)
    if args.out is None:
        _write(ledger, kind, sys.stdout)
        return
    with new_file(args.out, DatabaseStorage(args.storage).file, force=args.force) as file:
        n_charges = _write(ledger, kind, file)
    if args.json:
        print_json({"file": str(args.out), "format": kind, "charges": n_charges})
    else:
        print(f"wrote {n_charges} charges to {args.out}")


def _write(ledger: PrivacyLedger, kind: str, file: TextIO) -> int:
    charges = ledger.charges()
    records = _records(ledger, charges)
    for record, charge in zip(records, charges, strict=True):
        loss = None if charge.loss is None else json.loads(encode_loss(charge.loss))
        record |= {"token": charge.token, "exact_loss": loss}
    if kind == "csv":
        text = _csv(records)
    else:
        try:
            facts = _facts(ledger)
        except LedgerStorageError as error:  # charges that make no total
            facts = {**_promised(ledger), "refused": str(error)}
        text = json.dumps(jsonable({**facts, "history": records}), indent=2) + "\n"
    file.write(text)
    return len(records)


def _promised(ledger: PrivacyLedger) -> dict[str, Any]:
    names = ("unit", "adaptive", "most_returned")
    return {
        "dataset": ledger.dataset,
        "storage": ledger.storage,
        **asdict(ledger.guarantee),
        **{name: getattr(ledger, name) for name in names},
    }


def _facts(ledger: PrivacyLedger) -> dict[str, Any]:
    total = ledger.total()
    return {
        **_promised(ledger),
        "charges": total.n_charges,
        "returned": total.n_returned,
        "secure": total.secure,
        "declared": list(total.declared),
        "spent": {
            "tight": total.epsilon,
            "adaptive": total.adaptive_epsilon,
            "basic": {"epsilon": total.basic[0], "delta": total.basic[1]},
        },
        "left": total.left,
    }


def _print_all(found: list[dict[str, Any]], storage: str) -> None:
    if not found:
        print(f"no data sets in {DatabaseStorage(storage).shown}")
        return
    headers = ("data set", "epsilon", "delta", "adjacency", "protected", "charges", "tight", "left")
    names = ("dataset", "epsilon", "delta", "adjacency", "unit", "charges")
    for facts in found:
        if not facts["secure"]:
            print(f"{SEEDED} in fits to {printable(facts['dataset'])}")
    rows = [
        [*(facts[name] for name in names), facts["spent"]["tight"], facts["left"]]
        for facts in found
    ]
    print_table(headers, rows, title=f"Ledgers in {found[0]['storage']}")


def _records(ledger: PrivacyLedger, charges: Sequence[Charge]) -> list[dict[str, Any]]:
    columns = history_columns(charges, ledger.guarantee.delta)
    rows = zip(*columns.values(), strict=True)
    return [jsonable(dict(zip(columns, row, strict=True))) for row in rows]


def _csv(records: list[dict[str, Any]]) -> str:
    """Return a CSV table, with JSON for lists and dicts, and no text that is a formula."""
    names = (*_TABLE, "parameters", "token", "exact_loss")
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow(names)
    # Every text in quotation marks: a carriage return would begin another row otherwise.
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    for record in records:
        cells = (record[name] for name in names)
        writer.writerow(
            json.dumps(x) if isinstance(x, dict | list) else _harmless(x) for x in cells
        )
    return out.getvalue()


def _harmless(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula; numbers stay numbers."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
