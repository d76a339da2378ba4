"""Writes the list of the API: every public name of every package, from their ``__all__``."""

from pathlib import Path
from pkgutil import iter_modules

import skdpnoise

INTRODUCTION = """API
===

Every public name, by package. The names of the first table can be imported from ``skdpnoise``
itself; each has a page with parameters, errors, references and examples.
"""


# What pipelines and searches inherit refers to this part of scikit-learn's guide.
ROUTING = """
.. _metadata_routing:

Metadata routing
----------------

Labels of groups and weights reach the steps of pipelines and the candidates of searches as in
scikit-learn, whose user guide describes it under this name.
"""
INNER = ("kernels.joint",)  # a package within a package whose names are public
# Rooms without names of their own to the public: `ledger` and `inspection` have them.
BEHIND = {"_utils", "accounting", "planning"}


def packages() -> list[str]:
    """Return the dotted names of all packages with public names."""
    rooms = {module.name for module in iter_modules(skdpnoise.__path__) if module.ispkg}
    return [f"skdpnoise.{room}" for room in sorted({*rooms, *INNER} - BEHIND)]


def names_at_the_front() -> list[str]:
    """Return the names that can be imported from the package, each with its home."""
    found = [name for name in dir(skdpnoise) if hasattr(getattr(skdpnoise, name), "__module__")]
    homes = {name: skdpnoise._HOMES[name] for name in found if name in skdpnoise._HOMES}
    return [f"skdpnoise.{home}.{name}" for name, home in sorted(homes.items())]


def page() -> str:
    """Return the list as reStructuredText."""
    front = "\n".join(f"   ~{name}" for name in names_at_the_front())
    rooms = "\n".join(f"   {name}" for name in packages())
    return (
        f"{INTRODUCTION}\nEstimators and what goes with them\n"
        f"----------------------------------\n\n.. autosummary::\n   :nosignatures:\n\n{front}\n\n"
        "All packages\n------------\n\n.. autosummary::\n   :toctree: generated\n"
        f"   :nosignatures:\n\n{rooms}\n{ROUTING}"
    )


def setup(app):
    """Write the list where it has changed; it is none of the repository."""
    path, text = Path(app.srcdir) / "api" / "index.rst", page()
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")
    return {"parallel_read_safe": True}
