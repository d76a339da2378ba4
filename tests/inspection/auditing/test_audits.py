"""An audit passes what keeps its claim, catches what does not, and says what it has seen."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder

from benchmarks._audit_cases import BROKEN, SOUND, data_of
from benchmarks._remembered import remembered
from skdpnoise import DPCovariance, DPLogisticCD, DPMinMaxScaler, DPStandardScaler, PrivacyLedger
from skdpnoise.accounting import queries
from skdpnoise.accounting.session import Drawn
from skdpnoise.inspection import AuditReport, audit
from skdpnoise.inspection.auditing import _neighbours
from skdpnoise.privacy import GaussianLoss, PureLoss, gdp_mu
from skdpnoise.queries import private_argmax
from tests._audit import Histogram
from tests._cases import each_value, quick

X = np.random.default_rng(0).normal(size=(40, 1))
Y = (X[:, 0] > 0).astype(int)
BOUNDED = {"feature_bounds": (-3.0, 3.0)}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), remembered():
        warnings.simplefilter("ignore")
        yield


# Replays


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_replays_find_nothing_against_estimators_that_are_sound_and_use_all_that_is_paid_for(
    case, adjacency
):
    report = audit(case.make(1.0, adjacency), *data_of(case), method="replay", random_state=0)
    assert report.passed, report
    (result,) = report.results
    assert max(share for _, share in result.shares) == pytest.approx(1.0, abs=1e-3)
    if result.epsilon is not None:  # that of the best of a random number of runs is not a sum
        assert 0.7 < result.epsilon <= 1.0 + 1e-9
    assert report.false_alarm == 0.0


@quick("TargetEncoder in front")
@pytest.mark.parametrize("case", BROKEN[1:], ids=lambda case: case.name)
def test_replays_catch_what_is_published_unpaid(case):
    report = audit(
        case.make(1.0, "replace_one"),
        *data_of(case),
        method="replay",
        random_state=0,
        **case.claims,
    )
    assert not report.passed
    told = {"unpaid mean": "mean_", "grid": "best_estimator_.coef_", "Target": "encodings_"}
    (part,) = (text for name, text in told.items() if case.name.startswith(name))
    assert part in str(report)
    assert "depends on more than the releases" in str(report)


class Careless(DPStandardScaler):
    """Tells of the data what nobody paid for, in a way of its choice."""

    def __init__(self, way="", epsilon=1.0, adjacency="replace_one", feature_bounds=(-3.0, 3.0)):
        super().__init__(epsilon, adjacency=adjacency, feature_bounds=feature_bounds)
        self.way = way

    def fit(self, X, y=None):
        large = float(np.max(X)) > 2.5
        if self.way == "warns" and large:
            warnings.warn("A value is large.", stacklevel=2)
        if self.way == "raises" and large:
            raise ValueError("A value is large.")
        if self.way == "charges":
            self.epsilon = 0.9 if large else 1.0
        if self.way == "chooses":
            private_argmax([float(np.sum(X > 2.5)), 0.0], PureLoss(1.0))
        super().fit(X)
        if self.way == "again" and large:
            super().fit(X)
        return self


@quick("raises-raises an error that the other does not")
@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("warns", "the warnings depend on the data"),
        ("raises", "raises an error that the other does not"),
        ("charges", "the charges depend on the data"),
        ("chooses", "an uncharged PermuteAndFlip released something"),
        ("again", "the number of releases depends on the data"),
    ],
)
def test_replays_catch_what_tells_the_data_sets_apart_beside_the_releases(way, message):
    assert audit(Careless(), X, method="replay").passed
    report = audit(Careless(way), X, method="replay")
    assert not report.passed
    assert message in str(report)


def test_replays_catch_a_record_that_moves_more_than_is_declared(monkeypatch):
    kernel = queries.second_moments
    monkeypatch.setattr(queries, "second_moments", lambda X, **settings: 2 * kernel(X, **settings))
    model = DPCovariance(assume_centered=True, row_norm=1.0)
    report = audit(model, np.hstack([X, -X]), method="replay")
    assert report.refuted
    (broken,) = report.results[0].broken
    assert "'second moments': one record moves it by 2 times what is declared" in broken
    assert "more than is claimed" in str(report)


@quick("iid_laplace")
@pytest.mark.parametrize("noise", ["iid_gaussian", "iid_laplace"])
def test_a_broken_declaration_refutes_no_claim_that_the_noise_keeps(noise):
    report = audit(Histogram(0.5, 1.0, noise), X, method="replay", random_state=0)
    (result,) = report.results
    assert not report.passed
    assert not report.refuted
    assert result.problems == ()
    assert 0.99 < result.epsilon <= 1.0 + 1e-9
    assert dict(result.shares)["counts"] == pytest.approx(2.0, rel=1e-3)
    (broken,) = result.broken
    assert "'counts': one record moves it by 2 times what is declared for one number" in broken
    assert "nothing found, but a declaration is BROKEN" in str(report)
    assert f"\n  replay: declaration BROKEN: {broken}\n" in str(report)
    assert "declaration is BROKEN" in report._repr_html_()
    assert "REFUTED" not in str(report)
    numbers = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert (numbers["passed"], numbers["refuted"]) == (False, False)
    assert numbers["results"][0]["broken"] == [broken]


@quick("iid_gaussian-0.5-2.1")
@pytest.mark.parametrize(
    ("noise", "single", "least"), [("iid_gaussian", 0.5, 2.1), ("iid_laplace", 1.0, 1.99)]
)
def test_a_claim_that_the_noise_does_not_keep_is_refuted_by_what_the_shifts_cost(
    noise, single, least
):
    report = audit(Histogram(single, 0.5, noise), X, method="replay", random_state=0)
    (result,) = report.results
    assert report.refuted
    (problem,) = result.problems
    assert "more than is claimed" in problem
    # Half the noise: twice the shift.
    if noise == "iid_gaussian":
        expected = GaussianLoss(2.0 * gdp_mu(1.0, 1e-6)).epsilon(1e-6)
        assert result.epsilon == pytest.approx(expected, rel=1e-3)
    assert least < result.epsilon < 2.2


def test_what_keeps_its_declaration_passes():
    report = audit(Histogram(1.0, 1.0), X, method="replay", random_state=0)
    assert report.passed
    assert report.results[0].epsilon == pytest.approx(1.0, rel=1e-3)


class Twice(DPStandardScaler):
    """Counts the records in one place twice."""

    def __init__(self, at=0, epsilon=1.0, adjacency="replace_one", feature_bounds=(-3.0, 3.0)):
        super().__init__(epsilon, adjacency=adjacency, feature_bounds=feature_bounds)
        self.at = at

    def fit(self, X, y=None):
        at = int(self.at * (len(X) - 1))
        return super().fit(np.vstack([X[at : at + 1], X]))


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("adjacency", "bounds"),
    [("replace_one", (-3.0, 3.0)), ("replace_one", None), ("add_remove", (-3.0, 3.0))],
)
@pytest.mark.parametrize("at", [0, 0.5])
def test_replays_catch_a_record_that_counts_twice_by_its_place(adjacency, bounds, at, monkeypatch):
    settings = {"method": "replay", "random_state": 0}
    rows = np.vstack([X] * 10)[:399]  # with a middle, whether or not there is one more
    settings_of = {"adjacency": adjacency, "feature_bounds": bounds}
    assert audit(DPStandardScaler(**settings_of), rows, **settings).passed
    report = audit(Twice(at, **settings_of), rows, **settings)
    assert not report.passed
    assert ("in the middle" if at else "in the first row") in str(report)
    monkeypatch.setattr(_neighbours, "places", lambda size: [("", size)])
    assert audit(Twice(at, **settings_of), rows, **settings).passed


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("place", [0, 20, 40])
def test_a_pair_that_is_given_is_looked_at_in_its_place(adjacency, place):
    rows = np.insert(X, place, 3.0, axis=0)
    other = np.where(rows == 3.0, -3.0, rows) if adjacency == "replace_one" else X
    given = {"neighbours": (other, None), "method": "replay", "random_state": 0}
    for bounds in (BOUNDED, {}):
        assert audit(DPStandardScaler(adjacency=adjacency, **bounds), rows, **given).passed
    assert not audit(Twice(place / 40, adjacency=adjacency), rows, **given).passed
    if adjacency == "replace_one":
        for elsewhere in {0, 20, 40} - {place}:
            assert audit(Twice(elsewhere / 40), rows, **given).passed


def test_replays_catch_a_query_that_is_asked_more_often_than_it_is_charged_for(monkeypatch):
    add = Drawn.add

    def twice(drawn, integers, at=...):
        add(Drawn(drawn.mechanism, drawn.noise), integers, at)
        return add(drawn, integers, at)

    monkeypatch.setattr(Drawn, "add", twice)
    model = DPCovariance(assume_centered=True, row_norm=1.0)
    report = audit(model, np.hstack([X, -X]), method="replay")
    assert "'second moments': more is released than is charged for" in str(report)


@pytest.mark.slow
def test_replays_go_through_compositions_and_see_what_is_learnt_in_front():
    model = make_pipeline(StandardScaler(), DPLogisticCD(**BOUNDED))
    report = audit(model, X, Y, method="replay", epsilon=1.0, delta=1e-6, adjacency="replace_one")
    assert "steps[0][1].mean_" in str(report)


# The black box


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classifier", "covariance"])
def test_a_black_box_finds_no_more_than_is_claimed_and_a_part_of_it(name):
    (case,) = (case for case in SOUND if case.name == name)
    report = audit(
        case.make(4.0, "replace_one"),
        *data_of(case),
        method="black_box",
        n_fits=600,
        random_state=0,
    )
    (result,) = report.results
    assert report.passed
    assert result.claimed_mu / 4 < result.mu <= result.claimed_mu
    assert 0.5 < result.epsilon < result.most_epsilon < 4.0
    assert result.n_measured == 450


class NoisyMean(RegressorMixin, BaseEstimator):
    """Somebody else's estimator: the mean of the target with Laplace noise, or with less."""

    def __init__(self, epsilon=1.0, fault="", random_state=None):
        self.epsilon = epsilon
        self.fault = fault
        self.random_state = random_state

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        scale = 2.0 / len(y) / self.epsilon  # replace one, within ±1
        scale *= 0.5 if self.fault == "noise" else 1.0
        self.mean_ = np.clip(y, -1.0, 1.0).mean() + rng.laplace(0.0, scale)
        if self.fault == "warns" and y[-1] > 0.5:
            warnings.warn("The last target is large.", stacklevel=2)
        if self.fault == "raises" and y[-1] > 0.5:
            raise ValueError("The last target is large.")
        if self.fault == "predicts":
            self._rows = X, y
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["", "noise", "warns", "raises", "predicts"])
def test_the_estimator_of_somebody_else_is_caught_by_what_it_does_wrong(fault):
    report = audit(
        NoisyMean(1.0, fault),
        X,
        Y.astype(float),
        adjacency="replace_one",
        n_fits=800,
        random_state=0,
    )
    (result,) = report.results  # no release of ours is seen
    assert result.method == "black_box"
    assert report.passed is (fault == "")
    if not fault:
        assert 0.5 < result.epsilon <= 1.0


