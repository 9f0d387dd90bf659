"""Released jars by Maven, in the ignored folder ``.peers/``."""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / ".peers"
"""Also for peers of benchmarks that are not jars."""


class PeerMissing(Exception):
    """The peer is unavailable here; says why."""


class Jar(NamedTuple):
    """A released artifact of Maven Central."""

    group: str
    name: str
    version: str
    alone: bool = False
    """Whether to fetch it without its dependencies."""

    def as_dependency(self) -> str:
        """Returns its entry in a pom."""
        return _DEPENDENCY.format(self.group, self.name, self.version, _ALONE if self.alone else "")


def java_jars(*jars: Jar) -> Path:
    """Returns the folder with these jars and their dependencies. Raises PeerMissing."""
    digest = hashlib.sha256(repr(jars).encode()).hexdigest()[:12]
    return fetched(jars[0].name, digest, jars) / "jars"


def fetched(name: str, digest: str, jars: tuple[Jar, ...], *commands: list[str]) -> Path:
    """Returns the folder where Maven put these jars, and where the commands ran afterwards."""
    home = FOLDER / f"{name}-{digest}"
    with one_at_a_time(home):
        _fetch(name, home, jars, commands)
    return home


@contextmanager
def one_at_a_time(home: Path) -> Iterator[None]:
    """Only one process at a time makes this folder: another one would empty it meanwhile."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(name: str, home: Path, jars: tuple[Jar, ...], commands: tuple[list[str], ...]) -> None:
    if not (home / ".ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        (home / "pom.xml").write_text(_POM.format("".join(jar.as_dependency() for jar in jars)))
        copy = ["mvn", "-q", "-B", "-f", "pom.xml", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
        for command in (copy, *commands):
            try:
                subprocess.run(command, cwd=home, check=True, capture_output=True, text=True, timeout=300)
            except subprocess.CalledProcessError as error:
                why = last_line(error.stdout or error.stderr)
                raise PeerMissing(f"{name} cannot be built here: {command[0]}: {why}") from error
            except (OSError, subprocess.TimeoutExpired) as error:
                raise PeerMissing(f"{name} cannot be built here: {error}") from error
        (home / ".ready").touch()


_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>\n"
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>benchmarks</groupId><artifactId>peers</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""


def last_line(text: str) -> str:
    """Returns the last line of a failed program's output."""
    lines = [line for line in text.strip().splitlines() if line]
    return lines[-1] if lines else "no reason given"
