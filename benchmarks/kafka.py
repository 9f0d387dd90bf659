"""Records per second from Kafka: 100-byte values, two partitions, two cores, one broker in a JVM beside them.

    arrow         KafkaBatchSpout → noop sink                        against spark-arrow and bare
    arrow-null    KafkaBatchSpout → null bolt → noop sink            against spark-arrow and bare
    tuple         KafkaSpout → null bolt → noop sink                 against spark-plain and bare
    tuple-out     KafkaSpout → noop sink                             against spark-plain
    arrow-alone   two workers of ours without Spark, KafkaBatchSpout → output         against bare
    tuple-alone   two workers of ours without Spark, KafkaSpout → null bolt           against bare
    spark-arrow   Spark's Kafka source → Arrow function of Python → noop sink
    spark-plain   Spark's Kafka source → plain function of Python, without Arrow → noop sink
    bare          two processes, a confluent-kafka consumer each, that ask every message for its value

All read the field ``value`` as bytes, and the functions give back what they get. All queries run in one session, in
turn with the bare consumers, one at a time. A query's first micro-batch starts processes and is thrown away; of the
others the time is what Spark reports for adding the batch. The bare consumers have the client settings of the spout:
with librdkafka's own (``bare-defaults``), which pause a second whenever enough is fetched, they are several times
slower.
"""

import math
import os
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pyarrow as pa
import pyspark
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import functions

from benchmarks.ladder import Settings
from benchmarks.peers import SPARK_KAFKA, PeerMissing, java_jars
from benchmarks.record import Record, record
from benchmarks.spark_session import UNCONTROLLED, spark_session
from pystorm_source import Bolt, Topology
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import KafkaBatchSpout, KafkaSpout
from pystorm_source.spouts.kafka.consumers import CHUNK, DEFAULTS
from pystorm_source.spouts.kafka.spout import BATCH_ROWS
from pystorm_source.worker.output import OutputPlan, ViewPlan
from pystorm_source.worker.worker import Worker
from tests.kafka_broker import KafkaCluster, kafka_cluster

TOPIC = "records"
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


class Batches(Topology):
    records = KafkaBatchSpout.spec(fields=["value binary"])


class BatchesToNull(Topology):
    records = KafkaBatchSpout.spec(fields=["value binary"])
    null = NullBolt.spec(inputs=[records])


class Tuples(Topology):
    records = KafkaSpout.spec(fields=["value binary"])


class TuplesToNull(Topology):
    records = KafkaSpout.spec(fields=["value binary"])
    null = NullBolt.spec(inputs=[records])


VERSIONS = {
    "spark": f"pyspark {pyspark.__version__} with {SPARK_KAFKA[0].name} {SPARK_KAFKA[0].version}",
    "bare": f"confluent-kafka {confluent_kafka.version()}",
}


class Case(NamedTuple):
    """One way to read the topic."""

    name: str
    load: Callable[[Any, dict[str, Any]], Any] | None
    """Session, options → streaming DataFrame; None: not by Spark."""
    against: tuple[tuple[str, float | None], ...] = ()
    """Peer cases, with the ratio asked for."""


def _ours(topology: type[Topology]) -> Callable[[Any, dict[str, Any]], Any]:
    def load(spark: Any, options: dict[str, Any]) -> Any:
        from pystorm_source import read_stream

        return read_stream(spark, topology, **options, **UNCONTROLLED)

    return load


def _sparks(decode: Callable[[], Any]) -> Callable[[Any, dict[str, Any]], Any]:
    def load(spark: Any, options: dict[str, Any]) -> Any:
        return spark.readStream.format("kafka").options(**options).load().select(decode()("value"))

    return load


