"""The peers: released packages, each in a virtual environment of its own in the ignored folder ``.peers/``.

Made on first use by pip, with the Python that runs the benchmark. A peer that cannot be had here (no network, no wheel
for this Python) is reported in the record and costs the other cases nothing.
"""

import functools
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.record import ROOT

FOLDER = ROOT / ".peers"
PROGRAMS = Path(__file__).resolve().parent / "peer_programs"


class PeerMissing(Exception):
    """The peer cannot be had here; says why."""


class Peer(NamedTuple):
    """A released package of PyPI."""

    name: str
    version: str

    def python(self) -> Path:
        """The interpreter that has this package; made if need be. Raises PeerMissing."""
        return _environment(self.name, self.version)


PYSTORM = Peer("pystorm", "3.1.4")
BYTEWAX = Peer("bytewax", "0.21.1")


@functools.cache
def _environment(name: str, version: str) -> Path:
    home = FOLDER / f"{name}-{version}-py{sys.version_info[0]}.{sys.version_info[1]}"
    python = home / "bin" / "python"
    ready = home / ".ready"
    if ready.exists() and python.exists():
        return python
    shutil.rmtree(home, ignore_errors=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{name}=={version}"]
    for command in ([sys.executable, "-m", "venv", str(home)], pip):
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
        except subprocess.CalledProcessError as error:
            raise PeerMissing(f"{name} {version} cannot be installed here: {_last_line(error.stderr)}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerMissing(f"{name} {version} cannot be installed here: {error}") from error
    ready.touch()
    return python


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line]
    return lines[-1] if lines else "no reason given"
