"""Sides of a job: a package, the Python that has it, what its programs need, and what it promises."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, NamedTuple

from benchmarks.harness.peers import (
    BYTEWAX,
    FLINK,
    FLINK_JARS,
    PATHWAY,
    PYSTORM,
    QUIX,
    SPARK_KAFKA,
    STORM,
    TELEGRAF,
    Peer,
    java_classes,
)
from benchmarks.harness.record import ROOT
from testbed.maven import PeerMissing, java_jars
from testbed.ports import free_port

EXACTLY_ONCE, AT_LEAST_ONCE, NONE = "exactly once", "at least once", "none"
SYSLOG_NG = "3.38.1"
"""Debian's package syslog-ng-core: not fetched, for only root can install it."""


class Kind(NamedTuple):
    """What the sides with the same package share."""

    version: str
    peer: Peer | None
    """None: the package is in the Python that runs the benchmark."""
    environment: Callable[[], Mapping[str, str]] = dict
    options: Callable[[], Mapping[str, Any]] = dict
    """Of one run, besides those of the job. Both raise PeerMissing."""
    slow: bool = False
    """Whether it gets a part of the rows: it would take most of the time."""

    def python(self) -> str:
        """Its interpreter. Raises PeerMissing."""
        return sys.executable if self.peer is None else str(self.peer.python())


class Side(NamedTuple):
    """One way to do a job, as ``benchmarks.job_programs.JOB_PROGRAM``."""

    name: str
    program: str
    kind: Kind
    guarantee: str
    more: Mapping[str, Any] = MappingProxyType({})
    """Options of its program."""
    loses: bool = False
    """Whether other rows come out than should, also if nothing fails: they are not compared."""


def _spark_environment() -> dict[str, str]:
    from pystorm_source.spark.java import ensure_java

    jars = ",".join(map(str, java_jars(*SPARK_KAFKA).glob("*.jar")))
    settings = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    flags = " ".join(f"--conf {key}={value}" for key, value in settings.items())
    submit = f"--master local[2] --jars {jars} {flags} pyspark-shell"
    spark = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": submit, "SPARK_LOCAL_IP": "127.0.0.1"}
    return {"JAVA_HOME": str(ensure_java().home), **spark}


def _flink_jars() -> dict[str, str]:
    return {"jars": ";".join(f"file://{jar}" for jar in java_jars(*FLINK_JARS).glob("*.jar"))}


def _flink_environment() -> dict[str, str]:
    from pystorm_source.spark.java import ensure_java

    # The interpreter that a JVM embeds knows nothing of the virtual environment of its program.
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = FLINK.python().parents[1] / "lib" / version / "site-packages"
    return {
        "JAVA_HOME": str(ensure_java().home),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}",
        # Otherwise a job on this machine runs its functions in threads of its program, which share one lock.
        "_python_worker_execution_mode": "process",
    }


def _storm_environment() -> dict[str, str]:
    from pystorm_source.spark.java import ensure_java

    return {"JAVA_HOME": str(ensure_java().home)}


def _storm_classes() -> dict[str, str]:
    return {"classes": java_classes("StormWords", STORM)}


def _telegraf() -> dict[str, str]:
    return {"telegraf": str(TELEGRAF.program())}


def _syslog_ng() -> dict[str, str]:
    try:
        found = subprocess.run(["syslog-ng", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerMissing(f"syslog-ng is not installed here: {error}") from error
    if f"({SYSLOG_NG})" not in found:
        raise PeerMissing(f"syslog-ng here is not {SYSLOG_NG}")
    return {}


def _two_ports() -> dict[str, list[int]]:
    return {"ports": [free_port(), free_port()]}


SPARK = Kind(f"pyspark {version('pyspark')}", None, _spark_environment)
PYFLINK = Kind(FLINK.version, FLINK, _flink_environment, _flink_jars, slow=True)
PATHWAYS = Kind(PATHWAY.version, PATHWAY, options=_two_ports, slow=True)
QUIX_STREAMS = Kind(QUIX.version, QUIX, slow=True)
BYTEWAXES = Kind(BYTEWAX.version, BYTEWAX, options=_two_ports, slow=True)
STORMS = Kind(STORM.version, PYSTORM, _storm_environment, _storm_classes, slow=True)
TELEGRAFS = Kind(TELEGRAF.version, None, options=_telegraf)
SYSLOG_NGS = Kind(SYSLOG_NG, None, _syslog_ng)
BARE = Kind(f"CPython {platform.python_version()}", None)
"""No package: nothing is asked against it."""
