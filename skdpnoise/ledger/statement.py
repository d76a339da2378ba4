"""A report as a page for people: what is promised, what was measured, and what is not protected."""

from __future__ import annotations

import math
import textwrap
from importlib.metadata import version
from typing import Any

from skdpnoise.privacy import GaussianLoss, PureLoss

__all__ = ["as_dict", "statement"]

_WIDTH = 96
_AT = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # ε of the profile
_CERTAIN = 1e-15  # a δ that nobody will ever see
_LARGEST = 50.0  # ε whose power is shown
_CHANGED = {
    ("replace_one", "record"): "whatever any one record (one row) of the training data had been",
    ("add_remove", "record"): "whether or not any one record (one row) was in the training data",
    ("replace_one", "group"): "whatever the rows of any one group (a person, say) had been",
    ("add_remove", "group"): "whether or not any one group (a person, say) was in the data",
}
_OPEN = {
    ("replace_one", "record"): ("how many rows there are",),
    ("replace_one", "group"): ("how many rows there are, and which of them belong together",),
    ("add_remove", "record"): (),
    ("add_remove", "group"): (),
}
_NOT_PROTECTED = (
    "the number and the names of the columns, their types, and the labels of classes",
    "whatever was given as a parameter: bounds, categories, numbers of passes, ε and δ themselves",
    "how long the computation took, and how much memory it used",
    "what is true of people in general: a model may say something about a person who was never in "
    "the data",
)
_THREAT = (
    "Whoever reads the fitted model, its report and its predictions, knows the method and every "
    "other record, and has any amount of time and computing power. Not: whoever can read the "
    "memory or the disk of the computer that held the data, or knows the seed of the noise."
)


def statement(report: Any) -> str:
    """Return the page."""
    guarantee, total = report.guarantee, report.total
    where = guarantee.adjacency, report.unit
    parts = [
        (
            "What is promised",
            [
                "Whoever sees what was published - the fitted model and this report - learns "
                f"almost the same {_CHANGED[where]}.",
                _in_numbers(guarantee.epsilon, guarantee.delta),
                _as_a_bet(total.delta(0.0)),
                _unit(report),
            ],
        ),
        ("What was measured, and what it cost", _measured(report)),
        ("More exactly", [_exactly(report)]),
        (
            "What is not protected",
            ["- " + one for one in (*_OPEN[where], *_NOT_PROTECTED)],
        ),
        ("What rests on the word of whoever fitted it", _vouched(report)),
        ("Against whom", [_THREAT]),
        ("How it was made", [_made(report)]),
    ]
    lines = [f"Privacy statement: {report.estimator}"]
    lines += [f"*** {text} ***" for text in _caveats(report)]
    for title, paragraphs in parts:
        lines += ["", title]
        for paragraph in paragraphs:
            hanging = "    " if paragraph.startswith("- ") else "  "
            wrapped = textwrap.TextWrapper(_WIDTH, "  ", hanging)
            lines += wrapped.wrap(paragraph)
    return "\n".join(lines)


def as_dict(report: Any) -> dict[str, Any]:
    """Return the facts of a report as plain values."""
    guarantee, total = report.guarantee, report.total
    return {
        "estimator": report.estimator,
        "software": f"skdpnoise {version('skdpnoise')}",
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "adjacency": guarantee.adjacency,
        "unit": report.unit,
        "rows_per_group": report.rows_per_group,
        "mu": total.mu if isinstance(total, GaussianLoss) else None,
        "profile": [{"epsilon": at, "delta": total.delta(at)} for at in _AT],
        "releases": [
            {
                "label": release.label,
                "noise": release.noise,
                "n_releases": release.n_releases,
                "n_coordinates": release.n_coordinates,
                "scale": list(release.scale),
                "loss": str(release.loss),
            }
            for release in report.releases
        ],
        "n_records": report.n_records,
        "declared_public": list(report.declared),
        "secure": report.secure,
        "observed": report.observed,
    }


def _in_numbers(epsilon: float, delta: float) -> str:
    factor = f"e^{epsilon:g}"
    factor += f" = {math.exp(epsilon):.3g}" if epsilon < _LARGEST else ""
    text = f"In numbers: (ε = {epsilon:g}, δ = {delta:g})-differential privacy. The chance of "
    text += f"whatever may be published changes by a factor of {factor} at most"
    if delta == 0.0:
        return text + "."
    return f"{text}, apart from a chance of {delta:g} (1 in {1.0 / delta:,.0f}) at most."


def _as_a_bet(most: float) -> str:
    right = math.ceil(1e3 * (0.5 + 0.5 * most) - 1e-9) / 10.0
    return (
        "As a bet: who guesses which of two such data sets it was, each as likely beforehand, is "
        f"right with a probability of {min(right, 100.0):.1f} % at most, where guessing blindly is "
        "right with 50 %."
    )


def _unit(report: Any) -> str:
    if report.rows_per_group is None:
        return (
            "What is protected is one row. A person who has several rows is protected less, by as "
            "many times as there are rows: fit with groups= to protect people."
        )
    rows = report.rows_per_group
    return f"What is protected is a group of rows, of which at most {rows} were used."


def _measured(report: Any) -> list[str]:
    if not report.releases:
        return ["Nothing: all that the fit needed was public."]
    lines = []
    for one in report.releases:
        numbers = one.n_releases * one.n_coordinates
        low, high = (f"{scale:.3g}" for scale in one.scale)
        scale = low if low == high else f"{low} to {high}"
        plural = "" if numbers == 1 else "s"
        lines.append(
            f"- {one.label}: {numbers} number{plural} with {one.noise} noise of scale {scale}, "
            f"{one.loss}"
        )
    return lines


def _exactly(report: Any) -> str:
    total = report.total
    pairs = [(at, total.delta(at)) for at in _AT]
    shown = [f"δ({at:g}) = {delta:.2g}" for at, delta in pairs if delta > _CERTAIN]
    kind = ""
    if isinstance(total, GaussianLoss):
        kind = f"The whole is {total.mu:.4g}-Gaussian differentially private. "
    elif isinstance(total, PureLoss):
        kind = f"The whole is {total.pure_epsilon:.4g}-differentially private with δ = 0. "
    profile = ", ".join(shown) or "δ = 0 at every ε"
    return f"{kind}The same promise at other ε: {profile}."


def _vouched(report: Any) -> list[str]:
    lines = [
        "- that bounds, categories and other parameters were not read from these data",
        "- that nothing else was published of these data: every further fit, score or choice costs "
        "privacy of its own, which a PrivacyLedger adds up",
    ]
    if report.declared:
        lines.append(f"- that these learn nothing private: {', '.join(report.declared)}")
    return lines


def _made(report: Any) -> str:
    source = "a known seed" if not report.secure else "the operating system's secure source"
    text = f"skdpnoise {version('skdpnoise')}. Noise: exact integers from {source}."
    if report.n_records is not None:
        text += f" The number of records, with noise: {report.n_records:,.0f}."
    return text


def _caveats(report: Any) -> list[str]:
    found = []
    if not report.secure:
        found.append("NOT PRIVATE: random_state was set; who knows the seed can subtract the noise")
    if report.observed:
        found.append("NOT PRIVATE: an audit looked on, and chose the randomness")
    return found
