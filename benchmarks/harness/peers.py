"""The peers: released packages, in the ignored folder ``.peers/``.

Each Python peer has its own virtual environment, which pip makes on first use with the Python that runs the benchmark;
Maven fetches Java peers, and Go builds its own. If a peer is unavailable (no network, no wheel for this Python, no
Java), the record says so, and the other cases still run.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from testbed.maven import FOLDER, Jar, PeerMissing, fetched, last_line, one_at_a_time

PROGRAMS = Path(__file__).resolve().parents[1] / "peer_programs"
INSTALL_SECONDS = 900
"""For one peer: the largest has 1 GB of packages; Telegraf is built in 3 minutes."""


class Peer(NamedTuple):
    """A released package of PyPI."""

    name: str
    version: str
    also: tuple[str, ...] = ()
    """Packages that it needs for what is measured, with their versions."""

    def python(self) -> Path:
        """The interpreter that has this package; made if need be. Raises PeerMissing."""
        return _environment(self)


class GoPeer(NamedTuple):
    """A program of a released Go module."""

    package: str
    version: str
    tags: tuple[str, ...] = ()
    """Parts of the program that are built."""

    def program(self) -> Path:
        """The program; built if need be. Raises PeerMissing."""
        return _built(self)


PYSTORM = Peer("pystorm", "3.1.4", ("pyarrow==26.0.1",))
BYTEWAX = Peer("bytewax", "0.21.1", ("confluent-kafka==2.16.1", "pyarrow==26.0.1"))
FLINK = Peer("apache-flink", "2.3.0", ("aiohttp==3.14.5",))
PATHWAY = Peer("pathway", "0.33.0")
QUIX = Peer("quixstreams", "3.28.1", ("pyarrow==26.0.1",))
# The newest that Maven has of each; a Spark that is newer than they are takes them, too.
SPARK_KAFKA = (
    Jar("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0", alone=True),
    Jar("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1", alone=True),
    Jar("org.apache.kafka", "kafka-clients", "3.9.1", alone=True),
    Jar("org.apache.commons", "commons-pool2", "2.12.0", alone=True),
)
# There is no connector for 2.3 yet; Flink's Parquet needs classes of Hadoop.
FLINK_JARS = (
    Jar("org.apache.flink", "flink-sql-connector-kafka", "5.0.0-2.2", alone=True),
    Jar("org.apache.flink", "flink-sql-parquet", "2.3.0", alone=True),
    Jar("org.apache.hadoop", "hadoop-client-api", "3.3.6", alone=True),
    Jar("org.apache.hadoop", "hadoop-client-runtime", "3.3.6", alone=True),
)
STORM = Jar("org.apache.storm", "storm-server", "2.8.3")
TELEGRAF = GoPeer(
    "github.com/influxdata/telegraf/cmd/telegraf",
    "1.37.2",
    ("custom", "inputs.tail", "outputs.file", "parsers.grok", "serializers.csv"),
)


@functools.cache
def _environment(peer: Peer) -> Path:
    name, version, packages = peer.name, peer.version, [f"{peer.name}=={peer.version}", *peer.also]
    home = FOLDER / f"{name}-{version}-py{sys.version_info[0]}.{sys.version_info[1]}"
    python = home / "bin" / "python"
    ready = home / ".ready"
    with one_at_a_time(home):
        if python.exists() and ready.exists() and ready.read_text().split() == packages:
            return python
        shutil.rmtree(home, ignore_errors=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        for command in ([sys.executable, "-m", "venv", str(home)], pip):
            _run(command, f"{name} {version}")
        ready.write_text("\n".join(packages))
    return python


def _run(command: list[str], peer: str, environment: dict[str, str] | None = None) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS, env=environment)
    except subprocess.CalledProcessError as error:
        raise PeerMissing(f"{peer} cannot be installed here: {last_line(error.stderr)}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerMissing(f"{peer} cannot be installed here: {error}") from error


@functools.cache
def _built(peer: GoPeer) -> Path:
    name = peer.package.rpartition("/")[2]
    home = FOLDER / f"{name}-{peer.version}"
    if not (home / name).exists():
        home.mkdir(parents=True, exist_ok=True)
        command = ["go", "install", "-tags", ",".join(peer.tags), f"{peer.package}@v{peer.version}"]
        _run(command, f"{name} {peer.version}", {**os.environ, "GOBIN": str(home)})
    return home / name


def java_classes(program: str, *jars: Jar) -> str:
    """Returns the class path of a program of ``peer_programs``, compiled against these jars. Raises PeerMissing."""
    source = PROGRAMS / f"{program}.java"
    digest = hashlib.sha256(source.read_bytes() + repr(jars).encode()).hexdigest()[:12]
    home = fetched(program, digest, jars, ["javac", "-cp", "jars/*", "-d", "classes", str(source)])
    return f"{home / 'classes'}{os.pathsep}{home / 'jars'}/*"
