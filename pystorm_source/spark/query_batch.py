"""Spark's names of a micro-batch. Only a task knows them: the runner is told neither the query nor its batches."""

from typing import Annotated

import msgspec
from msgspec import Meta
from pyspark import TaskContext

_Id = Annotated[str, Meta(max_length=128)]


class QueryBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """``query``, ``run``: ids of the query and of its run; ``batch``: the number of the micro-batch, as in Spark's
    progress."""

    query: _Id
    run: _Id
    batch: Annotated[int, Meta(ge=0, le=2**63 - 1)]

    @classmethod
    def of(cls, task: TaskContext | None) -> "QueryBatch | None":
        """The micro-batch of a task; None outside of a streaming query."""
        if task is None:
            return None
        query, run, batch = map(task.getLocalProperty, ("sql.streaming.queryId", "spark.jobGroup.id", _BATCH))
        return cls(query=query, run=run, batch=int(batch)) if query and run and batch else None


_BATCH = "streaming.sql.batchId"
