"""Builds the compiled messaging core (``cython_core``); everything else is in ``pyproject.toml``.

``PYSTORM_DEBUG=1`` builds with every Cython check and C assertion switched back on; ``PYSTORM_CFLAGS`` and
``PYSTORM_LDFLAGS`` are added to the compiler's and the linker's flags. ``setup.py annotate`` runs Cython alone.
Generated C lies in ``build/``, apart for release and debug, so that neither is ever taken for the other.
"""

import os
import platform
import re
import runpy
import subprocess
import sys
import threading
from pathlib import Path

if not (3, 11) <= sys.version_info < (3, 16) or "t" in getattr(sys, "abiflags", ""):
    sys.exit(
        "pystorm-source runs on CPython 3.11 to 3.15, but not on a free-threaded build (t): build it with one. "
        f"Given: Python {'.'.join(map(str, sys.version_info[:3]))}{getattr(sys, 'abiflags', '')}"
    )

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

DEBUG = os.environ.get("PYSTORM_DEBUG", "0") not in ("", "0")
VERSION_FILE, DIGEST_FILE = "pystorm_source/version.py", "cython_core/sources.py"
VERSION = runpy.run_path(VERSION_FILE)["__version__"]
_OF_SOURCES = runpy.run_path(DIGEST_FILE)
SOURCES = _OF_SOURCES["sources"]("cython_core")
SOURCES_DIGEST = _OF_SOURCES["digest"]("cython_core")

RELEASE_DIRECTIVES = {
    "language_level": "3",
    "binding": False,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "nonecheck": False,
    "cdivision": True,
    "embedsignature": True,
    "auto_pickle": False,  # 4 KB a class; those whose objects users may pickle switch it on
    "profile": False,
    "linetrace": False,
}
DEBUG_DIRECTIVES = RELEASE_DIRECTIVES | {
    "boundscheck": True,
    "wraparound": True,
    "initializedcheck": True,
    "nonecheck": True,
    "cdivision": False,
}

# They stand behind the flags that the interpreter was built with (`-g -O2` or `-g -O3` as a rule), and the last one of
# a kind counts. Without -g0 a release holds six times its size in debug symbols, and takes longer to compile. Tables
# for unwinding are 5 % of a module: C raises nothing, and debuggers and profilers of C alone miss them.
RELEASE_ARGS = ["-O3", "-g0", "-DNDEBUG", "-fno-asynchronous-unwind-tables"]
COMPILE_ARGS = ["-std=c11", "-Wall", "-Wno-unused-function"]
COMPILE_ARGS += ["-O1", "-g", "-UNDEBUG", "-DPYSTORM_DEBUG=1"] if DEBUG else RELEASE_ARGS
COMPILE_ARGS += os.environ.get("PYSTORM_CFLAGS", "").split()

# Compiled for size, to two thirds of it: they run once per component, batch or error, or wait for Python in each call.
# A module that works per tuple does not belong here: it would be slower.
SMALL = {
    "cython_core.arrow.value_converter",
    "cython_core.executors.arrow_executor",
    "cython_core.executors.async_executor",
    "cython_core.executors.batching",
    "cython_core.executors.executor",
    "cython_core.primitives.latency_histogram",
    "cython_core.primitives.parker",
    "cython_core.routing.batch_slice",
    "cython_core.routing.own_thread",
    "cython_core.schedulers.schedulers",
    "cython_core.timing.timers",
}
SMALL_ARGS = [] if DEBUG else ["-Os"]
LINK_ARGS = os.environ.get("PYSTORM_LDFLAGS", "").split()

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
BUILD_INFO_MACROS = [
    ("PYSTORM_VERSION", f'"{VERSION}"'),
    ("PYSTORM_SOURCES", f'"{SOURCES_DIGEST}"'),
    ("PYSTORM_ABI", f'"{_OF_SOURCES["abi"]("cython_core")}"'),
    ("PYSTORM_BUILT_FOR_DEBUG", "1" if DEBUG else "0"),
]


def extension(path: str) -> Extension:
    """The extension module built from one ``.pyx``; ``build_info`` alone knows version and digest of all sources.

    A ``.pyx`` includes the ``.pxi`` files beside it that are of one module with it: each module has 15 kB of Cython's
    own code in a wheel. Larger: a change of one line compiles for longer, and all of a module is for size or none.
    """
    name = path[:-4].replace(os.sep, ".")
    is_build_info = name == "cython_core.build_info"
    return Extension(
        name,
        [path],
        include_dirs=["."],  # headers include each other by "cython_core/…"
        depends=[VERSION_FILE, DIGEST_FILE, *map(str, SOURCES)] if is_build_info else [],
        define_macros=[("PYSTORM_CORE", "1"), *(BUILD_INFO_MACROS if is_build_info else [])],
        extra_compile_args=[*COMPILE_ARGS, *(SMALL_ARGS if name in SMALL else [])],
        extra_link_args=LINK_ARGS,
    )


