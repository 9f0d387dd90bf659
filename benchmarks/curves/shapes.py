"""What a tuple costs by the shape of its topology: a chain, a fan, parallel tasks. One thread, no Spark, CPU time."""

import gc
import time

from benchmarks.curves.curve import Cost, Costs, Curve
from benchmarks.harness.components import NullBolt, PairIdBolt, PairSpout
from benchmarks.rungs.core import NO_OUTPUT, PAIR_OUTPUT
from pystorm_source.api import Grouping, Topology
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, Worker
from pystorm_source.worker.new_worker import new_worker

VISITS = 1_000_000
"""Tuples times components of a run. Fewer: the fixed cost of a range shows with many components."""
LEAST_TUPLES = 20_000


def chain(bolts: int) -> type[Topology]:
    """Spout → so many bolts, each of which passes rows on."""
    last = PairSpout.spec()
    parts = {"spout": last}
    for number in range(1, bolts):
        last = parts[f"bolt{number}"] = PairIdBolt.spec(inputs=[last])
    return type("Chain", (Topology,), {**parts, "last": PairIdBolt.spec(inputs=[last])})


def fan(bolts: int) -> type[Topology]:
    """Spout → so many bolts beside one another, each of which gets all."""
    spout = PairSpout.spec()
    return type(
        "Fan", (Topology,), {"spout": spout, **{f"bolt{n}": NullBolt.spec(inputs=[spout]) for n in range(bolts)}}
    )


def tasks(grouping: Grouping, par: int) -> type[Topology]:
    """Spout → a bolt of so many tasks."""
    spout = PairSpout.spec()
    return type("Tasks", (Topology,), {"spout": spout, "last": PairIdBolt.spec(inputs={spout: grouping}, par=par)})


def nanos_of_tuple(topology: type[Topology], components: int, output: OutputPlan = NO_OUTPUT) -> Costs:
    """Of a tuple in each component, after a warm-up."""
    tuples = max(VISITS // components, LEAST_TUPLES)
    worker = new_worker(compile_plan(topology), output)
    try:
        _feed(worker, tuples // 5)
        gc.collect()
        began = time.process_time()
        rows = _feed(worker, tuples)
        seconds = time.process_time() - began
    finally:
        worker.stop()
    if output.views and rows != tuples:
        raise RuntimeError(f"{rows} rows came out of {tuples} tuples")
    return {"cpu": 1e9 * seconds / tuples / components}


def _feed(worker: Worker, tuples: int) -> int:
    return sum(batch.num_rows for batch in worker.run("spout", "0", 0, tuples))


CPU = {"cpu": Cost("ns of a tuple and component")}
CURVES = (
    Curve(
        "chain",
        "bolts, one behind another",
        (1, 3, 10, 30, 100),
        (1, 10),
        CPU,
        lambda bolts: nanos_of_tuple(chain(bolts), bolts + 1, PAIR_OUTPUT),
    ),
    Curve(
        "fan-out",
        "bolts that get each tuple",
        (1, 4, 16, 64),
        (1, 16),
        CPU,
        lambda bolts: nanos_of_tuple(fan(bolts), bolts + 1),
    ),
    Curve(
        "par-shuffle",
        "tasks of a bolt, by shuffle",
        (1, 4, 16, 64),
        (1, 16),
        CPU,
        lambda par: nanos_of_tuple(tasks(Grouping.SHUFFLE, par), 2, PAIR_OUTPUT),
    ),
    Curve(
        "par-fields",
        "tasks of a bolt, by fields",
        (1, 4, 16, 64),
        (1, 16),
        CPU,
        lambda par: nanos_of_tuple(tasks(Grouping.fields("n"), par), 2, PAIR_OUTPUT),
    ),
)
