"""The oldest dependencies: `oldest.py pins` for pip, `oldest.py tests` for what runs with them."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What depends on the versions of the dependencies; the rest is tested once.
TESTS = [
    "tests/_utils",
    "tests/base",
    "tests/compose",
    "tests/contracts",
    "tests/data",
    "tests/datasets",
    "tests/decomposition",
    "tests/inspection",
    "tests/kernels",
    "tests/linear_model",
    "tests/model_selection",
    "tests/planning",
    "tests/preprocessing",
]


def pins() -> list[str]:
    """Run-time dependencies, and what reads frames and files, at the lower end of their range."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    tested = project["optional-dependencies"]["test"]
    frames = [name for name in tested if name.startswith(("polars", "dask", "pyarrow"))]
    return [name.replace(">=", "==") for name in project["dependencies"] + frames]


if __name__ == "__main__":
    # No newline: Windows would end the last word with a carriage return.
    print(*{"pins": pins, "tests": lambda: TESTS}[sys.argv[1]](), end="")
