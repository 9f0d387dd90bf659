"""How often the tasks of a query call a service, and whether they call it at all: rate limits and circuit breakers.

::

    Bolt.limit("api") ─▶ Permits ──asks for a lease──▶ Lessor ─▶ LimitState ─▶ PermitSchedule: which times are free
      waits for its time   │ ◀──times of permits──────    │          │
      and makes the call   └──────how calls ended───────▶ │          └──────▶ CircuitBreaker: whether calls are of use

A limit is a schedule: one permit after the other, evenly in time, so that no second has more calls than it may. A
permit is a time; it is used within ``valid_seconds`` of it, or lost: nothing is carried over. ``Permits`` is in each
worker. The lessor of a query that has several tasks is in one process, and reached over the network
(``channel/leases``); ``LocalLessor`` is that of a topology whose only task is this one, or of a task with a fixed
share.

The room knows neither Spark nor the engine.
"""

__all__: list[str] = []
