"""A change of what a compiled loop is made of is noticed wherever it is made."""

import os
import subprocess
import sys

import pytest

from benchmarks._compiled import cache_folder, compiled_sources

FILES = {
    "skdpnoise/__init__.py": "",
    "skdpnoise/loop.py": "from numba import njit\n\nfrom skdpnoise.step import step\n\n\n"
    "@njit(cache=True)\ndef loop(n):\n    return step(n)\n",
    "skdpnoise/step.py": "from numba.extending import register_jitable\n\n\n"
    "@register_jitable\ndef step(n):\n    return n + 1\n",
    "skdpnoise/other.py": "ONE = 1\n",
}


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_another_folder_is_for_other_texts_and_the_old_one_goes(project):
    first = cache_folder(project, "main")
    assert [path.name for path in compiled_sources(project)] == ["loop.py", "step.py"]
    first.mkdir(parents=True)
    (project / "skdpnoise/other.py").write_text("ONE = 2\n")
    assert cache_folder(project, "main") == first
    (project / "skdpnoise/step.py").write_text("# changed\n")
    another = cache_folder(project, "worker")
    assert first.exists()  # another process removes its own alone
    assert another != cache_folder(project, "main") != first
    assert not first.exists()


@pytest.mark.slow
def test_a_function_that_a_loop_of_another_file_calls_is_compiled_anew(project):
    code = "from skdpnoise.loop import loop; print(loop(1))"

    def answer():
        folder = {"NUMBA_CACHE_DIR": str(cache_folder(project, "main"))}
        python = {"PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", code]
        return subprocess.check_output(command, cwd=project, env={**os.environ, **python, **folder})

    assert answer().strip() == b"2"
    (project / "skdpnoise/step.py").write_text(FILES["skdpnoise/step.py"].replace("+ 1", "+ 2"))
    assert answer().strip() == b"3"
