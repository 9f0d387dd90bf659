"""``spark.read.format("pystorm")``: from ``startingOffsets`` to ``endingOffsets``, once."""

import logging
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from pystorm_source.channel.leases.driver_permits import DriverPermits
from pystorm_source.errors import DataLossError, OptionError
from pystorm_source.plan import lint
from pystorm_source.source.admission.controller import initial_rates
from pystorm_source.source.admission.rate_estimator import RateEstimator
from pystorm_source.source.driver.partitions import partitions_of
from pystorm_source.source.driver.snapshot_reader import SnapshotReader
from pystorm_source.source.driver.spouts import DriverSpouts
from pystorm_source.source.driver.task_packing import estimates, packed
from pystorm_source.source.offsets.micro_batch import waiting
from pystorm_source.source.offsets.offsets import Key, Offsets, ranges
from pystorm_source.source.request import ReadRequest
from pystorm_source.source.task.range_partition import PlannedBatch
from pystorm_source.source.task.read_range import TaskReader
from pystorm_source.spark.border import spark_border
from pystorm_source.worker.output import OutputPlan

logger = logging.getLogger("pystorm.source")


class PystormBatchReader(DataSourceReader):
    """A batch query over one topology. Limits per trigger do not apply, except that ``maxOffsetsPerTrigger`` bounds the
    slice of a spout without offsets. Raises OptionError if ``startingOffsets`` is latest."""

    def __init__(self, request: ReadRequest, output: OutputPlan):
        self._request = request
        self._output = output
        request.check_batch()

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskReader(self._request, self._output).__reduce__()

    @spark_border()
    def partitions(self) -> list[InputPartition]:
        """The whole range of every partition, split as ``minPartitions`` and ``maxRecordsPerPartition`` say.

        Raises OptionError for offsets that are not there, DataLossError (failOnDataLoss), TopologyError, and exceptions
        of spouts.
        """
        request = self._request
        for finding in lint(request.plan):
            logger.warning("%s", finding)
        run = uuid.uuid4().hex
        spouts = DriverSpouts(request.plan, DriverPermits(request.plan.options, run, lambda: None))
        try:
            reader = SnapshotReader(request.plan, spouts, request.options.max_offsets_per_trigger)
            while (source := reader.read(Offsets())) and reader.unanswered:
                reader.rest()
            request.ending.check_partitions(source.index, source.latest)
            waits = waiting(Offsets(), source, request.starting, self._lost)
            ends = request.ending.of(source.index, waits.start, waits.head)
            for row in np.flatnonzero(ends < waits.start).tolist():
                raise OptionError(
                    f"option 'endingOffsets' lies before the start of {source.index.key(row)}, which is "
                    f"{waits.start[row]}: raise it. Given: {int(ends[row])!r}",
                    code="PYSTORM_INVALID_OPTION",
                )
            at, upto = (Offsets(source.index.section(column), pinned=True) for column in (waits.start, ends))
            found = ranges(at, upto)
            planned = PlannedBatch.of(found, request.fingerprint, run)
            options = request.options
            made = partitions_of(found, planned, spouts, options.min_partitions, options.max_records_per_partition)
            if options.min_partitions is not None:
                return list(made)
            initial = initial_rates(request.plan, options)
            return list(packed(made, *estimates(made, initial, RateEstimator()), slots=0))
        finally:
            spouts.cleanup()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Task: the rows of one range."""
        return TaskReader(self._request, self._output).read(partition)

    def _lost(self, key: Key, what: str) -> None:
        if self._request.options.fail_on_data_loss:
            raise DataLossError(
                f"{what}. Read from a later offset, or skip the lost data with option failOnDataLoss=false. Given: "
                f"failOnDataLoss={True!r}",
                code="PYSTORM_DATA_LOST",
            )
        logger.warning("%s; skipped, as failOnDataLoss is false", what)
