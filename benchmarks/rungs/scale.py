"""How a cost grows with one size, all else equal: a curve each, its slope where both axes are logarithmic.

    partitions        planning, reports, memory and offset of the driver, 10 → 100,000 partitions that have all moved
    chain, fan-out    CPU of a tuple and component: 1 → 100 bolts behind, 1 → 64 beside one another
    par-shuffle, par-fields
                      the same, 1 → 64 tasks of a bolt
    open-trees        CPU of a tuple, 100 → 1,000,000 trees that wait for their ack
    requests          CPU of a request, 10 → 50,000 of an AsyncBolt in flight
    files             CPU of a look that finds 10 new files, 10 → 1,000,000 known to a FilesSpout
    objects           the same of an ObjectsSpout, 10 → 1,000,000 known, which a server lists
    micro-batches     of a run in one process, 10 → 10,000: CPU of each, and resident memory
    micro-batches-spark, keys, tasks
                      through Spark, not with ``--quick``: 30 → 300 micro-batches; 1,000 → 10,000,000 keys of a
                      StatefulBolt, of which 1,000 get a tuple; 4 → 500 tasks on two processes with an executor each

``value`` is the steeper one of ``slope``, of the whole range, and ``slope_end``, of its upper half; 0 if neither rises.
Asked is 1.05 of work that grows with the size, and 0.05 of a cost that must not grow. The curve is ``sizes`` and
``values``, which are medians.
"""

from collections.abc import Iterator

from benchmarks.curves import files, micro_batches, on_spark, partitions, shapes, waiting
from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record


def run(settings: Settings) -> Iterator[Record]:
    for module in (partitions, shapes, waiting, files):
        for curve in module.CURVES:
            if settings.wants(curve.case):
                yield from curve.records(settings)
    yield from micro_batches.records(settings)
    yield from on_spark.records(settings)
