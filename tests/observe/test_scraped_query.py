"""A real Prometheus scrapes a running query, and evaluates the alerts."""

from contextlib import contextmanager
from itertools import accumulate

import pytest

from pystorm_source import PystormProgressListener, read_stream
from pystorm_source.observe import Prometheus
from tests.observe.prometheus_server import eventually, prometheus_server
from tests.observe.slowed import CALL_SECONDS, Slowed

RULES = {"PystormBacklogGrows", "PystormBottleneck", "PystormDeadLetters", "PystormNoProgress"}


@contextmanager
def listening(spark, metrics):
    listener = PystormProgressListener(metrics)
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)
        metrics.close()


@contextmanager
def running(spark, rows, checkpoint):
    """A query whose sink notes the rows of each micro-batch."""
    frame = read_stream(spark, Slowed, **{"batch.target.millis": 500})
    writer = frame.writeStream.queryName("slowed").foreachBatch(lambda batch, _: rows.append(batch.count()))
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        yield query
    finally:
        query.stop()


def values(server, expression):
    return [value for _, value in server.query(expression)]


@pytest.mark.spark
@pytest.mark.timeout(180)  # it may be the first query of the session
def test_prometheus_sees_a_running_query(spark, tmp_path):
    metrics, rows = Prometheus(port=0), []
    with listening(spark, metrics), prometheus_server(tmp_path / "prometheus", metrics.port) as server:
        with running(spark, rows, tmp_path / "checkpoint") as query:
            ((labels, backlog),) = eventually(lambda: server.query('pystorm_backlog_offsets{query="slowed"} > 0'))
            assert labels["run"] == query.runId
            assert backlog > 0
            eventually(lambda: values(server, "pystorm_batches_total > 2"))
            (target,) = values(server, "pystorm_batch_target_seconds")
            assert 0.5 <= target < 20  # it grows with what Spark needs for a micro-batch besides
            (late,) = values(server, "time() - pystorm_last_progress_timestamp_seconds")
            assert -1 < late < 30
            rules = eventually(lambda: evaluated(server))
            found = {rule["name"]: (rule["health"], rule.get("lastError")) for rule in rules}
            assert found == dict.fromkeys(RULES, ("ok", None))
            alert = eventually(lambda: server.alerts().get("PystormBottleneck"))
            assert (alert["labels"]["component"], alert["labels"]["why"]) == ("slow", "busy")
            assert alert["annotations"]["summary"].startswith("slowed does all that slow can: busy for ")
            for counted in ("pystorm_execute_count_total", "pystorm_emit_count_total"):
                assert set(by_component(server, counted)) == {"beats", "quick", "slow"}
            assert by_component(server, "pystorm_execute_latency_seconds")["slow"] > CALL_SECONDS
            assert by_component(server, "pystorm_capacity")["slow"] > 0.9
        # A query without gauges has ended. Of a micro-batch that was stopped the sink may have rows, and Spark says
        # nothing of it.
        eventually(lambda: not values(server, "pystorm_backlog_offsets"))
        (exported,) = values(server, "pystorm_rows_total")
        assert exported in accumulate(rows)


def by_component(server, expression):
    return {labels["component"]: value for labels, value in server.query(expression)}


def evaluated(server):
    rules = server.rules()
    return rules if all(rule["lastEvaluation"] > "1970" for rule in rules) else None
