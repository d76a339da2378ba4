"""Reports for others to read: tables, JSON, the public registry of deployments, model cards.

All of it is post-processing of a report, which holds public numbers only: it costs nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from html import escape
from types import NoneType
from typing import TYPE_CHECKING, Any

from skdpnoise._utils.checks import check_type, complaint, needed, pandas_for
from skdpnoise.accounting.encoding import decode_loss, encode_loss
from skdpnoise.accounting.report import PrivacyReport, Release, neighbours
from skdpnoise.ledger.charge import stored_parameters
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss
from skdpnoise.reporting import statement as words

if TYPE_CHECKING:
    import pandas as pd

_FORMAT = "skdpnoise.PrivacyReport/1"
_ASKED = "[More Information Needed]"  # as model cards of Hugging Face say it
_NEEDED = (
    "name",
    "data_curators",
    "intended_use",
    "data_product_region",
    "description",
    "publication_date",
)
_KINDS: dict[str, tuple[type, ...]] = {  # of what JSON holds beside losses
    **dict.fromkeys(("estimator", "software"), (str,)),
    **dict.fromkeys(("secure", "observed"), (bool,)),
    "rows_per_group": (int, NoneType),
    "n_records": (float, int, NoneType),
}
_CHECKED = (0.0, 0.1, 0.5, 0.9)  # shares of ε at which a plan is compared with what was spent
_FROM_REPORT = ("variant_name", "privacy_parameters")
_OVERRULED = ("__epsilon", "__delta")  # of parts: the whole has its own
_ARITHMETIC = (
    "What one row adds is held within public limits and rounded to integers. Sums are exact, and "
    "noise is drawn as exact integers: no floating-point noise is used."
)


def releases_frame(report: PrivacyReport) -> pd.DataFrame:
    """Return what a fit released as a table, one row for each line of its report.

    Parameters
    ----------
    report : PrivacyReport

    Returns
    -------
    pandas.DataFrame
        With columns ``label``, ``stage``, ``noise``, ``n_releases``, ``n_coordinates``, ``of``,
        ``scale_low`` and ``scale_high`` (in the units of the released numbers), ``loss`` and
        ``share`` of the budget, between 0 and 1.

    Raises
    ------
    TypeError
        If it is no report.
    ImportError
        If pandas is not installed: it comes with the extra ``pandas``.

    Examples
    --------
    >>> from skdpnoise import DPStandardScaler
    >>> scaler = DPStandardScaler(feature_bounds=(0, 1)).fit([[0.2], [0.7]])
    >>> releases_frame(scaler.privacy_)[["label", "n_coordinates"]].values.tolist()
    [['means and mean squares', 2]]
    """
    check_type("releases_frame", "report", report, PrivacyReport)
    pandas = pandas_for("releases_frame")
    rows = [
        (
            *(one.label, words.stage_of(one), one.noise, one.n_releases, one.n_coordinates, one.of),
            *(*one.scale, str(one.loss), share),
        )
        for one, share in zip(report.releases, words.shares(report), strict=True)
    ]
    columns = ["label", "stage", "noise", "n_releases", "n_coordinates", "of"]
    columns += ["scale_low", "scale_high", "loss", "share"]
    return pandas.DataFrame(rows, columns=columns)


def report_to_json(report: PrivacyReport, *, indent: int | None = 2) -> str:
    """Return a report as JSON: what ``to_dict`` returns, and its losses to the last bit.

    Parameters
    ----------
    report : PrivacyReport
    indent : int or None, default=2
        As :func:`json.dumps` has it.

    Raises
    ------
    TypeError
        If it is no report, or a loss is of a kind that cannot be written down.

    Examples
    --------
    >>> from skdpnoise import DPStandardScaler
    >>> scaler = DPStandardScaler(feature_bounds=(0, 1)).fit([[0.2], [0.7]])
    >>> report_from_json(report_to_json(scaler.privacy_)) == scaler.privacy_
    True
    """
    check_type("report_to_json", "report", report, PrivacyReport)
    facts = {"format": _FORMAT, **report.to_dict(), "total": _encoded(report.total)}
    facts["planned"] = None if report.planned is None else _encoded(report.planned)
    for stored, release in zip(facts["releases"], report.releases, strict=True):
        stored["encoded"] = _encoded(release.loss)
    return json.dumps(facts, indent=indent, ensure_ascii=False, allow_nan=False)


def report_from_json(text: str) -> PrivacyReport:
    """Return the report that JSON holds. It proves nothing: anybody can write such a text.

    Parameters
    ----------
    text : str
        Of :func:`report_to_json`.

    Returns
    -------
    PrivacyReport
        Equal to the one that was written.

    Raises
    ------
    TypeError
        If it is no text.
    ValueError
        If the text is no report, of an unknown format, or states less than its releases cost.

    Examples
    --------
    >>> report_from_json("{}")
    Traceback (most recent call last):
    ...
    ValueError: The 'text' parameter of report_from_json must be a report of the format ...
    """
    check_type("report_from_json", "text", text, str)
    allowed = f"be a report of the format {_FORMAT!r}, as report_to_json writes it"
    try:
        facts = json.loads(text)
        if facts["format"] != _FORMAT:
            raise ValueError(facts["format"])
        guarantee = PrivacyGuarantee(facts["epsilon"], facts["delta"], facts["adjacency"])
        releases = tuple(map(_release, facts["releases"]))
        total, planned = _decoded(facts["total"]), facts["planned"] and _decoded(facts["planned"])
        plain = {name: facts[name] for name in _KINDS}
        for name, kinds in _KINDS.items():
            check_type("report_from_json", name, plain[name], *kinds)
        declared = tuple(map(str, facts["declared_public"]))
        changed = tuple(map(str, facts.get("changed_since", ())))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # What a text of unknown origin holds is not repeated.
        raise ValueError(complaint("report_from_json", "text", allowed, "another text")) from error
    spent = (total.delta(share * guarantee.epsilon) for share in _CHECKED)
    allowed_deltas = ((planned or total).delta(share * guarantee.epsilon) for share in _CHECKED)
    if any(a > b * (1.0 + 1e-6) for a, b in zip(spent, allowed_deltas, strict=True)):
        must = "state a plan of what its total says at least"
        raise ValueError(complaint("report_from_json", "text", must, "less"))
    return PrivacyReport(
        guarantee=guarantee,
        releases=releases,
        total=total,
        planned=planned,
        declared=declared,
        changed=changed,
        estimator=plain["estimator"],
        software=plain["software"],
        secure=plain["secure"],
        observed=plain["observed"],
        rows_per_group=plain["rows_per_group"],
        n_records=plain["n_records"],
    )


def _encoded(loss: PrivacyLoss) -> Any:
    return json.loads(encode_loss(loss))


def _decoded(stored: Any) -> PrivacyLoss:
    return decode_loss(json.dumps(stored))


def _release(stored: Mapping[str, Any]) -> Release:
    label, noise, n_releases, n_coordinates, of = (stored[name] for name in words.OF_RELEASES)
    loss, (low, high) = _decoded(stored["encoded"]), map(float, stored["scale"])
    return Release(label, noise, n_releases, n_coordinates, (low, high), loss, of)


def registry_record(
    report: PrivacyReport,
    basic: Mapping[str, Any],
    *,
    authors: Sequence[str],
    url_slug: str | None = None,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return a draft for the public registry of deployments of differential privacy.

    What the report knows is filled in, for an entry of tier 3. What only a person can say is asked
    for. `more` may replace every other text, such as the name of the privacy unit, and add what is
    left open, such as a justification.

    Parameters
    ----------
    report : PrivacyReport
        Of a fit that is private: without a seed, and not observed by an audit.
    basic : mapping
        ``name``, ``data_curators`` (a list), ``intended_use``, ``data_product_region``,
        ``description`` and ``publication_date`` (a date, or text such as "2026-01-31") of what is
        published; and if known ``data_product_sector``. ``data_product_type`` is "Machine learning
        model" unless given.
    authors : sequence of str
        Who fills in the record.
    url_slug : str or None, default=None
        Name within addresses; None makes one of the name and the year.
    more : mapping of mappings or None, default=None
        Fields by section, such as ``{"implementation": {"justification": "..."}}``.

    Returns
    -------
    dict
        To be written by :func:`registry_yaml`.

    Raises
    ------
    TypeError
        If it is no report, or a text is given where a list or a mapping is asked for.
    ValueError
        If the fit was not private, something is missing, or `more` names an unknown section or what
        the report says.

    References
    ----------
    The registry's schema: https://github.com/opendp/deployments-registry-data

    Examples
    --------
    >>> from skdpnoise import DPStandardScaler
    >>> scaler = DPStandardScaler(feature_bounds=(0, 1)).fit([[0.2], [0.7]])
    >>> basic = {
    ...     "name": "Scales of ages",
    ...     "data_curators": ["Example Office"],
    ...     "intended_use": "Standardising ages.",
    ...     "data_product_region": "Nowhere",
    ...     "description": "Mean and spread of a column.",
    ...     "publication_date": "2026-01-31",
    ... }
    >>> record = registry_record(scaler.privacy_, basic, authors=["A. Person"])
    >>> record["url_slug"], record["deployment"]["dp_variant"]["variant_name"]
    ('scales-of-ages-2026', 'Approximate DP')
    """
    owner = "registry_record"
    check_type(owner, "report", report, PrivacyReport)
    if words.caveats(report):
        allowed = (
            "be of a private fit (without random_state, and not observed by an audit) of what was "
            "not changed since"
        )
        raise ValueError(complaint(owner, "report", allowed, "one that says first that it is not"))
    given = _basic(owner, basic)
    names = _texts(owner, "authors", authors)
    slug = re.sub(r"[^a-z0-9]+", "-", f"{given['name']} {given['publication_date'][:4]}".lower())
    deployment: dict[str, Any] = {
        "basic": {"data_product_type": "Machine learning model", **given},
        **_facts(report),
        "administrative": {"registry_authors": names},
    }
    for section, fields in (more or {}).items():
        if section not in deployment:
            allowed = f"name sections among {', '.join(deployment)}"
            raise ValueError(complaint(owner, "more", allowed, repr(section)))
        if not isinstance(fields, Mapping):
            kind = f"an object of type {type(fields).__name__}"
            raise TypeError(complaint(owner, f"more[{section!r}]", "be a mapping", kind))
        if taken := [name for name in _FROM_REPORT if name in fields]:
            allowed = "leave to the report what it says"
            raise ValueError(complaint(owner, "more", allowed, repr(taken[0])))
        deployment[section] |= dict(fields)
    return {
        "url_slug": slug.strip("-") if url_slug is None else str(url_slug),
        "status": "Draft",
        "tier": 3,
        "deployment": deployment,
    }


