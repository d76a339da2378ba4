"""Private scores: those of scikit-learn but for noise, and stated errors that cover."""

from __future__ import annotations

import inspect
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import metrics as ordinary

from skdpnoise import metrics
from skdpnoise.accounting.session import Drawn
from skdpnoise.ledger import BudgetExceededError, PrivacyLedger
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from tests._cases import each_value, quick
from tests.contracts._register import Notebook

pytestmark = pytest.mark.usefixtures("the_same_words")


RNG = np.random.default_rng(0)
N = 16_000
SCORES = RNG.normal(size=N)
LABELS = (RNG.random(N) < 1.0 / (1.0 + np.exp(1.5 - 2.0 * SCORES))).astype(int)
CHANCES = 1.0 / (1.0 + np.exp(1.5 - 2.0 * SCORES))
FOUND = (CHANCES > 0.5).astype(int)
TARGETS = np.clip(RNG.normal(5.0, 2.0, N), 0.0, 10.0)
GUESSES = np.clip(TARGETS + RNG.normal(0.0, 1.0, N), 0.0, 10.0)
BOUNDS = {"target_bounds": (0.0, 10.0)}
BOTH = {"labels": [0, 1]}

# A private score, its data, its parameters, and the score without noise.
CASES = {
    "accuracy": (metrics.private_accuracy_score, (LABELS, FOUND), {}, ordinary.accuracy_score),
    "balanced accuracy": (
        *(metrics.private_balanced_accuracy_score, (LABELS, FOUND), BOTH),
        ordinary.balanced_accuracy_score,
    ),
    "AUC": (metrics.private_roc_auc_score, (LABELS, CHANCES), {}, ordinary.roc_auc_score),
    "log loss": (
        metrics.private_log_loss,
        (LABELS, np.column_stack([1.0 - CHANCES, CHANCES])),
        {**BOTH, "limit": 12.0},
        ordinary.log_loss,
    ),
    "R2": (metrics.private_r2_score, (TARGETS, GUESSES), BOUNDS, ordinary.r2_score),
    "MAE": (
        *(metrics.private_mean_absolute_error, (TARGETS, GUESSES), BOUNDS),
        ordinary.mean_absolute_error,
    ),
    "RMSE": (
        *(metrics.private_root_mean_squared_error, (TARGETS, GUESSES), BOUNDS),
        ordinary.root_mean_squared_error,
    ),
    "confusion": (
        *(metrics.private_confusion_matrix, (LABELS, FOUND), BOTH),
        ordinary.confusion_matrix,
    ),
}
every_score = pytest.mark.parametrize(
    ("score", "data", "public", "exact"), CASES.values(), ids=CASES
)
adjacencies = pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])


def test_every_public_score_is_tested():
    elsewhere = {name for name in metrics.__all__ if name.lower().endswith("curve")}
    tested = {score.__name__ for score, *_ in CASES.values()} | elsewhere | {"PrivateScore"}
    assert tested == set(metrics.__all__)


def test_every_score_shows_the_same_keywords_and_refuses_others_by_its_own_name():
    found = {}
    for name in metrics.__all__:
        taken = inspect.signature(getattr(metrics, name)).parameters
        if "guarantee" in taken and not name.startswith("Private"):
            found[name] = [*taken][-7:], [one.default for one in taken.values()][-7:]
    names = ["epsilon", "delta", "adjacency", "random_state", "ledger", "noise", "same_rows"]
    shown = names, [None, None, None, None, None, "auto", False]
    assert len(found) == 10
    assert all(one == shown for one in found.values())
    with pytest.raises(TypeError, match=r"^private_accuracy_score\(\) got an unexpected .*'best'"):
        metrics.private_accuracy_score([0, 1], [0, 1], epsilon=1.0, best=True)


@each_value(1)
@every_score
@adjacencies
def test_with_little_noise_it_is_the_score_of_scikit_learn(score, data, public, exact, adjacency):
    guarantee = PrivacyGuarantee(1e4, adjacency=adjacency)
    found = score(*data, guarantee, random_state=0, **public)
    most = 1e-3 if score is metrics.private_roc_auc_score else 1e-4
    np.testing.assert_allclose(found.value, exact(*data), rtol=most, atol=most)
    assert found.adjacency == adjacency


