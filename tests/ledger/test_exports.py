"""Reports for others: nothing is lost, nothing is added, and the registry would take them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPStandardScaler,
    PrivacyLedger,
)
from skdpnoise.accounting.encoding import encode_loss
from skdpnoise.ledger import (
    PrivacyReport,
    Release,
    model_card,
    registry_record,
    registry_yaml,
    releases_frame,
    report_from_json,
    report_to_json,
)
from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyGuarantee, Promised, PureLoss
from skdpnoise.reporting.statement import sections, shares
from tests._cases import quick
from tests.contracts._register import PRIVATE, each, ways
from tests.ledger._registry import QUOTES, bad_escapes, faults

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
SECRET = 77777.125
BASIC = {
    "name": "Accuracy of Commuting, 2026!",
    "data_curators": ["Example Office"],
    "intended_use": "To predict commuting.",
    "data_product_region": "Nowhere",
    "description": "A model.",
    "publication_date": "2026-01-31",
}


def report(**facts):
    release = Release("counts", "iid_laplace", 2, 10, (2.0, 3.0), PureLoss(0.5))
    given = {
        "estimator": "Example",
        "guarantee": PrivacyGuarantee(1.0, 1e-6),
        "releases": (release,),
        "total": PureLoss(0.5),
        "secure": True,
    }
    return PrivacyReport(**{**given, **facts})


def record(made, **options):
    return registry_record(made, BASIC, authors=["A. Person"], **options)


@quick("DPLogisticCD 2", "DPTableVectorizer")
@each(ways(PRIVATE))
def test_every_report_is_exported_without_a_value_of_the_data(entry):
    yaml = pytest.importorskip("yaml")
    data = X.copy()
    data[7, 1] = SECRET
    model = entry.estimator().fit(data, entry.y(data))
    made = model.privacy_
    text = report_to_json(made)
    assert report_from_json(text) == made
    assert report_from_json(text).statement() == made.statement()
    page = registry_yaml(record(made))
    assert yaml.safe_load(page) == record(made)
    assert list(faults(yaml.safe_load(page))) == []
    card = model_card(model)
    assert len(releases_frame(made)) == len(made.releases)
    for shown in (text, page, card, releases_frame(made).to_csv()):
        assert str(SECRET) not in shown
        assert all(one.label in shown.replace("\\", "") for one in made.releases)


ODD = {
    "gaussian": report(
        guarantee=PrivacyGuarantee(1.0, 1e-6, "add_remove"),
        releases=(Release("sums", "iid_gaussian", 1, 1, (2.0, math.inf), GaussianLoss(0.1)),),
        total=GaussianLoss(0.1),
        n_records=1234.5,
    ),
    "numeric": report(total=PureLoss(0.5) + NumericLoss(((Promised(1e-8), 0.1, 1),))),
    "whole": report(n_records=1234),
    "groups": report(rows_per_group=3, declared=("double", "half")),
    "seeded": report(secure=False, observed=True, planned=PureLoss(0.75), software="skdpnoise 0.0"),
    "nothing": report(releases=(), total=PureLoss(0.0)),
    "search": report(releases=(replace(report().releases[0], of="candidates"),)),
    "names": report(estimator='A "B" <b>`|\nü', declared=("a|b", "*c*")),
}


@quick("groups", "nothing", "names", "numeric")
@pytest.mark.parametrize("made", ODD.values(), ids=ODD)
def test_json_holds_a_report_to_the_last_bit(made):
    for indent in (None, 2):
        text = report_to_json(made, indent=indent)
        assert report_from_json(text) == made
        json.loads(text, parse_constant=pytest.fail)  # no NaN, which is no JSON
    facts = json.loads(report_to_json(made))
    assert facts.items() >= {**made.to_dict(), "releases": facts["releases"]}.items()


def changed(**facts):
    return json.dumps({**json.loads(report_to_json(report())), **facts})


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        "null",
        "{}",
        changed(format="skdpnoise.PrivacyReport/2"),
        changed(epsilon=-1.0),
        changed(adjacency="any"),
        changed(secure="yes"),
        changed(rows_per_group=True),
        changed(releases=[{}]),
        changed(total={"kind": "unheard"}),
        changed(total={"kind": "pure", "epsilon": 0.25}),  # less than the releases cost
        changed(total={"kind": "pure", "epsilon": 2.0}),  # more than the guarantee
    ],
)
def test_what_is_no_report_is_refused(text):
    with pytest.raises(ValueError, match=r"parameter of (report_from_json|PrivacyReport) must"):
        report_from_json(text)


def test_a_refusal_does_not_repeat_a_text_of_unknown_origin():
    with pytest.raises(ValueError) as refused:
        report_from_json(changed(format="SECRET"))
    assert "SECRET" not in str(refused.value)


def test_a_frame_has_a_row_for_each_line_and_the_shares_of_the_report():
    steps = [("scale", DPStandardScaler()), ("model", DPLogisticCD())]
    made = DPPipeline(steps).fit(X, X[:, 0] > 0).privacy_
    frame = releases_frame(made)
    assert frame["label"].tolist() == [release.label for release in made.releases]
    assert frame["share"].tolist() == shares(made)
    assert frame.groupby("stage")["share"].sum().index.tolist() == ["model", "scale"]
    assert frame["share"].sum() <= 1.0
    assert releases_frame(ODD["nothing"]).columns.tolist() == frame.columns.tolist()


def test_the_registry_would_take_the_record_and_nothing_of_it_is_empty():
    yaml = pytest.importorskip("yaml")
    more = {
        "basic": {"data_product_sector": "Government"},
        "implementation": {"justification": "One line.\nAnother \\(x^2\\) line. "},
        "privacy_loss": {"privacy_unit": "Person"},
        "administrative": {"sources": "- a page", "notes": "one: two # three"},
    }
    for made in (report(), ODD["gaussian"], ODD["groups"], ODD["nothing"]):
        page = registry_yaml(record(made, more=more))
        read = yaml.safe_load(page)
        assert list(faults(read)) == []
        styles = {token.style for token in yaml.scan(page) if hasattr(token, "style")}
        assert styles <= set(QUOTES)
        texts = re.findall(r"[^\n]+", page)
        assert not any(bad_escapes(text) for text in texts)
        deployment = read["deployment"]
        assert all(
            value not in ("", None) for part in deployment.values() for value in part.values()
        )
        assert deployment["privacy_loss"]["privacy_unit"] == "Person"
        loss = deployment["privacy_loss"]["privacy_parameters"]
        assert loss == {"epsilon": 1.0, "delta": 1e-6}
        assert deployment["basic"]["data_product_sector"] == "Government"


def test_the_record_says_what_the_report_says():
    made = record(report(guarantee=PrivacyGuarantee(1.0), rows_per_group=4, declared=("double",)))
    parts = made["deployment"]
    assert parts["dp_variant"]["variant_name"] == "Pure DP"
    assert "at most 4 used" in parts["privacy_loss"]["privacy_unit"]
    assert "rows of one group" in parts["privacy_loss"]["privacy_unit_details"]
    assert "counts: 20 numbers" in parts["implementation"]["mechanisms"]
    tuned = parts["implementation"]["preprocessing_and_hyperparameter_tuning"]
    assert "these are public, or learn nothing private: double" in tuned
    assert "how many rows there are" in parts["dp_variant"]["unprotected_quantities"]
    assert made["url_slug"] == "accuracy-of-commuting-2026-2026"
    assert record(report(), url_slug="mine")["url_slug"] == "mine"
    hidden = record(ODD["gaussian"])["deployment"]
    assert "how many rows" not in hidden["dp_variant"]["unprotected_quantities"]
    assert "any number of rows" in hidden["dp_variant"]["data_domain"]
    dated = registry_record(
        report(), {**BASIC, "publication_date": date(2026, 2, 1)}, authors=["A. Person"]
    )
    assert dated["deployment"]["basic"]["publication_date"] == "2026-02-01"


@pytest.mark.parametrize("facts", [{"secure": False}, {"observed": True}])
def test_a_fit_that_is_not_private_is_no_deployment(facts):
    with pytest.raises(ValueError, match="must be of a private fit"):
        record(report(**facts))
    assert "> **NOT PRIVATE" in model_card(report(**facts))


@pytest.mark.parametrize(
    "options, kind, said",
    [
        ({"basic": {**BASIC, "name": ""}}, ValueError, "none of name"),
        ({"basic": {}}, ValueError, "none of name, data_curators"),
        ({"basic": {**BASIC, "publication_date": "1.2.2026"}}, ValueError, "publication_date"),
        ({"basic": {**BASIC, "publication_date": 2026}}, ValueError, "publication_date"),
        ({"basic": {**BASIC, "data_curators": "Office"}}, TypeError, "list of texts"),
        ({"authors": "A. Person"}, TypeError, "'authors' .* list of texts"),
        ({"authors": []}, TypeError, "'authors' .* list of texts"),
        ({"more": {"privacy": {}}}, ValueError, "name sections among basic"),
        ({"more": {"accounting": "none"}}, TypeError, r"more\['accounting'\].* be a mapping"),
        ({"more": {"privacy_loss": {"privacy_parameters": {}}}}, ValueError, "leave to the report"),
        ({"more": {"dp_variant": {"variant_name": "Pure DP"}}}, ValueError, "leave to the report"),
    ],
)
def test_what_a_person_must_say_is_asked_for(options, kind, said):
    with pytest.raises(kind, match=said):
        registry_record(report(), **{"basic": BASIC, "authors": ["A. Person"], **options})


def test_the_copy_of_the_schema_refuses_what_the_registry_refuses():
    def without(*path):
        made = record(report())
        part = made
        for name in path[:-1]:
            part = part[name]
        del part[path[-1]]
        return made

    good = record(report())
    assert list(faults(good)) == []
    assert list(faults({**good, "surprise": 1})) == ["surprise: unknown"]
    assert list(faults({**good, "tier": 0})) == ["tier: 0"]
    assert list(faults(without("status"))) == [": no status"]
    assert list(faults(without("deployment", "basic", "name"))) == ["deployment.basic: no name"]
    assert list(faults(without("deployment", "administrative", "registry_authors")))
    for day in ("1/1/2026", date(2026, 1, 1)):
        basic = {**good["deployment"]["basic"], "publication_date": day}
        deployment = {**good["deployment"], "basic": basic}
        assert list(faults({**good, "deployment": deployment}))
    assert list(faults({**good, "deployment": []})) == ["deployment: no mapping"]
    assert bad_escapes(r"a \\x") and not bad_escapes(r"\(x\)")


def test_yaml_needs_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(ImportError, match=r'pip install "skdpnoise\[registry\]"'):
        registry_yaml(record(report()))


def test_a_model_card_has_the_sections_of_the_others_and_the_statement():
    model = DPLogisticCD(feature_bounds=(-4, 4), alpha=0.25).fit(X, X[:, 0] > 0)
    card = model_card(model, intended_use="Teaching.", name="Commuters", authors=["A", "B"])
    assert card.startswith("---\nlibrary_name: skdpnoise\n")
    headings = re.findall(r"^#+ .*$", card, flags=re.MULTILINE)
    wanted = ["# Model Card for Commuters", "## Uses", "### Direct Use", "### Out-of-Scope Use"]
    wanted += ["## Bias, Risks, and Limitations", "## Privacy", "## Training Details"]
    wanted += ["## Evaluation", "## Model Card Authors"]
    assert [heading for heading in headings if heading in wanted] == wanted
    assert {f"### {title}" for title, _ in sections(model.privacy_)} <= set(headings)
    assert "### Direct Use\n\nTeaching." in card
    assert "### Out-of-Scope Use\n\n[More Information Needed]" in card
    assert "| alpha | 0.25 |" in card
    assert r"| feature\_bounds | \[-4, 4\] |" in card
    assert "## Model Card Authors\n\nA, B" in card
    assert "NOT PRIVATE" not in card


def test_a_model_card_never_holds_a_seed_a_ledger_or_a_long_array(tmp_path):
    ledger = PrivacyLedger("trips", 50.0, 1e-3, storage=f"sqlite:///{tmp_path}/budget.db")
    weights = np.linspace(1.0, 2.0, 101)
    wide = rng.normal(size=(400, 100))
    plain = DPCoordinateDescentRegressor(
        random_state=987654321, ledger=ledger, error_weights=weights, feature_bounds=(-4, 4)
    ).fit(wide, wide[:, 0])
    grid = {"alpha": [0.0, 0.1]}
    search = DPGridSearchCV(DPLogisticCD(), grid, random_state=987654321).fit(X, X[:, 0] > 0)
    for model in (plain, search):
        card = model_card(model)
        assert "987654321" not in card
        assert "sqlite" not in card and "ledger |" not in card
        assert "> **NOT PRIVATE" in card
    assert "ndarray of shape (101,)" in model_card(plain)
    assert "| estimator\\_\\_alpha | 0.0 |" in model_card(search)
    assert "| epsilon | 1.0 |" in model_card(search)
    assert "\\_epsilon |" not in model_card(search)  # which the search overrules


def test_markdown_and_html_in_names_are_shown_as_they_are():
    card = model_card(ODD["names"])
    assert "<b>" not in card
    assert r'# Model Card for A "B" &lt;b&gt;\`\| ü' in card
    assert r"a\|b, \*c\*" in card


@pytest.mark.parametrize("export", [releases_frame, report_to_json, model_card])
def test_what_has_no_report_is_refused(export):
    with pytest.raises(TypeError, match=f"parameter of {export.__name__} must be"):
        export(DPStandardScaler())
    with pytest.raises(TypeError, match="must be of type PrivacyReport"):
        registry_record(DPStandardScaler(), BASIC, authors=["A. Person"])
    with pytest.raises(TypeError, match="must be of type str"):
        report_from_json(b"{}")


@pytest.mark.parametrize(
    ("name", "loss"),
    [("total", PureLoss(0.0)), ("planned", PureLoss(0.01)), ("planned", GaussianLoss(0.001))],
)
def test_a_text_that_states_less_than_was_spent_is_refused(name, loss):
    text = json.loads(report_to_json(report(planned=PureLoss(0.9))))
    text[name] = json.loads(encode_loss(loss))
    with pytest.raises(ValueError, match="must"):
        report_from_json(json.dumps(text))
