"""Examples of errors about topologies, streams, types and emits."""

import asyncio
import threading

from pystorm_source import read, read_stream
from pystorm_source.api import (
    AsyncBolt,
    BatchingBolt,
    Bolt,
    GlobalStreamId,
    Grouping,
    JoinBolt,
    PartitionedSpout,
    ReliableSpout,
    Topology,
)
from pystorm_source.exceptions import RetryLater
from pystorm_source.query.progress import chosen
from pystorm_source.query.stacks import chosen as chosen_stacks
from pystorm_source.records.record import ComponentProgress, PystormProgress, TopologyProgress
from pystorm_source.spouts import FilesSpout, MemorySpout
from pystorm_source.testing import run_topology, verify_bolt
from tests.docs.errors.examples import Numbers, raises, spark, through


@raises("PYSTORM_CANNOT_PICKLE")
def _():
    lock = threading.Lock()

    class Counted(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            with lock:
                self.emit(tup.values)

    read_stream(spark, through(Counted))


@raises("PYSTORM_INVALID_TOPOLOGY")
def _():
    class Nothing(Topology):
        pass

    run_topology(Nothing)


@raises("PYSTORM_INVALID_TOPOLOGY")
def _():
    class Count(Bolt):
        def process(self, tup): ...

    class Counted(Topology):
        hosts = MemorySpout.spec(fields=["host string"], rows=[["a"]])
        counts = Count.spec(inputs={hosts: Grouping.fields("hots")})


@raises("PYSTORM_INVALID_ARGUMENT")
def _():
    run_topology(Numbers())


@raises("PYSTORM_INVALID_COMPONENT")
def _():
    class Lazy(Bolt):
        outputs = ["n long"]

    run_topology(through(Lazy))


@raises("PYSTORM_INVALID_COMPONENT")
def _():
    class Lazy(Bolt):
        outputs = ["n long"]

    Lazy().process(None)


@raises("PYSTORM_INVALID_COMPONENT")
def _():
    class Shards(PartitionedSpout):
        outputs = ["n long"]

        def partitions(self):
            return ["shard-1"]

        def latest(self, partition):
            return "10"

        def open(self, partition, start, end): ...

        def next_tuple(self): ...

    class Sharded(Topology):
        shards = Shards.spec()

    run_topology(Sharded)


@raises("PYSTORM_SPOUTS_NEVER_MEET")
def _():
    class Join(Bolt):
        outputs = ["n long"]

        def process(self, tup): ...

    class Joined(Topology):
        left = MemorySpout.spec(fields=["n long"], rows=[[1]])
        right = MemorySpout.spec(fields=["n long"], rows=[[1]])
        join = Join.spec(inputs={left: Grouping.fields("n"), right: Grouping.fields("n")})

    read_stream(spark, Joined)


@raises("PYSTORM_CANNOT_BE_CUT")
def _():
    class Pass(Bolt):
        outputs = ["n long"]

        def process(self, tup): ...

    class Circle(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        there = Pass.spec(inputs=[numbers, GlobalStreamId("back")])
        back = Pass.spec(inputs={there: Grouping.fields("n")})

    read_stream(spark, Circle, scope="cluster", stream="there")


@raises("PYSTORM_INVALID_TOPOLOGY")
def _():
    class Paid(JoinBolt):
        outputs = ["id long"]
        join_keys = {"orders": "id", "payments": "oder"}

        def process_join(self, tups):
            self.emit([tups["orders"].values.id])

    class Shop(Topology):
        orders = MemorySpout.spec(fields=["id long"], rows=[[1]])
        payments = MemorySpout.spec(fields=["order long"], rows=[[1]])
        paid = Paid.spec(inputs={orders: Grouping.fields("id"), payments: Grouping.fields("order")})

    run_topology(Shop, scope="cluster")


@raises("PYSTORM_INVALID_ARGUMENT")
def _():
    verify_bolt(Numbers, [[1]], fields=["n long"])


@raises("PYSTORM_CONTRACT_BROKEN")
def _():
    class Numbered(Bolt):
        outputs = ["number long", "word string"]
        count = 0

        def process(self, tup):
            self.count += 1
            self.emit([self.count, tup.values.word])

    verify_bolt(Numbered, [["the"], ["cow"]], fields=["word string"])


@raises("PYSTORM_TOPOLOGY_DOES_NOT_END")
def _():
    class Again(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            while True:
                self.n = tup.values.n

    run_topology(through(Again), timeout=0.5)


@raises("PYSTORM_SCHEMA_MISMATCH")
def _():
    read(spark, Numbers, schema="m long")


@raises("PYSTORM_INVALID_TYPE")
def _():
    class Typed(Topology):
        numbers = MemorySpout.spec(fields=["n int64"], rows=[[1]])

    run_topology(Typed)


@raises("PYSTORM_INVALID_TYPE")
def _():
    class Untyped(Topology):
        numbers = MemorySpout.spec(fields=["n"], rows=[[1]])

    read_stream(spark, Untyped)


@raises("PYSTORM_SCHEMA_MISMATCH")
def _():
    class Lines(Topology):
        lines = FilesSpout.spec(path=".", fields=["id long", "line string"])

    run_topology(Lines)


@raises("PYSTORM_MALFORMED_RECORD")
def _(folder):
    (folder / "orders.ndjson").write_text('{"id": 1}\n{"id": one}\n')

    class Orders(Topology):
        orders = FilesSpout.spec(path="orders.ndjson", fields=["id long"], format="ndjson")

    run_topology(Orders)


class Silent(Bolt):
    def process(self, tup): ...


@raises("PYSTORM_INVALID_TOPOLOGY")
def _():
    class Store(Bolt):
        def process(self, tup): ...

    read_stream(spark, through(Store))


@raises("PYSTORM_INVALID_OPTION")
def _():
    read_stream(spark, Numbers, stream="letters")


@raises("PYSTORM_INVALID_ARGUMENT")
def _():
    run_topology(Numbers).rows("nubmers")


@raises("PYSTORM_INVALID_ARGUMENT")
def _():
    TopologyProgress(components=(ComponentProgress(name="price"),)).component("prise")


@raises("PYSTORM_MISSING_OPTION")
def _():
    class Two(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        words = MemorySpout.spec(fields=["word string"], rows=[["cow"]])

    read_stream(spark, Two)


@raises("PYSTORM_OPTIONS_CONFLICT")
def _():
    read_stream(spark, Numbers, options={"topology.dead.letter": "stream"})


@raises("PYSTORM_TUPLE_FAILED")
def _():
    class Half(Bolt):
        outputs = ["half double"]

        def process(self, tup):
            self.emit([1 / tup.values.n])

    run_topology(through(Half))


@raises("PYSTORM_TUPLE_TIMED_OUT")
def _():
    class Forgets(Bolt):
        auto_ack = False

        def process(self, tup): ...

    run_topology(through(Forgets), {"topology.message.timeout.secs": 1, "topology.max.spout.retries": 0})


@raises("PYSTORM_SPOUT_UNAVAILABLE", "An API has used up its quota for the hour.")
def _():
    class Posts(Squares):  # a PartitionedSpout
        def latest(self, partition):
            raise RetryLater(2400, "429 Too Many Requests")

        def next_tuple(self):
            return False

    run_topology(type("Feed", (Topology,), {"posts": Posts.spec()}))


@raises("PYSTORM_TUPLE_FAILED")
def _():
    class Connects(Bolt):
        def initialize(self, conf, context):
            raise ConnectionError("no route to the database")

        def process(self, tup): ...

    run_topology(through(Connects))


@raises("PYSTORM_ROWS_RETURNED")
def _():
    class Squares(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            return [tup.values.n**2]

    run_topology(through(Squares))


@raises("PYSTORM_UNKNOWN_STREAM")
def _():
    class Split(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            self.emit([1], stream="odd")

    run_topology(through(Split))


@raises("PYSTORM_EMIT_NOT_A_LIST")
def _():
    class Shout(Bolt):
        outputs = ["word string"]

        def process(self, tup):
            self.emit("cow")

    run_topology(through(Shout))


@raises("PYSTORM_WRONG_NUMBER_OF_FIELDS")
def _():
    class Count(Bolt):
        outputs = ["word string", "count long"]

        def process(self, tup):
            self.emit(["cow"])

    run_topology(through(Count))


@raises("PYSTORM_WRONG_NUMBER_OF_FIELDS")
def _():
    class Count(Bolt):
        outputs = ["word string", "count long"]

        def process(self, tup):
            self.emit_many(["the", "cow"], [2])

    run_topology(through(Count))


@raises("PYSTORM_UNKNOWN_FIELD")
def _():
    class Count(Bolt):
        outputs = ["word string"]

        def process_many(self, tups):
            self.emit_many(tups.column("werd"))

    run_topology(through(Count))


@raises("PYSTORM_VALUE_DOES_NOT_FIT")
def _():
    class Count(Bolt):
        outputs = ["count long"]

        def process(self, tup):
            self.emit(["three"])

    run_topology(through(Count))


class Squares(PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["all"]

    def latest(self, partition):
        return 3

    def open(self, partition, start, end):
        self.n = start


@raises("PYSTORM_OFFSET_MISSING")
def _():
    class Careless(Squares):  # a PartitionedSpout
        def next_tuple(self):
            self.emit([1])

    class Read(Topology):
        squares = Careless.spec()

    run_topology(Read)


@raises("PYSTORM_OFFSET_OUT_OF_RANGE")
def _():
    class Greedy(Squares):  # a PartitionedSpout of 3 offsets
        def next_tuple(self):
            self.emit([self.n * self.n], tup_id=self.n)
            self.n += 1

    class Read(Topology):
        squares = Greedy.spec()

    run_topology(Read)


@raises("PYSTORM_INVALID_ANCHOR")
def _():
    class Anchors(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            self.emit([1], anchors=tup)

    run_topology(through(Anchors))


@raises("PYSTORM_ANCHOR_CLOSED")
def _():
    class AcksFirst(Bolt):
        outputs = ["n long"]
        auto_ack = False

        def process(self, tup):
            self.ack(tup)
            self.emit([1], anchors=[tup])

    run_topology(through(AcksFirst))


@raises("PYSTORM_EMIT_OUTSIDE_OF_RUN")
def _():
    class Early(Bolt):
        outputs = ["n long"]

        def __init__(self):
            self.emit([1])

        def process(self, tup): ...

    run_topology(through(Early))


@raises("PYSTORM_INVALID_DIRECT_TASK")
def _():
    class Direct(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            self.emit([1], direct_task=2)

    run_topology(through(Direct))


@raises("PYSTORM_INVALID_RETURN_VALUE")
def _():
    class First:
        def prepare(self, context, stream, target_tasks): ...

        def choose_tasks(self, task_id, values):
            return 1

    class Counted(Bolt):
        outputs = ["n long"]

        def process(self, tup): ...

    class Chosen(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        counted = Counted.spec(inputs={numbers: Grouping.custom(First())}, par=2)

    run_topology(Chosen)


@raises("PYSTORM_VALUE_WITHOUT_HASH")
def _():
    class Keys(Bolt):
        outputs = ["key"]

        def process(self, tup):
            self.emit([object()])

    class Count(Bolt):
        def process(self, tup): ...

    class Grouped(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        keys = Keys.spec(inputs=[numbers])
        count = Count.spec(inputs={keys: Grouping.fields("key")}, par=2)

    run_topology(Grouped)


@raises("PYSTORM_VALUE_DOES_NOT_FIT")
def _():
    class Locked(Bolt):
        outputs = ["lock"]

        def process(self, tup):
            self.emit([threading.Lock()])

    class Use(Bolt):
        def process(self, tup): ...

    class Shared(Topology):
        config = {"topology.testing.always.try.serialize": True}
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        locked = Locked.spec(inputs=[numbers])
        used = Use.spec(inputs={locked: Grouping.ALL}, par=2)

    run_topology(Shared)


@raises("PYSTORM_MESSAGE_ID_MISSING")
def _():
    class Clicks(ReliableSpout):
        outputs = ["url string"]

        def next_tuple(self):
            self.emit(["/index.html"])

    class Site(Topology):
        clicks = Clicks.spec()

    run_topology(Site)


@raises("PYSTORM_TASK_IDS_UNKNOWN")
def _():
    class Ordered(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            if tup.values.n == 0:
                await asyncio.sleep(0.01)
            self.emit([tup.values.n], need_task_ids=True)

    run_topology(through(Ordered, config={"topology.async.ordered": True}))


@raises("PYSTORM_INVALID_ANCHOR")
def _():
    class Acks(Bolt):
        outputs = ["n long"]
        auto_ack = False

        def process(self, tup):
            self.ack(None)

    run_topology(through(Acks))


@raises("PYSTORM_INVALID_RETURN_VALUE")
def _():
    class Grouped(BatchingBolt):
        outputs = ["n long"]

        def group_key(self, tup):
            return [tup.values.n]

        def process_batch(self, key, tups): ...

    run_topology(through(Grouped))


@raises("PYSTORM_NO_PROGRESS", "`progress(query)` of a query that reads `format('rate')` alone.")
def _():
    chosen([], None, {"runId": "8e4a1f3c-5b1e-4c0e-9a76-0b6f4a2d9c11", "sources": [{"endOffset": "5"}]})


@raises("PYSTORM_NO_STACKS", "`stacks(query)` of a query with `feedback=off`.")
def _():
    chosen_stacks((), "8e4a1f3c-5b1e-4c0e-9a76-0b6f4a2d9c11")


@raises("PYSTORM_INVALID_ARGUMENT", "`progress(query)` of a query that unites the topologies `Words` and `Numbers`.")
def _():
    words, numbers = (TopologyProgress(name=name, run=name[0].lower() * 32) for name in ("Words", "Numbers"))
    chosen([PystormProgress(topology=words), PystormProgress(topology=numbers)], None, {})