@each_value(1)
@pytest.mark.slow
@every_score
@adjacencies
def test_its_standard_error_covers_what_noise_does(score, data, public, exact, adjacency):
    # Of 400 scores, ±1.96 standard errors must hold the exact one in 91 to 99 %: five standard
    # deviations of that share on either side.
    guarantee, truth = PrivacyGuarantee(0.5, 1e-6, adjacency), exact(*data)
    runs = [score(*data, guarantee, random_state=seed, **public) for seed in range(400)]
    errors = np.array([np.ravel(one.value - truth)[0] for one in runs])
    stated = np.array([np.ravel(one.standard_error)[0] for one in runs])
    assert 0.9 < np.mean(np.abs(errors) <= 1.96 * stated) < 0.995
    assert np.std(errors) == pytest.approx(stated.mean(), rel=0.2)
    assert abs(errors.mean()) < 0.3 * stated.mean()


def changed(data, kind):
    """Return data whose last record is another, far off in every way."""
    first, second = (np.array(one) for one in data)
    first[-1] = {"labels": 1 - first[-1]}.get(kind, 1e30)
    second[-1] = {"labels": 1 - second[-1]}.get(kind, -1e30)
    return first, second


@each_value(1)
@every_score
@adjacencies
def test_one_record_moves_the_release_by_what_is_declared_at_most(
    score, data, public, exact, adjacency, monkeypatch
):
    small = [np.array(one)[:200] for one in data]
    kind = "numbers" if public == BOUNDS else "labels"
    other = changed(small, kind) if adjacency == "replace_one" else [one[:-1] for one in small]
    met = []

    def noted(self, values):
        met.append((self.mechanism, np.asarray(values, dtype=np.float64)))
        return np.asarray(values, dtype=np.float64)

    monkeypatch.setattr(Drawn, "on", noted)
    guarantee = PrivacyGuarantee(1.0, 1e-6, adjacency)
    for given in (small, other):
        score(*given, guarantee, random_state=0, **public)
    if not met:  # sums meet their noise elsewhere, and have tests of their own
        assert score not in (
            metrics.private_confusion_matrix,
            metrics.private_balanced_accuracy_score,
            metrics.private_roc_auc_score,
        )
        return
    (mechanism, first), (_, second) = met
    moved = np.abs(first - second)
    profile = mechanism.sensitivity
    assert (moved <= profile.per_coordinate).all()
    assert moved.sum() <= (math.inf if profile.l1 is None else profile.l1)
    assert 0.0 < moved.sum() <= (2.0 if adjacency == "replace_one" else 1.0)


@quick("balanced accuracy")
@every_score
def test_it_is_charged_once_for_what_it_states(score, data, public, exact):
    ledger = Notebook()
    found = score(*data, PrivacyGuarantee(0.5, 1e-6), ledger=ledger, **public)
    assert len(ledger.charges) == 1
    assert ledger.charges[0]["guarantee"] == (0.5, 1e-6)
    assert found.privacy.delta(0.5) <= 1e-6
    budget = PrivacyLedger("people", 0.7, 1e-5, storage="memory")
    score(*data, PrivacyGuarantee(0.5, 1e-6), ledger=budget, **public)
    with pytest.raises(BudgetExceededError):
        score(*data, PrivacyGuarantee(0.5, 1e-6), ledger=budget, **public)


@each_value(1)
@every_score
@pytest.mark.parametrize("budget", [PureLoss(0.5), GaussianLoss(0.3)])
def test_a_loss_is_spent_as_it_is(score, data, public, exact, budget):
    found = score(*data, budget, adjacency="add_remove", random_state=0, **public)
    assert found.privacy.epsilon(1e-6) <= budget.epsilon(1e-6) * (1.0 + 1e-9)
    with pytest.raises(ValueError, match="'adjacency'"):
        score(*data, budget, **public)


def test_a_score_is_a_number_that_says_where_it_comes_from():
    guarantee = PrivacyGuarantee(1.0, 1e-6)
    found = metrics.private_accuracy_score(LABELS, FOUND, guarantee)
    assert found > 0.5
    assert found < 1
    assert f"{float(found):.4f}" in str(found)
    assert "not fitted to" in str(found)
    assert "NOT PRIVATE" not in str(found)
    same = metrics.private_accuracy_score(LABELS, FOUND, guarantee, same_rows=True, random_state=0)
    assert "comes on top" in str(same)
    assert "NOT PRIVATE" in str(same)
    assert float(pickle.loads(pickle.dumps(found))) == float(found)
    matrix = metrics.private_confusion_matrix(LABELS, FOUND, guarantee, labels=[0, 1])
    assert "counts ±" in str(matrix)
    with pytest.raises(TypeError):
        float(matrix)