@pytest.mark.slow
def test_the_pair_that_is_given_is_the_one_that_is_looked_at_wherever_the_records_stand():
    other = Y.astype(float)
    other[3] = 1.0 - other[3]
    settings = {"adjacency": "replace_one", "n_fits": 200, "random_state": 0}
    target = Y.astype(float)
    blunt = audit(NoisyMean(), X, target, neighbours=(X, other), **settings)
    assert blunt.results[0].neighbours == "as given"
    # The record moves by a half of what it may: half the epsilon.
    assert blunt.results[0].epsilon < 0.5
    told = audit(NoisyMean(1.0, "predicts"), X, target, neighbours=(X, other), **settings)
    assert not told.passed
    fewer = audit(
        DPStandardScaler(adjacency="add_remove", **BOUNDED),
        X,
        neighbours=(np.delete(X, 7, axis=0), None),
        method="replay",
    )
    assert fewer.passed


@pytest.mark.slow
def test_fits_side_by_side_find_the_same_as_one_after_another():
    settings = {"adjacency": "replace_one", "n_fits": 60, "random_state": 0}
    with parallel_config(backend="threading"):  # processes take long to start
        one, two = (audit(NoisyMean(), X, Y * 1.0, n_jobs=n, **settings) for n in (1, 2))
    assert one == two


