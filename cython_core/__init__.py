"""The messaging core: queues, batches, routing, executors and row-to-Arrow building, compiled by Cython.

    schedulers ─► executors ─► compiled ─► routing ─┬─► queues ─► tuples ─┬─► acking ─► timing ─► primitives
                                                    └─► arrow ────────────┘

A room imports those to its right, by Cython and in C alike. Each C header lies beside the ``.pyx`` that binds it and is
included by its path from the folder above this one (``"cython_core/queues/ring.h"``).

Knows no Spark, no topology DSL and no YAML; imports nothing else of this project.
"""
