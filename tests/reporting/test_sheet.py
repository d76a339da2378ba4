"""A sheet says the same in text, in one line and on a card, and first what breaks the promise."""

from dataclasses import replace

from skdpnoise.reporting.sheet import Sheet, Shown, sheet_of
from skdpnoise.sampling.words import SEEDED

SHEET = Sheet(
    title="Example",
    promise="a <promise>",
    head=("name", "cost"),
    rows=[("counts", "1-DP"), ("sums", "2-DP")],
    line="{}: {}",
    facts=[("total", "3-DP")],
)


class Told(Shown):
    def __init__(self, **changes):
        self.changes = changes

    def _sheet(self):
        return replace(SHEET, **self.changes)


def test_text_has_the_headline_then_rows_and_facts():
    assert str(Told()) == "Example: a <promise>\n  counts: 1-DP\n  sums: 2-DP\n  total: 3-DP"
    assert str(Told(line="", promise="")) == "Example\n  total: 3-DP"
    assert sheet_of(Told(kind="Plan")).headline == "Plan of Example: a <promise>"


def test_one_line_names_the_class():
    assert repr(Told(kind="Plan")) == "<Told of Example: a <promise>>"


def test_a_card_has_the_same_facts_and_escapes_them():
    html = Told(above="<p>first</p>")._repr_html_()
    for text in ("counts", "2-DP", "<b>total:</b> 3-DP", "a &lt;promise&gt;"):
        assert text in html
    assert html.index("<p>first</p>") < html.index("counts") < html.index("<b>total:</b>")
    folded = Told(folded="figures")._repr_html_()
    assert folded.index("<summary>figures") < folded.index("counts") < folded.index("</details>")
    assert "<tr" not in Told(rows=[])._repr_html_()


def test_what_breaks_the_promise_comes_first_everywhere():
    seeded = Told(secure=False)
    assert str(seeded).startswith(f"{SEEDED}\n")
    assert repr(seeded).startswith(f"<{SEEDED}. ")
    html = seeded._repr_html_()
    assert html.index(SEEDED) < html.index("Example")
    assert SEEDED not in str(Told()) + repr(Told()) + Told()._repr_html_()
    changed = Told(changed=["NOT AS IT IS NOW"])
    assert str(changed).startswith("NOT AS IT IS NOW\nExample")
    assert repr(changed).startswith("<NOT AS IT IS NOW. ")