@pytest.mark.slow
def test_an_audit_charges_no_ledger_and_leaves_the_estimator_alone():
    ledger = PrivacyLedger("wages", 10.0, 1e-6)
    scaler = DPStandardScaler(**BOUNDED, ledger=ledger, random_state=7)
    audit(scaler, X, n_fits=20, random_state=0)
    assert ledger.total().n_charges == 0
    assert scaler.ledger is ledger
    assert scaler.random_state == 7
    assert not hasattr(scaler, "mean_")


@pytest.mark.slow
def test_frames_and_texts_are_audited_as_they_are():
    frame = pd.DataFrame({"size": X[:, 0], "town": np.where(Y, "A", "B")})
    model = make_pipeline(TargetEncoder(cv=2), DPLogisticCD(**BOUNDED))
    labels = np.where(Y, "yes", "no")
    claim = {"epsilon": 1.0, "delta": 0.1, "adjacency": "replace_one"}
    report = audit(model, frame, labels, n_fits=20, random_state=0, **claim)
    assert not report.passed


# One run


class Mean(BaseEstimator):
    """The mean of many columns with Gaussian noise of a size of its own."""

    def __init__(self, epsilon=1.0, delta=1e-5, scale=1.0, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.scale = scale
        self.random_state = random_state

    def fit(self, X, y=None):
        rng = np.random.default_rng(self.random_state)
        self.mean_ = X.mean(axis=0) + self.scale / len(X) * rng.standard_normal(X.shape[1])
        return self


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_one_run_with_canaries_refutes_what_has_too_little_noise_and_nothing_else(adjacency):
    table = np.random.default_rng(0).choice([-1.0, 1.0], size=(20, 200))
    settings = {"method": "one_run", "n_canaries": 200, "adjacency": adjacency, "random_state": 0}
    found = {scale: audit(Mean(scale=scale), table, **settings) for scale in (0.2, 50.0)}
    assert not found[0.2].passed
    assert found[50.0].passed
    (result,) = found[0.2].results
    assert result.epsilon <= result.most_epsilon
    assert result.n_right > 0.9 * result.n_guesses


def test_one_run_looks_at_predictions_covariances_or_a_score_of_ones_own():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(60, 5))
    settings = {"n_canaries": 20, "method": "one_run", "random_state": 0}
    labels = (table[:, 0] > 0).astype(int)
    for model, y in ((DPLogisticCD(**BOUNDED), labels), (DPCovariance(row_norm=1.0), None)):
        assert audit(model, table, y, **settings).passed
    claim = {"epsilon": 1.0, "adjacency": "replace_one"}
    assert (
        not audit(
            Ridge(1e-6),
            table,
            labels * 1.0,
            n_canaries=20,
            method="one_run",
            random_state=0,
            **claim,
        )
        .results[0]
        .epsilon
        > 6.0
    )
    own = audit(
        DPStandardScaler(**BOUNDED), table, score=lambda model, X, *rest: X[:, 0], **settings
    )
    assert own.results[0].n_canaries == 20


