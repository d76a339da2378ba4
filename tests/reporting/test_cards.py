"""Cards say the plain things first, run nothing, and their colours can be told apart."""

from __future__ import annotations

import re
from html import unescape

import pytest

from skdpnoise import DPStandardScaler
from skdpnoise.inspection import audit
from skdpnoise.ledger import PrivacyLedger, PrivacyReport, Release
from skdpnoise.privacy import PrivacyGuarantee, PureLoss
from skdpnoise.reporting.cards import bar, card, fold, paragraphs, table

TEXT, PARTS = 4.5, 3.0  # least contrast of text, and of parts of pictures: WCAG 2.2, AA
MORE = 7.0  # of text where more is asked for: AAA
STYLE = re.search(r"<style>(.*)</style>", card("a", "", ""), flags=re.DOTALL)[1]


def report(labels=("scale: means", "scale: spreads", "model"), **facts):
    releases = tuple(
        Release(label, "iid_laplace", 2, 10, (2.0, 1500.0), PureLoss(0.25)) for label in labels
    )
    total = PureLoss(0.25 * len(labels))
    return PrivacyReport(
        "Example", PrivacyGuarantee(1.0), releases, total, **{"secure": True, **facts}
    )


def luminance(colour: str) -> float:
    """Relative luminance of a colour such as #a0b1c2 (WCAG 2.2)."""
    parts = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def themes() -> list[tuple[str, dict[str, str]]]:
    """The rules that set colours: selectors, and colours by name."""
    rules = re.findall(r"([^{}]+)\{((?:--dp-[\w-]+:#[0-9a-f]{6};)+)\}", STYLE)
    return [
        (where.strip(), dict(re.findall(r"--dp-([\w-]+):(#[0-9a-f]{6})", colours)))
        for where, colours in rules
    ]


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_all_text_has_enough_contrast_on_its_ground_in_every_theme():
    found = themes()
    assert len(found) == 10  # system, pages; the same with more contrast; two of VS Code
    for where, colours in found:
        ground = colours["ground"]
        for name in ("text", "soft"):
            assert contrast(colours[name], ground) >= TEXT, (where, name)
        assert contrast(colours["on-warning"], colours["warning"]) >= TEXT, where
        pieces = [name for name in colours if name.startswith("piece-")]
        assert len(pieces) == 8
        for name in ("line", *pieces):
            assert contrast(colours[name], ground) >= PARTS, (where, name)
    dark = [luminance(colours["ground"]) < 0.1 for _, colours in found]
    assert any(dark) and not all(dark)


def test_who_asks_for_more_contrast_gets_it():
    inner = STYLE.partition("@media (prefers-contrast:more)")[2]
    more = [rule for rule in themes() if "high-contrast" in rule[0]]
    assert len(more) == 2
    more += [
        rule
        for rule in themes()
        if ("".join(f"--dp-{k}:{v};" for k, v in rule[1].items())) in inner
    ]
    assert len(more) >= 6
    for where, colours in more:
        assert contrast(colours["text"], colours["ground"]) >= MORE, where
        assert contrast(colours["soft"], colours["ground"]) >= MORE, where


def test_all_colours_that_are_used_are_set_and_all_that_are_set_are_used():
    used = set(re.findall(r"var\(--dp-([\w-]+)\)", STYLE))
    for where, colours in themes():
        assert colours.keys() == used, where


def test_plain_words_come_first_and_figures_are_folded():
    html = report()._repr_html_()
    before, _, folded = html.partition("<details>")
    assert "<details>" not in folded  # and it is not open
    assert "GDP" not in before and "iid_laplace" not in before and "<table" not in before
    assert "<table" in folded and "iid_laplace" in folded
    words = unescape(re.sub(r"<[^>]+>", " ", before))
    assert "changes by a factor of e^1 = 2.72 at most" in words
    assert "20 numbers with Laplace noise of scale 2 to 1,500" in words
    assert "What is protected is one row." in words
    assert words.index("changes by") < words.index("What was measured")


def test_the_bar_says_its_shares_in_words_too():
    html = report()._repr_html_()
    label = unescape(re.search(r'role="img" aria-label="([^"]*)"', html)[1])
    assert label == "Shares of the budget: scale 50%, model 25%, not spent 25%"
    assert re.findall(r'<span class="(dp-\w+)" style="width:([\d.]+)%">', html) == [
        ("dp-0", "50.000"),
        ("dp-1", "25.000"),
        ("dp-rest", "25.000"),
    ]
    items = re.findall(r"<li>(.*?)</li>", html)
    assert len(items) == 3
    assert "<b>scale 50%</b>: means: 20 numbers" in items[0]
    assert "; spreads: 20 numbers" in items[0]
    assert "<b>model 25%</b>: 20 numbers" in items[1]
    assert items[2].endswith("<b>not spent 25%</b>")


def test_what_was_all_spent_has_no_rest_and_what_measured_nothing_has_no_bar():
    whole = report(("a", "b", "c", "d"))._repr_html_()
    assert "not spent" not in whole and "dp-rest" not in whole.partition("<style>")[0]
    nothing = report(())._repr_html_().partition("<style>")[0]
    assert 'class="dp-bar"' not in nothing
    assert "Nothing was measured" in nothing


def test_what_breaks_the_promise_or_rests_on_a_word_is_not_folded():
    assert "an audit looked on" in report(observed=True)._repr_html_().partition("<details>")[0]
    declared = report(declared=("double",))._repr_html_().partition("<details>")[0]
    assert "By the word of the user these are public, or learn nothing private: double." in declared
    assert "By the word" not in report()._repr_html_()


def test_more_stages_than_colours_begin_again():
    labels = [f"step {k}" for k in range(10)]
    releases = tuple(Release(n, "iid_laplace", 1, 1, (1.0, 1.0), PureLoss(0.1)) for n in labels)
    made = PrivacyReport("Example", PrivacyGuarantee(1.0), releases, PureLoss(1.0), True)
    pieces = re.findall(r'<span class="(dp-\d)" style', made._repr_html_())
    assert pieces == [f"dp-{k % 8}" for k in range(10)]


def test_names_cannot_leave_their_place():
    name = '"><script>alert(1)</script>'
    for html in (
        report((name,))._repr_html_(),
        bar([(name, 0.5)], name),
        fold(name, ""),
        paragraphs(name),
        card(name, name, ""),
        table([name], [[name]]),
    ):
        assert "<script" not in html


def cards():
    ledger = PrivacyLedger("trips", 1.0, 1e-6, storage="memory")
    scaler = DPStandardScaler(ledger=ledger, epsilon=0.5).fit([[0.2], [0.7]])
    found = audit(DPStandardScaler(), [[0.1 * k] for k in range(40)], method="replay", n_replays=2)
    return [scaler.privacy_, ledger, ledger.total(), found]


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")
def test_every_card_has_the_same_frame_and_runs_nothing():
    for shown in cards():
        html = shown._repr_html_()
        assert html.startswith('<div class="skdpnoise-card">')
        assert html.endswith("</style></div>")  # last: without it a card is plain text
        assert html.count("<style>") == 1
        assert not re.search(r"<script|javascript:|\bon\w+=|https?:|url\(|@import", html)
        plain = html.partition("<style>")[0]
        assert not re.search(r"(?<!-)color:|background", plain)  # colours are the themes' alone
        for tag in ("div", "p", "ul", "li", "details", "summary", "span", "table", "tr", "td", "b"):
            assert plain.count(f"</{tag}>") + (tag == "div") == len(
                re.findall(rf"<{tag}[ >]", plain)
            )
