"""A query's progress shows how many look-ups made no call; the cache lasts from micro-batch to micro-batch."""

from collections import Counter

import pytest

from pystorm_source import progress, read_stream
from pystorm_source.records.record_file import RecordFile
from tests.caches.spark_topology import ROWS, Asked

pytestmark = [pytest.mark.spark, pytest.mark.timeout(120)]


def test_the_progress_of_a_query_has_the_hit_rate(spark, tmp_path):
    folder = tmp_path / "runs"
    frame = read_stream(spark, Asked, options={"progress.path": str(folder), "maxOffsetsPerTrigger": "100"})
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).format("json")
    query = writer.trigger(availableNow=True).start(str(tmp_path / "rows"))
    try:
        assert query.awaitTermination(90)
        newest = progress(query)
    finally:
        query.stop()
    (path,) = folder.iterdir()
    records = RecordFile(path).read().records
    caches = [record.topology.caches[0] for record in records]
    assert caches[-1] == newest.topology.caches[0]
    assert {(cache.component, cache.name) for cache in caches} == {("ask", "answers")}
    assert sum(cache.hits + cache.misses for cache in caches) == ROWS
    assert caches[0].misses == caches[0].entries == 10 and caches[0].hit_rate == 0.9
    # A micro-batch may run in a process that has read none before.
    assert [cache.misses for cache in caches if cache.misses not in (0, 10)] == []
    assert 0 in [cache.misses for cache in caches]
    rows = spark.read.schema(frame.schema).json(str(tmp_path / "rows")).collect()
    assert Counter(row.answer for row in rows) == {f"answer {key}": ROWS // 10 for key in range(10)}
