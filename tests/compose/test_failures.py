"""Every composition, driven through failures at every point: what was drawn is counted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPStandardScaler,
    PrivacyLedger,
)
from skdpnoise.data import redaction
from skdpnoise.model_selection import dp_cross_validate
from skdpnoise.sampling import words
from tests._cases import each_value, quick

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("the_same_words"),
]

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(60, 2))
Y = (X[:, 0] > 0.0).astype(int)
BAD = X.copy()
BAD[3, 1] = np.nan
HIDDEN = "|PolynomialFeatures.* cannot take these data"  # whose message quotes values
MODEL = DPLogisticCD(feature_bounds=(-1.0, 1.0), n_passes=2)
WIDE = ColumnTransformer([("a", DPStandardScaler(), [0]), ("b", "passthrough", [1])])


def pipeline(*steps):
    named = [(f"step{place}", step) for place, step in enumerate(steps)]
    return lambda ledger, X, y: DPPipeline(named, epsilon=5.0, ledger=ledger).fit(X, y)


def search(estimator, grid, strategy="auto"):
    return lambda ledger, X, y: DPGridSearchCV(
        estimator, grid, epsilon=5.0, strategy=strategy, ledger=ledger
    ).fit(X, y)


STEPS = Pipeline([("s", DPStandardScaler()), ("m", MODEL)])
ALPHAS = {"alpha": [0.0, 0.1]}
REGRESSOR = DPCoordinateDescentRegressor(feature_bounds=(-1.0, 1.0), target_bounds=(0.0, 1.0))
COMPOSITIONS = {
    "pipeline": pipeline(DPStandardScaler(), MODEL),
    "public first": pipeline(PolynomialFeatures(2), DPStandardScaler(), DPLogisticCD(n_passes=2)),
    "side by side": pipeline(WIDE, DPLogisticCD(n_passes=2)),
    "nested": pipeline(DPPipeline([("s", DPStandardScaler())]), MODEL),
    "repeated": search(MODEL, ALPHAS, "repeated"),
    "every candidate": search(STEPS, {"m__alpha": [0.0, 0.1]}, "noisy_max"),
    "one release": search(REGRESSOR, ALPHAS, "release"),
    "folds": lambda ledger, X, y: dp_cross_validate(MODEL, X, y, cv=2, epsilon=5.0, ledger=ledger),
}
NAMES = ["one release", *(name for name in COMPOSITIONS if name != "one release")]


class Injected(Exception):
    """No error of ours."""


class Fails:
    """Raises at one call of the package's functions, and counts words."""

    def __init__(self, at, error, monkeypatch):
        self.at, self.error, self.calls, self.words = at, error, 0, 0
        take = words.SystemWords.take

        def counted(source, n):
            found = take(source, n)  # which may refuse
            self.words += 1
            return found

        monkeypatch.setattr(words.SystemWords, "take", counted)
        # Whatever fails within a block of this kind becomes a refusal of the data's form.
        self.refusing, block = 0, redaction.without_values
        leave = block.__exit__

        def entered(one):
            self.refusing += 1

        def left(one, *error):
            try:
                leave(one, *error)
            finally:
                self.refusing -= 1

        monkeypatch.setattr(block, "__enter__", entered)
        monkeypatch.setattr(block, "__exit__", left)

    def __call__(self, frame, event, argument):
        # What ends a block, such as one without warnings, would not end it for later tests.
        file = frame.f_code.co_filename
        if event == "call" and "skdpnoise" in file and "_utils" not in file:
            self.calls += 1
            if self.calls >= self.at > 0 and not self.refusing:
                self.at = 0
                raise self.error

    def run(self, fit, table):
        """Return the ledger after a fit, and how the fit ended."""
        ledger = PrivacyLedger("people", 20.0, 1e-4, "memory")
        before = sys.getprofile()
        sys.setprofile(self)
        try:
            fit(ledger, table, Y)
        except BaseException as error:
            end = error
        else:
            end = None
        finally:
            sys.setprofile(before)
        return ledger.total(), end


@pytest.fixture(params=NAMES)
def fit(request):
    """Each composition in turn; compiled, and with its number of calls."""
    return COMPOSITIONS[request.param]


def n_calls(fit, table):
    """Return how many calls a fit makes that does not fail."""
    with pytest.MonkeyPatch.context() as patch:
        whole = Fails(-1, None, patch)
        whole.run(fit, table)  # what is imported, compiled and remembered
        whole.calls = 0
        whole.run(fit, table)
        return whole.calls


