"""Builds the compiled messaging core (``cython_core``); everything else is in ``pyproject.toml``.

``PYSTORM_DEBUG=1`` builds with every Cython check and C assertion switched back on; ``PYSTORM_CFLAGS`` and
``PYSTORM_LDFLAGS`` are added to the compiler's and the linker's flags; ``PYSTORM_ANNOTATE=1`` writes Cython's HTML.
Generated C lies in ``build/``, apart for release and debug, so that neither is ever taken for the other.
"""

import os
import platform
import runpy
import sys
from glob import glob

if not (3, 11) <= sys.version_info < (3, 14):
    sys.exit(
        "pystorm-source runs on CPython 3.11, 3.12 and 3.13: build it with one of these. "
        f"Given: Python {platform.python_version()}"
    )

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("PYSTORM_DEBUG", "0") not in ("", "0")
VERSION = runpy.run_path("pystorm_source/version.py")["__version__"]
SOURCES_DIGEST = runpy.run_path("cython_core/sources.py")["digest"]("cython_core")

RELEASE_DIRECTIVES = {
    "language_level": "3",
    "binding": False,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "nonecheck": False,
    "cdivision": True,
    "embedsignature": True,
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

COMPILE_ARGS = ["-std=c11", "-Wall", "-Wno-unused-function"]
COMPILE_ARGS += ["-O1", "-g", "-UNDEBUG", "-DPYSTORM_DEBUG=1"] if DEBUG else ["-O3", "-DNDEBUG"]
if platform.system() == "Windows":
    COMPILE_ARGS = ["/std:c11", "/O2"]
COMPILE_ARGS += os.environ.get("PYSTORM_CFLAGS", "").split()
LINK_ARGS = os.environ.get("PYSTORM_LDFLAGS", "").split()

HEADERS = glob("cython_core/include/*.h")
BUILD_INFO_MACROS = [
    ("PYSTORM_VERSION", f'"{VERSION}"'),
    ("PYSTORM_SOURCES", f'"{SOURCES_DIGEST}"'),
    ("PYSTORM_BUILT_FOR_DEBUG", "1" if DEBUG else "0"),
]


def extension(path: str) -> Extension:
    """The extension module built from one ``.pyx``; ``build_info`` alone knows version and digest of all sources."""
    name = path[:-4].replace(os.sep, ".")
    is_build_info = name == "cython_core.build_info"
    return Extension(
        name,
        [path],
        include_dirs=["cython_core/include"],
        depends=glob("cython_core/*.p[yx][xd]") + HEADERS if is_build_info else HEADERS,
        define_macros=BUILD_INFO_MACROS if is_build_info else [],
        extra_compile_args=COMPILE_ARGS,
        extra_link_args=LINK_ARGS,
    )


setup(
    ext_modules=cythonize(
        [extension(path) for path in sorted(glob("cython_core/*.pyx"))],
        build_dir="build/cython-debug" if DEBUG else "build/cython",
        compiler_directives=DEBUG_DIRECTIVES if DEBUG else RELEASE_DIRECTIVES,
        annotate=os.environ.get("PYSTORM_ANNOTATE") == "1",
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
