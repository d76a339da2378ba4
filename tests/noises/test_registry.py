from __future__ import annotations

import pytest

from skdpnoise.noises import base, get_noise, noise_names, register, registry


class Impostor:
    """Not a noise; only its name matters here."""

    supports_pure = True


def test_families_are_found_without_a_list():
    assert {"gaussian", "laplace"} <= set(noise_names())
    assert list(noise_names()) == sorted(noise_names())


def test_pure_families_are_those_that_say_so():
    assert set(noise_names(pure=True)) == {n for n in noise_names() if get_noise(n).supports_pure}


def test_an_unknown_family_is_refused_with_the_list_of_known_ones():
    with pytest.raises(
        ValueError, match=r"'noise' family must be one of .*'laplace'.*got 'cauchy'"
    ):
        get_noise("cauchy")


def test_a_name_belongs_to_one_family():
    with pytest.raises(ValueError, match="name of another family, got 'gaussian'"):
        register("gaussian", Impostor)
    assert type(get_noise("gaussian")) is not Impostor


@pytest.mark.parametrize("name", ["Gaussian", "two words", "", "1st"])
def test_a_name_is_a_lower_case_identifier(name):
    with pytest.raises(ValueError, match="lower-case identifier"):
        register(name, Impostor)


def test_a_new_family_is_known_once_registered(monkeypatch):
    monkeypatch.setattr(registry, "FAMILIES", families := dict(registry.FAMILIES))
    monkeypatch.setattr(base, "FAMILIES", families)
    register("impostor", Impostor)
    assert "impostor" in noise_names(pure=True)
    assert isinstance(get_noise("impostor"), Impostor)


def test_noises_are_values():
    assert get_noise("gaussian") == get_noise("gaussian")
    assert get_noise("gaussian") != get_noise("laplace")