@quick("pipeline")
@each_value(1)
@pytest.mark.parametrize("kind", [Injected, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("name", NAMES)
def test_what_fails_otherwise_is_never_returned(name, kind, monkeypatch):
    """Wherever it fails: before the reservation nothing is written, and from then on all counts."""
    fit = COMPOSITIONS[name]
    seen = set()
    for at in np.linspace(1, n_calls(fit, X), 25).astype(int):
        with pytest.MonkeyPatch.context() as patch:
            fails = Fails(at, kind("at any point"), patch)
            total, _ = fails.run(fit, X)
        assert total.n_returned == 0
        assert total.n_charges <= 1
        if fails.words:
            assert total.n_charges == 1
        seen.add(total.n_charges)
    assert seen == {0, 1}


@quick("pipeline", "one release")
@pytest.mark.parametrize("name", NAMES)
def test_declared_failures_return_before_the_first_word_alone(name):
    """A ValueError at any point: never both, a word and a return."""
    fit = COMPOSITIONS[name]
    ends = set()
    for at in np.linspace(1, n_calls(fit, X), 40).astype(int):
        with pytest.MonkeyPatch.context() as patch:
            fails = Fails(at, ValueError("at any point"), patch)
            total, _ = fails.run(fit, X)
        assert not (fails.words and total.n_returned)
        assert not fails.words or total.n_charges == 1
        ends.add((total.n_charges, total.n_returned))
    assert ends == {(0, 0), (0, 1), (1, 0)}


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_value_returns_what_was_reserved(name):
    ledger = PrivacyLedger("people", 20.0, 1e-4, "memory")
    ends = set()
    for _ in range(2):
        with pytest.raises(ValueError, match=f"NaN{HIDDEN}") as caught:
            COMPOSITIONS[name](ledger, BAD, Y)
        ends.add(str(caught.value))
    assert len(ends) == 1
    total = ledger.total()
    assert (total.n_charges, total.n_returned, total.epsilon) == (0, 2, 0.0)
    assert all(charge.returned.startswith("ValueError: ") for charge in ledger.charges())


@quick("nested", "folds")
@pytest.mark.parametrize("name", NAMES)
def test_errors_and_lines_of_equal_outcomes_are_equal(name):
    """Of tables with the same declared outcome, however different their values are."""
    seen = set()
    for scale in (1.0, 0.5, -0.25):
        ledger = PrivacyLedger("people", 20.0, 1e-4, "memory")
        with pytest.raises(ValueError, match=f"NaN{HIDDEN}") as caught:
            COMPOSITIONS[name](ledger, scale * BAD, Y[::-1] if scale < 0.0 else Y)
        lines = [(str(charge), charge.parameters) for charge in ledger.charges()]
        seen.add((type(caught.value), str(caught.value), repr(lines)))
    assert len(seen) == 1


class Picky(PolynomialFeatures):
    """A step that fails for a value, for which somebody vouches."""

    def fit(self, X, y=None):
        if (np.asarray(X) > 0.9).any():
            raise ValueError("above 0.9")
        return super().fit(X, y)


def test_what_a_person_vouches_for_is_never_returned():
    """Nobody knows of which values its errors tell."""
    ledger = PrivacyLedger("people", 20.0, 1e-4, "memory")
    steps = [("own", Picky(2)), ("scale", DPStandardScaler())]
    with pytest.raises(ValueError, match="Picky, a step of DPPipeline"):
        DPPipeline(steps, public=["own"], ledger=ledger).fit(X)
    assert (ledger.total().n_charges, ledger.total().n_returned) == (1, 0)


class Notebook:
    """A ledger of somebody else's, which can only charge."""

    def __init__(self):
        self.charges = []

    def charge(self, label, cost, **facts):
        self.charges.append(label)


@pytest.mark.parametrize("name", NAMES)
def test_a_ledger_that_can_only_charge_is_charged_once_before_the_first_word(name):
    ledger = Notebook()
    with pytest.raises(ValueError, match=f"NaN{HIDDEN}"):
        COMPOSITIONS[name](ledger, BAD, Y)
    assert ledger.charges == []
    COMPOSITIONS[name](ledger, X, Y)
    assert len(ledger.charges) == 1


# A process that ends at any line

WATCHED = ("accounting/reservation.py", "compose/_pipeline.py", "compose/fitting.py")
WATCHED += ("ledger/privacy_ledger.py", "ledger/storage/database.py", "compose/statement.py")


def killed(url, at, table, drawn):
    """Fit in a copy of this process that ends without a word at a line; return its status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen = [0]

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.endswith(WATCHED):
            return None
        if event == "line":
            seen[0] += 1
            if seen[0] == at:
                os._exit(9)
        return trace

    def take(source, n):
        from skdpnoise._utils.context import keep_reserved

        keep_reserved()
        drawn.touch()
        return np.frombuffer(np.random.default_rng(0).bytes(8 * n), dtype=np.uint64)

    words.SystemWords.take = take
    sys.settrace(trace)
    try:
        ledger = PrivacyLedger.open("people", url)
        COMPOSITIONS["pipeline"](ledger, table, Y)
    except ValueError:
        pass
    except BaseException:
        os._exit(2)
    os._exit(0)


@quick("9")
@pytest.mark.parametrize("part", range(10))
def test_nothing_that_was_drawn_is_uncounted_at_whatever_line_a_process_ends(tmp_path, part):
    pytest.importorskip("sqlalchemy")
    COMPOSITIONS["pipeline"](None, X, Y)  # what is imported and compiled
    ended = 0
    for table in (X, BAD):
        for at in range(1 + 8 * part, 800, 80):
            url, drawn = f"sqlite:///{tmp_path / f'{at}.db'}", tmp_path / f"drawn {at}"
            Path(url.removeprefix("sqlite:///")).unlink(missing_ok=True)
            drawn.unlink(missing_ok=True)
            PrivacyLedger("people", 20.0, 1e-4, url)
            status = killed(url, at, table, drawn)
            assert status in (0, 9)
            ended += status == 9
            total = PrivacyLedger.open("people", url).total()
            assert total.n_charges == 1 if drawn.exists() else total.n_charges <= 1
            assert not (drawn.exists() and total.n_returned)
    assert ended
