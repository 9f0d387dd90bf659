"""Says what a build of the compiled core would miss on this machine, before the build says it in its own words.

Run by ``make build`` with the interpreter that builds. Exit status 1 and one line per missing thing, else silent.
"""

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

FIRST, LAST = (3, 11), (3, 14)  # as requires-python in pyproject.toml


def missing() -> list[str]:
    """One line per missing thing: what it is and how to get it."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    found = []
    if not FIRST <= sys.version_info[:2] <= LAST:
        found.append(f"CPython 3.11 to 3.14 (this is {version}): name one by make PYTHON=/path/to/python …")
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.is_file():
        found.append(f"Python's C headers ({header}): install them (Debian: apt-get install python{version}-dev)")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        found.append(f"a C compiler ({compiler}): install one (Debian: apt-get install gcc libc6-dev) or set CC")
    return found


if __name__ == "__main__":
    lines = missing()
    for line in lines:
        print(f"The compiled core cannot be built without {line}.", file=sys.stderr)
    sys.exit(1 if lines else 0)
