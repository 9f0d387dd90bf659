"""A task whose bolts have more processes than it has cores says so."""

import logging

import pytest

from pystorm_source import Bolt, Topology
from pystorm_source.plan import compile_plan
from pystorm_source.spark import task_cores
from pystorm_source.spark.task_cores import advise_of_cores
from pystorm_source.spouts import MemorySpout


class Heavy(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([tup.values.n])


def plan_of(processes, par=4):
    class Numbers(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        parse = Heavy.spec(inputs=[numbers], par=par, processes=processes)

    return compile_plan(Numbers)


class Task:
    """What a TaskContext says of its cores and its place."""

    def __init__(self, cpus, partition=0, attempt=0, batch=None):
        self.cpus = lambda: cpus
        self.partitionId = lambda: partition
        self.attemptNumber = lambda: attempt
        self.getLocalProperty = {"streaming.sql.batchId": batch}.get


@pytest.fixture
def warnings_of(monkeypatch, caplog):
    monkeypatch.setattr(task_cores, "_said", set())
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")

    def found(plan, cpus, **place):
        caplog.clear()
        monkeypatch.setattr(task_cores.TaskContext, "get", lambda: None if cpus is None else Task(cpus, **place))
        with caplog.at_level(logging.WARNING, "pystorm.worker"):
            advise_of_cores(plan)
        return caplog.messages

    return found


def test_more_processes_than_cores_are_said_once(warnings_of):
    (text,) = warnings_of(plan_of(3), 1)
    assert "'Numbers' run in 3 processes ('parse' has 3), and Spark counts 1" in text
    assert "set spark.task.cpus=3" in text
    assert warnings_of(plan_of(3), 1) == []


@pytest.mark.parametrize("processes, cpus", [(2, 2), (0, 1), (2, None)])
def test_nothing_is_said_where_there_are_enough(warnings_of, processes, cpus):
    assert warnings_of(plan_of(processes), cpus) == []


@pytest.mark.parametrize(
    ("place", "count"),
    [({}, 1), ({"batch": "0"}, 1), ({"partition": 1}, 0), ({"attempt": 1}, 0), ({"batch": "1"}, 0)],
)
def test_of_tasks_with_a_process_each_the_first_says_it(warnings_of, monkeypatch, place, count):
    monkeypatch.delenv("SPARK_REUSE_WORKER")
    assert len(warnings_of(plan_of(3), 1, **place)) == count


def test_a_process_of_many_tasks_says_it_whatever_task_it_has_first(warnings_of):
    assert len(warnings_of(plan_of(3), 1, partition=5, batch="7")) == 1