def _basic(owner: str, basic: Mapping[str, Any]) -> dict[str, Any]:
    missing = [name for name in _NEEDED if not basic.get(name)]
    if missing:
        allowed = f"have {', '.join(_NEEDED)}"
        raise ValueError(complaint(owner, "basic", allowed, f"none of {', '.join(missing)}"))
    curators = _texts(owner, "basic['data_curators']", basic["data_curators"])
    day = basic["publication_date"]
    try:
        known = day if isinstance(day, date) else date.fromisoformat(day)
    except (TypeError, ValueError) as error:
        allowed = 'be a date, such as "2026-01-31"'
        name = "basic['publication_date']"
        raise ValueError(complaint(owner, name, allowed, repr(day))) from error
    return {**basic, "data_curators": curators, "publication_date": f"{known:%Y-%m-%d}"}


def _texts(owner: str, name: str, values: Any) -> list[str]:
    if isinstance(values, str) or not values or not all(isinstance(one, str) for one in values):
        raise TypeError(complaint(owner, name, "be a list of texts", repr(values)))
    return list(values)


def _facts(report: PrivacyReport) -> dict[str, Any]:
    guarantee = report.guarantee
    known = guarantee.adjacency == "replace_one"
    rows = "the number of rows is public" if known else "with any number of rows"
    unit = "Row of the table"
    if report.rows_per_group is not None:
        unit = f"Group of rows, such as those of a person (at most {report.rows_per_group} used)"
    relation = neighbours(guarantee.adjacency, report.unit)
    spent = f"Allowed beforehand: {report.allowed}. Spent: {report.total}."
    listed = [line for line in words.measured(report) if line != words.BEFORE]
    return {
        "dp_variant": {
            "variant_name": "Pure DP" if guarantee.delta == 0.0 else "Approximate DP",
            "data_domain": f"Tables of any values with the same columns; {rows}.",
            "unprotected_quantities": _bullets(words.open_facts(report)),
        },
        "privacy_loss": {
            "privacy_unit": unit,
            "privacy_unit_details": f"{relation}.",
            "privacy_parameters": {"epsilon": guarantee.epsilon, "delta": guarantee.delta},
            "privacy_parameters_details": f"{words.exactly(report)} {words.as_a_bet(report)}",
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "Whoever fits the model holds the data.",
            "actors": "Trusted: whoever holds the data and fits the model. Protected against: "
            f"{words.THREAT}",
            "release_type": "One release",
            "release_type_details": "One fit. A further fit to these data has a cost of its own.",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": "All that is published is a function of the noisy numbers listed "
            "under mechanisms, and of public facts.",
            "composition": "Every release is charged before its noise is drawn, and may depend on "
            f"earlier ones. {spent}",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": f"{words.BEFORE} These rest on the word of "
            f"whoever fitted it:\n{_bullets(words.vouched(report))}",
            "mechanisms": f"{_bullets(listed)}\n{words.made(report)} {_ARITHMETIC}",
        },
    }


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def registry_yaml(record: Mapping[str, Any]) -> str:
    """Return a record of the registry of deployments as YAML, in the form that its checks ask for.

    Parameters
    ----------
    record : mapping
        Of :func:`registry_record`.

    Returns
    -------
    str
        For a file named in small letters, digits and underscores, such as
        ``deployments/office_ages_2026.yaml``.

    Raises
    ------
    ImportError
        If PyYAML is not installed: it comes with the extra ``registry``.

    Examples
    --------
    >>> print(registry_yaml({"tier": 3, "deployment": {"basic": {"description": "one\\ntwo"}}}))
    tier: 3
    deployment:
      basic:
        description: |-
          one
          two
    <BLANKLINE>
    """
    yaml = needed("yaml", "registry_yaml", "registry")

    class Dumper(yaml.SafeDumper):  # type: ignore[misc, name-defined]
        """Writes texts of several lines unfolded, as the registry wants them."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        style = "|" if "\n" in value else None
        lines = "\n".join(line.rstrip() for line in value.split("\n"))
        return dumper.represent_scalar("tag:yaml.org,2002:str", lines, style=style)

    Dumper.add_representer(str, text)
    options: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": float("inf")}
    return str(yaml.dump(dict(record), Dumper=Dumper, **options))


def model_card(
    model: Any,
    *,
    name: str | None = None,
    description: str | None = None,
    intended_use: str | None = None,
    out_of_scope: str | None = None,
    limitations: str | None = None,
    training_data: str | None = None,
    evaluation: str | None = None,
    authors: Sequence[str] = (),
) -> str:
    """Return a model card in Markdown, with a section on privacy that the report fills in.

    Sections are those of Hugging Face's model cards. What is not given says that it is needed.

    Parameters
    ----------
    model : estimator or PrivacyReport
        A fitted estimator with ``privacy_``, whose parameters are listed (without seeds, ledgers
        and long arrays); or a report alone.
    name, description, intended_use, out_of_scope : str or None, default=None
        Texts in Markdown.
    limitations, training_data, evaluation : str or None, default=None
        Others.
    authors : sequence of str, default=()
        Who wrote the card.

    Raises
    ------
    TypeError
        If the model has no privacy report.

    References
    ----------
    Mitchell et al., "Model cards for model reporting", FAT* 2019.

    Examples
    --------
    >>> from skdpnoise import DPStandardScaler
    >>> scaler = DPStandardScaler(feature_bounds=(0, 1)).fit([[0.2], [0.7]])
    >>> card = model_card(scaler, intended_use="Standardising ages.")
    >>> "Standardising ages." in card, "### What is promised" in card
    (True, True)
    """
    report = model if isinstance(model, PrivacyReport) else getattr(model, "privacy_", None)
    if not isinstance(report, PrivacyReport):
        given = f"an object of type {type(model).__name__}"
        allowed = "be a fitted estimator with privacy_, or a PrivacyReport"
        raise TypeError(complaint("model_card", "model", allowed, given))
    parts: list[tuple[str, str | None]] = [
        ("## Model Details", _escaped(f"{report.estimator}, fitted by {report.software}.")),
        ("### Model Description", description),
        ("## Uses", ""),
        ("### Direct Use", intended_use),
        ("### Out-of-Scope Use", out_of_scope),
        ("## Bias, Risks, and Limitations", limitations),
        ("## Privacy", "Written by the software from what the fit has released."),
        *((f"### {title}", _paragraphs(texts)) for title, texts in words.sections(report)),
        ("## Training Details", ""),
        ("### Training Data", training_data),
        ("#### Training Hyperparameters", _parameters(model)),
        ("## Evaluation", evaluation),
        ("## Model Card Authors", ", ".join(authors) or None),
    ]
    head = "---\nlibrary_name: skdpnoise\ntags:\n- differential-privacy\n- scikit-learn\n---\n"
    title = f"# Model Card for {_escaped(report.estimator) if name is None else name}"
    warnings = [f"> **{_escaped(text)}**" for text in words.caveats(report)]
    blocks = [
        f"{heading}\n\n{_ASKED if text is None else text}".rstrip() for heading, text in parts
    ]
    return "\n\n".join([head + title, *warnings, *blocks]) + "\n"


def _paragraphs(texts: Sequence[str]) -> str:
    bullets = all(text.startswith("- ") for text in texts)
    return ("\n" if bullets else "\n\n").join(_escaped(text) for text in texts)


def _escaped(text: str) -> str:
    """Return a text that Markdown and HTML show as it is, in one line."""
    line = re.sub(r"\s*\n\s*", " ", text)
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", escape(line, quote=False))


def _parameters(model: Any) -> str | None:
    if not hasattr(model, "get_params"):
        return None
    stored = json.loads(stored_parameters(model.get_params(deep=True)))
    rows = (
        f"| {_escaped(key)} | {_escaped(json.dumps(value, ensure_ascii=False))} |"
        for key, value in stored.items()
        if not key.endswith(_OVERRULED)
    )
    return "\n".join(["| parameter | value |", "|---|---|", *rows])
