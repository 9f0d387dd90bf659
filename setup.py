"""Builds the compiled messaging core (``cython_core``); everything else is in ``pyproject.toml``.

``PYSTORM_DEBUG=1`` builds with every Cython check and C assertion switched back on.
"""

import os
import platform
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("PYSTORM_DEBUG", "0") not in ("", "0")

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
COMPILE_ARGS += ["-O1", "-g", "-DPYSTORM_DEBUG=1"] if DEBUG else ["-O3", "-DNDEBUG"]
if platform.system() == "Windows":
    COMPILE_ARGS = ["/std:c11", "/O2"]
COMPILE_ARGS += os.environ.get("PYSTORM_CFLAGS", "").split()
LINK_ARGS = os.environ.get("PYSTORM_LDFLAGS", "").split()

extensions = [
    Extension(
        path[:-4].replace(os.sep, "."),
        [path],
        include_dirs=["cython_core/include"],
        depends=glob("cython_core/include/*.h"),
        extra_compile_args=COMPILE_ARGS,
        extra_link_args=LINK_ARGS,
    )
    for path in sorted(glob("cython_core/*.pyx"))
]

setup(
    ext_modules=cythonize(
        extensions,
        compiler_directives=DEBUG_DIRECTIVES if DEBUG else RELEASE_DIRECTIVES,
        annotate=os.environ.get("PYSTORM_ANNOTATE") == "1",
    )
)
