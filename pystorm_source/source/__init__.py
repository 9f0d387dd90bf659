"""Spark's door: with ``stages/`` and ``operator/`` the only room that imports pyspark.

::

    data_source, register      the objects of a ``.load()`` or a write
    driver/                    answers Spark's calls during a query, in the planner and in the runner process
      ├── admission/           how much the next micro-batch reads
      ├── reports/             reports of tasks to the driver
      ├── leases/              permits of rate limits, from the driver to the tasks
      └── task/                a range of a partition: its journey to a task, and its reading there
    sink/                      a topology that Spark writes to: writers, the task, records and dead letters
    request, rows, ddl         every option read once, the topology compiled, the columns: frozen, goes into each task
    job/                       what a job calls on its queries, in its own process: wait for them, explain a failure
    offsets/                   the offsets that Spark keeps; pure, imports none of the others

Each imports the ones below it, never those above (``tests/house/test_source_rooms.py``).
"""

__all__: list[str] = []
