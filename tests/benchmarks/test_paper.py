"""The paper benchmark: printed references agree, and a wrong value would be seen."""

import json
import math

import numpy as np
import pytest
from scipy.integrate import quad

from benchmarks import _paper_joint, _paper_noises, _paper_profiles, paper
from benchmarks._paper_checks import Check, Section, first_where
from skdpnoise.noises import get_noise


@pytest.mark.parametrize(
    ("reference", "ours", "verdict"),
    [
        ("23.17", 23.1651, "yes"),
        ("23.17", 23.1749, "yes"),
        ("23.17", 23.1799, "yes, cut"),
        ("23.17", 23.1801, "NO"),
        ("23.17", 23.1649, "NO"),
        (".08000", 0.0799998, "yes"),
        ("95", 94.4, "NO"),
        ("800", 799.6, "yes"),
        ("0.448334740", 0.4483347404, "yes"),
        ("0.448334740", 0.4483347415, "NO"),
    ],
)
def test_a_printed_reference_agrees_to_the_digits_given(reference, ours, verdict):
    check = Check.digits("item", reference, ours)
    assert check.verdict == verdict
    assert check.agrees == (verdict != "NO")


def test_a_closed_form_agrees_to_its_tolerance():
    assert Check.formula("item", 200.0, 200.0019).agrees
    assert not Check.formula("item", 200.0, 200.0021).agrees
    assert not Check.formula("item", 200.0, math.nan).agrees


def test_counts_of_agreement():
    wrong, right = Check.claim("a", "yes", 0.0, False), Check.claim("b", "yes", 1.0, True)
    assert Section("name", "title", [wrong, right, right]).n_agree == 2
    assert first_where(lambda k: k > 3, range(9)) == 4.0
    assert first_where(lambda k: k > 9, range(9)) == math.inf


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (_paper_profiles.reductions, (2.0,)),
        (_paper_noises.plane, ()),
        (_paper_noises.tight_laplace, (True,)),
        (_paper_joint.capping, ()),
        (_paper_joint.closed_forms, ()),
    ],
)
def test_every_reference_of_the_mathematics_is_met(make, options):
    section = make(*options)
    wrong = [check for check in section.checks if not check.agrees]
    assert section.checks
    assert not wrong


def test_the_printed_references_are_those_of_the_mathematics():
    assert _paper_profiles.REDUCTIONS["2^i"] == ("85.00", "75.34", ".8500")
    assert _paper_noises.PLANE["staircase"][0] == "3.9962"
    assert _paper_noises.ONE_DIMENSION[1.0] == ("11.047", "3.3237", "1.99978", "17.85")
    assert _paper_noises.TIGHT[400] == ("160.5", "800")
    assert _paper_joint.COUNTS[10] == "7.1794"
    assert _paper_joint.MU[1.0, 1e-6] == "0.236704381"


@pytest.mark.slow
def test_the_best_flipped_huber_noise_meets_its_guarantee_and_has_its_variance():
    alpha, gamma, variance = _paper_noises.best_flipped_huber(2.0)
    noise = get_noise("flipped_huber", alpha / gamma)
    assert float(noise.hockey_stick(2.0, 1.0 / gamma)) == pytest.approx(1e-6, rel=1e-9)

    def density(t):
        exponent = alpha * t if t <= alpha else 0.5 * (t * t + alpha * alpha)
        return math.exp(-exponent / gamma**2)

    moments = [
        sum(quad(lambda t, p=p: t**p * density(t), *ends)[0] for ends in ((0, alpha), (alpha, 60)))
        for p in (0, 2)
    ]
    assert variance == pytest.approx(moments[1] / moments[0], rel=1e-7)


def test_the_gini_coefficient_is_the_mean_difference_over_twice_the_mean():
    values = np.array([5.0, 1.0, 2.0, 2.0])
    differences = np.abs(values[:, None] - values).mean()
    assert _paper_profiles.gini(values) == pytest.approx(differences / (2.0 * values.mean()))


def test_the_optimiser_finds_a_known_optimum():
    # Ball only: the sum of |d| over |d|_2 <= 1 is sqrt(K). Box only: the corner.
    assert _paper_joint.minmax(np.ones(9), 1.0, 2.0, 1.0) == pytest.approx(3.0, rel=1e-7)
    limit = np.array([1.0, 2.0])
    assert _paper_joint.minmax(limit, 2.0 / 3.0, 1.0, 10.0) == pytest.approx(
        float((limit ** (2.0 / 3.0)).sum()), rel=1e-7
    )


@pytest.mark.slow
def test_the_benchmark_saves_its_verdicts_and_pictures(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    # The two slowest sections with less to do.
    monkeypatch.setattr(_paper_noises, "ONE_DIMENSION", {2.0: _paper_noises.ONE_DIMENSION[2.0]})
    monkeypatch.setattr(_paper_noises, "OTHERS", ("gaussian", "laplace"))
    assert paper.main(["--quick", "--base", "3", "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "paper.json").read_text())
    assert record["n_agree"] == record["n_checks"] > 200
    assert len(list(tmp_path.glob("paper_*.png"))) == 10
    assert f"{record['n_agree']} of {record['n_checks']} agree" in capsys.readouterr().out


def test_a_base_that_does_not_grow_is_refused(capsys):
    with pytest.raises(SystemExit):
        paper.main(["--base", "1"])
    assert "--base must be greater than 1" in capsys.readouterr().err
