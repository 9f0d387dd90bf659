"""The source: what ``spark.readStream`` and ``spark.read`` ask of a topology.

::

    data_source, register      the objects of a ``.load()`` or a write
    driver/                    answers Spark's calls during a query, in the planner and in the runner process
      ├── admission/           how much the next micro-batch reads
      └── task/                a range of a partition: its journey to a task, and its reading there
    request, journaled         every option read once, the topology compiled: frozen, goes into each task
    offsets/                   the offsets that Spark keeps; pure, imports none of the others

Each imports the ones below it, never those above (``tests/house/test_source_rooms.py``).
"""

__all__: list[str] = []
