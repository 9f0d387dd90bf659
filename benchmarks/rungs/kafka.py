"""Records per second from Kafka: 100-byte values, two partitions, two cores, one broker in a JVM beside them.

    arrow         KafkaBatchSpout → noop sink                        against spark-arrow and bare
    arrow-bolt    KafkaBatchSpout → null ArrowBolt → noop sink       against spark-arrow and bare
    arrow-null    KafkaBatchSpout → null bolt → noop sink            against spark-arrow and bare
    tuple         KafkaSpout → null bolt → noop sink                 against spark-plain and bare
    json          KafkaBatchSpout, JSON to five columns → noop sink  against spark-json
    spark-arrow   Spark's Kafka source → Arrow function of Python → noop sink
    spark-plain   Spark's Kafka source → plain function of Python, without Arrow → noop sink
    spark-json    Spark's Kafka source → from_json with the same five columns → noop sink
    bare          two processes, each with a confluent-kafka consumer that reads the value of every message

All cases except JSON read the field ``value`` as bytes, and the functions return what they get. All queries run in one
session, in turn with the bare consumers, one at a time. A query's first micro-batch starts processes and is discarded;
the time of the others is what Spark reports for adding the batch. The bare consumers use the spout's client settings:
with librdkafka's defaults, which pause for a second whenever enough is fetched, they are several times slower.
"""

import math
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pyspark
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import functions

from benchmarks.harness.ladder import Settings
from benchmarks.harness.peers import SPARK_KAFKA
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from benchmarks.harness.topics import fill
from pystorm_source import ArrowBolt, Bolt, Topology
from pystorm_source.spouts import KafkaBatchSpout, KafkaSpout
from pystorm_source.spouts.kafka.consumers import CHUNK, DEFAULTS
from testbed.kafka_broker import kafka_cluster
from testbed.maven import PeerMissing, java_jars
from testbed.uncontrolled import UNCONTROLLED

TOPIC, JSON_TOPIC = "records", "json"
PARTITIONS = 2
VALUE_BYTES = 100
MEASURED_PER_QUERY = 3
RECORDS = 6_000_000
QUICK_RECORDS = 40_000


class NullBolt(Bolt):
    """Takes tuples and emits nothing."""

    outputs = ["value binary"]

    def process(self, tup: Any) -> None:
        pass


class NullArrowBolt(ArrowBolt):
    """Takes batches and emits nothing."""

    outputs = ["value binary"]

    def process_batch(self, batch: Any) -> None:
        pass


class Batches(Topology):
    records = KafkaBatchSpout.spec(fields=["value binary"])


class BatchesToNull(Topology):
    records = KafkaBatchSpout.spec(fields=["value binary"])
    null = NullBolt.spec(inputs=[records])


class BatchesToArrowBolt(Topology):
    records = KafkaBatchSpout.spec(fields=["value binary"])
    null = NullArrowBolt.spec(inputs=[records])


class TuplesToNull(Topology):
    records = KafkaSpout.spec(fields=["value binary"])
    null = NullBolt.spec(inputs=[records])


ORDER = "id bigint, item string, price double, sold boolean, at timestamp"


class Json(Topology):
    records = KafkaBatchSpout.spec(fields=[f"value struct<{ORDER}>"], config={"value.format": "json"})


VERSIONS = {
    "spark": f"pyspark {pyspark.__version__} with {SPARK_KAFKA[0].name} {SPARK_KAFKA[0].version}",
    "bare": f"confluent-kafka {confluent_kafka.version()}",
}


class Case(NamedTuple):
    """One way to read the topic."""

    name: str
    load: Callable[[Any, dict[str, Any]], Any] | None
    """Session, options → streaming DataFrame; None: without Spark."""
    against: tuple[tuple[str, float | None], ...] = ()
    """Peer cases, with the target ratio."""

    @property
    def topic(self) -> str:
        return JSON_TOPIC if "json" in self.name else TOPIC


def _ours(topology: type[Topology]) -> Callable[[Any, dict[str, Any]], Any]:
    def load(spark: Any, options: dict[str, Any]) -> Any:
        from pystorm_source import read_stream

        frame = read_stream(spark, topology, **options, **UNCONTROLLED)
        return frame.select("value.*") if topology is Json else frame

    return load


def _sparks(decode: Callable[[], Any]) -> Callable[[Any, dict[str, Any]], Any]:
    def load(spark: Any, options: dict[str, Any]) -> Any:
        return spark.readStream.format("kafka").options(**options).load().select(decode()("value"))

    return load


def _sparks_json(spark: Any, options: dict[str, Any]) -> Any:
    order = functions.from_json(functions.col("value").cast("string"), ORDER)
    return spark.readStream.format("kafka").options(**options).load().select(order.alias("value")).select("value.*")


