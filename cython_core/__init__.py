"""The messaging core: queues, batches, routing, executors and row-to-Arrow building, compiled by Cython.

    schedulers ─► executors ─► compiled ─► routing ─┬─► queues ─► tuples ─┬─► acking ─► timing ─► primitives
                                                    └─► arrow ────────────┘

A room imports those to its right, by Cython and in C alike. Each C header lies beside the ``.pyx`` that binds it and is
included by its path from the folder above this one (``"cython_core/queues/ring.h"``).

A ``.pyx`` is a module to import. The ``.pxi`` files that it includes are parts of it, a noun each: what these define is
declared in its ``.pxd`` and ``.pyi`` and imported by its name (``cython_core.queues.queues.ReceiveQueue``).

Knows no Spark, no topology DSL and no YAML; imports nothing else of this project.
"""

import sys

if sys.version_info < (3, 11) or "t" in getattr(sys, "abiflags", ""):
    raise ImportError(
        "pystorm-source runs on CPython 3.11 to 3.15, but not on a free-threaded build (t): use one of these. "
        f"Given: Python {'.'.join(map(str, sys.version_info[:3]))}{getattr(sys, 'abiflags', '')}"
    )
