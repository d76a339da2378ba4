"""The attack finds what it is told to find and nothing else; its power is that of theory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import laplace, norm

from skdpnoise.inspection.auditing._attack import Event, choose_attack
from skdpnoise.inspection.auditing._bounds import epsilon_bound, mu_bound
from skdpnoise.inspection.auditing._views import Layout, Parameters, view
from skdpnoise.privacy import gdp_epsilon

RUNS, ALARM = 2000, 1e-3


def bounds(first, second, delta=0.1, alarm=ALARM):
    """Bounds of epsilon and mu from fits, a quarter of which chooses."""
    quarter = len(first) // 4
    trials = len(first) - quarter
    attack = choose_attack(first[:quarter], second[:quarter], trials, delta, alarm)
    scores = attack.score(first[quarter:]), attack.score(second[quarter:])
    return (
        float(epsilon_bound(*attack.for_epsilon.hits(*scores), trials, delta, alarm)),
        float(mu_bound(*attack.for_mu.hits(*scores), trials, alarm)),
    )


def best(bound, law, shift):
    """The bound of the best threshold, if counts are what they are expected to be."""
    trials, t = RUNS - RUNS // 4, np.linspace(-6.0, 6.0, 1000)
    here, there = (np.floor(trials * rate) for rate in (law.sf(t - shift), law.sf(t)))
    return float(np.max(bound(here, there, trials)))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_gaussian_noise_of_known_mu_is_found_as_far_as_theory_allows_and_never_exceeded(sign):
    rng = np.random.default_rng(0)
    shift = sign * np.array([0.0, 1.5, 2.0])  # mu = 2.5
    size = np.array([1e-9, 1.0, 1e12])

    def draws(shift):
        return size * (rng.standard_normal((RUNS, 3)) + shift)

    epsilon, mu = bounds(draws(0.0), draws(shift))
    most = best(lambda *counts: epsilon_bound(*counts, 0.1, ALARM), norm, 2.5)
    assert most - 0.5 < epsilon < gdp_epsilon(2.5, 0.1)
    most = best(lambda *counts: mu_bound(*counts, ALARM), norm, 2.5)
    assert most - 0.3 < mu < 2.5
    none = bounds(draws(0.0), draws(0.0))
    assert max(none) < 0.1


def test_laplace_noise_of_known_epsilon_is_found_as_far_as_theory_allows_and_never_exceeded():
    rng = np.random.default_rng(1)
    first, second = (rng.laplace(shift, size=(RUNS, 1)) for shift in (0.0, 1.5))
    epsilon, _ = bounds(first, second, delta=0.0)
    most = best(lambda *counts: epsilon_bound(*counts, 0.0, ALARM), laplace, 1.5)
    assert most - 0.3 < epsilon < 1.5


@pytest.mark.slow
def test_the_attack_on_noise_alone_exceeds_zero_as_rarely_as_it_says():
    # Each of 40 audits of a mechanism that tells nothing errs with probability 0.1 at most.
    rng = np.random.default_rng(2)
    errors = sum(
        max(bounds(*rng.standard_normal((2, 80, 2)), delta=0.0, alarm=0.05)) > 0.0
        for _ in range(40)
    )
    assert errors <= 14  # more than that have a probability below 1e-5 at a rate of 0.1


def test_numbers_that_do_not_vary_tell_nothing_unless_they_differ():
    rng = np.random.default_rng(3)
    constant = np.full((RUNS, 1), 1 / 3)
    assert max(bounds(constant, constant)) <= 0.0
    noise = rng.standard_normal((2, RUNS, 2))
    most = float(epsilon_bound(1500, 0, 1500, 0.1, ALARM))
    told = [np.hstack([noise[k], constant + 1e-6 * k]) for k in (0, 1)]
    assert bounds(*told)[0] == pytest.approx(most)


def test_what_is_certain_is_found_as_far_as_so_many_fits_can_show_it():
    rng = np.random.default_rng(4)
    first, second = (rng.uniform(k, k + 0.9, size=(RUNS, 1)) for k in (0, 1))
    epsilon, mu = bounds(first, second, delta=0.0)
    assert epsilon == pytest.approx(float(epsilon_bound(1500, 0, 1500, 0.0, ALARM)), abs=0.2)
    assert mu == pytest.approx(float(mu_bound(1500, 0, 1500, ALARM)), abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 3, 8])
def test_exact_numbers_are_told_apart_whatever_their_scores_are_rounded_to(columns):
    # A product of matrices of other sizes rounds otherwise: later scores are an ulp beside those
    # that the threshold was chosen on.
    rng = np.random.default_rng(6)
    most = float(epsilon_bound(150, 0, 150, 0.0, ALARM))
    for _ in range(20):
        first, second = (np.tile(rng.standard_normal(columns), (200, 1)) for _ in range(2))
        assert bounds(first, second, delta=0.0)[0] == pytest.approx(most)
        attack = choose_attack(first[:50], second[:50], 150, 0.0, ALARM)
        for event in (attack.for_epsilon, attack.for_mu):
            ends = (attack.score(table)[0] for table in (first, second))
            assert min(abs(event.threshold - end) for end in ends) > 1e-6


def test_numbers_of_wild_sizes_do_not_hide_others():
    rng = np.random.default_rng(5)
    wild = np.exp(rng.standard_normal((2, RUNS, 3)) * 100.0)
    told = [np.hstack([wild[k], rng.standard_normal((RUNS, 1)) + 2.5 * k]) for k in (0, 1)]
    assert bounds(*told)[1] > 1.8


def test_an_event_points_to_one_data_set_or_the_other():
    first, second = np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.5, 2.5])
    assert Event(1, 0.9).hits(first, second) == (3, 1)
    assert Event(-1, 0.9).hits(first, second) == (2, 0)


# What is seen of a model


class Holder:
    """Holds things as fitted estimators do."""

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def predict(self, points):
        return np.asarray(points)[:, 0]


def test_all_numbers_of_a_model_are_seen_however_deep_and_what_it_predicts():
    inner = Holder(coef_=np.array([1.0, 2.0]), _hidden={"a": [3.0]})
    model = Holder(steps=[("inner", inner)], kind_="linear", n_=4, ok_=True, nothing_=None)
    seen = view(model, np.array([[5.0, 0.0]]), ["a warning"], None, Parameters())
    assert seen[".steps[0][1].coef_"].tolist() == [1.0, 2.0]
    assert seen[".steps[0][1]._hidden['a'][0]"].tolist() == [3.0]
    assert seen[".n_"].tolist() == [4.0]
    assert seen["predict()"].tolist() == [5.0]
    assert {"warned[0]", "raised is a", ".kind_", ".ok_"} <= seen.keys()
    assert view(model, np.array([[5.0]]), [], "ValueError: no", Parameters()).keys() == {
        "warned is a",
        "warned holds",
        "raised is a",
        "raised",
    }


def test_a_model_that_holds_itself_is_seen_once():
    model = Holder(n_=1.0)
    model.itself_ = model
    assert view(model, np.zeros((1, 1)), [], None, Parameters())[".n_"].tolist() == [1.0]


def test_what_changes_its_size_tells_its_size_and_what_is_missing_tells_that():
    views = [{"a": np.ones(2), "b": np.ones(size)} for size in (1, 2)]
    views.append({"a": np.array([1.0, np.inf])})
    table = Layout(views).table(views)
    b = [[1, *[1] * 7], [2, *[1] * 7], [-1, *[0] * 7]]  # size, ends, least, most and quartiles
    assert table[:, :10].tolist() == [[1, 1, *b[0]], [1, 1, *b[1]], [1, 0, *b[2]]]
    assert np.unique(table[:, 10:], axis=1).T.tolist() == [[0, 0, 0], [0, 0, 1], [1, 1, 1]]


def test_what_stands_under_names_that_hardly_any_fit_has_is_seen_as_one_lot():
    views = [{"a": np.ones(1), f"b[{k}]": np.array([float(k)])} for k in range(100)]
    table = Layout(views).table(views)
    assert table.shape[0] == 100
    assert any(np.array_equal(column, np.arange(100.0)) for column in table.T)
