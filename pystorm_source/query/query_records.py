"""The records of a streaming query that runs in this process's session, gathered look by look."""

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pystorm_source.query.counted import operators_in
from pystorm_source.query.progress import progress
from pystorm_source.query.recorded import record_files
from pystorm_source.records.from_spark import records_of
from pystorm_source.records.record import PystormProgress
from pystorm_source.records.record_file import RecordFile

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

MOST_RECORDS = 600
"""Records kept, 20 to 60 KB each for a large topology. More: memory of the driver. Fewer: a shorter past."""


class QueryRecords:
    """The micro-batches of a query, oldest first: all in its record file, or all that Spark still knows, then the
    newest at each look.

    ``source``: the topology's name, if the query reads several.
    """

    def __init__(self, query: "StreamingQuery", source: str | None = None):
        self._query = query
        self._source = source
        self._by_batch: dict[int, PystormProgress] = {}
        self._began = False

    @property
    def records(self) -> list[PystormProgress]:
        """All of them by now."""
        return [self._by_batch[batch] for batch in sorted(self._by_batch)]

    def look(self) -> bool:
        """Takes the newest record; returns whether it says something new. Raises UsageError like ``progress``."""
        newest = progress(self._query, self._source)
        if newest is None:
            return False
        if not self._began:
            self._began = True
            self._by_batch = {each.batch_id: each for each in self._before(newest)}
        if self._by_batch.get(newest.batch_id) == newest:
            return False
        self._by_batch[newest.batch_id] = newest
        while len(self._by_batch) > MOST_RECORDS:
            del self._by_batch[min(self._by_batch)]
        return True

    def _before(self, newest: PystormProgress) -> list[PystormProgress]:
        """What the record file has of the same source; without one, what Spark keeps: up to 100 micro-batches. Read
        once, because each is parsed from its JSON."""
        run = newest.topology.run if newest.topology is not None else None
        if newest.door == "operator":
            found = [record for each in self._query.recentProgress for record in operators_in(each)]
            return [each for each in found if each.use == newest.use]
        known = [record for path in record_files(self._query) for record in _records_in(path)]
        if not known:
            recent = self._query.recentProgress
            known = [record for each in recent for record in records_of(json.loads(each.json)).values()]
        same = [record for record in known if record.topology is None or run in (None, record.topology.run)]
        return same[-MOST_RECORDS:]


def _records_in(path: Path) -> list[PystormProgress]:
    with suppress(OSError):
        return RecordFile(path).read().records
    return []
