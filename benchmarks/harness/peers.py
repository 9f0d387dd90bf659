"""The peers: released packages, in the ignored folder ``.peers/``.

Each Python peer has its own virtual environment, which pip makes on first use with the Python that runs the benchmark;
Maven fetches Java peers. If a peer is unavailable (no network, no wheel for this Python, no Java), the record says so,
and the other cases still run.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from testbed.maven import FOLDER, Jar, PeerMissing, fetched, last_line

PROGRAMS = Path(__file__).resolve().parents[1] / "peer_programs"


class Peer(NamedTuple):
    """A released package of PyPI."""

    name: str
    version: str

    def python(self) -> Path:
        """The interpreter that has this package; makes it if needed. Raises PeerMissing."""
        return _environment(self.name, self.version)


PYSTORM = Peer("pystorm", "3.1.4")
BYTEWAX = Peer("bytewax", "0.21.1")
# The newest of each in Maven; a newer Spark takes them, too.
SPARK_KAFKA = (
    Jar("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0", alone=True),
    Jar("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1", alone=True),
    Jar("org.apache.kafka", "kafka-clients", "3.9.1", alone=True),
    Jar("org.apache.commons", "commons-pool2", "2.12.0", alone=True),
)
STORM = Jar("org.apache.storm", "storm-server", "2.8.3")


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
            raise PeerMissing(f"{name} {version} cannot be installed here: {last_line(error.stderr)}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerMissing(f"{name} {version} cannot be installed here: {error}") from error
    ready.touch()
    return python


def java_classes(program: str, *jars: Jar) -> str:
    """Returns the class path of a program of ``peer_programs``, compiled against these jars. Raises PeerMissing."""
    source = PROGRAMS / f"{program}.java"
    digest = hashlib.sha256(source.read_bytes() + repr(jars).encode()).hexdigest()[:12]
    home = fetched(program, digest, jars, ["javac", "-cp", "jars/*", "-d", "classes", str(source)])
    return f"{home / 'classes'}{os.pathsep}{home / 'jars'}/*"
