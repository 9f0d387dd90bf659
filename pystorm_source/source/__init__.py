"""Spark's door: the only room that imports pyspark.

::

    data_source, register      what a ``.load()`` builds
    driver/                    answers Spark's calls during a query, in the planner and in the runner process
      ├── admission/           how much the next micro-batch reads
      ├── reports/             what tasks tell the driver
      └── task/                a range of a partition: what travels to a task, and what runs there
    request, rows, ddl         every option read once, the topology compiled, the columns: frozen, goes into each task
    offsets/                   what Spark keeps; pure, imports none of the others

Each imports what lies below it, never what lies above (``tests/house/test_source_rooms.py``).
"""

__all__: list[str] = []
