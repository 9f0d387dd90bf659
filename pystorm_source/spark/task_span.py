"""The span of a task of Spark's, around what its worker runs there."""

import hashlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pyspark import TaskContext

from pystorm_source.spark.input_feed import PlaceOfTask
from pystorm_source.spark.query_batch import QueryBatch
from pystorm_source.worker.worker import Worker


def task_span(worker: Worker, traceparent: str, **attributes: Any) -> AbstractContextManager[None]:
    """The block is a sampled task of this worker, as in ``TaskSpans.task``."""
    if worker.spans is None:
        return nullcontext()
    return worker.spans.task(f"task {worker.plan.name}", traceparent, _of_spark(worker, attributes))


def span_of_place(worker: Worker, place: PlaceOfTask) -> AbstractContextManager[None]:
    """The same for an operator or a sink, if its tasks are sampled: all of a micro-batch, or all of a stage of a batch
    query. Each task decides for itself, from the query's name: on the driver, nothing plans these tasks."""
    if worker.spans is None:
        return nullcontext()
    batch = QueryBatch.of(TaskContext.get())
    # Without the topology's name: all operators and sinks of a micro-batch decide alike.
    name = f"{place.run}/{place.keys}" if batch is None else f"{batch.run}/{batch.batch}"
    if not _is_in_share(name, worker.plan.options.trace_sample):
        return nullcontext()
    return task_span(worker, "", partition=place.partition)


def _is_in_share(name: str, share: float) -> bool:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) < share * (1 << 64)


def _of_spark(worker: Worker, attributes: dict[str, Any]) -> dict[str, Any]:
    found = {"topology": worker.plan.name, **attributes}
    task = TaskContext.get()
    if task is not None:
        found |= {"stage": task.stageId(), "spark_partition": task.partitionId(), "attempt": task.attemptNumber() + 1}
    if (query := QueryBatch.of(task)) is not None:
        found |= {"query": query.query, "run": query.run, "batch": query.batch}
    return {f"pystorm.{key}": value for key, value in found.items()}
