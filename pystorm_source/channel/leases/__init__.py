"""Permits of rate limits, from one process on the driver, or from a Redis, to the tasks of a query.

::

    task: Permits ─▶ LeaseClient ══ wishes, how calls ended ══▶ LeaseServer: one for each query's run
                                 ◀═══════ permits ═════════════    in the runner, or in the process that called apply()

    task: Permits ─▶ RedisLessor ─▶ RedisSchedule ══▶ a script in a Redis, for all queries that name it

``lessor`` has what both clients share: when to ask, and what to do without an answer. Permits from the driver use the
connection of the process's reports.
"""

__all__: list[str] = []
