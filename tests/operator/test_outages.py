"""A service of an operator that fails: what the driver says of it while the micro-batch waits."""

import pytest

from pystorm_source import Bolt, Input, Topology, apply, explain, progress
from tests.channel.reports.made_reports import wait_until


class Asks(Bolt):
    """The service works up to the row 20, and from then on until there is the file."""

    outputs = ["n long"]
    exit_on_exception = False

    def process(self, tup):
        with self.limit("api"):
            if tup.values.id >= 20 and not self.works():
                raise ConnectionError("refused")
        self.emit([tup.values.id])

    def works(self):
        from pathlib import Path

        return Path(self.conf["works"]).exists()

    def initialize(self, conf, context):
        self.conf = conf


class Answers(Topology):
    config = {
        "topology.rate.limit": {"api": "1000/s"},
        "topology.retry.on": {"ConnectionError": "retry"},
        "topology.max.spout.retries": 1000,
        "topology.spout.retry.backoff.millis": 1,
    }
    rows = Input.spec(["id long"])
    asks = Asks.spec(inputs=[rows])


@pytest.mark.spark
def test_an_open_breaker_of_an_operator_is_told_while_its_micro_batch_waits(spark, tmp_path):
    for part in range(2):
        spark.range(20 * part, 20 * part + 20, 1, 1).write.mode("append").parquet(str(tmp_path / "in" / str(part)))
    works = tmp_path / "works"
    numbers = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in" / "*"))
    answers = apply(numbers, Answers, counts="answers", config={"works": str(works)})
    query = answers.writeStream.format("noop").trigger(availableNow=True).start()
    try:
        wait_until(lambda: "the circuit breaker of limit 'api' (1000/s) is open" in explain(query), "an outage")
        record = progress(query)
        assert (record.batch_id, record.bottleneck.why) == (0, "waits for a circuit breaker")
        assert "ConnectionError: 'refused'" in record.outages[0].error
    finally:
        works.touch()
        assert query.awaitTermination(60) and query.exception() is None
    assert progress(query).outages == () and "circuit breaker" not in explain(query)
