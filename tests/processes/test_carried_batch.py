"""Batches cross a link as they are, whatever their types, and what the bolt has made is not kept back."""

import mmap

import numpy as np
import pyarrow as pa
import pytest

from cython_core.links.link_end import LinkEnd, link_bytes
from pystorm_source import ArrowBolt, AsyncBolt, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.limits.permit_waits import TaskWaits
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology
from pystorm_source.worker.processes.carried_batch import CarriedBatch
from pystorm_source.worker.processes.child_tasks import ChildTasks
from pystorm_source.worker.processes.frames import Kind, pack, unpack
from tests.both_schedulers import SCHEDULERS

ROWS = 1000


class Tenths(pa.ExtensionType):
    """A type of the user's that no process has registered."""

    def __init__(self):
        super().__init__(pa.int64(), "tests.tenths")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls()


COLUMNS = {
    "numbers": pa.array(range(ROWS)),
    "some-null": pa.array([n if n % 3 else None for n in range(ROWS)]),
    "texts": pa.array([f"text {n}" for n in range(ROWS)]),
    "lists": pa.array([[n] * (n % 3) for n in range(ROWS)]),
    "structs": pa.array([{"a": n, "b": [str(n)]} for n in range(ROWS)]),
    "bools": pa.array([n % 3 == 0 for n in range(ROWS)]),
    "dictionary": pa.array([f"{n % 7}" for n in range(ROWS)]).dictionary_encode(),
    "list-of-dictionary": pa.ListArray.from_arrays(
        pa.array(range(ROWS + 1), pa.int32()), pa.array([f"{n % 7}" for n in range(ROWS)]).dictionary_encode()
    ),
    "extension": pa.ExtensionArray.from_storage(Tenths(), pa.array(range(ROWS))),
}


def carried(value):
    return unpack(b"".join(pack(value)))


def batch_of(name):
    field = pa.field("n", COLUMNS[name].type, metadata={"said": "of the field"})
    return pa.record_batch([COLUMNS[name]], schema=pa.schema([field], metadata={"said": "of all"}))


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(("start", "rows"), [(0, ROWS), (0, 0), (3, 17), (ROWS - 5, 5)])
def test_a_batch_comes_out_as_it_went_in(name, start, rows):
    batch = batch_of(name).slice(start, rows)
    got = carried([CarriedBatch(batch), 5, CarriedBatch(batch)])
    for each in (got[0], got[2]):
        each.validate(full=True)
        assert each.equals(batch, check_metadata=True)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_slice_takes_little_along(name):
    batch = batch_of(name)
    whole, slice_ = (sum(len(part) for part in pack(CarriedBatch(each))) for each in (batch, batch.slice(7, 10)))
    assert slice_ < 2000 + whole / 5


def test_a_batch_of_no_columns_keeps_its_rows():
    batch = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), 7, [None]))
    assert carried(CarriedBatch(batch)).num_rows == 7


def test_two_schemas_that_look_alike_are_two():
    one, other = (pa.record_batch([pa.array([1])], schema=pa.schema([("n", "int64")], metadata={"v": v})) for v in "ab")
    for batch in (one, other, one):
        assert carried(CarriedBatch(batch)).schema.metadata == batch.schema.metadata


def test_buffers_lie_as_arrow_asks():
    frame = b"".join(
        pack((1, CarriedBatch(batch_of("texts")), np.arange(3, dtype="i1"), CarriedBatch(batch_of("bools"))))
    )
    for batch in unpack(frame)[1::2]:
        buffers = [buffer for buffer in batch.column(0).buffers() if buffer is not None]
        assert buffers
        assert all(buffer.address % 8 == 0 for buffer in buffers)


class Same(ArrowBolt):
    outputs = ["n long"]

    def process_batch(self, batch):
        self.emit_batch(batch)


class SameThere(Topology):
    numbers = MemorySpout.spec(fields=["n long"], rows=[])
    same = Same.spec(inputs=[numbers])


def frames_up(rows, count):
    """Frames with batches that come of so many batches which wait for the child."""
    ring = 1 << 22
    memory = mmap.mmap(-1, link_bytes(ring, ring))
    parent, child = (LinkEnd(memory, ring, ring, is_parent) for is_parent in (True, False))
    plan = compile_plan(SameThere)
    tasks = ChildTasks(plan, "same", [(plan.component("same").tasks[0], child, TaskWaits())], SystemClock())
    tasks.step()
    assert parent.read()[0] == Kind.STARTED
    parent.write(Kind.BEGIN, pack(None))
    batch = pa.record_batch([pa.array(range(rows))], names=["n"])
    for i in range(count):
        parent.write(Kind.BATCH, pack((i * rows, 0, CarriedBatch(batch))))
    while tasks.step():
        pass
    found = []
    while (frame := parent.read()) is not None:
        found.append(len(unpack(frame[1])[0][1]))
    return [batches for batches in found if batches]


def test_a_large_batch_goes_up_before_the_bolt_gets_the_next_one():
    assert frames_up(20_000, 3) == [1, 1, 1]


def test_small_batches_go_up_together():
    assert frames_up(10, 3) == [3]


class Request(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        self.emit([tup.values.n])


@pytest.mark.timeout(60)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("beside", [True, False])
def test_a_thread_waits_for_its_links_with_and_without_coroutines(scheduler, beside):
    class Both(Topology):
        spout = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(300)])
        placed = Same.spec(inputs=[spout], par=2, processes=2)
        last = (Request if beside else Same).spec(inputs=[placed])

    result = run_topology(Both, scheduler=scheduler, clock=SystemClock())
    assert sorted(result.rows("last")) == [(n,) for n in range(300)]
