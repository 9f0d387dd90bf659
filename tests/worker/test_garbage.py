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
