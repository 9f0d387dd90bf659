"""No secret of an option is in Spark's event log, which people keep, or in its plans.

Of queries that run, and of queries that fail with a secret in the exception's text. A listener of the running session
writes the log, as ``spark.eventLog.enabled`` has one from the start.
"""

import json
from contextlib import contextmanager

import pytest
from pyspark.errors import StreamingQueryException

from pystorm_source import Bolt, Input, PartitionedSpout, Topology, apply, read_stream

pytestmark = [pytest.mark.spark, pytest.mark.campaign, pytest.mark.timeout(240)]

# None of them has a word in it that Spark hides.
HUNTER, KEY, LOGIN, BROKER = "hunter2", "k3yk3yk3y", "l0g1nl0g1n", "br0kerbr0ker"
SECRETS = (HUNTER, KEY, LOGIN, BROKER)
REDIS = f"redis://:{HUNTER}@127.0.0.1:1/0"
CONFIG = {"service.url": f"http://me:{LOGIN}@127.0.0.1:1", "kafka.sasl.password": BROKER, "api.token": KEY}


class Four(PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["0"]

    def latest(self, partition):
        return 4

    def open(self, partition, start, end):
        self.at, self.end = start, end

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit([self.at], self.at)
        self.at += 1


class Log(Bolt):
    """Writes its secrets into what it logs and raises, as clients of services do."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.texts = [conf["service.url"], conf["kafka.sasl.password"], conf["api.token"]]
        self.fails = conf.get("fails", False)

    def process(self, tup):
        if self.fails:
            try:
                raise OSError(f"no login with {self.texts}")
            except OSError as error:
                raise ValueError(f"the service has refused {self.texts!r}") from error
        self.emit([tup.values.n])


class Source(Topology):
    numbers = Four.spec()
    log = Log.spec(inputs=[numbers])


class Operator(Topology):
    rows = Input.spec(["n long"])
    log = Log.spec(inputs=[rows])


class LogOnly(Log):
    outputs = []

    def emit(self, *values, **more):
        """A sink emits nothing."""


class Sink(Topology):
    rows = Input.spec(["n long"])
    log = LogOnly.spec(inputs=[rows])


@contextmanager
def event_log(spark, folder):
    """What Spark writes into its event log meanwhile is below the folder."""
    folder.mkdir()
    jvm, context = spark._jvm, spark.sparkContext._jsc.sc()
    conf = context.conf().clone().set("spark.eventLog.compress", "false")
    nothing, uri = jvm.scala.Option.apply(None), jvm.java.net.URI(folder.as_uri())
    logger = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "app", nothing, uri, conf, context.hadoopConfiguration()
    )
    logger.start()
    context.addSparkListener(logger)
    try:
        yield
        context.listenerBus().waitUntilEmpty()
    finally:
        context.removeSparkListener(logger)
        logger.stop()


def started(frame, folder, sink="noop", **options):
    writer = frame.writeStream.format(sink).options(**options).option("checkpointLocation", str(folder))
    return writer.trigger(availableNow=True).start()


def failure(query):
    """What is said of a query that fails."""
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination(60)
    return str(raised.value)


def plans(frame, capfd):
    frame.explain("extended")
    return frame._jdf.queryExecution().toString() + capfd.readouterr().out


def test_no_secret_is_in_the_event_log_or_a_plan(spark, tmp_path, capfd):
    """A source, an operator and a sink, each of which fails with all secrets in its exception."""
    options = {"topology.rate.limit.redis": REDIS, "topology.max.spout.retries": 0}
    failing = {**CONFIG, "fails": True}
    sink = {"topology": f"{__name__}:Sink", "config": json.dumps(failing), "secret.topology.rate.limit.redis": REDIS}
    with event_log(spark, tmp_path / "log"):
        good = read_stream(spark, Source, config=CONFIG, options=options)
        bad = read_stream(spark, Source, config=failing, options=options)
        applied = apply(good, Operator, config=failing, options=options)
        shown = "".join(plans(frame, capfd) for frame in (good, bad, applied))
        queries = [
            started(bad, tmp_path / "source"),
            started(applied, tmp_path / "operator"),
            started(good, tmp_path / "sink", "pystorm", **sink),
        ]
        said = [failure(query) for query in queries]
    text = "".join(path.read_text(errors="replace") for path in (tmp_path / "log").rglob("*") if path.is_file())
    assert "SparkListenerSQLExecutionStart" in text
    assert text.count("the service has refused") >= len(queries)
    assert all("the service has refused ['http://me:(redacted)@" in each for each in said), said
    places = {"log": text, "plan": shown, "error": "".join(said)}
    assert [(place, secret) for place, found in places.items() for secret in SECRETS if secret in found] == []
