"""What this compiled core was built from: ``VERSION``, ``SOURCES``, ``ABI`` (see ``cython_core.sources``) and
``DEBUG``.

All extension modules of the core are built together, so this one speaks for all.
"""

cdef extern from *:
    const char *PYSTORM_VERSION
    const char *PYSTORM_SOURCES
    const char *PYSTORM_ABI
    const int PYSTORM_BUILT_FOR_DEBUG

VERSION = PYSTORM_VERSION.decode("ascii")
SOURCES = PYSTORM_SOURCES.decode("ascii")
ABI = PYSTORM_ABI.decode("ascii")
DEBUG = PYSTORM_BUILT_FOR_DEBUG != 0
