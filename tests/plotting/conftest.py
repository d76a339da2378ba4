"""Figures of a test are closed when it ends."""

import matplotlib.pyplot as plt
import pytest

plt.switch_backend("Agg")


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")
