"""The machine of a measurement: ``python -m benchmarks --machine`` prints it as a JSON object, to keep with results."""

import importlib.metadata
import os
import platform
import re
import sysconfig
from pathlib import Path
from typing import Any

from benchmarks.harness.record import commit, cores, cpu

PACKAGES = ("pyarrow", "pyspark", "numpy", "Cython", "msgspec")


def facts() -> dict[str, Any]:
    """Returns facts for JSON. ``load``: the load average of the last minute; above 1, other work was measured, too."""
    return {
        "cpu": cpu(),
        "cores": cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "hypervisor": "hypervisor" in (_read("/proc/cpuinfo") or ""),
        "python": f"{platform.python_implementation()} {platform.python_version()}, {platform.python_compiler()}",
        # An interpreter built with profiles runs the user's methods, and so everything here, much faster.
        "python_built_with_profiles": "--enable-optimizations" in _built_with(),
        "python_built_with_lto": "--with-lto" in _built_with(),
        "packages": {name: _version(name) for name in PACKAGES},
        "java": _java(),
        "load": round(os.getloadavg()[0], 2),
        "commit": commit(),
    }


def _built_with() -> str:
    return str(sysconfig.get_config_var("CONFIG_ARGS") or "")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _java() -> str | None:
    from pystorm_source.spark.java import find_java

    java = find_java()
    return java.version if java else None


def _read(path: str) -> str | None:
    try:
        return re.sub(r"\s+", " ", Path(path).read_text()).strip()
    except OSError:
        return None
