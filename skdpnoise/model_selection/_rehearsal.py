"""A rehearsal: whatever can fail of a search fails before it is charged.

Every candidate is fitted where nothing is spent. Alone, it checks its parameters and the records,
and plans its noise, up to its first charge. In a composition each private step does so, and what
comes after it gets what the step would return had it seen noise. An error of a private step has no
value in it, by contract; the message of any other is not shown.

So is what follows the fits: the units of the target are estimated from made-up numbers, and the
choice is made by made-up losses, with the budgets and the sizes of the search.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from joblib import delayed

from skdpnoise._utils.parallel import in_order
from skdpnoise._utils.redaction import silence
from skdpnoise.accounting.approximate import pure_part
from skdpnoise.base.advice import rehearsing
from skdpnoise.metrics.scoring import Losses
from skdpnoise.model_selection._candidates import Candidate
from skdpnoise.model_selection._runs import Priced, Problem, Target, release_units
from skdpnoise.model_selection._strategies import OneRelease, Strategy
from skdpnoise.sampling import SeededWords


@rehearsing()
def rehearse(owner: str, problem: Problem, strategy: Strategy, n_jobs: int | None) -> None:
    """Let all candidates check parameters, data and plans, in the processes that will fit them."""
    # The noise of a rehearsal hides nothing, so that its seed need not be secret.
    problem = replace(problem, rng=SeededWords(0))
    candidates = problem.candidates
    if isinstance(strategy, OneRelease):
        candidates = [replace(candidates[0], estimator=strategy.estimator)]
    with silence():
        _try_choice(problem, strategy)
        priced = [problem.priced(one.estimator, strategy.fit_budget) for one in candidates]
        pairs = zip(candidates, priced, strict=True)
        tasks = (delayed(_failure)(owner, problem, one, asking) for one, asking in pairs)
        failures = list(in_order(tasks, n_jobs))
    for failure in failures:
        if failure is not None:
            raise failure


def _try_choice(problem: Problem, strategy: Strategy) -> None:
    """Buy the units of a made-up target, and choose by made-up losses."""
    if problem.buys:
        n = problem.parts.reference.size
        made_up = np.linspace(-1.0, 1.0, n) if problem.classes is None else problem.classes[:0]
        release_units(problem, made_up, pure_part(strategy.total))
    nothing = np.zeros(len(problem.candidates), dtype=np.int64)
    losses = Losses(nothing, nothing, problem.parts.validation.size)
    strategy.choose(problem, losses, Target())


def _failure(
    owner: str, problem: Problem, candidate: Candidate, priced: Priced
) -> Exception | None:
    """Return the error of a candidate that cannot be fitted."""
    try:
        if not problem.rehearsed(owner, candidate, priced):
            return ValueError(
                f"The 'estimator' parameter of {owner} must charge for what it releases. Got "
                f"{type(candidate.estimator).__name__}, which released nothing, or did not charge."
            )
    except MemoryError:
        raise
    except Exception as error:
        error.__cause__ = error.__context__ = None
        return error
    return None
