"""Pins what make and CI install: requirements/NAME.txt for each requirements/NAME.in, with the hashes of all files.

``make lock`` writes them; ``make lock ARGS='--upgrade-package ruff'`` passes arguments to ``uv pip compile``. If a .in
file names a version, change it there. Without arguments every other package keeps its version.

One lock serves each Python that the project is built with, and each platform: it has all files of a release.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

FOLDER = Path("requirements")
LARGEST = "dev"
"""The lock whose versions the others take: it has nearly all packages."""
INCLUDED = {"run", "docs"}
"""Parts of others: nothing installs them."""
OLDEST = "3.11.5"
"""Python for which the packages are chosen; some ask for this patch."""
ALONE = {
    "connect": ["--no-deps"],
    "oracle": ["--no-deps"],
    "lowest": [],
    "macos": [],
    "spark-4.0": ["--no-emit-package", "numpy"],  # .venv has one
    "spark-4.1": [],
    "spark-4.2": [],
    "wheels": [],
}
"""Locks with their own versions, and further arguments of each."""


def lowest() -> str:
    """The oldest versions that ``pyproject.toml`` allows, in the form of a requirements file."""
    needed = tomllib.loads(Path("pyproject.toml").read_text())["project"]["dependencies"]
    found = (re.fullmatch(r"([\w-]+)>=([\d.]+)", each) for each in needed)
    pins = (f"{each[1]}=={each[2]}{'' if each[2].count('.') > 1 else '.*'}\n" for each in found if each)
    return "# The oldest versions that pyproject.toml allows, by `make lock`; see .ci/gates/lowest.\n" + "".join(pins)


def main(arguments: list[str]) -> None:
    """Blocking: asks the package index."""
    (FOLDER / "lowest.in").write_text(lowest())
    names = sorted({path.stem for path in FOLDER.glob("*.in")} - INCLUDED)
    for name in [LARGEST, *(name for name in names if name != LARGEST)]:
        more = ALONE.get(name, [] if name == LARGEST else ["--constraints", str(FOLDER / f"{LARGEST}.txt")])
        print(f"requirements/{name}.txt", flush=True)
        lock(name, [*more, *arguments])


def lock(name: str, arguments: list[str]) -> None:
    """One file."""
    path = FOLDER / f"{name}.txt"
    command = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--python-version", OLDEST, "--quiet"]
    command += ["--generate-hashes", "--no-header", "--no-annotate", "--output-file", str(path)]
    subprocess.run([*command, *arguments, str(FOLDER / f"{name}.in")], check=True)
    path.write_text(f"# By `make lock`, of {name}.in.\n{path.read_text()}")


if __name__ == "__main__":
    main(sys.argv[1:])