# What is said


@pytest.mark.slow
def test_a_report_prints_claimed_beside_found_and_the_most_it_could_show():
    report = audit(DPStandardScaler(**BOUNDED), X, n_fits=40, random_state=0)
    text, card = str(report), report._repr_html_()
    for part in (
        "claims (epsilon=1, delta=1e-06)",
        "replay:",
        "black_box:",
        "most it could show",
        "not private unless the data are public",
        "a diagnostic and no bound",
        "false alarm: a sound estimator fails with probability at most 0.001",
    ):
        assert part in text
    for part in ("DPStandardScaler", "replay", "black_box", "not private unless"):
        assert part in card
    assert "nothing found" in repr(report)
    assert isinstance(report, AuditReport)
    numbers = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert numbers["passed"] is True
    assert [result["method"] for result in numbers["results"]] == ["replay", "black_box"]
    assert numbers["results"][1]["n_fits"] == 40
    with pytest.raises(AttributeError):
        report.n_records = 3


@pytest.mark.slow
def test_an_audit_with_a_seed_finds_the_same_again():
    model = DPStandardScaler(**BOUNDED)
    one, two, other = (audit(model, X, n_fits=20, random_state=seed) for seed in (0, 0, 1))
    assert one == two
    assert one.results[1] != other.results[1]