def with_included(headers: list[str]) -> list[str]:
    """``headers`` and whatever of ours they include, in turn."""
    found: dict[str, None] = {}
    waiting = list(headers)
    while waiting:
        path = waiting.pop()
        if path in found or not Path(path).is_file():
            continue
        found[path] = None
        if path.endswith(".h"):
            waiting += re.findall(r'^\s*#\s*include\s*"([^"]+)"', Path(path).read_text(), re.MULTILINE)
    return sorted(found)


def remove_orphans(folder: str) -> None:
    """Removes what was built of sources that were moved or deleted: it could be imported, and would go into a wheel."""
    for package in ("cython_core", "pystorm_source"):
        for built in Path(folder, package).rglob("*.*"):
            source = built.relative_to(folder)
            if built.suffix in {".so", ".c"}:
                source = source.with_name(built.name.split(".")[0] + ".pyx")
            if built.is_file() and not source.exists():
                built.unlink()


def strip_symbols(folder: str, compiler: list[str]) -> None:
    """Takes the names of C functions out of compiled modules: 6 % of a wheel, for profilers of C alone.

    The compiler names the program: that of this machine does not know the modules of another processor.
    """
    if platform.system() != "Linux":
        return
    asked = subprocess.run([*compiler, "-print-prog-name=strip"], capture_output=True, text=True)
    for compiled in Path(folder).glob("cython_core/**/*.so") if asked.returncode == 0 else ():
        subprocess.run([asked.stdout.strip(), "--strip-all", compiled], check=True)


class build_core(build_ext):
    """Compiles what is out of date, over all cores, with a line of progress for each module.

    Built in place (by hand, or by an editable install), objects stay in ``build/``: an editable install of a checkout
    that is compiled already compiles nothing. setuptools would compile it again in a temporary folder.
    """

    def run(self) -> None:
        if self.inplace:
            kind = f"{self.plat_name}-{sys.implementation.cache_tag}"
            self.build_temp, self.build_lib = f"build/temp.{kind}", f"build/lib.{kind}"
        flags = Path(self.build_temp, "flags")
        now = " ".join([os.environ.get("CC", ""), *COMPILE_ARGS, *LINK_ARGS, *SMALL_ARGS, *sorted(SMALL)])
        if not flags.is_file() or flags.read_text() != now:
            self.force = True  # no module of other flags stays
            flags.unlink(missing_ok=True)  # written when all is done: a build that breaks off is begun anew
        for folder in (".", self.build_lib):
            remove_orphans(folder)
        self._write_c(annotate=False)
        super().run()
        if not self.inplace and not DEBUG and "-g" not in COMPILE_ARGS:
            strip_symbols(self.build_lib, self.compiler.compiler_so)
        flags.parent.mkdir(parents=True, exist_ok=True)
        flags.write_text(now)

    def _write_c(self, annotate: bool) -> None:
        """Runs Cython on what changed. An extension then depends on the headers that it includes, and on no other."""
        folder, directives = ("build/cython-debug", DEBUG_DIRECTIVES) if DEBUG else ("build/cython", RELEASE_DIRECTIVES)
        stamp, now = Path(folder, "directives"), f"{directives}"
        remove_orphans(folder)
        written = cythonize(
            self.extensions,
            build_dir=folder,
            compiler_directives=directives,
            annotate=annotate,
            nthreads=CORES,
            quiet=True,
            force=not stamp.is_file() or stamp.read_text() != now,  # Cython compares times alone
        )
        stamp.write_text(now)
        for ours, theirs in zip(self.extensions, written, strict=True):
            assert ours.name == theirs.name
            ours.sources, ours.depends = theirs.sources, with_included(theirs.depends)

    def build_extensions(self) -> None:
        # The longest first: at the end every core has something to do.
        self.extensions.sort(key=lambda ext: os.path.getsize(ext.sources[0]), reverse=True)
        self.outdated = [ext.name for ext in self.extensions if self._is_outdated(ext)]
        self.done, self.lock = 0, threading.Lock()
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        super().build_extension(ext)
        if ext.name in self.outdated:
            with self.lock:
                self.done += 1
                width = len(str(len(self.outdated)))
                print(f"[{self.done:{width}}/{len(self.outdated)}] {ext.name}", flush=True)

    def _is_outdated(self, ext: Extension) -> bool:
        return bool(self.force or newer_group([*ext.sources, *ext.depends], self.get_ext_fullpath(ext.name), "newer"))


class annotate_core(build_core):
    """Writes the C and Cython's HTML beside it, and compiles nothing."""

    description = "write the C of the core, and Cython's HTML on what its lines cost, without compiling"

    def run(self) -> None:
        self._write_c(annotate=True)


# Cython's processes import this file again where they are not forked: on macOS, and on Linux from Python 3.14 on.
if __name__ == "__main__":
    setup(
        ext_modules=[extension(str(path)) for path in SOURCES if path.suffix == ".pyx"],
        cmdclass={"build_ext": build_core, "annotate": annotate_core},
        # build_py copies what looks newer than in build/lib: of an older commit, unpacked there, nothing does.
        options={"build_ext": {"parallel": CORES}, "build_py": {"force": True}},
    )