def test_records_that_no_number_can_be_made_of_lose_the_most_and_raise_nothing():
    guarantee = PrivacyGuarantee(1e6)
    odd = np.array([np.nan, np.inf, -np.inf, 1e300])
    score = metrics.private_mean_absolute_error(np.full(4, 10.0), odd, guarantee, **BOUNDS)
    assert float(score) == pytest.approx((10 + 0 + 10 + 0) / 4, abs=1e-3)
    chances = np.array([[np.nan, 0.0], [0.0, 0.0], [2.0, -1.0], [1.0, 0.0]])
    found = metrics.private_log_loss([0, 0, 1, 9], chances, guarantee, labels=[0, 1])
    assert float(found) == pytest.approx(4.0, abs=1e-3)
    words = metrics.private_confusion_matrix(
        ["a", "b", "c"], ["a", None, "b"], guarantee, labels=["a", "b"]
    )
    assert words.value.round().tolist() == [[1.0, 0.0], [0.0, 0.0]]


WRONG = [
    (metrics.private_accuracy_score, (LABELS, FOUND[:-1]), {}, "'y_pred'"),
    (metrics.private_accuracy_score, (LABELS[:, np.newaxis], FOUND), {}, "'y_true'"),
    (metrics.private_accuracy_score, ([], []), {}, "empty"),
    (metrics.private_confusion_matrix, (LABELS, FOUND), {"labels": [0]}, "'labels'"),
    (metrics.private_confusion_matrix, (LABELS, FOUND), {"labels": [0, 0]}, "'labels'"),
    (metrics.private_confusion_matrix, (LABELS, FOUND), {"labels": 3}, "'labels'"),
    (metrics.private_r2_score, (TARGETS, GUESSES), {"target_bounds": (1.0, 0.0)}, "target_bounds"),
    (metrics.private_r2_score, (TARGETS, GUESSES), {"target_bounds": (0.0,)}, "target_bounds"),
    (metrics.private_log_loss, (LABELS, CHANCES), BOTH, "'y_prob'"),
    (metrics.private_log_loss, CASES["log loss"][1], {**BOTH, "limit": 0.0}, "'limit'"),
    (metrics.private_roc_auc_score, (LABELS, CHANCES), {"bins": [1.0, 0.0]}, "'bins'"),
    (metrics.private_roc_auc_score, (LABELS, CHANCES), {"bins": [[0.0]]}, "'bins'"),
    (metrics.private_roc_auc_score, (LABELS, CHANCES), {"noise": "none"}, "'noise'"),
]


@pytest.mark.parametrize(("score", "data", "given", "named"), WRONG)
def test_what_cannot_be_scored_is_refused_before_the_charge(score, data, given, named):
    ledger = Notebook()
    with pytest.raises((ValueError, TypeError), match=named):
        score(*data, PrivacyGuarantee(1.0), ledger=ledger, **given)
    assert ledger.charges == []


def test_bins_of_ones_own_are_for_scores_that_are_no_probabilities():
    guarantee = PrivacyGuarantee(1e4)
    edges = np.linspace(-4.0, 4.0, 200)
    found = metrics.private_roc_auc_score(LABELS, SCORES, guarantee, bins=edges)
    assert float(found) == pytest.approx(ordinary.roc_auc_score(LABELS, SCORES), abs=1e-3)
    names = np.where(LABELS == 1, "yes", "no")
    named = metrics.private_roc_auc_score(names, CHANCES, guarantee, pos_label="yes")
    assert float(named) == pytest.approx(ordinary.roc_auc_score(LABELS, CHANCES), abs=1e-3)


class Awkward(int):
    """A number that fails whenever it is compared, hashed or made a float."""

    def __eq__(self, other):
        raise RuntimeError("a value of a record")

    __hash__ = __float__ = __lt__ = __gt__ = __abs__ = __eq__


ODD = {
    "text": "x",
    "text of numpy": np.str_("x"),
    "nothing": None,
    "pandas' NA": pd.NA,
    "no time": np.timedelta64("NaT"),
    "a time": np.datetime64("2020-01-01"),
    "raw bytes": np.void(b"ab"),
    "what no dictionary takes": [1],
    "an array": np.array([1, 2]),
    "a fraction": Fraction(1, 2),
    "a subclass": Awkward(1),
    "more than a double": 10**400,
    "a long double": np.longdouble("1e4000"),
    "half precision": np.float16(3.0),
    "complex": np.complex128(1j),
    "not a number": np.nan,
    "infinity": -np.inf,
}
KINDS = {
    "list": list,
    "objects": lambda values: np.fromiter(values, dtype=object, count=len(values)),
    "series": lambda values: pd.Series(values, dtype=object),
}


