"""What each cut costs, in words."""

import pytest

from pystorm_source import Bolt, Grouping, StatefulBolt, Topology
from pystorm_source.plan import compile_plan
from pystorm_source.plan.cut_costs import cut_costs
from pystorm_source.plan.stages import cut
from pystorm_source.spouts import MemorySpout

SHUFFLED = "a row costs about 1 us in Spark's shuffle"
EACH = "into a Spark task for each partition"
STATE = "a key costs about 0.1 ms in each micro-batch that has it, for a get and a put in Spark's state store"


class B(Bolt):
    outputs = ["key string"]

    def process(self, tup):
        self.emit(tup.values)


class Kept(StatefulBolt):
    outputs = ["key string"]
    state_fields = ["n long"]

    def process(self, tup):
        self.emit(tup.values)


class Timed(Kept):
    def process_timer(self, key):
        self.state.clear()


KEY = Grouping.fields("key")


def costs(cls, grouping, behind=None):
    a = MemorySpout.spec(fields=["key string"], rows=[])
    b = cls.spec(inputs={a: grouping})
    more = {} if behind is None else {"c": B.spec(inputs={b: behind})}
    plan = compile_plan(type("T", (Topology,), {"a": a, "b": b, **more}))
    return list(cut_costs(cut(plan, [("c" if more else "b", "default")])))


@pytest.mark.parametrize(
    ("cls", "grouping", "behind", "expected"),
    [
        (B, Grouping.SHUFFLE, None, []),
        (B, KEY, None, [f"stage 1: {SHUFFLED}, {EACH}"]),
        (B, Grouping.GLOBAL, None, [f"stage 1: {SHUFFLED}, all into one Spark task"]),
        (B, Grouping.ALL, None, [f"stage 1: {SHUFFLED}, {EACH}; each row of a.default goes to every task"]),
        (
            Kept,
            KEY,
            Grouping.SHUFFLE,
            [f"stage 1: {SHUFFLED}, {EACH}; {STATE}", "stage 2: no shuffle, rows stay in their Spark task"],
        ),
        (Timed, KEY, None, [f"stage 1: {SHUFFLED}, {EACH}; {STATE}; Spark runs micro-batches without rows, too"]),
    ],
)
def test_each_stage_behind_a_cut_has_a_line(cls, grouping, behind, expected):
    assert costs(cls, grouping, behind) == expected
