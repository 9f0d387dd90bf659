"""A log file that is rotated and appended to under a running query: every line once."""

import os
import time

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(200)]


def append(path, lines) -> None:
    with open(path, "a", encoding="utf-8") as log:
        log.writelines(f"{line}\n" for line in lines)


@pytest.mark.campaign
def test_a_log_rotated_under_the_running_query_is_read_exactly_once(spark, tmp_path):
    folder, out = tmp_path / "logs", tmp_path / "out"
    folder.mkdir()
    log = folder / "app.log"
    expected = [f"line {n}" for n in range(4000)]
    append(log, expected[:1000])
    query = (
        spark.readStream.format("pystorm")
        .option("topology", "tests.e2e.jobs.lines_topology:Lines")
        .option("maxOffsetsPerTrigger", "12000")
        .load(str(folder))
        .writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        deadline = time.monotonic() + 120
        for step in range(1, 4):
            # A writer keeps its file open over the rename, as daemons do, and writes its last lines after it.
            with open(log, "a", encoding="utf-8") as held:
                older = folder / f"app.log.{step}"
                os.rename(log, older)
                held.writelines(f"{line}\n" for line in expected[step * 1000 : step * 1000 + 500])
            append(log, expected[step * 1000 + 500 : (step + 1) * 1000])
            rotated_at = query.lastProgress.batchId if query.lastProgress else -1
            while query.isActive and (query.lastProgress is None or query.lastProgress.batchId <= rotated_at):
                assert time.monotonic() < deadline
                time.sleep(0.05)
        query.processAllAvailable()
        assert query.exception() is None
    finally:
        query.stop()
    lines = sorted((row.line for row in spark.read.parquet(str(out)).collect()), key=lambda line: int(line.split()[1]))
    assert lines == expected
