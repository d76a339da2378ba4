"""Cards for notebooks: HTML and CSS alone, in light, dark and high contrast; nothing runs in them.

A card paints its own ground, so that its colours have their contrast on any page: it follows the
theme of JupyterLab, VS Code and Sphinx pages where these say which they have, else the system's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from skdpnoise.reporting import statement as words
from skdpnoise.sampling.words import SEEDED

__all__ = ["bar", "card", "facts_in_html", "fold", "in_plain_words", "paragraphs", "table"]

_PIECES = 8  # colours; then they begin again

# Text and lines on the ground, text on a warning, and the pieces of a bar: all distinct by
# lightness from the ground; their order and the list beneath say which is which.
_COLOURS = {  # on light pages, and on dark ones
    "ground": ("#ffffff", "#1a1a1a"),
    "text": ("#1b1b1b", "#eeeeee"),
    "soft": ("#555555", "#b8b8b8"),
    "line": ("#767676", "#8a8a8a"),
    "warning": ("#b00020", "#b00020"),
    "on-warning": ("#ffffff", "#ffffff"),
    "piece-0": ("#0b61a4", "#7cc0ff"),
    "piece-1": ("#9c4a00", "#ffb066"),
    "piece-2": ("#00735a", "#5fd9b5"),
    "piece-3": ("#8b2f7f", "#e59be0"),
    "piece-4": ("#5a5a5a", "#c0c0c0"),
    "piece-5": ("#a3242f", "#ff9a9a"),
    "piece-6": ("#4b45a8", "#b3adff"),
    "piece-7": ("#6b6100", "#e0d45f"),
}
_LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
_DARK = {name: dark for name, (_, dark) in _COLOURS.items()}
_MORE_LIGHT = {"text": "#000000", "soft": "#000000", "line": "#000000", "warning": "#8b0000"}
_MORE_DARK = {"ground": "#000000", "text": "#ffffff", "soft": "#ffffff", "line": "#ffffff"}
_CARD = ".skdpnoise-card"
_SHAPE = """
.skdpnoise-card{color:var(--dp-text);background:var(--dp-ground);border:1px solid var(--dp-line);
border-radius:6px;padding:10px 14px;max-width:60em;font-family:sans-serif;font-size:90%;
line-height:1.45;color-scheme:light dark}
.skdpnoise-card table,.skdpnoise-card tr{color:inherit!important;background:none!important}
.skdpnoise-card p,.skdpnoise-card ul,.skdpnoise-card details{margin:8px 0}
.skdpnoise-card ul{list-style:none!important;padding:0!important;margin-left:0!important}
.skdpnoise-card summary{cursor:pointer;color:var(--dp-soft)}
.skdpnoise-card .dp-warning{background:var(--dp-warning);color:var(--dp-on-warning);
border:1px solid var(--dp-on-warning);border-radius:4px;padding:4px 8px;margin-bottom:8px}
.skdpnoise-card .dp-bar{display:flex;height:14px;margin:8px 0;border:1px solid var(--dp-line)}
.skdpnoise-card .dp-bar span{box-sizing:border-box;border-right:1px solid var(--dp-ground)}
.skdpnoise-card .dp-swatch{display:inline-block;width:.8em;height:.8em;margin-right:.5em;
border:1px solid var(--dp-line)}
@media (forced-colors:active){
.skdpnoise-card .dp-bar span:not(.dp-rest),.skdpnoise-card .dp-swatch:not(.dp-rest){
background:CanvasText;border-color:Canvas}}
"""


def _rule(colours: Mapping[str, str], *pages: str) -> str:
    where = ",".join(f"{page} {_CARD}".strip() for page in pages)
    return f"{where}{{{''.join(f'--dp-{name}:{colour};' for name, colour in colours.items())}}}\n"


def _themes(light: Mapping[str, str], dark: Mapping[str, str]) -> str:
    """Return rules for both themes: the system's choice, then that of the page around a card."""

    def pages(theme: str, jupyter: str) -> tuple[str, ...]:
        code = f'[data-vscode-theme-kind="vscode-{theme}"]'
        return f'[data-jp-theme-light="{jupyter}"]', code, f'[data-theme="{theme}"]'

    return (
        _rule(light, "")
        + f"@media (prefers-color-scheme:dark){{\n{_rule(dark, '')}}}\n"
        + _rule(light, *pages("light", "true"))
        + _rule(dark, *pages("dark", "false"))
    )