CASES = (
    Case("spark-arrow", _sparks(lambda: functions.arrow_udf(lambda values: values, "binary"))),
    Case("spark-plain", _sparks(lambda: functions.udf(lambda value: value, "binary", useArrow=False))),
    Case("spark-json", _sparks_json),
    Case("bare", None),
    Case("arrow", _ours(Batches), (("spark-arrow", 1.0), ("bare", 0.8))),
    Case("arrow-bolt", _ours(BatchesToArrowBolt), (("spark-arrow", 1.0), ("bare", 0.9))),
    Case("arrow-null", _ours(BatchesToNull), (("spark-arrow", 1.0), ("bare", 0.8))),
    Case("tuple", _ours(TuplesToNull), (("spark-plain", 2.0), ("bare", 0.8))),
    Case("json", _ours(Json), (("spark-json", 0.7),)),
)


def run(settings: Settings) -> Iterator[Record]:
    """Measures all cases in turn, ``MEASURED_PER_QUERY`` micro-batches of each at a time."""
    records = QUICK_RECORDS if settings.quick else RECORDS
    jars, note = _jars_of_spark() if settings.peers else (None, None)
    cases = [case for case in CASES if settings.wants(case.name) and (settings.peers or case.against)]
    cases = [case for case in cases if jars is not None or not case.name.startswith("spark-")]
    rounds = math.ceil(settings.runs_of(2 * MEASURED_PER_QUERY) / MEASURED_PER_QUERY)
    seen: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, kafka_cluster(Path(folder)) as cluster:
        value = os.urandom(VALUE_BYTES)
        fill(cluster, TOPIC, records, lambda _: value, PARTITIONS)
        if any(case.topic == JSON_TOPIC for case in cases):
            fill(cluster, JSON_TOPIC, records, _order, PARTITIONS)
        with spark_session(jars=jars) as (spark, checkpoints):
            for case in cases * rounds:
                seen[case.name] += measured(case, spark, cluster.bootstrap, records, checkpoints)
    for case in cases:
        for peer, asked in case.against if settings.peers else (("", None),):
            yield record(
                "kafka",
                f"{case.name} / {peer}" if peer else case.name,
                seen[case.name],
                "records/s",
                peer=peer or None,
                peer_version=VERSIONS.get(peer.partition("-")[0]),
                peer_values=seen.get(peer, ()),
                asked=asked,
                records=records,
                note=note if peer.startswith("spark-") else None,
            )
        if not case.against:
            yield record("kafka", case.name, seen[case.name], "records/s", records=records)


def _jars_of_spark() -> tuple[Path | None, str | None]:
    try:
        return java_jars(*SPARK_KAFKA), None
    except PeerMissing as missing:
        return None, str(missing)


def _order(number: int) -> bytes:
    sold = "true" if number % 2 else "false"
    return (
        f'{{"id": {number}, "item": "item-{number % 1000:04d}", "price": {number / 8}, "sold": {sold}, '
        f'"at": "2024-02-29T12:00:{number % 60:02d}Z"}}'
    ).encode()


def measured(case: Case, spark: Any, servers: str, records: int, folder: Path) -> list[float]:
    """Returns records per second of each micro-batch after the first, or of the bare consumers."""
    if case.load is None:
        return [consumed(servers, case.topic, records)]
    step = records // (1 + MEASURED_PER_QUERY)
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": case.topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": step,
    }
    frame = case.load(spark, options)
    checkpoint = tempfile.mkdtemp(prefix=case.name, dir=folder)
    writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    done = [progress for progress in query.recentProgress if "addBatch" in progress.durationMs]
    if len(done) != 1 + MEASURED_PER_QUERY:
        raise RuntimeError(f"{case.name}: {len(done)} micro-batches instead of {1 + MEASURED_PER_QUERY} of {step}")
    return [step / progress.durationMs["addBatch"] * 1000 for progress in done[1:]]


def consumed(servers: str, topic: str, records: int) -> float:
    """Returns records per second of two processes with a bare consumer per partition, once both have a message."""
    context = get_context("spawn")
    ready, times = context.Barrier(PARTITIONS), context.Queue()
    share = records // PARTITIONS
    processes = [
        context.Process(target=consume, args=(servers, topic, partition, share, ready, times))
        for partition in range(PARTITIONS)
    ]
    for process in processes:
        process.start()
    spans = [times.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    return sum(count for _, _, count in spans) / (max(end for _, end, _ in spans) - min(start for start, _, _ in spans))


def consume(servers: str, topic: str, partition: int, records: int, ready: Any, times: Any) -> None:
    """Runs a bare consumer in its process."""
    own = {"bootstrap.servers": servers, "group.id": "bare", "enable.auto.commit": False, "auto.offset.reset": "error"}
    consumer = Consumer({**DEFAULTS, **own})
    consumer.assign([TopicPartition(topic, partition, 0)])
    first = len(consumer.consume(1, 60))
    ready.wait(60)
    start = time.monotonic()
    left = records - first
    while left:
        left -= len([message.value() for message in consumer.consume(CHUNK, 1) if message.error() is None])
    times.put((start, time.monotonic(), records - first))
    consumer.close()