@pytest.mark.slow
def test_progress_is_told_to_a_function_to_its_end():
    told = []
    audit(
        DPStandardScaler(**BOUNDED),
        X,
        n_fits=20,
        progress=lambda *counts: told.append(counts),
    )
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_progress_is_shown_with_rich_and_without(monkeypatch, capsys):
    audit(DPStandardScaler(**BOUNDED), X, method="replay", progress=True)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    audit(DPStandardScaler(**BOUNDED), X, method="replay", progress=True)
    assert "audit of DPStandardScaler: 18 of 18 fits" in capsys.readouterr().err


class Nameless(ClassifierMixin, BaseEstimator):
    """Claims nothing."""

    def fit(self, X, y):
        return self


ADD = {"adjacency": "add_remove"}


@pytest.mark.parametrize(
    ("estimator", "settings", "error", "message"),
    [
        (Nameless(), {}, ValueError, "Nameless has no parameter 'epsilon'"),
        (NoisyMean(), {}, ValueError, "NoisyMean has no parameter 'adjacency'"),
        (None, {"method": "guess"}, ValueError, "'method' parameter of audit must be 'auto'"),
        (None, {"method": []}, ValueError, "'method' parameter of audit must be 'auto'"),
        (None, {"n_fits": 19}, ValueError, "'n_fits' parameter of audit .* in the range .20, inf"),
        (None, {"n_fits": 20.0}, TypeError, "'n_fits' parameter of audit must be an int"),
        (None, {"n_replays": 0}, ValueError, "'n_replays' parameter .* in the range .1, inf"),
        (None, {"n_canaries": 1}, ValueError, "'n_canaries' parameter .* in the range .10, inf"),
        (None, {"false_alarm": 0.0}, ValueError, "'false_alarm' parameter of audit must be"),
        (None, {"false_alarm": "no"}, TypeError, "'false_alarm' parameter of audit must be"),
        (None, {"epsilon": -1.0}, ValueError, "epsilon"),
        (None, {"neighbours": "best"}, ValueError, "got an object of type str"),
        (None, {"neighbours": (X, Y)}, ValueError, "the columns of the two are not the same"),
        (None, {"neighbours": (X[1:], None)}, ValueError, "Got 39 rows for 40"),
        (None, {"neighbours": (X + 1.0, None)}, ValueError, "but for one row, they differ"),
        (None, {"neighbours": (X, None), **ADD}, ValueError, "one row more or less"),
        (None, {"neighbours": (X[1:] + 1.0, None), **ADD}, ValueError, "they differ"),
    ],
)
def test_what_is_wrong_is_said_and_shows_no_value(estimator, settings, error, message):
    scaler = DPStandardScaler(**BOUNDED) if estimator is None else estimator
    with pytest.raises(error, match=message) as caught:
        audit(scaler, X, Y if isinstance(scaler, NoisyMean | Nameless) else None, **settings)
    assert not any(repr(value) in str(caught.value) for value in X[:, 0].tolist())


@pytest.mark.parametrize("method", ["replay", "black_box", "one_run"])
def test_an_audit_in_which_every_fit_fails_says_so_rather_than_finding_nothing(method):
    with pytest.raises(ValueError, match="DPStandardScaler cannot be fitted to these data"):
        audit(
            DPStandardScaler(feature_bounds=(3.0, -3.0)), X, method=method, n_fits=20, n_canaries=10
        )


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(ValueError, match="two-dimensional, with 4 rows"):
        audit(DPStandardScaler(), X[:3])
    with pytest.raises(ValueError, match="sees releases of skdpnoise only, and NoisyMean made"):
        audit(NoisyMean(), X, Y * 1.0, method="replay", adjacency="replace_one")
    with pytest.raises(ValueError, match=r"no score for DPMinMaxScaler.*pass score="):
        audit(DPMinMaxScaler(), X, method="one_run", n_canaries=10)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_data_near_the_limit_of_what_estimators_take_accuse_nobody(adjacency):
    rng = np.random.default_rng(0)
    X = np.column_stack([1e99 * rng.uniform(-1.0, 1.0, 40), rng.normal(size=40)])
    model = DPStandardScaler(epsilon=1.0, adjacency=adjacency)
    assert audit(model, X, method="replay").passed
