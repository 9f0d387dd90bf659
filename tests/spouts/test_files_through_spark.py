"""Files followed by streaming queries: rotation under a running query, restarts, limits, losses."""

import gzip
import os

import pytest
from pyspark.errors import StreamingQueryException

from testbed.uncontrolled import UNCONTROLLED
from tests.source.queries import Query
from tests.spouts.drive import append

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


@pytest.fixture
def query(tmp_path):
    return Query(tmp_path)


def stream(spark, path, **options):
    options = {"topology": "tests.spouts.topologies:Logs", "path": str(path)} | UNCONTROLLED | options
    return spark.readStream.format("pystorm").options(**options).load()


def rotate(folder):
    for n in (2, 1, 0):
        source = folder / (f"app.log.{n}" if n else "app.log")
        if source.exists():
            os.rename(source, folder / f"app.log.{n + 1}")


def numbered(start, end):
    return [f"line {n} é" for n in range(start, end)]


def lines(rows):
    return sorted(line for (line,) in rows)


def test_rotation_under_a_running_query(spark, logs, query):
    append(logs / "app.log", *numbered(0, 100))
    running = query.start(stream(spark, logs), processingTime="0 seconds")
    try:
        for n in range(1, 4):
            append(logs / "app.log", *numbered(100 * n, 100 * n + 50))
            rotate(logs)
            append(logs / "app.log.1", *numbered(100 * n + 50, 100 * n + 80))
            append(logs / "app.log", *numbered(100 * n + 80, 100 * n + 100))
            running.processAllAvailable()
    finally:
        running.stop()
    assert lines(query.rows) == sorted(numbered(0, 400))


@pytest.mark.campaign
def test_available_now_goes_on_after_rotation_and_is_rate_controlled_by_bytes(spark, logs, query):
    append(logs / "app.log", *numbered(0, 200))
    frame = stream(spark, logs, maxOffsetsPerTrigger=1000, minPartitions=4)
    assert 2 <= len(query.run(frame)) <= 4
    append(logs / "app.log", *numbered(200, 220))
    rotate(logs)
    append(logs / "app.log", *numbered(220, 230))
    (logs / "other.log.gz").write_bytes(gzip.compress("".join(f"{n}\n" for n in numbered(230, 700)).encode()))
    query.run(frame)
    assert lines(query.rows) == sorted(numbered(0, 700))
    rotate(logs)
    query.forget_commit()
    last = query.batches[-1][1]
    query.run(frame)
    assert query.batches[-1][1] == last


@pytest.mark.campaign
def test_truncation_stops_the_query_and_says_what_to_do(spark, logs, query):
    append(logs / "app.log", *numbered(0, 10))
    query.run(stream(spark, logs))
    (logs / "app.log").write_text("anew\n")
    with pytest.raises(StreamingQueryException, match=r"app\.log.*truncated.*failOnDataLoss=false"):
        query.run(stream(spark, logs))
    assert query.run(stream(spark, logs, failOnDataLoss="false")) == [[("anew",)]]


def test_wrong_options_are_refused_at_load(spark, tmp_path):
    with pytest.raises(Exception, match=r"files\.finished\.after.*Given: 'soon'"):
        stream(spark, tmp_path, **{"files.finished.after": "soon"})
    with pytest.raises(Exception, match=r"files\.fnished\.after.*did you mean 'files\.finished\.after'"):
        stream(spark, tmp_path, **{"files.fnished.after": "1h"})
    with pytest.raises(Exception, match=r"path.*is needed|path"):
        spark.readStream.format("pystorm").option("topology", "tests.spouts.topologies:Logs").load()


def test_batch_read_of_files(spark, logs):
    append(logs / "app.log", *numbered(0, 50))
    frame = (
        spark.read.format("pystorm")
        .options(topology="tests.spouts.topologies:Logs", path=str(logs), includeMetadata="true")
        .load()
    )
    rows = frame.select("line", "_partition", "_offset").collect()
    assert sorted(row.line for row in rows) == sorted(numbered(0, 50))
    raw = (logs / "app.log").read_bytes()
    assert all(raw[row._offset :].startswith(row.line.encode() + b"\n") for row in rows)
