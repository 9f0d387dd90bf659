"""The task's side: a range in, record batches of exactly Spark's schema out."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pystorm_source.source.partitions import RangePartition
from pystorm_source.source.request import ReadRequest
from pystorm_source.worker import warm
from pystorm_source.worker.output import OutputPlan


def read_range(request: ReadRequest, output: OutputPlan, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of one range, from a warm worker of this process and this run of the query where there is one.

    The worker is kept for the next range only if this one came to its end. An exception, or a reader that stops early
    (LIMIT closes the iterator: GeneratorExit), stops it. Raises UsageError where driver and executor differ in version
    or plan, TupleFailed where a component does.
    """
    if not isinstance(partition, RangePartition):
        return  # what Spark makes up for a batch read that plans nothing
    partition.check(request.plan)
    component = request.plan.component(partition.component)
    worker = warm.take(request.plan, output, partition.planned.run)
    clean = False
    try:
        if component.is_partitioned:
            yield from worker.run(partition.component, partition.partition, partition.start, partition.end)
        else:
            permits = partition.end - partition.start
            yield from worker.run_slice(partition.component, permits, request.options.batch_target_millis)
        clean = True
    finally:
        if clean:
            warm.give_back(worker)
        else:
            worker.stop()
