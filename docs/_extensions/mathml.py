"""Formulas as MathML, which browsers show by themselves: no script is fetched from elsewhere."""

import html

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.writers.html5 import HTML5Translator


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula in a line."""
    self.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula of its own."""
    text = node.astext()
    formulas = text.split("\n\n") if "\\begin" not in text else [text]
    shown = "".join(_mathml(one, "block") for one in formulas if one.strip())
    self.body.append(f'<div class="math">{shown}</div>\n')
    raise nodes.SkipNode


def _mathml(latex: str, display: str) -> str:
    shown = convert(" ".join(latex.split()), display=display)
    # The source is what screen readers without MathML, and whoever copies, get.
    return shown.replace("<math ", f'<math alttext="{html.escape(latex, quote=True)}" ', 1)


def setup(app):
    """Take the place of Sphinx' own renderers."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}
