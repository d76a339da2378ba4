"""Tries what was built as its user would: `installed.py dist` in an environment of its own.

The wheel is installed without extras into a bare environment, the README's first example runs, and
then every example of the installed package that needs no extra. The source distribution must give
the same files.
"""

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Runs in the bare environment, in an empty folder.
EXAMPLES = r"""
import doctest, importlib, pkgutil, re, sys, warnings
from pathlib import Path

import skdpnoise

home = Path(skdpnoise.__file__).parent
assert Path(sys.prefix) in home.parents, home
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
EXTRAS = r"sqlite|postgresql|torch|dask|parquet|pyarrow|scan_csv|polars|matplotlib|rich|yaml"
EXTRAS += r"|Display|show\(|fetch_"
failed = tried = left = 0
runner = doctest.DocTestRunner(optionflags=FLAGS)
blocks = re.findall(r"```python\n(.*?)```", Path(sys.argv[1]).read_text("utf-8"), flags=re.S)
parser, finder = doctest.DocTestParser(), doctest.DocTestFinder()
tests = [parser.get_doctest(blocks[0], {}, "README", sys.argv[1], 0)]
for one in pkgutil.walk_packages([str(home)], "skdpnoise."):
    if one.name.split(".")[1] in ("neural_network", "plotting", "__main__"):
        continue
    try:
        module = importlib.import_module(one.name)
    except ImportError as error:
        assert error.name and not error.name.startswith("skdpnoise"), error
        continue
    tests += finder.find(module)
for test in tests:
    if not test.examples:
        continue
    if re.search(EXTRAS, test.docstring):
        left += 1
        continue
    tried += 1
    warnings.simplefilter("default")
    runner.run(test)
print(f"{tried} examples ran, {left} need an extra or data")
assert tried > 100
sys.exit(runner.summarize(verbose=False).failed > 0)
"""


def main(folder: Path) -> int:
    """Return 0 if all is well."""
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("skdpnoise/")}
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    if not inside or not inside <= packed:
        print("the source distribution lacks:", *sorted(inside - packed)[:9])
        return 1
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        python = Path(place, "Scripts" if sys.platform == "win32" else "bin", "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, wheel.resolve()], check=True)
        run = [python, "-c", EXAMPLES, ROOT / "README.md"]
        return subprocess.run(run, cwd=place).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
