"""Writes llms.txt: the pages of the site with one line each, for programs that read them."""

from pathlib import Path

from docutils import nodes

from skdpnoise._utils.documented import SITE


def lines(app) -> list[str]:
    """Return a link to each written page, with its first sentence."""
    found = []
    for name in sorted(app.env.found_docs):
        if name.startswith(("api/generated/", "gallery/")):
            continue
        first = next(iter(app.env.get_doctree(name).findall(nodes.paragraph)), None)
        text = "" if first is None else ": " + " ".join(first.astext().split())
        found.append(f"- [{app.env.titles[name].astext()}]({SITE}/{name}.html){text}")
    return found


def write(app, error) -> None:
    """Write the file after a build without an error."""
    if error is None and app.builder.format == "html":
        head = "# skdpnoise\n\n> scikit-learn estimators with differential privacy.\n\n"
        text = head + "\n".join(lines(app)) + "\n"
        (Path(app.outdir) / "llms.txt").write_text(text, "utf-8")


def setup(app):
    """Write at the end of a build."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
