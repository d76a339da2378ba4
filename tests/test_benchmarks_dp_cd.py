"""The DP-CD benchmark measures what it says: objectives, noise, grids and verdicts."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from benchmarks import _dp_cd_runs as runs
from benchmarks import dp_cd
from benchmarks._dp_cd_problems import Problem, load_problems
from benchmarks._dp_cd_published import PUBLISHED
from skdpnoise.privacy import gdp_mu


@pytest.fixture(scope="module")
def problem():
    """A small least-squares problem, whose solution is exact, with columns of unlike sizes."""
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((400, 3)) * [1.0, 100.0, 0.1])
    y = X @ [1.0, -0.02, 5.0]
    # The minimum of this objective is zero; one more keeps the relative error finite.
    return Problem("small", X, y, "squared", l1=0.0, l2=0.0, minimum=1.0)


@pytest.mark.slow
def test_the_starting_gaps_are_the_published_ones(real_data):
    problems = load_problems(real_data)
    gaps = {name: each.relative_error(np.zeros(8)) for name, each in problems.items()}
    assert gaps == pytest.approx({name: PUBLISHED[name]["dp_cd"][0] for name in gaps}, rel=1e-5)
    assert [round(gap, 4) for gap in gaps.values()] == [3.4018, 0.0963, 0.2447, 0.3586]


def test_every_whole_number_of_passes_has_a_bar():
    every_five = list(range(5, 51, 5))
    assert dp_cd.passes_of("california_raw") == every_five
    assert dp_cd.passes_of("california_standardised") == [1, 2]
    assert dp_cd.passes_of("electricity_raw") == every_five
    assert dp_cd.passes_of("electricity_standardised") == [5, 10]
    assert dp_cd.passes_of("electricity_raw", quick=True) == [5, 50]


@pytest.mark.parametrize("allocation", runs.ALLOCATIONS)
def test_all_passes_of_a_run_together_spend_the_budget_and_no_more(problem, allocation):
    mechanism = runs.mechanism_for(allocation, problem, 7, clip=2.0, growth=1.3)
    record = 2.0 * 2.0 * problem.feature_size
    spent = (np.broadcast_to(record / mechanism.scale, (7, 3)) ** 2).sum()
    budget = gdp_mu(1.0, 1.0 / 400**2) ** 2
    assert 0.999 * budget < spent <= budget


def test_the_share_of_a_pass_grows_by_the_growth(problem):
    scale = runs.mechanism_for("spread", problem, 5, clip=1.0, growth=1.3).scale
    assert (scale[:-1] / scale[1:]) ** 2 == pytest.approx(np.full((4, 3), 1.3))


def test_curvature_weights_give_scale_perturb_rescale_and_uniform_weights_do_not(problem):
    assert runs.same_noise(problem, "spr", "curvature")
    assert not runs.same_noise(problem, "uniform", "curvature")


def test_fixed_orders_follow_the_curvature_and_keep_ties(problem):
    assert runs.fixed_order(problem, "falling").tolist() == [1, 0, 2]
    assert runs.fixed_order(problem, "rising").tolist() == [2, 0, 1]
    X = problem.X / problem.feature_size
    level = Problem("level", X, problem.y, "squared", l1=0.0, l2=0.0)
    for order in ("falling", "rising"):
        assert runs.fixed_order(level, order).tolist() == [0, 1, 2]


@pytest.mark.parametrize("order", runs.ORDERS)
def test_a_run_is_fixed_by_its_seed(problem, order):
    mechanism = runs.mechanism_for("curvature", problem, 3, clip=1.0)

    def path(seed):
        return runs.private_path(problem, mechanism, clip=1.0, step=1.0, order=order, seed=seed)

    assert path(0).shape == (3, 3)
    assert (path(0) == path(0)).all()
    assert (path(0) != path(1)).any()


def test_a_tail_is_the_mean_of_the_last_iterates(problem):
    path = np.arange(30.0).reshape(10, 3) * 1e-3
    expected = [problem.relative_error(path[-count:].mean(axis=0)) for count in (1, 1, 2, 5)]
    assert runs.tail_errors(problem, path, (0.0, 0.1, 0.2, 0.5)) == pytest.approx(expected)


def test_the_best_of_a_grid_is_its_smallest_mean(problem):
    grid = runs.Grid(clips=(2.0, 200.0), steps=(0.5, 1.0), tails=(0.0, 0.5), growths=(1.1,))
    with ThreadPoolExecutor(2) as pool:
        found = runs.sweep(problem, "spread", 4, grid, range(3), pool)
    assert set(found) == {"any", *runs.ORDERS}
    best = found["any"]
    assert best.error == min(found[order].error for order in runs.ORDERS)
    mechanism = runs.mechanism_for("spread", problem, 4, best.clip, best.growth)
    errors = []
    for seed in range(3):
        path = runs.private_path(
            problem, mechanism, clip=best.clip, step=best.step, order=best.order, seed=seed
        )
        errors.append(runs.tail_errors(problem, path, [best.tail])[0])
    assert best.error == pytest.approx(np.mean(errors))
    assert best.standard_error == pytest.approx(np.std(errors, ddof=1) / np.sqrt(3))


def test_a_bar_is_met_at_the_published_value_and_missed_above_it():
    limit = PUBLISHED["california_standardised"]["dp_cd"][1]

    def best(error):
        return runs.Best(error, 0.0, 1.0, 1.0, 0.0, 1.0, "falling")

    by_allocation = {
        name: {"any": best(limit), "shuffled": best(1.01 * limit)} for name in runs.ALLOCATIONS
    }
    (bar,) = dp_cd.verdicts({"california_standardised": {1: by_allocation}})
    assert (bar["met"], bar["shuffled_met"]) == (True, False)
