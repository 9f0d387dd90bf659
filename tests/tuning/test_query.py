"""A real query, classic Spark: what its listener has noted is enough for `tune` to name the bolt that was slowed."""

import pytest
from typer.testing import CliRunner

from pystorm_source import PystormProgressListener, read_stream
from pystorm_source.cli.main import app
from pystorm_source.records.record import PystormProgress
from pystorm_source.tuning.classify import findings
from pystorm_source.tuning.from_records import observed_of
from tests.observe.prometheus_server import eventually
from tests.observe.slowed import Slowed


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.timeout(180)  # it may be the first query of the session
def test_the_slowed_bolt_of_a_query_is_named_within_two_micro_batches(spark, tmp_path):
    path = tmp_path / "slowed.jsonl"
    seen: list[PystormProgress] = []

    def note(record):
        seen.append(record)
        with path.open("a") as file:
            file.write(f"{record.to_json()}\n")

    listener = PystormProgressListener(note)
    spark.streams.addListener(listener)
    frame = read_stream(spark, Slowed, **{"batch.target.millis": 2000})
    checkpoint = str(tmp_path / "checkpoint")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    try:
        reported = eventually(lambda: [each for each in seen if each.topology and each.topology.components][2:])
    finally:
        query.stop()
        spark.streams.removeListener(listener)
    found = findings(observed_of([*seen[: seen.index(reported[0])]], cores=2))
    # On a machine that is busy the first micro-batches also cost much besides their tasks.
    assert [each.about for each in found if each.component] == ["slow bolt 'slow'"], found
    done = CliRunner().invoke(app, ["tune", "--records", str(path), "--cores", "2", "--explain"])
    assert done.exit_code == 0, done.output
    assert ". slow bolt 'slow'" in done.stdout
