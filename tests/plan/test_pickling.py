"""A plan travels to the tasks: by reference if its classes can be imported there, else with them."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MAKES = """
import sys; sys.path.insert(0, {root!r})
import pyarrow as pa
from pystorm_source import Bolt, Grouping, PartitionedSpout, Topology
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan
{pickler}

FACTOR = 10

class Numbers(PartitionedSpout):
    outputs = ["n long"]
    def partitions(self): return ["p"]
    def latest(self, partition): return 5
    def open(self, partition, start, end): self.at, self.end = start, end
    def next_tuple(self):
        if self.at == self.end: return False
        self.emit((self.at,), self.at)
        self.at += 1

class Times(Bolt):
    outputs = ["n long"]
    def initialize(self, conf, context): self.by = conf["by"]
    def process(self, tup): self.emit((tup.values.n * FACTOR * self.by,))

class Made(Topology):
    config = {{"by": 2}}
    numbers = Numbers.spec(par=2)
    times = Times.spec(inputs={{numbers: Grouping.fields("n")}}, par=2)

plan = compile_plan(Made)
output = OutputPlan(pa.schema([("n", pa.int64())]), (ViewPlan("times", "default", (0,)),))
sys.stdout.buffer.write(pickler.dumps((plan, output)))
"""

EVERY_KIND = """
import sys; sys.path.insert(0, {root!r})
import pyarrow as pa
from pystorm_source import BatchingBolt, Bolt, Grouping, ReliableSpout, Stream, TicklessBatchingBolt, Topology
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan
from pyspark import cloudpickle as pickler

class ByLength:
    def prepare(self, context, stream, targets): self.targets = targets
    def choose_tasks(self, task, values): return [self.targets[len(values[0]) % len(self.targets)]]

class Words(ReliableSpout):
    outputs = ["word"]
    def initialize(self, conf, context): self.left = ["aa", "b", "aa"]
    def next_tuple(self):
        if self.left: self.emit([self.left.pop()], tup_id=len(self.left))

class Batches(BatchingBolt):
    outputs = [Stream(["word", "n"], name="to", direct=True)]
    def initialize(self, conf, context):
        self.to = min(int(task) for task, name in context["task->component"].items() if name == "last")
    def group_key(self, tup): return tup.values.word
    def process_batch(self, key, tups): self.emit([key, len(tups)], stream="to", direct_task=self.to)

class Last(TicklessBatchingBolt):
    outputs = ["word string", "n long"]
    def process_batch(self, key, tups):
        for tup in tups: self.emit(tup.values)

class Made(Topology):
    words = Words.spec()
    batches = Batches.spec(inputs={{words: Grouping.custom(ByLength())}}, par=2)
    last = Last.spec(inputs=[batches["to"]], par={{"prod": 2}})

plan = compile_plan(Made, {{"topology.environment": "prod"}})
output = OutputPlan(pa.schema([("word", pa.string()), ("n", pa.int64())]), (ViewPlan("last", "default", (0, 1)),))
sys.stdout.buffer.write(pickler.dumps((plan, output)))
"""

RUNS_EVERY_KIND = """
import sys; sys.path.insert(0, {root!r})
import pickle
from pystorm_source.worker import Worker
plan, output = pickle.load(sys.stdin.buffer)
worker = Worker(plan, output)
print(sorted(tuple(row.values()) for batch in worker.run_round({{}}) for row in batch.to_pylist()))
print(worker.report()["components"]["words"]["acked"])
"""

RUNS = """
import sys; sys.path.insert(0, {root!r})
import pickle
from pystorm_source.worker import Worker
plan, output = pickle.load(sys.stdin.buffer)
worker = Worker(plan, output)
rows = [row["n"] for batch in worker.run("numbers", "p", 0, 5) for row in batch.to_pylist()]
print(sorted(rows))
"""


def run(program, given=None):
    ended = subprocess.run([sys.executable, "-c", program], input=given, capture_output=True, timeout=60)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout


def test_classes_of_a_script_travel_by_value():
    """By the pickler that Spark ships them with, its own copy of cloudpickle."""
    pytest.importorskip("pyspark")
    pickled = run(MAKES.format(root=str(ROOT), pickler="from pyspark import cloudpickle as pickler"))
    assert run(RUNS.format(root=str(ROOT)), pickled) == b"[0, 20, 40, 60, 80]\n"


@pytest.mark.parametrize("ran_before", [False, True])
def test_every_kind_of_component_and_grouping_travels_by_value(ran_before):
    """Also after the topology has run where it was defined, as in a notebook: the engine's marks stay behind."""
    pytest.importorskip("pyspark")
    program = EVERY_KIND.format(root=str(ROOT))
    if ran_before:
        runs = (
            "from pystorm_source.worker import Worker\n"
            "made = Worker(plan, output)\n"
            "assert sum(batch.num_rows for batch in made.run_round({})) == 2\n"
        )
        program = program.replace("sys.stdout.buffer", runs + "sys.stdout.buffer")
    pickled = run(program)
    assert run(RUNS_EVERY_KIND.format(root=str(ROOT)), pickled) == b"[('aa', 2), ('b', 1)]\n3\n"


def test_classes_of_a_module_travel_by_reference(tmp_path):
    (tmp_path / "made_for_a_test.py").write_text(
        MAKES.format(root=str(ROOT), pickler="import pickle as pickler").rpartition("sys.stdout")[0]
    )
    reaches = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    pickled = run(
        f"{reaches}import pickle, made_for_a_test as m; sys.stdout.buffer.write(pickle.dumps((m.plan, m.output)))"
    )
    assert len(pickled) < 2000
    assert run(reaches + RUNS.format(root=str(ROOT)), pickled) == b"[0, 20, 40, 60, 80]\n"
    # Without the module the class is named, not guessed.
    ended = subprocess.run(
        [sys.executable, "-c", RUNS.format(root=str(ROOT))], input=pickled, capture_output=True, timeout=60
    )
    assert b"made_for_a_test" in ended.stderr


def test_a_plan_survives_every_protocol():
    from pystorm_source.plan import compile_plan
    from tests.plan.test_compile import WordCount

    plan = compile_plan(WordCount)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(plan, protocol))
        assert again == plan
        assert [c.cls for c in again.components] == [c.cls for c in plan.components]
