"""The ``topology.*`` keys of Storm itself: users bring entire configurations; this engine knows some of the keys.

Names from Storm 2's ``defaults.yaml`` and ``Config``, and names from 1.x that Python topologies still set.
"""

import difflib
from collections.abc import Iterable

from pystorm_source.errors import OptionError
from pystorm_source.options import EngineOptions, Options, SourceOptions, fields_of

_WAITING = """
strategy park.microsec progressive.level1.count progressive.level2.count progressive.level3.sleep.millis
"""
_NAMES = """
acker.cpu.pcore.percent acker.executors acker.resources.onheap.memory.mb acker.resources.offheap.memory.mb
auto.task.hooks backpressure.check.millis backpressure.enable batch.flush.interval.millis blobstore.map
bolts.late.tuple.stream bolts.message.id.field.name bolts.outgoing.overflow.buffer.enable
bolts.sliding.window.interval.count bolts.sliding.window.interval.duration.ms bolts.tuple.timestamp.field.name
bolts.tuple.timestamp.max.lag.ms bolts.watermark.event.interval.ms bolts.window.length.count
bolts.window.length.duration.ms bolts.window.sliding.interval.count bolts.window.sliding.interval.duration.ms
builtin.metrics.bucket.size.secs classpath classpath.beginning component.cpu.pcore.percent
component.resources.offheap.memory.mb component.resources.onheap.memory.mb debug disable.loadaware.messaging
disruptor.batch.size disruptor.batch.timeout.millis disruptor.wait.strategy disruptor.wait.timeout.millis
enable.message.timeouts enable.v2.metrics.tick environment error.throttle.interval.secs eventlogger.executors
executor.overflow.limit executor.receive.buffer.size executor.send.buffer.size fall.back.on.java.serialization
fields.grouping.hash isolate.machines kryo.decorators kryo.factory kryo.register
localityaware.higher.bound localityaware.lower.bound max.error.report.per.interval
max.spout.pending max.task.parallelism message.timeout.secs metrics.aggregate.metric.evict.secs
metrics.aggregate.per.worker metrics.consumer.register metrics.expand.map.type metrics.metric.name.separator
metrics.reporters min.replication.count max.replication.wait.time.sec multilang.serializer name
optimize priority producer.batch.dynamic producer.batch.size ras.acker.executors.per.worker receiver.buffer.size
scheduler.favored.nodes scheduler.strategy scheduler.unfavored.nodes
serialized.message.size.metrics shellbolt.max.pending skip.missing.kryo.registrations
sleep.spout.wait.strategy.time.ms spout.recvq.skips spread.components state.checkpoint.interval.ms
state.kryo.register state.provider state.provider.config state.synchronization.timeout.secs
stats.ewma.enable stats.ewma.smoothing.factor stats.sample.rate submitter.principal submitter.user
subprocess.timeout.secs tasks testing.always.try.serialize tick.tuple.freq.secs transactional.id
transfer.batch.size transfer.buffer.size trident.batch.emit.interval.millis
trident.windowing.cache.tuple.limit tuple.compression.enable tuple.compression.threshold tuple.serializer
upstream.feedback.enable upstream.feedback.freq.secs v2.metrics.tick.interval.seconds
version worker.childopts worker.logwriter.childopts worker.max.heap.size.mb worker.receiver.thread.count
worker.shared.thread.pool.size worker.timeout.secs workers
"""

STORM_KEYS = frozenset(
    f"topology.{name}"
    for name in [
        *_NAMES.split(),
        *(f"{situation}.wait.{what}" for situation in ("spout", "bolt", "backpressure") for what in _WAITING.split()),
    ]
)


def check_topology_keys(given: Iterable[str], tables: Iterable[type[Options]] = ()) -> None:
    """Raises OptionError for a ``topology.*`` key that is nearly, but not exactly, a key of this engine or Storm.
    ``tables``: the components' tables, whose keys are known, too.

    Storm's keys without effect here pass, and so do keys unlike any other: they are the user's own.
    """
    known = STORM_KEYS.union(*(fields_of(table) for table in (EngineOptions, SourceOptions, *tables)))
    by_lower = {key.lower(): key for key in known}
    for key in given:
        if not key.lower().startswith("topology.") or key.lower() in by_lower:
            continue
        near = difflib.get_close_matches(key.lower(), by_lower, n=1, cutoff=0.85)
        if near:
            raise OptionError(
                f"unknown key {key!r}: did you mean {by_lower[near[0]]!r}? Given: {key!r}",
                code="PYSTORM_UNKNOWN_OPTION",
            )
