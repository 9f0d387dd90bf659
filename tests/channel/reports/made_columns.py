"""Counts by component as tasks of large topologies would report them."""

import random

from pystorm_source.worker.component_columns import SLOTS, ComponentColumns, ErrorReport, MetricDelta
from tests.worker.running import Numbers, Pass, topology


def chain(components):
    """A topology of a spout and bolts, one after the other."""
    parts = {"s": Numbers.spec()}
    above = parts["s"]
    for i in range(1, components):
        above = parts[f"a_bolt_of_some_name_{i:03d}"] = Pass.spec(inputs=[above])
    return topology(**parts)


def columns(components, seed=3, buckets=4, metrics=10, errors=1):
    """Of a range of a thousand offsets through such a topology; every column has something."""
    chance = random.Random(seed)
    rows = chance.randrange(900, 1100)
    all_of_them = (rows,) * components

    def drawn(most):
        return tuple(chance.randrange(1, most) for _ in range(components))

    def spread(component):
        for slot in sorted(chance.sample(range(150, 400), buckets)):
            yield from (component * SLOTS + slot, chance.randrange(1, 200))

    return ComponentColumns(
        executed=all_of_them,
        acked=all_of_them,
        emitted=all_of_them,
        edges=all_of_them[1:],
        busy_seconds=tuple(micros / 1e6 for micros in drawn(100_000)),
        tuples_published=all_of_them,
        batches_published=(12,) * components,
        queue_high_mark=drawn(1000),
        pending_high_mark=(rows,),
        failed=(3,),
        retries=(3,),
        errors=(0, 3),
        execute=tuple(number for component in range(components) for number in spread(component)),
        execute_total=drawn(10**8),
        execute_longest=drawn(10**7),
        complete=tuple(spread(0)),
        complete_total=(10**9,),
        complete_longest=(10**8,),
        stall_seconds={
            reason: tuple(micros / 1e6 for micros in drawn(10**5)) for reason in ("downstream_full", "input_empty")
        },
        metrics=tuple(
            MetricDelta(component=i % components, name=f"seen {i}", count=rows, sum=float(rows), last=1)
            for i in range(metrics)
        ),
        last_errors=tuple(
            ErrorReport(component=i, text="ValueError: boom", at=1.7e9, frames=("bolts.py:12 in process",) * 3)
            for i in range(1, errors + 1)
        ),
    )
