"""`make docs` fails if a link leads nowhere: the negative control of its strictness."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(
        find_spec("sphinx") is None and os.environ.get("CI") != "true", reason="no sphinx: `make venv` installs it"
    ),
]

INDEX = "# Index\n\n## Start\n\n| to | read |\n|---|---|\n| see | [R](../README.md) |\n"


@pytest.mark.parametrize(
    ("link", "complaint"),
    [("[x](docs/GONE.md)", "docs/GONE.md"), ("[x](docs/README.md#gone)", "gone"), ("[x](#gone)", "gone"), ("", None)],
)
def test_a_broken_link_fails_the_build(link, complaint, tmp_path):
    (tmp_path / "docs").mkdir()
    for name in ("conf.py", "contents.py"):
        shutil.copy(ROOT / "docs" / name, tmp_path / "docs" / name)
    (tmp_path / "llms.txt").touch()
    (tmp_path / "README.md").write_text(f"# Here\n\nText {link}\n")
    (tmp_path / "docs/README.md").write_text(INDEX)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", ".", "out"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (built.returncode == 0) is (complaint is None), built.stderr
    if complaint is None:
        assert (tmp_path / "out/index.html").read_text() == (tmp_path / "out/README.html").read_text()
    else:
        (line,) = [line for line in built.stderr.splitlines() if "README.md:3:" in line]
        assert complaint in line