CASES = (
    Case("spark-arrow", _sparks(lambda: functions.arrow_udf(lambda values: values, "binary"))),
    Case("spark-plain", _sparks(lambda: functions.udf(lambda value: value, "binary", useArrow=False))),
    Case("bare", None),
    Case("bare-defaults", None),
    Case("arrow-alone", None, (("bare", 0.8),)),
    Case("tuple-alone", None, (("bare", 0.8),)),
    Case("arrow", _ours(Batches), (("spark-arrow", 1.0), ("bare", 0.8))),
    Case("arrow-null", _ours(BatchesToNull), (("spark-arrow", 1.0), ("bare", 0.8))),
    Case("tuple", _ours(TuplesToNull), (("spark-plain", 2.0), ("bare", 0.8))),
    Case("tuple-out", _ours(Tuples), (("spark-plain", None), ("bare", None))),
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
        fill(cluster, records)
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


def fill(cluster: KafkaCluster, records: int) -> None:
    """The topic, with so many records."""
    cluster.create(TOPIC, PARTITIONS)
    settings = {"linger.ms": 50, "batch.size": 1_000_000, "queue.buffering.max.messages": 2_000_000, "log_level": 0}
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **settings})
    value = os.urandom(VALUE_BYTES)
    for number in range(records):
        if number % 50_000 == 0:
            producer.poll(0)
            if len(producer) > 1_000_000:
                producer.flush()
        producer.produce(TOPIC, value, partition=number % PARTITIONS)
    producer.flush()


def measured(case: Case, spark: Any, servers: str, records: int, folder: Path) -> list[float]:
    """Records per second of each micro-batch after the first, or of the bare consumers."""
    if case.load is None:
        if case.name.endswith("-alone"):
            return [in_two_processes(work, servers, records, case.name)]
        return [in_two_processes(consume, servers, records, {} if case.name == "bare-defaults" else DEFAULTS)]
    step = records // (1 + MEASURED_PER_QUERY)
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": TOPIC,
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


def in_two_processes(read: Callable[..., None], servers: str, records: int, how: Any) -> float:
    """Records per second of two processes that ``read`` a partition each, once both have their first message."""
    context = get_context("spawn")
    ready, times = context.Barrier(PARTITIONS), context.Queue()
    share = records // PARTITIONS
    processes = [
        context.Process(target=read, args=(servers, partition, share, how, ready, times))
        for partition in range(PARTITIONS)
    ]
    for process in processes:
        process.start()
    spans = [times.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    return sum(count for _, _, count in spans) / (max(end for _, end, _ in spans) - min(start for start, _, _ in spans))


def work(servers: str, partition: int, records: int, case: str, ready: Any, times: Any) -> None:
    """A process with a worker of ours."""
    topology, last = (Batches, "records") if case == "arrow-alone" else (TuplesToNull, "null")
    plan = compile_plan(topology, {"kafka.bootstrap.servers": servers, "subscribe": TOPIC}, any_environment=True)
    view = ViewPlan(component=last, stream="default", columns=(0,))
    worker = Worker(plan, OutputPlan(pa.schema([("value", pa.binary())]), (view,), BATCH_ROWS))
    first = 1
    deque(worker.run("records", f"{TOPIC}-{partition}", 0, first), maxlen=0)
    ready.wait(60)
    start = time.monotonic()
    deque(worker.run("records", f"{TOPIC}-{partition}", first, records), maxlen=0)
    times.put((start, time.monotonic(), records - first))
    worker.stop()


def consume(servers: str, partition: int, records: int, settings: Mapping[str, Any], ready: Any, times: Any) -> None:
    """A process with a bare consumer."""
    own = {"bootstrap.servers": servers, "group.id": "bare", "enable.auto.commit": False, "auto.offset.reset": "error"}
    consumer = Consumer({**settings, **own})
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    first = len(consumer.consume(1, 60))
    ready.wait(60)
    start = time.monotonic()
    left = records - first
    while left:
        left -= len([message.value() for message in consumer.consume(CHUNK, 1) if message.error() is None])
    times.put((start, time.monotonic(), records - first))
    consumer.close()
