"""Permits of rate limits, from one process on the driver, or from a Redis, to the tasks of a query.

::

    task: Permits ─▶ LeaseClient ══ wishes, how calls ended ══▶ LeaseServer: one for each query's run
                                 ◀═══════ permits ═════════════    in the runner, or in the process that called apply()

    task: Permits ─▶ RedisLessor ─▶ RedisSchedule ══▶ a script in a Redis, for all queries that name it

Those of a process on the driver go over a connection of their own, authenticated as reports are
(``reports/protocol``).
"""

__all__: list[str] = []
