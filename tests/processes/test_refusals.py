"""What cannot have processes of its own is refused before anything runs, with what to do instead."""

import pytest

from pystorm_source import ArrowBolt, AsyncBolt, BatchingBolt, Bolt, Grouping, JoinBolt, StatefulBolt, Stream, Topology
from pystorm_source.errors import ArgumentTypeError, TopologyError, TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.plan.unplaceable import is_placeable
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology


class Sum(StatefulBolt):
    outputs = ["n long"]
    state_fields = ["sum long"]

    def process(self, tup):
        self.emit([tup.values.n])


class Direct(Bolt):
    outputs = [Stream(["n long"]), Stream(["n long"], name="to one", direct=True)]

    def process(self, tup):
        self.emit([tup.values.n])


class Plain(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([tup.values.n])


class Batches(BatchingBolt):
    def process_batch(self, key, tups):
        """Nothing to do."""


class Columns(ArrowBolt):
    def process_batch(self, batch):
        """Nothing to do."""


class Requests(AsyncBolt):
    async def process(self, tup):
        """Nothing to do."""


class Pairs(JoinBolt):
    def process_join(self, tups):
        """Nothing to do."""


def topology(cls, **spec):
    class Numbers(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        placed = cls.spec(inputs=[numbers], **spec)

    return Numbers


@pytest.mark.parametrize("par", [2, {"prod": 4, "beta": 2}])
def test_a_state_for_each_key_stays_in_the_process_of_the_task(par):
    with pytest.raises(TopologyError, match=r"'placed' of Numbers keeps a state.*take out `processes`") as error:
        compile_plan(topology(Sum, par=par, processes=2), any_environment=True)
    assert str(error.value).endswith("Given: Sum.spec(processes=2)")


def test_a_direct_stream_does_not_cross():
    with pytest.raises(TopologyError, match=r"'placed' of Numbers has a direct stream.*declare the stream 'to one'"):
        compile_plan(topology(Direct, processes=2))


class AsksForIds(Plain):
    def process(self, tup):
        self.emit([tup.values.n], need_task_ids=True)


def test_the_ids_of_tasks_are_not_known_there():
    assert run_topology(topology(AsksForIds)).rows("placed") == [(1,)]
    with pytest.raises(TupleFailed, match=r"'placed', task 2.*leave need_task_ids out, or processes="):
        run_topology(topology(AsksForIds, processes=1))


@pytest.mark.parametrize("cls", [Sum, Direct])
def test_without_processes_these_compile(cls):
    assert compile_plan(topology(cls)).component("placed").processes == 0


def test_a_spout_stays_in_the_process_of_the_task():
    with pytest.raises(ArgumentTypeError, match=r"takes no 'processes': .*'minPartitions' gives more tasks") as error:
        MemorySpout.spec(fields=["n long"], rows=[[1]], processes=2)
    assert str(error.value).endswith("Given: processes=2")


@pytest.mark.parametrize("par", [1, {"prod": 4, "beta": 1}])
def test_each_process_needs_a_task(par):
    with pytest.raises(TopologyError, match=r"processes=2 of Plain.spec are more than its tasks.*give par=2"):
        Plain.spec(name="plain", par=par, processes=2)


@pytest.mark.parametrize("processes", [-1, 1.5, "2", True, None])
def test_processes_are_a_number(processes):
    with pytest.raises(ArgumentTypeError, match="is a number of processes"):
        Plain.spec(name="plain", processes=processes)


def test_processes_give_the_number_of_tasks_unless_par_does():
    class Four(Plain):
        par = 4

    assert len(compile_plan(topology(Plain, processes=3)).component("placed").tasks) == 3
    assert len(compile_plan(topology(Plain, processes=2, par=5)).component("placed").tasks) == 5
    assert len(compile_plan(topology(Four, processes=2)).component("placed").tasks) == 4


def test_par_of_an_environment_is_that_of_the_processes_too():
    placed = compile_plan(
        topology(Plain, processes=2, par={"prod": 4, "beta": 2}), {"topology.environment": "prod"}
    ).component("placed")
    assert (len(placed.tasks), placed.processes) == (4, 2)


@pytest.mark.parametrize("cls", [Plain, Batches, Columns, Requests])
def test_other_bolts_compile(cls):
    assert compile_plan(topology(cls, processes=2)).component("placed").processes == 2


def test_a_join_compiles():
    class Joined(Topology):
        left = MemorySpout.spec(fields=["n long"], rows=[[1]])
        right = MemorySpout.spec(fields=["n long"], rows=[[1]])
        split = Plain.spec(inputs=[left])
        placed = Pairs.spec(inputs={split: Grouping.fields("n"), left: Grouping.fields("n")}, processes=2)

    assert compile_plan(Joined).component("placed").processes == 2


class Looks(Plain):
    def process(self, tup):
        with self.limit("api"):
            self.emit([tup.values.n])


@pytest.mark.parametrize("cls, gains", [(Plain, True), (Looks, True), (Requests, False), (Sum, False), (Direct, False)])
def test_tune_tries_processes_for_what_may_compute_whether_or_not_it_takes_permits(cls, gains):
    plan = compile_plan(topology(cls), {"topology.rate.limit": {"api": "20/s"}})
    assert is_placeable(plan.component("placed")) == gains