@quick("list-no time")
@each_value(1)
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_one_odd_record_changes_nothing_but_its_own_term(odd, kind):
    guarantee = PrivacyGuarantee(1e6)
    truth, found = [1, 0] * 50, [1, 0] * 50
    bounds = {"target_bounds": (0.0, 1.0)}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=RuntimeWarning)  # one would tell of the record
        for first, second in ((kind([*truth[:-1], odd]), found), (truth, kind([*found[:-1], odd]))):
            score = metrics.private_accuracy_score(first, second, guarantee)
            assert float(score) == pytest.approx(0.99, abs=1e-4)
            matrix = metrics.private_confusion_matrix(first, second, guarantee, **BOTH)
            assert matrix.value.round().sum() == 99
            balanced = metrics.private_balanced_accuracy_score(first, second, guarantee, **BOTH)
            assert 0.99 <= float(balanced) + 1e-4 < 1.001
            error = metrics.private_mean_absolute_error(first, second, guarantee, **bounds)
            assert -1e-4 < float(error) < 0.0101
            area = metrics.private_roc_auc_score(first, second, guarantee)
            assert float(area) > 0.98
        chances = [[0.5, 0.5]] * 100
        for broken in (odd, [0.5, odd], (odd,), [0.1, 0.2, 0.7]):
            given = [*chances[:-1], broken]
            loss = metrics.private_log_loss(found[::-1], given, guarantee, **BOTH)
            assert abs(float(loss) - math.log(2.0)) < 0.0334
    assert float(metrics.private_accuracy_score([None, 1], [None, 1], guarantee)) < 0.6


@quick("1")
@pytest.mark.parametrize("n", [0, 1, 3, 10])
def test_where_noise_hides_how_many_records_a_label_has_the_error_says_so(n):
    guarantee = PrivacyGuarantee(0.5, adjacency="add_remove")
    for seed in range(20):
        known = {"random_state": seed}
        area = metrics.private_roc_auc_score([1] * n, [0.3] * n, guarantee, **known)
        score = metrics.private_balanced_accuracy_score(
            [1] * n, [1] * n, guarantee, **BOTH, **known
        )
        assert area.standard_error == score.standard_error == 1.0


def test_what_one_reads_of_it_is_a_number():
    score = metrics.private_accuracy_score(LABELS, FOUND, PrivacyGuarantee(1.0), random_state=0)
    assert f"{score:.2f}" == f"{float(score):.2f}"
    assert f"{score}" == str(score)
    assert score >= float(score)
    assert score <= float(score)
    assert not score <= 0.5
    assert not score >= 1.0


@pytest.mark.parametrize("labels", [[1, None], ["a", [1]], "ab", {1, 2}])
def test_labels_that_no_record_could_have_are_refused(labels):
    with pytest.raises(ValueError, match="'labels'"):
        metrics.private_confusion_matrix([1], [1], PrivacyGuarantee(1.0), labels=labels)


def test_labels_of_several_kinds_stay_apart():
    truth, found = [1, "1", 1, "1"], [1, "1", "1", "1"]
    known = {"labels": [1, "1"], "noise": "iid_laplace"}
    matrix = metrics.private_confusion_matrix(truth, found, PrivacyGuarantee(1e6), **known)
    assert matrix.value.round().tolist() == [[1.0, 1.0], [0.0, 2.0]]


@pytest.mark.parametrize("pos_label", [None, [1], pd.NA])
def test_a_positive_label_that_no_record_has_is_refused(pos_label):
    with pytest.raises(ValueError, match="'pos_label'"):
        metrics.private_roc_auc_score(LABELS, CHANCES, PrivacyGuarantee(1.0), pos_label=pos_label)
    with pytest.raises(ValueError, match="'y_score'"):
        metrics.private_roc_auc_score(LABELS, CHANCES[1:], PrivacyGuarantee(1.0))


@pytest.mark.parametrize(
    "made",
    [
        lambda values: pl.Series(values),
        lambda values: pd.Series(values, dtype="Int64"),
        lambda values: pd.Series(pd.array(values, dtype="Int64")).astype("category"),
        lambda values: pd.Series(values, dtype="int64[pyarrow]"),
        lambda values: pa.array(values),
    ],
    ids=["polars", "nullable", "categories", "arrow in pandas", "arrow"],
)
def test_one_missing_label_changes_how_no_other_is_read(made):
    # As doubles, 2**53 and its successor would be one number.
    big, n = 2**53, 300
    predicted = np.full(n, big)
    seen = [
        metrics.private_accuracy_score(
            made(labels), predicted, PrivacyGuarantee(50.0), random_state=0
        ).value
        for labels in ([big + 1] * n, [big + 1] * (n - 1) + [None])
    ]
    assert max(seen) < 0.05
