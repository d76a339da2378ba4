"""A rehearsal: whatever can fail of a search fails before it is charged.

Every candidate is fitted twice where nothing is spent. To the records, up to its first charge: that
checks the data as the first private step will see them, and plans its noise. And as a whole, with a
score, to a **stand-in**: made-up numbers in columns of the same names and types. That checks the
steps behind the first private one, which see no data before the charge.

What an error may say: that of a private step has no values in it, by contract. That of any other
step may quote one; it is shown only where the stand-in, which has no private values, gives the same
message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from skdpnoise.compose import Part
from skdpnoise.compose._parts import private_parts
from skdpnoise.model_selection._candidates import Candidate
from skdpnoise.model_selection._parts import release_units
from skdpnoise.model_selection._runs import Parts, Problem, Target, in_this_process, silent
from skdpnoise.model_selection._stand_in import VALUES, stand_in
from skdpnoise.model_selection._strategies import OneRelease, Strategy
from skdpnoise.privacy import LossBudget
from skdpnoise.sampling import SeededWords

__all__ = ["rehearse"]

_FEW = 512  # rows of a stand-in that is as good as one of all rows, where it raises nothing


def rehearse(
    owner: str, problem: Problem, strategy: Strategy, known: Target | None, n_jobs: int | None
) -> None:
    """Let all candidates check parameters, data and plans, in the processes that will fit them.

    Parameters
    ----------
    owner : str
        Name of the search.
    problem : Problem
    strategy : Strategy
    known : Target or None
        Public units of the target.
    n_jobs : int or None

    Raises
    ------
    ValueError
        If a fit would fail; its message has no values of the data in it.
    TypeError
        If the data cannot be sent to the processes.
    """
    # The noise of a rehearsal hides nothing, so that its seed need not be secret.
    problem = replace(problem, words=SeededWords(0))
    fits = problem.candidates
    if isinstance(strategy, OneRelease):
        path = strategy.release.estimator
        parts = (*private_parts(path), *problem.candidates[0].parts)
        fits = (Candidate({}, path, parts),)
    with silent():
        _try_choice(problem, strategy, known)
        tasks = (delayed(_failure)(owner, problem, fit, strategy.fit_budget) for fit in fits)
        failures = Parallel(n_jobs=n_jobs, verbose=0)(tasks)
    for failure in failures:
        if failure is not None:
            raise failure


def _try_choice(problem: Problem, strategy: Strategy, known: Target | None) -> None:
    """Buy the units of a made-up target, and choose by made-up losses."""
    size = problem.parts.reference.size
    if size:
        options: Any = (strategy.part_budget, problem.adjacency, problem.words)
        release_units(np.resize(VALUES, size), known, problem.scoring, *options)
    losses = np.zeros((len(problem.candidates), _FEW), dtype=np.int64)
    strategy.choose(problem, losses, Target())


def _failure(
    owner: str, problem: Problem, candidate: Candidate, budget: LossBudget
) -> Exception | None:
    """Return the error of a candidate that cannot be fitted, fit to be seen."""
    parts = problem.parts
    rows = np.union1d(parts.train, np.union1d(parts.validation, parts.reference))
    whole = len(candidate.parts) > 1
    staged = _staged_failure(problem, candidate, budget) if whole else None
    try:
        if not problem.rehearsed(problem.priced(candidate.estimator, budget), rows):
            return ValueError(
                f"The 'estimator' parameter of {owner} must charge for what it releases. Got "
                f"{type(candidate.estimator).__name__}, which released nothing, or did not charge."
            )
    except MemoryError:
        raise
    except Exception as error:
        same = staged is not None and (type(staged), str(staged)) == (type(error), str(error))
        if same or _is_private(error, candidate.private):
            return _alone(error)
        return _refusal(owner, candidate, error)
    return staged


def _staged_failure(problem: Problem, candidate: Candidate, budget: LossBudget) -> Exception | None:
    """Return the error of a whole fit and its score on a stand-in; None if there is none."""
    if candidate.declared:
        return None  # nobody knows what these steps expect
    sizes = sorted({min(_FEW, problem.parts.train.size), problem.parts.train.size})
    failure: Exception | None = None
    for n_rows in sizes:
        made = stand_in(problem.X, n_rows)
        if made is None:
            return None
        rows = np.arange(n_rows)
        y = np.resize(VALUES if problem.classes is None else problem.classes, n_rows)
        staged = replace(problem, X=made.X, y=y, parts=Parts(rows, rows, rows[:0]))
        try:
            model = staged.fitted(staged.priced(candidate.estimator, budget))
            with silent(), in_this_process():
                problem.scoring.exact(model, made.X, y, Target().units)
            return None
        except MemoryError:
            raise
        except Exception as error:
            private = _is_private(error, candidate.private)
            failure = _alone(error) if private or made.numeric else None
    return failure


def _is_private(error: BaseException, private: list[Part]) -> bool:
    """Return whether an error was raised within a private step."""
    kinds = {type(part.estimator) for part in private}
    trace = error.__traceback__
    while trace is not None:
        if type(trace.tb_frame.f_locals.get("self")) in kinds:
            return True
        trace = trace.tb_next
    return False


def _alone(error: Exception) -> Exception:
    """Return an error without what it was raised in the handling of."""
    error.__cause__ = error.__context__ = None
    return error


def _refusal(owner: str, candidate: Candidate, error: Exception) -> Exception:
    given = f" with {candidate.parameters}" if candidate.parameters else ""
    return ValueError(
        f"{owner} cannot fit its estimator{given} to these data: a step that is not private raised "
        f"{type(error).__name__}. What it said is not shown, since it may quote a value. Nothing "
        "was charged. Check the types of the columns, and what each step expects."
    )
