"""``idempotency_key`` in a child: the key that the tuple has in one process."""

import pytest

from pystorm_source import BatchingBolt, Bolt, Topology
from pystorm_source.clock import ManualClock, SystemClock
from pystorm_source.errors import TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology
from pystorm_source.worker.processes.children import Children
from pystorm_source.worker.processes.frames import unpack

ROWS = [[n] for n in range(500)]


class Pays(Bolt):
    outputs = ["n long", "key string"]

    def process(self, tup):
        if tup.values.n % 7 == 3 and not getattr(self, "failed", False):
            self.failed = True
            raise ValueError("once")
        self.emit((tup.values.n, self.idempotency_key(tup)))

    exit_on_exception = False


class Batches(BatchingBolt):
    outputs = ["n long", "key string"]

    def process_batch(self, key, tups):
        for tup in tups:
            self.emit((tup.values.n, self.idempotency_key(tup)))


def key_elsewhere(bolt, tup):
    return bolt.idempotency_key(tup)


class Elsewhere(Bolt):
    outputs = ["n long", "key string"]

    def process(self, tup):
        self.emit((tup.values.n, key_elsewhere(self, tup)))


def of(bolt, processes):
    class Payments(Topology):
        orders = MemorySpout.spec(fields=["n long"], rows=ROWS)
        pay = bolt.spec(inputs=[orders], par=2, processes=processes)

    return Payments


@pytest.mark.parametrize("bolt", [Pays, Batches])
@pytest.mark.parametrize("scheduler", ["inline", "threads"])
@pytest.mark.parametrize("clock", [None, SystemClock()])
def test_a_row_has_the_same_key_as_in_one_process(bolt, scheduler, clock):
    rows = [
        sorted(run_topology(of(bolt, processes), {"topology.scheduler": scheduler}, clock=clock).rows("pay"))
        for processes in (0, 2)
    ]
    assert rows[0] == rows[1] == [(n, f"Payments/orders/0/{n}") for (n,) in ROWS]


def test_a_bolt_whose_class_does_not_name_them_is_told_where_to():
    assert len(run_topology(of(Elsewhere, 0)).rows("pay")) == len(ROWS)
    with pytest.raises(TupleFailed, match="call it in a method of the class"):
        run_topology(of(Elsewhere, 2))


class OfNothing(Bolt):
    outputs = ["n long", "key string"]

    def process(self, tup):
        self.emit((tup.values.n, self.idempotency_key(None)))


@pytest.mark.parametrize("processes", [0, 2])
def test_what_is_no_tuple_is_refused(processes):
    with pytest.raises(TupleFailed, match="has incorrect type"):
        run_topology(of(OfNothing, processes))


class Place:
    """Of a task in which rows have no key."""

    refused, refuses, denied = "two uses", True, False


@pytest.mark.parametrize(("bolt", "denied"), [(Pays, True), (Elsewhere, False)])
def test_a_refusal_reaches_the_child_and_ends_the_run_if_the_class_names_keys(bolt, denied):
    plan = compile_plan(of(bolt, 1))
    link = Children(plan, ManualClock()).link_of(plan.component("pay").tasks[0])
    place = Place()
    assert unpack(b"".join(link.keys_of(5, [], place))) == (5, (), "two uses")
    assert place.denied is denied
