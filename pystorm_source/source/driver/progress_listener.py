"""Records of a session's queries, from the progress that Spark gives: for a callback, or the last ones kept."""

import json
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from pystorm_source.records.from_spark import records_of
from pystorm_source.records.record import PystormProgress

logger = logging.getLogger("pystorm.source")


class PystormProgressListener(StreamingQueryListener):
    """What each micro-batch of the session's queries did: admission, tasks, components, as ``PystormProgress``.

    Spark tells of a micro-batch what was known when it began, so ``tasks`` and ``topology`` of a record are of the
    micro-batch before (``counts_of_batch_before``), and those of the last one of a run are in no record:
    ``pystorm_source.progress(query)`` has them. Spark 4.0 and 4.1 ask a source for no report: there are no records.

    The callback runs in a thread of Spark's; what it raises is logged. ``pystorm_source.observe`` has ready-made ones.

    Args:
        callback (Callable[[PystormProgress], object]): called with each record, one for each source of this package.
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
            for record in records_of(json.loads(event.progress.json)).values():
                self._records.append(record)
                if self._callback is not None:
                    self._callback(record)
        except Exception:
            logger.exception("the progress of a query is not passed on")

    def onQueryIdle(self, event: Any) -> None:
        """Called by Spark; does nothing.

        Args:
            event (QueryIdleEvent): Spark's.
        """

    def onQueryTerminated(self, event: Any) -> None:
        """Called by Spark when a query has ended: passes its run on. ``records`` stay.

        Args:
            event (QueryTerminatedEvent): Spark's.
        """
        try:
            ended = getattr(self._callback, "query_ended", None)
            if ended is not None:
                ended(str(event.runId))
        except Exception:
            logger.exception("the end of a query is not passed on")
