"""The garbage collector in a Python process that Spark uses again."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.inline

CODE = """
import gc, json
from tests.worker.running import N, Numbers, Pass, topology
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, warm
s = Numbers.spec()
plan = compile_plan(topology(s=s, b=Pass.spec(inputs=[s])))
output = OutputPlan(N, (ViewPlan("b", "default", (0,)),))
warm.give_back(warm.take(plan, output, "first"))
frozen = gc.get_freeze_count()
worker = warm.take(plan, output, "second")
seen = any(each is worker for each in gc.get_objects())
print(json.dumps([frozen, gc.get_freeze_count() - frozen, seen]))
"""


def counts(**environment):
    """(Objects out of its sight behind the first worker, more of them behind the second one, whether it sees that)."""
    ran = subprocess.run(
        [sys.executable, "-c", CODE], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return tuple(json.loads(ran.stdout))


def test_where_spark_collects_after_each_task_modules_are_out_of_sight_and_workers_are_not():
    frozen, more, seen = counts(SPARK_REUSE_WORKER="1")
    assert frozen > 20_000
    assert (more, seen) == (0, True)


def test_elsewhere_all_is_as_it_was():
    assert counts(SPARK_REUSE_WORKER="") == (0, 0, True)


BEHIND_NONE = """
import ctypes, gc, json
from tests.worker.running import N, Numbers, Pass, topology
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, Worker

class Holder:
    pass

def behind_none():
    return ctypes.string_at(id(None) + object.__basicsize__, 16).hex()

gc.collect()
gc.disable()
s = Numbers.spec()
plan = compile_plan(topology(s=s, b=Pass.spec(inputs=[s]), config={"topology.scheduler": "threads"}))
worker = Worker(plan, OutputPlan(N, (ViewPlan("b", "default", (0,)),)))
holder = Holder()  # younger than the threads, so that the collector clears them first
holder.scheduler, holder.itself = worker._scheduler, holder
del worker
before = behind_none()
del holder
collected = gc.collect()
print(json.dumps([collected > 0, before == behind_none()]))
"""


def test_a_scheduler_that_is_garbage_together_with_its_threads_writes_into_no_memory_of_the_interpreter():
    """Up to CPython 3.13 nothing lies behind None, so only 3.14 and later can show it."""
    ran = subprocess.run([sys.executable, "-c", BEHIND_NONE], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == [True, True]
