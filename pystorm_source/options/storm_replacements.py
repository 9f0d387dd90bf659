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
        "Spark places the work: option minPartitions splits what is read at once, and executors run it; for one heavy "
        "bolt, `processes` of its spec gives a Spark task several cores",
    ),
    _of("tasks max.task.parallelism", "`par` of each component, tasks inside one Spark task"),
    _of(
        "backpressure.* upstream.feedback.* bolts.outgoing.overflow.buffer.enable executor.overflow.limit",
        "nothing to set: a full queue holds its producers, and the next micro-batch reads less; "
        "topology.executor.receive.buffer.size bounds a queue",
    ),
    _of(
        "disruptor.batch.* receiver.buffer.size executor.send.buffer.size transfer.*",
        "topology.producer.batch.size, topology.batch.flush.interval.millis and topology.executor.receive.buffer.size: "
        "there is one queue for each executor",
    ),
    _of(
        "disruptor.wait.* sleep.spout.wait.strategy.time.ms",
        "topology.spout.wait.strategy, topology.bolt.wait.strategy and topology.backpressure.wait.strategy with their "
        "keys",
    ),
    _of(
        "bolts.window.* bolts.sliding.window.*",
        "windows are Spark's, groupBy(window(...)) behind the source; inside a micro-batch a BatchingBolt by ticks",
    ),
    _of(
        "bolts.tuple.timestamp.* bolts.watermark.event.interval.ms bolts.late.tuple.stream trident.windowing.*",
        "withWatermark(...) behind the source, which counts late rows in the query's progress",
    ),
    _of(
        "bolts.message.id.field.name transactional.id",
        "the offsets in the query's checkpoint, and Bolt.idempotency_key for calls of services",
    ),
    _of(
        "state.*",
        "a StatefulBolt with state_fields keeps its state in Spark's store, with each micro-batch; its provider is "
        "spark.sql.streaming.stateStore.providerClass",
    ),
    _of("trident.batch.emit.interval.millis", "the query's trigger, such as processingTime='500 milliseconds'"),
    _of(
        "component.resources.* component.cpu.* acker.resources.* acker.cpu.* worker.max.heap.size.mb worker.childopts "
        "ras.acker.executors.per.worker",
        "spark.executor.memory, spark.executor.pyspark.memory, spark.executor.cores and spark.task.cpus",
    ),
    _of(
        "scheduler.* isolate.machines spread.components priority min.replication.count max.replication.wait.time.sec",
        "Spark's scheduler pools and dynamic allocation, and the cluster manager's placement",
    ),
    _of(
        "metrics.* builtin.metrics.* enable.v2.metrics.tick v2.metrics.tick.interval.seconds stats.* "
        "serialized.message.size.metrics",
        "nothing to set: every tuple is counted, and progress(query), Prometheus and OpenTelemetry show it "
        "(docs/METRICS.md)",
    ),
    _of(
        "error.throttle.interval.secs max.error.report.per.interval",
        "nothing to set: of exceptions that repeat three are logged, then a count a minute",
    ),
    _of("eventlogger.executors", "pystorm-source run --rows, or a second stream that is read by its name"),
    _of("auto.task.hooks", "initialize() and cleanup() of the components; counts come by progress(query)"),
    _of(
        "kryo.* fall.back.on.java.serialization skip.missing.kryo.registrations tuple.serializer tuple.compression.* "
        "multilang.serializer",
        "nothing to set: tuples are passed by reference, and leave as Arrow columns",
    ),
    _of(
        "disable.loadaware.messaging localityaware.*",
        "nothing to set: a shuffle grouping deals tuples in turn, inside one process",
    ),
    _of(
        "shellbolt.max.pending worker.receiver.thread.count",
        "nothing to set: components run in the process of the Spark task, without a pipe",
    ),
    _of("worker.shared.thread.pool.size", "an AsyncBolt, or a pool of the bolt's own that initialize() makes"),
    _of("worker.timeout.secs", "spark.network.timeout; a call that does not return is logged with its stack"),
    _of("worker.logwriter.childopts", "spark.executor.extraJavaOptions, and pystorm.log.* for components"),
    _of("classpath classpath.beginning blobstore.map", "spark.jars, and --files and --archives of spark-submit"),
    _of("submitter.* version", "the user and the application of spark-submit, such as --proxy-user"),
    _of("optimize", "nothing to set"),
)


def replacement_of(key: str) -> str:
    """Says what to do instead of a key of Storm without effect here; empty if unknown."""
    name = key.lower().removeprefix("topology.")
    for each in REPLACEMENTS:
        if any(name.startswith(known[:-1]) if known.endswith("*") else name == known for known in each.names):
            return each.instead
    return ""
