"""Records of a session's queries, from Spark's progress and record files: for a callback, or the last ones kept."""

import json
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.listener import JStreamingQueryListener, QueryProgressEvent, StreamingQueryListener

from pystorm_source.query.counted import operators_in
from pystorm_source.query.recorded import folder_of_driver
from pystorm_source.query.run_records import RunRecords
from pystorm_source.records.from_spark import reads_ours, records_of
from pystorm_source.records.record import PystormProgress

logger = logging.getLogger("pystorm.source")

MOST_RUNS = 100
"""Most runs whose files are followed. More: runs whose end a listener did not see, or a subclass did not pass on, fill
its memory. Fewer: if as many queries run at a time, some have no last record."""


class PystormProgressListener(StreamingQueryListener):
    """What each micro-batch of the session's queries did: admission, tasks, components, as ``PystormProgress``.

    It covers sources, operators that have a name (``apply(df, Topology, counts="name")`` in this process), and
    streaming sinks on the driver's machine, under Linux: ``door`` says which. Records of operators and sinks are of the
    micro-batch that has ended.

    For a source, Spark reports what was known when the micro-batch began, so a record's ``tasks`` and ``topology`` are
    of the micro-batch before (``counts_of_batch_before``). The counts of a run's last micro-batch come when the query
    ends, as a second record of that micro-batch, from the file that ``pystorm_source.progress`` reads. Spark 4.0 and
    4.1 ask a source for no report: there, all records come from the file, each with its own micro-batch's counts.
    Spark Connect, whose driver may be elsewhere, has no file: neither the last counts, nor records on 4.0 and 4.1.

    The callback runs in a thread of Spark's; what it raises is logged. ``pystorm_source.observe`` has ready-made ones.

    Args:
        callback (Callable[[PystormProgress], object]): called with each record, one for each topology.
            If it has a method ``query_ended``, that is called with the ``run_id`` of a query that has ended.
            Defaults to None: none.
        keep (int): how many of the last ``records`` are kept. Defaults to 100.

    Example:
        >>> from pystorm_source import PystormProgressListener
        >>> listener = PystormProgressListener(print, keep=10)
        >>> spark.streams.addListener(listener)
        >>> listener.records
        []
        >>> spark.streams.removeListener(listener)
    """

    def __init__(self, callback: Callable[[PystormProgress], object] | None = None, keep: int = 100):
        self._callback = callback
        self._records: deque[PystormProgress] = deque(maxlen=keep)
        self._runs: dict[str, RunRecords] = {}

    @property
    def _jlistener(self) -> Any:
        """What the driver's JVM calls; not asked for under Spark Connect. Workaround for PySpark 4.0 to 4.3."""
        from pyspark import SparkContext

        if not hasattr(self, "_jlistenerobj"):
            jvm: Any = SparkContext._jvm
            self._jlistenerobj = jvm.PythonStreamingQueryListenerWrapper(_FromJson(self))
        return self._jlistenerobj

    @property
    def records(self) -> list[PystormProgress]:
        """The last records, oldest first: a list of PystormProgress."""
        return list(self._records)

    def onQueryStarted(self, event: Any) -> None:
        """Called by Spark; does nothing.

        Args:
            event (QueryStartedEvent): Spark's.
        """

    def onQueryProgress(self, event: Any) -> None:
        """Called by Spark when a micro-batch is finished: makes the records.

        Args:
            event (QueryProgressEvent): Spark's.
        """
        try:
            of_spark = json.loads(event.progress.json)
            records = list(records_of(of_spark).values())
            run = self._run(of_spark) if reads_ours(of_spark) or _may_write_ours(of_spark) else None
            if run is not None:
                run.reported(of_spark)
                for record in records:
                    run.given(record)
                records = [*(records or run.new()), *run.new("sink")]
            self._give([*records, *operators_in(event.progress)])
        except Exception:
            logger.exception("the progress of a query is not passed on")

    def onQueryIdle(self, event: Any) -> None:
        """Called by Spark; does nothing.

        Args:
            event (QueryIdleEvent): Spark's.
        """

    def onQueryTerminated(self, event: Any) -> None:
        """Called by Spark when a query has ended: makes the last records, passes its run on. ``records`` stay.

        Args:
            event (QueryTerminatedEvent): Spark's.
        """
        run_id = str(event.runId)
        try:
            run = self._runs.pop(run_id, None)
            if run is not None:
                self._give(run.rest())
        except Exception:
            logger.exception("the last progress of a query is not passed on")
        try:
            ended = getattr(self._callback, "query_ended", None)
            if ended is not None:
                ended(run_id)
        except Exception:
            logger.exception("the end of a query is not passed on")

    def _run(self, of_spark: Mapping[str, Any]) -> RunRecords | None:
        """None if its files are not here."""
        run_id = str(of_spark["runId"])
        if run_id not in self._runs:
            # Connect gives a listener its session, classic Spark none.
            is_classic = self.spark is None or hasattr(self.spark, "_jsparkSession")
            folder = folder_of_driver() if is_classic else None
            if folder is None:
                return None
            if len(self._runs) >= MOST_RUNS:
                del self._runs[next(iter(self._runs))]
            self._runs[run_id] = RunRecords(run_id, folder, of_spark["batchId"])
        return self._runs[run_id]

    def _give(self, records: list[PystormProgress]) -> None:
        for record in records:
            self._records.append(record)
            if self._callback is not None:
                self._callback(record)


def _may_write_ours(of_spark: Mapping[str, Any]) -> bool:
    """Whether the query's sink is written in Python, so it may be this package's."""
    return "Python" in str((of_spark.get("sink") or {}).get("description", ""))


class _FromJson(JStreamingQueryListener):
    """Makes the event of a progress from its JSON, like Spark Connect: one call of the JVM. PySpark's own class asks
    for each field in over a hundred calls, which cost a micro-batch more than all the counting."""

    def onQueryProgress(self, jevent: Any) -> None:
        try:
            event = QueryProgressEvent.fromJson({"progress": json.loads(jevent.progress().json())})
        except Exception:
            logger.debug("the event of a progress is not made from its JSON", exc_info=True)
            event = QueryProgressEvent.fromJObject(jevent)
        self.pylistener.onQueryProgress(event)
