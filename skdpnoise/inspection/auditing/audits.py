"""Audit what an estimator claims: replayed, by many fits, or by one with many canaries."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, cast

import numpy as np

from skdpnoise._utils.checks import check_count, check_real
from skdpnoise.inspection.auditing._black_box import FEWEST, Fits, black_box, count_fits
from skdpnoise.inspection.auditing._claims import claimed, declared_within
from skdpnoise.inspection.auditing._neighbours import (
    Data,
    Neighbours,
    as_data,
    candidates,
    given_pair,
)
from skdpnoise.inspection.auditing._one_run import Canaries, one_run
from skdpnoise.inspection.auditing._replay import ranked, replay, without_refused
from skdpnoise.inspection.auditing.report import (
    AuditReport,
    BlackBoxResult,
    OneRunResult,
    ReplayResult,
)
from skdpnoise.privacy import PrivacyGuarantee

__all__ = ["audit"]

_METHODS = ("replay", "black_box", "one_run")
_LINES = 20  # of a plain progress bar


def audit(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    neighbours: Any = "worst",
    method: str | Sequence[str] = "auto",
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str | None = None,
    n_fits: int = 1000,
    n_replays: int = 1,
    n_canaries: int = 1000,
    score: Callable[..., Any] | None = None,
    false_alarm: float = 1e-3,
    random_state: int | None = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int], None] = False,
) -> AuditReport:
    r"""Look for evidence against what an estimator claims, in up to three ways.

    *replay* (estimators of this library and compositions of them): one fit, and another on a
    neighbour with every released number frozen. All else that is published must agree to the last
    bit. What the noise had to make up for costs what those shifts cost under it: more than is
    claimed refutes the claim. A shift beyond the declared sensitivity is a broken declaration.

    *black_box* (any estimator): thousands of fits on two neighbouring data sets, a quarter of them
    to choose a test, the others to count how often it is right. Clopper-Pearson bounds of the
    rates, which hold together with the stated false alarm, give

    .. math:: \varepsilon \ge \log\frac{\mathrm{TPR}_{low} - \delta}{\mathrm{FPR}_{high}}, \qquad
              \mu \ge \Phi^{-1}(\mathrm{TPR}_{low}) - \Phi^{-1}(\mathrm{FPR}_{high}).

    *one_run* (models with many coordinates): one fit with many canaries, each included by a random
    bit of its own. The more guesses about them are right, the larger is ε: with m canaries and
    false alarm α at most about :math:`\ln(m / {-\ln \alpha})`, and usually far less.

    Finding nothing proves nothing; the page on auditing says what each way sees, and what none
    does. Clones without a ledger are fitted to copies of the data, each in one thread, and charge
    nothing; **the report is not private** unless the data are public.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn estimator with a claim; it is cloned.
    X : array-like of shape (n_samples, n_features)
        Records: few are enough, and make fits fast. Do not use private ones.
    y : array-like of shape (n_samples,) or None, default=None
        Target or labels.
    neighbours : "worst" or tuple (X, y), default="worst"
        The neighbouring data set, y None without a target. "worst" tries records at the corners of
        the public bounds (of the data where there are none), far outside, zeros, duplicates, with
        one target and the other, and with each column missing, or of an unseen category, where the
        table can hold that, as the last record, and some of them as the first and in the middle:
        all of them in a replay; for the black box those that pilot fits tell apart best. Missing
        and unseen values that the estimator refuses, in whichever record they stand and before it
        charges, are left out, and the report says so.
    method : "auto", str or sequence of str, default="auto"
        "replay", "black_box" and "one_run", or several of them; "auto" is a replay, where releases
        of this library are seen, and the black box.
    epsilon, delta, adjacency : float, float and str, default=None
        What is claimed, for estimators that have no such parameters. None takes the estimator's
        own; a δ that is named nowhere is 0.
    n_fits : int, default=1000
        Fits of the black box on each data set; to find the worst neighbours takes a fifth more.
    n_replays : int, default=1
        Replays of each pair of neighbours, with other noise.
    n_canaries : int, default=1000
        Canaries of the one run.
    score : callable or None, default=None
        For the one run: a function of the fitted model, of X and y of the canaries and of X and y
        of what stands in their place, that returns a number for each, the larger the more it
        looks as if the canary was in. None looks at predictions, ``covariance_`` or ``mean_``.
    false_alarm : float, default=1e-3
        Probability that a sound estimator does not pass, all methods together; it is divided
        equally between black box and one run, and in them between all bounds.
    random_state : int or None, default=None
        Seed of everything; fits get seeds of their own.
    n_jobs : int or None, default=None
        Processes for the fits of the black box, as in joblib.
    progress : bool or callable, default=False
        True shows a progress bar (by rich, where it is installed). A function is called with the
        number of fits that are done, and of all.

    Returns
    -------
    AuditReport

    Raises
    ------
    ValueError
        If nothing says what is claimed, or a parameter or the pair is not as described.
    TypeError
        If a parameter is of the wrong kind.

    References
    ----------
    "Re:cord-play", arXiv:2602.17454 (replay). Jagielski, Ullman and Oprea, "Auditing differentially
    private machine learning", NeurIPS 2020 (black box, Clopper-Pearson bounds). Dong, Roth and Su,
    arXiv:1905.02383 (μ). Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run",
    arXiv:2305.08846, Theorem 5.2.

    Examples
    --------
    >>> from skdpnoise import DPStandardScaler
    >>> from skdpnoise.inspection import audit
    >>> X = np.random.default_rng(0).normal(size=(50, 1))
    >>> scaler = DPStandardScaler(epsilon=1.0, feature_bounds=(-3, 3))
    >>> report = audit(scaler, X, method="replay")
    >>> report.passed
    True
    """
    methods, optional = _methods(method)
    check_count("audit", "n_fits", n_fits, low=FEWEST)
    check_count("audit", "n_replays", n_replays)
    check_count("audit", "n_canaries", n_canaries, low=10)
    check_real("audit", "false_alarm", false_alarm, high=1.0)
    claim = claimed(estimator, epsilon, delta, adjacency)
    data = as_data(X, y)
    pairs: list[Neighbours] = []
    left_out: tuple[str, ...] = ()
    if set(methods) - {"one_run"} or neighbours != "worst":
        pairs, left_out = _pairs(estimator, data, neighbours, claim)
    seeds = np.random.SeedSequence(random_state).spawn(3)
    n_tests = len(set(methods) - {"replay"})
    each = false_alarm / max(n_tests, 1)
    costly = ranked(estimator, pairs, claim) if "black_box" in methods else pairs
    counts = {
        "replay": 2 * len(pairs) * n_replays,
        "black_box": count_fits(len(costly), n_fits),
        "one_run": 1,
    }
    total = sum(counts[name] for name in set(methods))
    results: list[ReplayResult | BlackBoxResult | OneRunResult] = []
    with _telling(progress, total, type(estimator).__name__) as tell:
        if "replay" in methods:
            found = replay(estimator, pairs, claim, seeds[0], n_replays, tell)
            if found is not None:
                results.append(found)
            elif not optional:
                raise ValueError(
                    "method='replay' sees releases of skdpnoise only, and "
                    f"{type(estimator).__name__} made none: use method='black_box'."
                )
        if "black_box" in methods:
            fits = Fits(estimator, seeds[1], n_jobs, tell)
            results.append(black_box(fits, costly, claim, n_fits, each))
        if "one_run" in methods:
            canaries = Canaries(n_canaries, seeds[2], score)
            results.append(one_run(estimator, data, claim, canaries, each))
            tell(1)
    return AuditReport(
        estimator=type(estimator).__name__,
        claim=claim,
        results=tuple(results),
        n_records=len(data[0]),
        false_alarm=float(false_alarm) if n_tests else 0.0,
        left_out=left_out,
        declared=declared_within(estimator),
    )


def _methods(method: str | Sequence[str]) -> tuple[tuple[str, ...], bool]:
    if isinstance(method, str) and method == "auto":
        return ("replay", "black_box"), True
    names = (method,) if isinstance(method, str) else tuple(method)
    unknown = [name for name in names if name not in _METHODS]
    if unknown or not names:
        raise ValueError(
            f"The 'method' parameter of audit must be 'auto', or one or several of "
            f"{list(_METHODS)}. Got {method!r} instead."
        )
    return names, False


def _pairs(
    estimator: Any, data: Data, neighbours: Any, claim: PrivacyGuarantee
) -> tuple[list[Neighbours], tuple[str, ...]]:
    if isinstance(neighbours, str) and neighbours == "worst":
        return without_refused(estimator, candidates(estimator, data, claim.adjacency))
    return [given_pair(data, neighbours, claim.adjacency)], ()


@contextmanager
def _telling(progress: Any, total: int, name: str) -> Iterator[Callable[[int], None]]:
    """Give a function that is told of fits that are done, and shows or hands on their number."""
    done, bar = 0, cast(Any, None)
    with ExitStack() as stack:
        if progress and not callable(progress):
            with suppress(ImportError):
                from rich.progress import Progress

                bar = stack.enter_context(Progress(transient=True))
                bar.add_task(f"audit of {name}", total=total)

        def tell(count: int) -> None:
            nonlocal done
            before, done = done, done + count
            if callable(progress):
                progress(done, total)
            elif bar is not None:
                bar.update(0, completed=done)
            elif progress and (not before or _LINES * before // total < _LINES * done // total):
                print(f"audit of {name}: {done} of {total} fits", file=sys.stderr, flush=True)

        yield tell
