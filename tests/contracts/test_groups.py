"""A person with many rows: neighbours by force, for groups of rows and every family of estimators.

A fit is replayed on a neighbour with the same released numbers and the same coins for each group.
What the noise then has to make up for is at most what is paid for: as many steps as rows of a
group are kept, and all of them if these rows pull the same way.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skdpnoise import (
    DPPCA,
    DPCoordinateDescentRegressor,
    DPLassoPath,
    DPLogisticCD,
    DPMinMaxScaler,
    DPPoissonRegressor,
    DPRobustScaler,
    DPStandardScaler,
    total_guarantee,
)
from skdpnoise.data import groups
from skdpnoise.data.groups import Groups, sample_rows
from skdpnoise.data.table import InMemory
from skdpnoise.decomposition import _budget as budget_rules
from skdpnoise.decomposition import moments
from skdpnoise.inspection.auditing._costs import TOLERANCE, total_moved
from skdpnoise.inspection.auditing._fingerprint import fingerprint
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.sampling import SeededWords
from tests._cases import each_value, quick
from tests._replay import two_runs
from tests.contracts._register import CLASSES, MATRICES, Entry, each, ways

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

ADJACENCIES = ["replace_one", "add_remove"]
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)
MOST = 3  # rows that are kept of a group
OWNED = 5  # rows of the person in whom neighbours differ


@contextmanager
def coins_by_group(seed):
    """Give each group coins of its own, that are the same whatever other groups there are."""

    def keyed(codes, most, words):
        kept = []
        for code in range(codes.max() + 1):
            rows = np.flatnonzero(codes == code)
            coins = SeededWords([seed, code])
            kept.append(rows[sample_rows(np.zeros(rows.size, dtype=int), most, coins)])
        return np.sort(np.concatenate(kept))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "sample_rows", keyed)
        yield


def people(rng, n):
    """Labels of rows in groups of one to four, and of the person in whom neighbours differ."""
    labels = np.sort(rng.integers(0, n // 2, n - OWNED))
    return [*(f"person {label}" for label in rng.permuted(labels)), *["Ann"] * OWNED]


def kept_rows(labels):
    """Return how many rows will be kept of the first so many."""
    return lambda table: (
        Groups.of_labels("Test", InMemory(table, len(table)), MOST, labels[: len(table)]).n_kept
    )


def check_uses(runs):
    """Check that no stage uses more than is paid for; return the largest share of a stage."""
    model = runs.first
    for one in runs.moved:
        assert one.share <= MOST * TOLERANCE
    guarantee = model.privacy_.guarantee
    epsilon, delta = guarantee.epsilon, guarantee.delta
    assert total_moved(runs.moved).delta(epsilon * TOLERANCE) <= delta * TOLERANCE
    assert model.privacy_.total.delta(epsilon) <= delta
    runs.check_same()
    return max(one.share for one in runs.moved)


BOUNDS = {"feature_bounds": (-1.0, 1.0)}
DESCENT = {"solver": "gradient", "clip": 0.05}
GRAM = {"solver": "gram", "row_norm": 0.5, "fit_intercept": False}
REGRESSOR, PATH = Entry(DPCoordinateDescentRegressor, "numbers"), Entry(DPLassoPath, "numbers")
CLASSIFIER = Entry(DPLogisticCD, "labels")
COUNTS = Entry(DPPoissonRegressor, "counts")
STANDARD, ROBUST = Entry(DPStandardScaler), Entry(DPRobustScaler)


@dataclass(frozen=True)
class Case:
    """A fit, what is public of it, and how much of what is paid for neighbours can use of it."""

    entry: Entry
    settings: dict[str, Any] = field(default_factory=dict)
    least: float = 0.99
    axes: bool = False  # whether the rows of neighbours lie along other axes


# Of quantiles the ends of a range are not the two bins that are farthest apart.
CASES = {
    "descent": Case(REGRESSOR, {**DESCENT, "target_bounds": (-1.0, 1.0), **BOUNDS}),
    "descent, nothing public": Case(REGRESSOR, DESCENT),
    "logistic": Case(CLASSIFIER, {"clip": 0.05, **BOUNDS}),
    "logistic, nothing public": Case(CLASSIFIER, {"clip": 0.05, "n_passes": 3}),
    "counts": Case(COUNTS, {"clip": 0.05, "target_bounds": (0.0, 4.0), **BOUNDS}),
    "counts, nothing public": Case(COUNTS, {"clip": 0.05, "n_passes": 3}),
    "gram": Case(REGRESSOR, {**GRAM, "target_bounds": (-1.0, 1.0), **BOUNDS}, axes=True),
    "path": Case(PATH, {"row_norm": 0.5, "target_bounds": (-1.0, 1.0), "alphas": 2, **BOUNDS}),
    "standard": Case(STANDARD, BOUNDS),
    "standard, nothing public": Case(STANDARD),
    "robust": Case(ROBUST, BOUNDS, least=0.9),
    "robust, nothing public": Case(ROBUST, least=0.9),
    "quantiles": Case(Entry(DPMinMaxScaler), least=0.9),
}


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@every_adjacency
@pytest.mark.parametrize("noise", ["inid_gaussian", "iid_laplace"])
def test_the_rows_of_a_group_move_a_fit_by_no_more_than_is_paid_for(case, adjacency, noise):
    delta = 1e-3 if noise == "inid_gaussian" else 0.0
    rng, largest = np.random.default_rng(1), 0.0
    for seed in range(6):
        n = 160 + seed
        labels = people(rng, n)
        X, y = rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
        X_other, y_other = X.copy(), y.copy()
        X[-OWNED:], X_other[-OWNED:] = 1e90, (1e90 if seed % 2 else -1e90)
        y[-OWNED:], y_other[-OWNED:] = -1e90, 1e90
        if case.axes:
            X[-OWNED:, 1], X_other[-OWNED:, 0] = 0.0, 0.0
        y, y_other = (case.entry.y(values) for values in (y, y_other))
        if adjacency == "add_remove":
            X_other, y_other = X_other[:-OWNED], y_other if y_other is None else y_other[:-OWNED]

        def fit(X, y, seed=seed, labels=labels):
            model = case.entry.estimator(
                epsilon=40.0, delta=delta, noise=noise, adjacency=adjacency, rows_per_group=MOST
            )
            model.set_params(random_state=seed, **case.settings)
            return model.fit(X, y, groups=labels[: len(X)])

        with coins_by_group(seed):
            runs = two_runs(fit, (X, y), (X_other, y_other), seed)
        largest = max(largest, check_uses(runs))
    assert largest >= case.least * MOST


SETTINGS = {
    "gaussian": {"noise": "inid_gaussian"},
    "pure": {"delta": 0.0, "noise": "wishart"},
    "not centred": {"row_norm": 1.0, "noise": "iid_gaussian"},
    "a subset": {"noise": "inid_gaussian"},
}


@quick("DPPCA-replace_one-gaussian", "DPPCA-add_remove-not centred", "DPCovariance-add_remove-pure")
@each_value(1)
@pytest.mark.parametrize("name", SETTINGS)
@every_adjacency
@each(MATRICES)
def test_the_rows_of_a_group_move_second_moments_by_no_more_than_is_paid_for(
    monkeypatch, entry, adjacency, name
):
    settings = {"epsilon": 15.0, "adjacency": adjacency, **SETTINGS[name]}
    if name == "not centred":
        settings |= entry.uncentred
    if name == "a subset":
        monkeypatch.setattr(budget_rules, "rows_needed", lambda total, n_columns: 20)
    rng, largest = np.random.default_rng(0), {}
    for seed in range(6):
        labels = people(rng, 70)
        # Coins of subsets come eight to a word: neighbours must read as many words.
        while (kept_rows(labels)(labels) - 1) // 8 > (kept_rows(labels)(labels) - MOST - 1) // 8:
            labels = people(rng, 70)
        X = rng.normal([0.0, 0.3, 0.1], [1.0, 0.3, 0.2], size=(70, 3))
        other = X.copy()
        # The other way moves the mean the most, and another axis the second moments.
        X[-OWNED:] = [1e50, 0.0, 0.0]
        other[-OWNED:] = [-1e50, 0.0, 0.0] if seed % 2 else [0.0, 1e50, 0.0]
        if adjacency == "add_remove":
            other = other[:-OWNED]

        def fit(rows, seed=seed, labels=labels):
            model = entry.estimator(**settings, rows_per_group=MOST, random_state=seed)
            return model.fit(rows, groups=labels[: len(rows)])

        with coins_by_group(seed):
            runs = two_runs(fit, (X,), (other,), seed)
        check_uses(runs)
        for one in runs.moved:
            largest[one.label] = max(largest.get(one.label, 0.0), one.share)
    assert largest["second moments"] > 0.99 * MOST
    if "mean" in largest and name != "a subset":
        assert largest["mean"] > 0.99 * MOST


# The budget


@each_value(1)
@each(ways(CLASSES))
@every_adjacency
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_with_a_group_for_each_row_a_fit_is_that_without_groups(entry, adjacency, delta):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = entry.y(X)
    model = entry.estimator(epsilon=2.0, delta=delta, adjacency=adjacency, random_state=3)
    attributes = []
    for labels in (None, [f"person {i}" for i in range(500)]):
        fitted = vars(model.fit(X, y, groups=labels)).copy()
        report = fitted.pop("privacy_")
        attributes.append({name: fingerprint(value) for name, value in fitted.items()})
        assert report.unit == ("record" if labels is None else "group")
    assert attributes[0] == attributes[1]


@each_value(1)
@each(ways(CLASSES))
@every_adjacency
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_report_states_the_guarantee_for_groups(entry, adjacency, delta):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = entry.y(X)
    model = entry.estimator(epsilon=2.0, delta=delta, adjacency=adjacency, rows_per_group=2)
    report = model.fit(X, y, groups=np.arange(600) // 3).privacy_
    assert report.rows_per_group == 2
    assert "unit: a group of rows (at most 2 rows kept of each)" in str(report)
    assert "at most 2 rows" in report._repr_html_()
    assert ("rows of one group" if adjacency == "replace_one" else "one group more") in str(report)
    assert report.total.delta(2.0) <= delta
    at = 0.0 if np.isfinite(report.total.epsilon(0.0)) else delta  # pure, or not
    assert report.total.epsilon(at) <= 2.0
    # What numbers say of the noise of a row is not known for several; networks sample people, and
    # mechanisms of categories say themselves what groups lose.
    otherwise = entry.by_torch or entry.reads in ("labels", "tables")
    assert isinstance(report.total, (GaussianLoss, PureLoss)) or otherwise


@each(ways([entry for entry in CLASSES if not entry.by_torch]))
def test_noise_that_is_made_for_a_row_where_a_group_is_promised_is_refused(monkeypatch, entry):
    for loss in (PureLoss, GaussianLoss):
        monkeypatch.setattr(loss, "per_row", lambda self, rows: self)
    X = np.random.default_rng(0).normal(size=(600, 2))
    y = entry.y(X)
    model = entry.estimator(epsilon=2.0, rows_per_group=3)
    # Counts of categories are made for groups, and do not find a noise.
    error, text = BudgetExceededError, "would cost"
    if entry.reads == "labels":
        error, text = ValueError, "must be met by noise"
    with pytest.raises(error, match=text):
        model.fit(X, y, groups=np.arange(600) // 3)


def test_more_rows_of_a_group_take_more_noise():
    X = np.random.default_rng(0).normal(size=(600, 2))
    scales = []
    for most in (1, 2, 4):
        scaler = DPStandardScaler(feature_bounds=(-3.0, 3.0), rows_per_group=most)
        release = scaler.fit(X, groups=np.arange(600) // 4).privacy_.releases[0]
        scales.append(release.scale[0])
        assert scaler.n_samples_seen_ == 150 * most
    assert np.array(scales) / scales[0] == pytest.approx([1.0, 2.0, 4.0], rel=1e-6)


def test_classes_are_those_of_all_rows_also_where_none_of_a_class_is_kept():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(np.arange(60) == 59, "rare", "common")
    labels = np.append(np.arange(30), np.full(30, 99))
    for seed in range(5):
        model = DPLogisticCD(random_state=seed).fit(X, y, groups=labels)
        assert model.classes_.tolist() == ["common", "rare"]


def test_the_number_of_kept_rows_is_what_counts():
    X = np.random.default_rng(0).normal(size=(6000, 2))
    labels = np.arange(6000) // 3
    assert DPPCA(rows_per_group=2, row_norm=3.0).fit(X, groups=labels).n_samples_ == 4000.0
    noisy = DPPCA(rows_per_group=2, row_norm=3.0, adjacency="add_remove", random_state=0)
    assert abs(noisy.fit(X, groups=labels).n_samples_ - 4000.0) < 500.0
    assert moments.COUNT_SHARE == 0.02


# scikit-learn's routing


FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 2)), columns=["a", "b"])
LABELS = (FRAME["a"] > 0.0).to_numpy()
PERSON = pd.Series(np.arange(400) // 4, name="person").astype("category")


@each(ways(CLASSES))
def test_groups_reach_a_step_of_a_pipeline_that_asks_for_them(entry):
    with config_context(enable_metadata_routing=True):
        first, step, last = (
            made(rows_per_group=2, adjacency=entry.adjacencies[0]).set_fit_request(groups=True)
            for made in (DPStandardScaler, entry.estimator, DPLogisticCD)
        )
        pipeline = make_pipeline(*((step, last) if entry.transforms else (first, step)))
        pipeline.fit(FRAME, LABELS if entry.target is None else entry.y(FRAME), groups=PERSON)
        assert [step.privacy_.rows_per_group for _, step in pipeline.steps] == [2, 2]
        assert total_guarantee(pipeline).unit == "group"


def test_groups_reach_a_step_by_its_name_without_routing():
    pipeline = make_pipeline(DPStandardScaler(), DPLogisticCD())
    pipeline.fit(FRAME, LABELS, dpstandardscaler__groups=PERSON, dplogisticcd__groups=PERSON)
    assert [step.privacy_.unit for _, step in pipeline.steps] == ["group", "group"]


def test_groups_reach_every_fit_of_a_search_and_its_splitter():
    with config_context(enable_metadata_routing=True):
        model = DPLogisticCD(rows_per_group=2).set_fit_request(groups=True)
        search = GridSearchCV(model, {"alpha": [0.0, 1.0]}, cv=GroupKFold(2), error_score="raise")
        search.fit(FRAME, LABELS, groups=PERSON)
        assert search.best_estimator_.privacy_.rows_per_group == 2
        scores = cross_val_score(
            model, FRAME, LABELS, cv=GroupKFold(2), params={"groups": PERSON}, error_score="raise"
        )
        assert len(scores) == 2


@each(ways(CLASSES))
def test_fit_transform_and_positional_groups_work(entry):
    y = entry.y(FRAME)
    assert entry.estimator().fit(FRAME, y, PERSON).privacy_.unit == "group"
    if entry.transforms:
        model = entry.estimator(rows_per_group=3)
        assert len(model.fit_transform(FRAME, y, groups=PERSON)) == len(FRAME)
        assert model.privacy_.rows_per_group == 3


@each(ways(CLASSES))
def test_a_number_of_rows_without_groups_is_refused(entry):
    with pytest.raises(ValueError, match=r"'rows_per_group' .* must be 1 .* no 'groups'.*set_fit"):
        entry.estimator(rows_per_group=2).fit(FRAME, entry.y(FRAME))


@each(ways(CLASSES))
def test_too_few_kept_rows_are_refused(entry):
    y = entry.y(FRAME)
    with pytest.raises(ValueError, match=r"needs 2 rows at least.*keeps 1 of these 'groups'"):
        entry.estimator().fit(FRAME, y, groups=np.zeros(400))
