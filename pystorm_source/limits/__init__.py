"""How often the tasks of a query call a service, and whether they call it at all: rate limits and circuit breakers.

::

    self.limit("api") ─▶ Permits ──asks for a lease──▶ Lessor ─▶ LimitState ─▶ PermitSchedule: which times are free
      waits for its time   │ ◀──times of permits──────    │          │
      and makes the call   └──────how calls ended───────▶ │          └──────▶ CircuitBreaker: whether calls are of use

A limit is a schedule of evenly spaced permits, so a second never has more calls than the limit. A permit has a time and
expires ``valid_seconds`` later; nothing is carried over. Each worker has its ``Permits``. If a query has several tasks,
one process keeps the schedule, and tasks lease permits over the network (``channel/leases``). ``LocalLessor`` is for a
topology whose only task is this one, or for a task with a fixed share.

The room knows neither Spark nor the engine.
"""

__all__: list[str] = []
