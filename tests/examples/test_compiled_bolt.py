"""The package of compiled bolts: built and run where only the wheel of this package is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import blocks

ROOT = Path(__file__).resolve().parents[2]
PARTS, LANGUAGES = {".pyx", ".py", ".toml"}, ("cython", "py", "toml")
SOURCE = ("cython_core", "pystorm_source", "setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")
SOURCE += ("CHANGELOG.md", "pyspark_pystorm.py")
PROGRAM = """
import cython_core, fast_words.bolts, sys
from pathlib import Path
from fast_words.topology import WordCount
from pystorm_source.testing import run_topology, verify_bolt
for module in (cython_core, fast_words.bolts):
    assert Path(sys.prefix) in Path(module.__file__).parents, module.__file__
for scheduler in ("inline", "threads"):
    print(sorted(run_topology(WordCount, scheduler=scheduler).rows("count")))
verify_bolt(WordCount.split, [["the cow"], [""], ["over the moon"]])
verify_bolt(fast_words.bolts.Count, [["the"], ["cow"], ["the"]], fields=["word string"], state="micro-batch")
verify_bolt(fast_words.bolts.Lengths, [["the"], [None], ["höhe"]], fields=["word string"], state="micro-batch")
"""
OTHER = """
from cython_core import build_info
build_info.VERSION = "99.0"
import fast_words.bolts
"""


def on_wheel(test):
    return pytest.mark.campaign(pytest.mark.timeout(1200)(test))


def test_the_page_shows_the_example():
    """Its Cython and build files are those of the package."""
    texts = [path.read_text() for path in (ROOT / "examples/compiled_bolt").rglob("*") if path.suffix in PARTS]
    shown = [block for language in LANGUAGES for block in blocks(ROOT / "docs/COMPILED_BOLTS.md", language)]
    assert {block.language for block in shown} == set(LANGUAGES)
    for block in shown:
        assert any(block.text.strip() in text for text in texts), block


def run(*command, cwd, status=0):
    """Its output, or its errors if it is to fail; in an environment that shows no checkout."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYSTORM_DEBUG")}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The interpreter of a virtual environment with the wheel and the example, built there; the packages beside them
    (pyarrow, Cython) are those of this interpreter."""
    folder = tmp_path_factory.mktemp("compiled-bolt")
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in SOURCE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, checkout / name, ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
        elif source.exists():
            shutil.copy(source, checkout)
    # What is compiled already, with its times: only what changed is compiled again.
    if (ROOT / "build").is_dir():
        for part in ("cython", *(path.name for path in (ROOT / "build").glob("*.linux-*"))):
            if (ROOT / "build" / part).is_dir():
                shutil.copytree(ROOT / "build" / part, checkout / "build" / part)
    run(
        sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ".", cwd=checkout
    )
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    python = folder / "venv/bin/python"
    (packages,) = (folder / "venv/lib").glob("python3*/site-packages")
    beside = [path for path in sys.path if path.endswith("site-packages")]
    # A folder that a .pth file names comes last, and the .pth files inside of it, of editable installs, are not read.
    (packages / "beside.pth").write_text("\n".join(beside) + "\n")
    pip = (
        python,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--ignore-installed",
    )
    run(*pip, next(folder.glob("pystorm_source-*.whl")), cwd=folder)
    shutil.copytree(ROOT / "examples/compiled_bolt", folder / "example")
    run(*pip, ".", cwd=folder / "example")
    shutil.rmtree(folder / "example")
    return python


@on_wheel
def test_the_example_is_built_and_run_from_the_installed_wheel(installed, tmp_path):
    counts = [("cow", 1), ("end", 1), ("jumped", 1), ("moon", 1), ("over", 1), ("the", 3)]
    assert run(installed, "-c", PROGRAM, cwd=tmp_path) == f"{counts}\n{counts}\n"


@on_wheel
def test_the_example_is_refused_beside_another_version(installed, tmp_path):
    said = run(installed, "-c", OTHER, cwd=tmp_path, status=1)
    assert "ImportError: fast_words.bolts was compiled against pystorm-source" in said
    assert "pystorm-source 99.0 is installed: build it again" in said
