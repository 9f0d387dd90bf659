"""The way between a query's tasks and its driver: reports, questions and permits of rate limits.

::

    task   sender, permits     reports/    what a range did, to the runner; what its tasks do now, when it asks
             ║   ▲             leases/     permits of rate limits, from the runner or a Redis, to the tasks
             ▼   ║
    driver server, lease server

``leases/`` goes over the connections of ``reports/``; neither knows what a report's counts are added up to
(``counts/``).
"""

__all__: list[str] = []
