"""A report as a page for people: what is promised, what was measured, and what is not protected."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from skdpnoise.privacy import GaussianLoss, PrivacyLoss, PureLoss, gdp_mu

_WIDTH = 96
_AT = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # ε of the profile
_CERTAIN = 1e-15  # a δ that nobody will ever see
_LARGEST = 50.0  # ε whose power is shown
_DIGITS = 6  # of ε and δ, as everywhere in reports
_WEAK = 99.0  # per cent of bets that are won
_THOUSAND, _MILLION = 1e3, 1e6  # between them numbers are written out
NOT_SPENT = "not spent"
_CHANGED = {
    ("replace_one", "record"): "whatever any one record (one row) of the training data had been",
    ("add_remove", "record"): "whether or not any one record (one row) was in the training data",
    ("replace_one", "group"): "whatever the rows of any one group (a person, say) had been",
    ("add_remove", "group"): "whether or not any one group (a person, say) was in the data",
}
_OPEN = {  # where the number of rows is public
    "record": "how many rows there are",
    "group": "how many rows there are, and which of them belong together",
}
_NOT_PROTECTED = (
    "the number, the order and the names of the columns, their types, and the labels of classes",
    "whatever was given as a parameter: bounds, categories, numbers of passes, ε and δ themselves",
    "that the fit succeeded: a missing value, or a text among numbers, ends it with an error",
    "what is computed from private rows afterwards: predictions, scores and transformed rows",
    "how long the computation took, and how much memory it used",
    "what is true of people in general: a model may say something about a person who was never in "
    "the data",
)
THREAT = (
    "Whoever reads the fitted model, its report and what it predicts for other data, knows the "
    "method and every other record, and has any amount of time and computing power, as long as "
    "nobody can predict the cryptographic generator that the noise comes from. Not: whoever "
    "can read the memory or the disk of the computer that held the data, or knows the seed of the "
    "noise."
)
BEFORE = (
    "What the fit itself did to prepare the data or to choose settings is paid for, as part of "
    "this. What was done before the fit is not: looking, cleaning, choosing columns or settings by "
    "these data."
)
_UNSPENT = "This rest is neither claimed nor given back: how much is left may depend on the data."
_FAMILIES = {"gaussian": "normal", "laplace": "Laplace"}
_RULES = ("iid", "inid", "spr")
OF_RELEASES = ("label", "noise", "n_releases", "n_coordinates", "of")


def sections(report: Any) -> list[tuple[str, list[str]]]:
    return [
        ("What is promised", [limit(report), *_promised(report), of_unit(report)]),
        ("What was measured, and what it cost", _list(measured(report))),
        ("More exactly", [exactly(report)]),
        ("What is not protected", _list(open_facts(report))),
        ("What rests on the word of whoever fitted it", _list(vouched(report))),
        ("Against whom", [THREAT]),
        ("How it was made", [made(report)]),
    ]


def statement(report: Any) -> str:
    lines = [f"Privacy statement: {report.estimator}"]
    lines += [f"*** {text} ***" for text in caveats(report)]
    for title, paragraphs in sections(report):
        lines += ["", title]
        for paragraph in paragraphs:
            hanging = "    " if paragraph.startswith("- ") else "  "
            wrapped = textwrap.TextWrapper(_WIDTH, "  ", hanging)
            lines += wrapped.wrap(paragraph)
    return "\n".join(lines)


def as_dict(report: Any) -> dict[str, Any]:
    allowed = report.allowed
    return {
        "estimator": report.estimator,
        "software": report.software,
        **asdict(report.guarantee),
        "unit": report.unit,
        "rows_per_group": report.rows_per_group,
        "mu": allowed.mu if isinstance(allowed, GaussianLoss) else None,
        "profile": [{"epsilon": at, "delta": delta} for at, delta in _profile(report)],
        "allowed": str(allowed),
        "spent": str(report.total),
        "releases": [
            {name: getattr(release, name) for name in OF_RELEASES}
            | {
                "scale": [one if math.isfinite(one) else repr(one) for one in release.scale],
                "loss": str(release.loss),
                "share": share,
            }
            for release, share in zip(report.releases, shares(report), strict=True)
        ],
        "n_records": report.n_records,
        "declared_public": list(report.declared),
        "not_protected": open_facts(report),
        "secure": report.secure,
        "observed": report.observed,
        "changed_since": list(report.changed),
    }


def rounded_up(value: float, digits: int = _DIGITS) -> str:
    exact = Decimal(repr(float(value)))  # as it is written: 0.1 stays 0.1
    up = Context(prec=digits, rounding=ROUND_CEILING).plus(exact)
    return f"{float(up):.{digits}g}"


def limit(report: Any) -> str:
    if not report.releases:
        return "Nothing was measured in the rows: all that the fit needed was public."
    return (
        "There is a limit to what anybody can learn of one unit of the data from what was "
        "published, the fitted model and this report. The chances of what is published change by "
        f"no more than the following numbers, {_changed(report)}."
    )


def _promised(report: Any) -> list[str]:
    guarantee = report.guarantee
    if not report.releases:
        return [f"Asked for was {_pair(guarantee)}, and nothing of it was spent."]
    return [f"In numbers: {_pair(guarantee)}. {_factor(guarantee)}.", as_a_bet(report)]


def _pair(guarantee: Any) -> str:
    pair = f"ε = {rounded_up(guarantee.epsilon)}, δ = {rounded_up(guarantee.delta)}"
    return f"({pair})-differential privacy"


def change(report: Any) -> str:
    if not report.releases:
        return limit(report)
    return f"{_factor(report.guarantee)}, {_changed(report)}."


def _factor(guarantee: Any) -> str:
    epsilon, delta = guarantee.epsilon, guarantee.delta
    factor = f"e^{rounded_up(epsilon)}"
    factor += f" = {rounded_up(math.exp(epsilon), 3)}" if epsilon < _LARGEST else ""
    text = f"The chance of whatever may be published changes by a factor of {factor} at most"
    if delta == 0.0:
        return text
    one_in = (Decimal(1) / Decimal(repr(delta))).to_integral_value(ROUND_FLOOR)
    return f"{text}, apart from a chance of {rounded_up(delta)} (1 in {int(one_in):,}) at most"


def _changed(report: Any) -> str:
    return _CHANGED[report.guarantee.adjacency, report.unit]


def as_a_bet(report: Any) -> str:
    """Return the largest chance of telling two data sets apart, in a sentence."""
    # With equal chances beforehand, the best guess is right with (1 + total variation) / 2, and
    # the total variation is δ(0).
    guarantee = report.guarantee
    odds = math.tanh(min(guarantee.epsilon, _LARGEST) / 2.0)  # of (ε, 0), by the coin of Kairouz
    most = min(report.allowed.delta(0.0), odds + (1.0 - odds) * guarantee.delta)
    right = min(math.ceil(1e3 * (0.5 + 0.5 * most) - 1e-9) / 10.0, 100.0)
    weak = "" if right < _WEAK else " That is hardly a promise: ε is large."
    return (
        "As a bet: who guesses which of two such data sets it was, each as likely beforehand, is "
        f"right with a probability of {right:.1f}% at most, where guessing blindly is right with "
        f"50%.{weak}"
    )


def of_unit(report: Any) -> str:
    if report.rows_per_group is None:
        more = ", and more than k times the δ" if report.guarantee.delta > 0.0 else ""
        return (
            "What is protected is one row. A person who has k rows is protected less: with k times "
            f"the ε{more}. Fit with groups= to protect people."
        )
    rows = report.rows_per_group
    used = "1 row was" if rows == 1 else f"{rows} rows were"
    return f"What is protected is a group of rows, of which at most {used} used."


def _weight(loss: PrivacyLoss, report: Any) -> float:
    """Return the part of a loss that adds up: ε if all is pure, else μ² at the same ε and δ."""
    if isinstance(report.allowed, PureLoss):
        return loss.epsilon(0.0)
    if isinstance(loss, GaussianLoss):
        return loss.mu**2
    most, delta = report.guarantee.epsilon, report.guarantee.delta
    epsilon = most if loss is report.allowed else min(loss.epsilon(delta), most)
    return gdp_mu(epsilon, delta) ** 2 if epsilon > 0.0 else 0.0


def shares(report: Any) -> list[float]:
    weights = [_weight(release.loss, report) for release in report.releases]
    whole = max(_weight(report.allowed, report), math.fsum(weights))
    return [weight / whole for weight in weights] if whole > 0.0 else [0.0 for _ in weights]


def stages(report: Any) -> dict[str, float]:
    """Return the share of each stage: of releases whose labels begin alike; and what is left."""
    found: dict[str, float] = {}
    for release, share in zip(report.releases, shares(report), strict=True):
        found[stage_of(release)] = found.get(stage_of(release), 0.0) + share
    left = 1.0 - math.fsum(found.values())
    return found | ({NOT_SPENT: left} if found and left > 1e-3 else {})


def stage_of(release: Any) -> str:
    return str(release.label).partition(": ")[0]


def percent(share: float) -> str:
    return f"{100.0 * share:.0f}%" if share >= 0.01 else f"less than {percent(0.01)}"


def how_noisy(release: Any) -> str:
    numbers = release.n_releases * release.n_coordinates
    low, high = map(_short, release.scale)
    scale = low if low == high else f"{low} to {high}"
    rule, _, family = release.noise.partition("_")
    if rule not in _RULES or not family:
        kind = release.noise.replace("_", " ")
        return f"{numbers} {'choice' if numbers == 1 else 'choices'} by the {kind}, scale {scale}"
    noise = f"{_FAMILIES.get(family, family.replace('_', ' '))} noise of scale {scale}"
    if release.of == "candidates":
        return f"{numbers} candidates; {noise} on each score, and what their fits need besides"
    if release.of == "columns":
        columns = f"{numbers} column{'' if numbers == 1 else 's'}"
        return f"those of {columns} that many records have; {noise} on each count"
    return f"{numbers} number{'' if numbers == 1 else 's'} with {noise}"


def _short(scale: float) -> str:
    return f"{scale:,.0f}" if _THOUSAND <= scale < _MILLION else f"{scale:.3g}"


def measured(report: Any) -> list[str]:
    if not report.releases:
        return ["nothing"]
    lines = [
        f"{one.label}: {how_noisy(one)}; {one.loss}, {percent(share)} of the budget"
        for one, share in zip(report.releases, shares(report), strict=True)
    ]
    parts = stages(report)
    if NOT_SPENT in parts:
        lines.append(f"{NOT_SPENT}: {percent(parts[NOT_SPENT])} of the budget. {_UNSPENT}")
    if len(parts) > 1 and 2 * len(parts) <= len(report.releases):
        whole = ", ".join(f"{name} {percent(share)}" for name, share in parts.items())
        lines.insert(0, f"by stage: {whole} of the budget")
    return [*lines, BEFORE]


def exactly(report: Any) -> str:
    allowed = report.allowed
    pairs = [(at, rounded_up(delta, 2)) for at, delta in _profile(report) if delta > _CERTAIN]
    shown = [f"δ({at:g}) = {delta}" for at, delta in pairs]
    kind = ""
    if isinstance(allowed, GaussianLoss):
        kind = f"The whole is {rounded_up(allowed.mu, 4)}-Gaussian differentially private. "
    elif isinstance(allowed, PureLoss):
        pure = rounded_up(allowed.pure_epsilon)
        kind = f"The whole is {pure}-differentially private with δ = 0. "
    profile = ", ".join(shown) or f"δ is below {_CERTAIN:g} at every ε"
    return f"{kind}The same promise at other ε: {profile}."


def _profile(report: Any) -> list[tuple[float, float]]:
    """Return pairs of ε and δ: of the loss allowed, or of the guarantee if that is less."""
    epsilon, delta = report.guarantee.epsilon, report.guarantee.delta
    most = [delta if at >= epsilon else 1.0 for at in _AT]
    return [(at, min(report.allowed.delta(at), d)) for at, d in zip(_AT, most, strict=True)]


def open_facts(report: Any) -> list[str]:
    known = [_OPEN[report.unit]] if report.guarantee.adjacency == "replace_one" else []
    return [*known, *_NOT_PROTECTED]


def vouched(report: Any) -> list[str]:
    """Return the assumptions that only the person who fitted it can check."""
    lines = [
        "that bounds, categories and other parameters were not read from these data",
        "that nothing else was published of these data: every further fit, score or choice costs "
        "privacy of its own, which a PrivacyLedger adds up",
    ]
    if report.unit == "group":
        lines.append("that the groups are right: all rows of a person have one label")
    if report.declared:
        names = ", ".join(report.declared)
        lines.append(f"that these are public, or learn nothing private: {names}")
    return lines


def source(report: Any) -> str:
    if report.observed:
        return "an audit, which chose it"
    return "the operating system's secure source" if report.secure else "a known seed"


def made(report: Any) -> str:
    text = f"Fitted by {report.software}. Noise: exact integers from {source(report)}."
    if report.n_records is not None:
        text += f" The number of records, with noise: {report.n_records:,.0f}."
    return text


def caveats(report: Any) -> list[str]:
    found = []
    if not report.secure:
        found.append("NOT PRIVATE: random_state was set; who knows the seed can subtract the noise")
    if report.observed:
        found.append("NOT PRIVATE: an audit looked on, and chose the randomness")
    return [*found, *changed(report)]


def changed(report: Any) -> list[str]:
    if not report.changed:
        return []
    return [
        f"NOT AS IT IS NOW: since this fit, {', '.join(report.changed)}. What is stated is true of "
        "the fit alone; total_guarantee tells what all fits cost together"
    ]


def _list(lines: Sequence[str]) -> list[str]:
    return ["- " + one for one in lines]
