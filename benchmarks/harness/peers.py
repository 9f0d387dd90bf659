"""The peers: released packages, in the ignored folder ``.peers/``.

Those of Python have a virtual environment each, made on first use by pip, with the Python that runs the benchmark;
those of Java are fetched by Maven. A peer that cannot be had here (no network, no wheel for this Python, no Java) is
reported in the record and costs the other cases nothing.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.record import ROOT

FOLDER = ROOT / ".peers"
PROGRAMS = Path(__file__).resolve().parents[1] / "peer_programs"


class PeerMissing(Exception):
    """The peer cannot be had here; says why."""


class Peer(NamedTuple):
    """A released package of PyPI."""

    name: str
    version: str

    def python(self) -> Path:
        """The interpreter that has this package; made if need be. Raises PeerMissing."""
        return _environment(self.name, self.version)


class Jar(NamedTuple):
    """A released artifact of Maven Central."""

    group: str
    name: str
    version: str
    alone: bool = False
    """Whether it is fetched without what it needs."""

    def as_dependency(self) -> str:
        """Its entry in a pom."""
        return _DEPENDENCY.format(self.group, self.name, self.version, _ALONE if self.alone else "")


PYSTORM = Peer("pystorm", "3.1.4")
BYTEWAX = Peer("bytewax", "0.21.1")
JCTOOLS = Jar("org.jctools", "jctools-core", "4.0.5")
DISRUPTOR = Jar("com.lmax", "disruptor", "4.0.0")
KAFKA = Jar("org.apache.kafka", "kafka-server-common", "4.4.0")
BROKER = Jar("org.apache.kafka", "kafka_2.13", "4.1.1")
NETTY = Jar("io.netty", "netty-common", "4.2.7.Final")
# The newest that Maven has of each; a Spark that is newer than they are takes them, too.
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
            raise PeerMissing(f"{name} {version} cannot be installed here: {_last_line(error.stderr)}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerMissing(f"{name} {version} cannot be installed here: {error}") from error
    ready.touch()
    return python


def java_classes(program: str, *jars: Jar) -> str:
    """The class path of a program of ``peer_programs``, compiled against these jars. Raises PeerMissing."""
    source = PROGRAMS / f"{program}.java"
    digest = hashlib.sha256(source.read_bytes() + repr(jars).encode()).hexdigest()[:12]
    home = _fetched(program, digest, jars, ["javac", "-cp", "jars/*", "-d", "classes", str(source)])
    return f"{home / 'classes'}{os.pathsep}{home / 'jars'}/*"


def java_jars(*jars: Jar) -> Path:
    """The folder that holds these jars and what they need. Raises PeerMissing."""
    digest = hashlib.sha256(repr(jars).encode()).hexdigest()[:12]
    return _fetched(jars[0].name, digest, jars) / "jars"


def _fetched(name: str, digest: str, jars: tuple[Jar, ...], *commands: list[str]) -> Path:
    """The folder into which Maven has copied these jars, and where the commands were run after it."""
    home = FOLDER / f"{name}-{digest}"
    if not (home / ".ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        (home / "pom.xml").write_text(_POM.format("".join(jar.as_dependency() for jar in jars)))
        copy = ["mvn", "-q", "-B", "-f", "pom.xml", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
        for command in (copy, *commands):
            try:
                subprocess.run(command, cwd=home, check=True, capture_output=True, text=True, timeout=300)
            except subprocess.CalledProcessError as error:
                why = _last_line(error.stdout or error.stderr)
                raise PeerMissing(f"{name} cannot be built here: {command[0]}: {why}") from error
            except (OSError, subprocess.TimeoutExpired) as error:
                raise PeerMissing(f"{name} cannot be built here: {error}") from error
        (home / ".ready").touch()
    return home


_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>\n"
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>benchmarks</groupId><artifactId>peers</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line]
    return lines[-1] if lines else "no reason given"
