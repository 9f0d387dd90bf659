"""Permits of rate limits, from one process on the driver to the tasks of a query.

::

    task: Permits ─▶ LeaseClient ══ wishes, how calls ended ══▶ LeaseServer: one for each query's run
                                 ◀═══════ permits ═════════════    in the runner, or in the process that called apply()

They go over a connection of their own, authenticated as reports are (``reports/protocol``).
"""

__all__: list[str] = []