def _style() -> str:
    light, dark = {**_LIGHT, **_MORE_LIGHT}, {**_DARK, **_MORE_DARK}
    high = "vscode-high-contrast"
    pieces = (f"{_CARD} .dp-{k}{{background:var(--dp-piece-{k})}}\n" for k in range(_PIECES))
    return (
        _themes(_LIGHT, _DARK)
        + f"@media (prefers-contrast:more){{\n{_themes(light, dark)}}}\n"
        + _rule(dark, f'[data-vscode-theme-kind="{high}"]')
        + _rule(light, f'[data-vscode-theme-kind="{high}-light"]')
        + "".join(pieces)
        + _SHAPE.strip()
    )


_STYLE = _style()


def card(title: str, text: str, body: str, *, secure: bool = True) -> str:
    # The style comes last: without it, or where a page takes it away, the card is plain text.
    caveat = "" if secure else _warning(SEEDED)
    headline = f"<b>{escape(title)}</b>" + (f": {escape(text)}" if text else "")
    style = f"<style>\n{_STYLE}\n</style>"
    return f'<div class="skdpnoise-card">{caveat}<div>{headline}</div>{body}{style}</div>'


def _warning(text: str) -> str:
    return f'<div class="dp-warning"><b>{escape(text)}</b></div>'


def paragraphs(*texts: str) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def fold(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def bar(pieces: Sequence[tuple[str, float]], label: str) -> str:
    # One more piece than shares: what none of them has.
    spans = "".join(
        f'<span class="{_piece(k, name)}" style="width:{100.0 * share:.3f}%"></span>'
        for k, (name, share) in enumerate(pieces)
    )
    return f'<div class="dp-bar" role="img" aria-label="{escape(label)}">{spans}</div>'


def _piece(number: int, name: str) -> str:
    return "dp-rest" if name == words.NOT_SPENT else f"dp-{number % _PIECES}"


def in_plain_words(report: Any) -> str:
    warnings = "".join(map(_warning, words.caveats(report)[0 if report.secure else 1 :]))
    names = ", ".join(report.declared)
    word = "By the word of the user these are public, or learn nothing private"
    declared = [f"{word}: {names}."] if names else []
    bet = [words.as_a_bet(report)] if report.releases else []
    promise = paragraphs(words.change(report), *bet)
    return warnings + promise + _measured(report) + paragraphs(words.of_unit(report), *declared)


def _measured(report: Any) -> str:
    """Return a bar of the stages, and a list of the releases of each."""
    stages = words.stages(report)
    if not stages:
        return ""
    said = {name: f"{name} {words.percent(share)}" for name, share in stages.items()}
    items = []
    for number, name in enumerate(stages):
        made = [one for one in report.releases if words.stage_of(one) == name]
        parts = [f"{one.label.removeprefix(f'{name}: ')}: {words.how_noisy(one)}" for one in made]
        if len(made) == 1 and made[0].label == name:
            parts = [words.how_noisy(made[0])]
        swatch = f'<span class="dp-swatch {_piece(number, name)}" aria-hidden="true"></span>'
        text = escape("; ".join(parts))
        items.append(f"<li>{swatch}<b>{escape(said[name])}</b>{f': {text}' if text else ''}</li>")
    label = "Shares of the budget: " + ", ".join(said.values())
    title = paragraphs("What was measured, its share of the budget, and how noisy it is:")
    return f"{title}{bar(list(stages.items()), label)}<ul>{''.join(items)}</ul>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def row(cells: Sequence[str], kind: str = "td") -> str:
        first = "text-align:left;padding:2px 10px"
        styles = [first, *[f"{first};white-space:nowrap"] * (len(cells) - 1)]
        texts = [
            f'<{kind} style="{style}">{escape(cell)}</{kind}>'
            for style, cell in zip(styles, cells, strict=True)
        ]
        return f"<tr>{''.join(texts)}</tr>"

    body = row(head, "th") + "".join(map(row, rows))
    look = "border-collapse:collapse;margin:8px 0;font-size:inherit"
    return f'<div style="overflow-x:auto"><table style="{look}">{body}</table></div>'


def facts_in_html(facts: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<div><b>{escape(name)}:</b> {escape(text)}</div>" for name, text in facts)
