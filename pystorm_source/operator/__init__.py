"""A topology as an operator over a DataFrame.

::

    apply          driver: plan, columns, schema ──► Spark's mapInArrow
    report_column  task: what components have done, behind the rows ──► counts_of, driver
    keyed          a stage with states ──► bucket_states ──► state_pages; driver: a checkpoint ──► states_of
    dead_letters   driver: a folder of dead letters ──► a DataFrame; task: their values ──► rows of an Input
    task           task: batches in ──► ReadAhead ──► Input ──► a worker ──► record batches out

There is no engine here: the worker runs the plan like a source's.
"""

__all__: list[str] = []
