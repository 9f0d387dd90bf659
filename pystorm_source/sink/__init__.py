"""A topology as a sink: ``df.writeStream.format("pystorm")`` and ``df.write.format("pystorm")``.

::

    request        options, plan, columns: what a sink is asked for, checked
    writer         Spark's writers: a task's rows in, a commit message out; commit and abort on the driver
    write_rows     the task: rows ──► ReadAhead ──► Input ──► a worker, until all trees are settled
    row_batches    rows of Spark 4.0 as record batches
    same_use       refuses two writes of one micro-batch that would share their idempotency keys
    sink_records   the driver's record of each micro-batch
"""

__all__: list[str] = []
