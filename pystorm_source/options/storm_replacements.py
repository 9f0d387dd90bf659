"""What replaces Storm's keys without effect: printed by the lint, ``migrate`` and docs/OPTIONS.md."""

from typing import NamedTuple


class Replacement(NamedTuple):
    """``names``: keys without ``topology.``, or prefixes of keys, which end with ``*``. ``instead``: what to do, in a
    complete phrase."""

    names: tuple[str, ...]
    instead: str


def _of(names: str, instead: str) -> Replacement:
    return Replacement(tuple(names.split()), instead)


REPLACEMENTS = (
    _of(
        "workers",
        "option minPartitions for more Spark tasks; `processes` of a heavy bolt's spec for several cores per task",
    ),
    _of("tasks max.task.parallelism", "`par` of a component: its tasks inside each Spark task"),
    _of(
        "backpressure.* upstream.feedback.* bolts.outgoing.overflow.buffer.enable executor.overflow.limit",
        "nothing to set: full queues, bounded by topology.executor.receive.buffer.size, stop their producers",
    ),
    _of(
        "disruptor.batch.* receiver.buffer.size executor.send.buffer.size transfer.*",
        "topology.producer.batch.size, topology.batch.flush.interval.millis, topology.executor.receive.buffer.size",
    ),
    _of(
        "disruptor.wait.* sleep.spout.wait.strategy.time.ms",
        "topology.spout.wait.strategy, topology.bolt.wait.strategy, topology.backpressure.wait.strategy",
    ),
    _of(
        "bolts.window.* bolts.sliding.window.*",
        "Spark's groupBy(window(...)) after the source; within a micro-batch, a BatchingBolt",
    ),
    _of(
        "bolts.tuple.timestamp.* bolts.watermark.event.interval.ms bolts.late.tuple.stream trident.windowing.*",
        "Spark's withWatermark(...) after the source",
    ),
    _of(
        "bolts.message.id.field.name transactional.id",
        "the query's checkpoint, and Bolt.idempotency_key for calls of services",
    ),
    _of(
        "state.*",
        "a StatefulBolt, with its state in Spark's store (spark.sql.streaming.stateStore.providerClass)",
    ),
    _of("trident.batch.emit.interval.millis", "the query's trigger, such as processingTime='500 milliseconds'"),
    _of(
        "component.resources.* component.cpu.* acker.resources.* acker.cpu.* worker.max.heap.size.mb worker.childopts "
        "ras.acker.executors.per.worker",
        "spark.executor.memory, spark.executor.pyspark.memory, spark.executor.cores and spark.task.cpus",
    ),
    _of(
        "scheduler.* isolate.machines spread.components priority min.replication.count max.replication.wait.time.sec",
        "Spark's scheduler pools and dynamic allocation, and the cluster manager",
    ),
    _of(
        "metrics.* builtin.metrics.* enable.v2.metrics.tick v2.metrics.tick.interval.seconds stats.* "
        "serialized.message.size.metrics",
        "nothing to set: progress(query), Prometheus and OpenTelemetry count every tuple (docs/METRICS.md)",
    ),
    _of(
        "error.throttle.interval.secs max.error.report.per.interval",
        "nothing to set: the log has a repeated exception three times, then a count per minute",
    ),
    _of("eventlogger.executors", "pystorm-source run --rows, or a stream of the component, read by its name"),
    _of("auto.task.hooks", "initialize() and cleanup() of the components; progress(query) has counts"),
    _of(
        "kryo.* fall.back.on.java.serialization skip.missing.kryo.registrations tuple.serializer tuple.compression.* "
        "multilang.serializer",
        "nothing to set: components pass tuples by reference, and rows leave as Arrow columns",
    ),
    _of(
        "disable.loadaware.messaging localityaware.*",
        "nothing to set: a shuffle grouping gives tuples to tasks in turn",
    ),
    _of(
        "shellbolt.max.pending worker.receiver.thread.count",
        "nothing to set: components run in the process of the Spark task",
    ),
    _of("worker.shared.thread.pool.size", "an AsyncBolt, or a pool that the bolt's initialize() makes"),
    _of(
        "worker.timeout.secs", "spark.network.timeout; topology.subprocess.timeout.secs for a call that does not return"
    ),
    _of("worker.logwriter.childopts", "spark.executor.extraJavaOptions; pystorm.log.* for components"),
    _of("classpath classpath.beginning blobstore.map", "spark.jars, and --files and --archives of spark-submit"),
    _of("submitter.* version", "the user that runs spark-submit, or --proxy-user"),
    _of("optimize", "nothing to set"),
)


def replacement_of(key: str) -> str:
    """Says what to do instead of a key of Storm without effect here; empty if unknown."""
    name = key.lower().removeprefix("topology.")
    for each in REPLACEMENTS:
        if any(name.startswith(known[:-1]) if known.endswith("*") else name == known for known in each.names):
            return each.instead
    return ""
