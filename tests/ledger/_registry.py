"""What the public registry of deployments accepts, in our words.

Facts of https://github.com/opendp/deployments-registry-data (MIT licence), commit 3e9c812 of July
2026: of ``schemas/deployments-schema.yaml``, which fields there are, of which kind, and which must
be there; of ``scripts/check.py``, what else is checked. Its text is not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any

TEXT = str
NUMBER = (int, float)
LIST = list  # of texts, at least one
DAY = date


class OneOf(tuple):
    """Texts among which a field is."""


SCHEMA = {
    "url_slug": TEXT,
    "status": OneOf(
        (
            "Converted",
            "Draft",
            "Pending",
            "Changes Required",
            "Approved",
            "Approved (Update Requested)",
            "Approved (Pending)",
        )
    ),
    "tier": OneOf((1, 2, 3)),
    "deployment": {
        "basic": {
            "name": TEXT,
            "data_curators": LIST,
            "intended_use": TEXT,
            "data_product_type": OneOf(
                (
                    "Summary statistics",
                    "Machine learning model",
                    "Dataset",
                    "Synthetic data",
                    "Interactive API",
                    "SQL queries",
                )
            ),
            "data_product_region": TEXT,
            "description": TEXT,
            "publication_date": DAY,
            "data_product_sector": OneOf(
                ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
            ),
        },
        "dp_variant": {
            "variant_name": OneOf(
                ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")
            ),
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "privacy_parameters": {"epsilon": NUMBER, "delta": (*NUMBER, str), "rho": NUMBER},
            "privacy_parameters_details": object,
        },
        "deployment_model": {
            "model_name": OneOf(("Local", "Central", "Shuffle", "Federated", "Varies")),
            "model_name_details": TEXT,
            "actors": TEXT,
            "release_type": OneOf(("One release", "Many releases")),
            "release_type_details": TEXT,
            "data_source_type": OneOf(("Static", "Dynamic")),
            "data_source_type_details": object,
            "access_type": OneOf(("Interactive", "Non-interactive")),
            "access_type_details": TEXT,
        },
        "accounting": {"post_processing": TEXT, "composition": TEXT},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT,
            "mechanisms": TEXT,
            "justification": TEXT,
        },
        "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors": LIST},
    },
}
REQUIRED = {
    "": ("url_slug", "status", "tier", "deployment"),
    "deployment": ("basic",),
    "deployment.basic": (
        "name",
        "data_curators",
        "description",
        "intended_use",
        "data_product_type",
        "data_product_region",
        "publication_date",
    ),
    "deployment.administrative": ("registry_authors",),
}
QUOTES = (None, "|", '"', "'")  # folded texts would lose their lines


def faults(record: Any, schema: Any = SCHEMA, where: str = "") -> Iterator[str]:
    """What the registry's schema would say against a record."""
    if isinstance(schema, dict):
        if not isinstance(record, dict):
            yield f"{where}: no mapping"
            return
        yield from (f"{where}: no {name}" for name in REQUIRED.get(where, ()) if name not in record)
        for name, value in record.items():
            inner = f"{where}.{name}".strip(".")
            if name not in schema:
                yield f"{inner}: unknown"
            else:
                yield from faults(value, schema[name], inner)
    elif not fits(record, schema):
        yield f"{where}: {record!r}"


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind."""
    if isinstance(kind, OneOf):
        return value in kind and not isinstance(value, bool)
    if kind is DAY:
        return isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None
    if kind is LIST:
        return isinstance(value, list) and bool(value) and all(isinstance(x, str) for x in value)
    return isinstance(value, kind) and not isinstance(value, bool)


def bad_escapes(text: str) -> list[str]:
    """Doubled backslashes that formulas do not need."""
    return re.findall(r"\\\\[^()]", text)
