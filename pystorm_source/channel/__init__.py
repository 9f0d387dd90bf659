"""The way between a query's tasks and its driver: reports, questions and permits of rate limits.

::

    task    client: one thread,   reports/    what a range did; what its tasks do now, if the driver asks
            one connection        leases/     permits of rate limits, also from a Redis
              ║   ▲
              ▼   ║
    driver  server: one thread, one port

What a report's counts add up to is the business of ``counts/``.
"""

__all__: list[str] = []
