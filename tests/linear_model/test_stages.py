"""The stages of a fit: what each is handed, and what it samples."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPLassoPath,
    DPLogisticCD,
    DPPoissonRegressor,
)
from skdpnoise.accounting import session
from skdpnoise.accounting.session import Session
from skdpnoise.data.table import InMemory
from skdpnoise.kernels import LOGISTIC, SQUARED
from skdpnoise.linear_model._budget import split_budget
from skdpnoise.linear_model._penalties import of_standard_columns
from skdpnoise.linear_model._records import LinearProblem, LinearTarget, Rows, Settings
from skdpnoise.linear_model._standard_units import Standardisation
from skdpnoise.linear_model.solvers import coordinate
from skdpnoise.linear_model.solvers.final_steps import finished
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.sampling import SeededWords
from tests._cases import each_value
from tests.linear_model._public import public_schema

ESTIMATORS = [DPCoordinateDescentRegressor, DPLogisticCD, DPPoissonRegressor]


class Noted(SeededWords):
    """Words that note how many were taken."""

    taken = 0

    def take(self, n):
        self.taken += n
        return super().take(n)


def plan_of(estimator, used, n_outputs=1, n_samples=2000.0):
    settings, used = Settings.of(estimator), np.asarray(used)
    bounds = np.tile([[-1.0], [1.0]], used.size)
    target_bounds = bounds[:, :1] if hasattr(estimator, "target_bounds") else None
    schema = public_schema(bounds, target_bounds, n_outputs)
    guarantee = PrivacyGuarantee(estimator.epsilon, estimator.delta)
    budget = split_budget(settings, 1, schema, guarantee).for_records(n_samples)
    ones = np.ones(used.size)
    features, target = Standardisation(0.0 * ones, ones, used, 3.0 * ones), np.zeros(n_outputs)
    problem = LinearProblem(settings, schema, features, LinearTarget(target))
    return coordinate.COORDINATE.plan(problem, n_samples, budget)


def rows_of(plan):
    shape = 10, plan.problem.schema.n_columns
    return InMemory(Rows(np.zeros(shape), np.ones(10)), 10)


def updates_of(plan, words, monkeypatch):
    """Run a plan; return its updates of all outputs, all noise, and what was charged."""
    seen, noise, charged, draw = [], [], [], Session.draw

    def noted(sums, size, updates):
        seen.append(updates)
        yield from np.zeros((updates.n_passes, size))

    def drawing(one, label, mechanism):
        drawn = draw(one, label, mechanism)
        noise.append(drawn.noise)
        return drawn

    one = Session(words, "replace_one", lambda label, mechanism: charged.append(label))
    with monkeypatch.context() as patch:
        patch.setattr(coordinate, "visit", noted)
        patch.setattr(Session, "draw", drawing)
        path = np.stack(list(plan.run(rows_of(plan), one)))
        finished(plan, path, rows_of(plan), one)
    return SimpleNamespace(updates=seen, noise=noise, charged=charged)


def test_settings_hold_what_an_estimator_has_and_defaults_for_the_rest():
    model = DPLogisticCD(alpha=0.5, clip=2.0, fit_intercept=False)
    settings = Settings.of(model)
    assert (settings.owner, settings.loss) == ("DPLogisticCD", LOGISTIC)
    assert (settings.alpha, settings.clip) == (0.5, 2.0)
    assert settings.fit_intercept is False and settings.row_norm == "auto"
    assert not settings.column_groups and Settings.of(DPLogisticCD(column_groups=[])).column_groups
    path = Settings.of(DPLassoPath(row_norm=2.0))
    assert (path.row_norm, path.n_passes, path.clip) == (2.0, "auto", "auto")
    assert (path.loss, path.penalty) == (SQUARED, of_standard_columns)
    # A change of the estimator after its settings were read changes nothing.
    model.set_params(clip=9.0)
    assert settings.clip == 2.0


@each_value(1)
@pytest.mark.parametrize("Estimator", ESTIMATORS)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_plan_samples_noise_for_every_update_and_an_order_for_every_pass(
    Estimator, n_outputs, monkeypatch
):
    plan = plan_of(Estimator(n_passes=40), [True, False, True, True, True], n_outputs)
    assert plan.coordinates.tolist() == [0, 2, 3, 4, 5]  # that are used, and the intercept
    found = updates_of(plan, SeededWords(0), monkeypatch)
    assert len(found.updates) == n_outputs
    assert found.noise[0].shape == (40, 5 * n_outputs)
    assert (found.noise[0] != 0).all()
    for updates in found.updates:
        assert (np.sort(updates.order, axis=1) == np.arange(5)).all()
        assert len({tuple(order) for order in updates.order.tolist()}) > 20
    again = updates_of(plan, SeededWords(0), monkeypatch)
    assert_array_equal(found.noise[0], again.noise[0])
    for one, other in zip(found.updates, again.updates, strict=True):
        assert_array_equal(one.order, other.order)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_every_update_meets_noise_of_its_own(n_outputs, monkeypatch):
    plan, met = plan_of(DPLogisticCD(n_passes=4), [True, False, True], n_outputs), []

    def noted(mechanism, integers, noise):
        met.append(int(noise))
        return integers + noise

    monkeypatch.setattr(session, "plus_noise", noted)
    one = session.Session(SeededWords(0), "replace_one")
    path = list(plan.run(rows_of(plan), one))
    assert np.stack(path).shape == (4, n_outputs, 4)
    assert (np.stack(path)[:, :, 1] == 0.0).all()
    drawn = session.Session(SeededWords(0), "replace_one").draw("gradients", plan.mechanism)
    assert sorted(met) == sorted(drawn.noise.ravel().tolist())


@pytest.mark.parametrize("Estimator", [DPCoordinateDescentRegressor, DPLogisticCD])
def test_a_last_release_is_charged_and_where_there_is_none_nothing_is(Estimator, monkeypatch):
    with_intercept = plan_of(Estimator(0.3), [True, True])
    charged = updates_of(with_intercept, SeededWords(0), monkeypatch).charged
    assert charged[0] == "gradients" and len(charged) == 2
    without = plan_of(Estimator(0.3, fit_intercept=False), [True, True])
    found = updates_of(without, SeededWords(0), monkeypatch)
    assert found.charged == ["gradients"]
    assert (np.sort(found.updates[0].order, axis=1) == [0, 1]).all()
    counts = updates_of(plan_of(DPPoissonRegressor(), [True, True]), SeededWords(0), monkeypatch)
    assert counts.charged == ["gradients"]


def test_without_features_nothing_is_sampled_but_for_a_last_release(monkeypatch):
    words = Noted(0)
    found = updates_of(plan_of(DPLogisticCD(), [False, False]), words, monkeypatch)
    assert words.taken == 0
    assert found.updates == found.charged == []
    regression = plan_of(DPCoordinateDescentRegressor(), [False, False])
    assert updates_of(regression, words, monkeypatch).charged == ["residuals"]
    assert words.taken > 0


JOINT = {"solver": "joint", "n_passes": 3}
LAST_RELEASES = {
    "labels by score": DPLogisticCD(2.0, classes=[0, 1], **JOINT),
    "second moments": DPCoordinateDescentRegressor(2.0, target_bounds=(-5.0, 5.0), **JOINT),
    "level": DPPoissonRegressor(2.0, target_bounds=(0.0, 5.0), **JOINT),
    "residuals": DPCoordinateDescentRegressor(5.0, target_bounds=(-3.0, 3.0), solver="gradient"),
}


@pytest.mark.parametrize("last", LAST_RELEASES)
def test_no_release_of_a_fit_is_without_noise(last, monkeypatch):
    released = []

    def watched(mechanism, integers, draws):
        released.append(np.any(draws))
        return integers + draws

    monkeypatch.setattr(session, "plus_noise", watched)
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(400, 3))
    model = clone(LAST_RELEASES[last]).set_params(feature_bounds=(-1.0, 1.0), random_state=0)
    model.fit(X, (X[:, 0] > 0.0).astype(int))
    assert last in [release.label for release in model.privacy_.releases]
    assert len(released) > 1
    assert all(released)
