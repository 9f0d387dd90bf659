"""Static checks: `python .ci/lint.py` runs all, `python .ci/lint.py mypy` one of them. Exit status 1 if one fails."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
CYTHON = sorted(str(path) for path in ROOT.glob("cython_core/**/*.p[yx][xdi]") if path.suffix != ".pyi")
STUBTEST = [
    "--mypy-config-file",
    "pyproject.toml",
    "--allowlist",
    ".ci/stubtest-allowlist.txt",
    "--ignore-unused-allowlist",
]
STRICT = ["--strict", "--follow-imports=silent", "--explicit-package-bases"]

CHECKS = {
    "ruff": [PYTHON, "-m", "ruff", "check", "."],
    "format": [PYTHON, "-m", "ruff", "format", "--check", "."],
    "cython-lint": [str(Path(PYTHON).with_name("cython-lint")), "--max-line-length", "120", *CYTHON],
    "mypy": [PYTHON, "-m", "mypy"],
    # What a user with strict types sees of the public API.
    "mypy-strict": [PYTHON, "-m", "mypy", *STRICT, "tests/typed"],
    # Whether each hand-written .pyi names what its compiled module holds.
    "stubtest": [PYTHON, "-m", "mypy.stubtest", "cython_core", *STUBTEST],
}


def run(name: str) -> bool:
    """Whether that check passes; its output goes where ours goes."""
    print(f"== {name}", flush=True)
    path = os.pathsep.join([str(Path(PYTHON).parent), os.environ.get("PATH", "")])  # cython-lint starts pycodestyle
    return subprocess.run(CHECKS[name], cwd=ROOT, env=os.environ | {"PATH": path}).returncode == 0


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in CHECKS]
    if unknown:
        sys.exit(f"unknown check {', '.join(unknown)}: one of {', '.join(CHECKS)}")
    failed = [name for name in sys.argv[1:] or CHECKS if not run(name)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
