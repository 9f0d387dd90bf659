"""Adds up what the tasks of a micro-batch have done: from their reports to the record of the micro-batch.

::

    TaskReport ──► batch_counts ──► component_progress ──► query_counts ──► records/record
                   latencies                               summary
    Plan ────────────────────────► run_outline: a run before a task has reported
"""

__all__: list[str] = []
