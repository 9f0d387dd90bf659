"""Spark's side of a streaming query without Spark: the processes, the order of the calls, offsets as JSON text.

The data source is pickled on its way to the runner and the planner, the reader on its way to a task; offsets are
compared as text; `commit` comes with the next batch that has data.
"""

import json

from pyspark import cloudpickle

from pystorm_source.source.data_source import PystormDataSource

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable
except ImportError:  # Spark 4.0 and 4.1, which only `admission=False` stands for
    ReadAllAvailable = None


def through_pickle(value):
    return cloudpickle.loads(cloudpickle.dumps(value))


class Checkpoint:
    """What outlives a run: the end of each batch, and the last one that was finished."""

    def __init__(self):
        self.offsets = []
        self.finished = 0
        self.rows = []


class Run:
    """One run of a query, from start to stop. `admission` is false for Spark 4.0 and 4.1."""

    def __init__(self, options, checkpoint, schema=None, available_now=False, once=False, admission=True):
        source = through_pickle(PystormDataSource(options))
        self.schema = schema or source.schema()
        self.reader = through_pickle(source).streamReader(self.schema)
        self.planned = None
        self.source = source
        self.checkpoint = checkpoint
        self.admission = admission
        self.once = once
        self.reported = []
        if available_now:
            self.reader.prepareForTriggerAvailableNow()
        if admission:
            self.limit = ReadAllAvailable() if once else self.reader.getDefaultReadLimit()
        seen = checkpoint.offsets
        if len(seen) > checkpoint.finished:  # the last batch was planned, but not finished
            self._run_batch()
        elif seen and not admission:
            self.reader.partitions(json.loads(seen[-1]), json.loads(seen[-1]))

    @property
    def position(self):
        """The text of the last planned offset, None before the first batch."""
        return self.checkpoint.offsets[-1] if self.checkpoint.offsets else None

    def trigger(self):
        """One trigger: whether it ran a batch."""
        if self.admission:
            start = self.position or json.dumps(self.reader.initialOffset())
            end = json.dumps(self.reader.latestOffset(json.loads(start), self.limit))
            self.reported.append(json.loads(json.dumps(self.reader.reportLatestOffset())))
        else:
            end = json.dumps(self.reader.latestOffset())
            start = self.position or json.dumps(self.reader.initialOffset())
        if end == start:
            return False
        self.checkpoint.offsets.append(end)
        if len(self.checkpoint.offsets) > 1:
            self.reader.commit(json.loads(self.checkpoint.offsets[-2]))
        self._run_batch()
        return True

    def drain(self, most=50):
        """Triggers until one has nothing to do; how many batches ran."""
        for batches in range(most):
            if not self.trigger():
                return batches
        raise AssertionError(f"still something to read after {most} batches")

    def _run_batch(self):
        """Plans and reads the last planned batch. Fails as the query would, leaving the checkpoint as it was."""
        planned = self.checkpoint.offsets
        start = planned[-2] if len(planned) > 1 else json.dumps(self.reader.initialOffset())
        partitions = self.reader.partitions(json.loads(start), json.loads(planned[-1]))
        if self.planned is None:
            self.planned = through_pickle(self.source).streamReader(self.schema)
        rows = []
        for partition in partitions:
            for batch in through_pickle(self.planned).read(through_pickle(partition)):
                rows += [tuple(row.values()) for row in batch.to_pylist()]
        self.checkpoint.rows.append(rows)
        self.checkpoint.finished = len(planned)


def run_all(options, checkpoint=None, **arguments):
    """A run that reads what there is; its checkpoint."""
    checkpoint = checkpoint or Checkpoint()
    run = Run(options, checkpoint, **arguments)
    run.drain()
    run.reader.stop()
    return checkpoint
