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
    """What a TaskContext says of its cores."""

    def __init__(self, cpus):
        self._cpus = cpus

    def cpus(self):
        return self._cpus


@pytest.fixture
def warnings_of(monkeypatch, caplog):
    monkeypatch.setattr(task_cores, "_said", set())

    def found(plan, cpus):
        caplog.clear()
        monkeypatch.setattr(task_cores.TaskContext, "get", lambda: None if cpus is None else Task(cpus))
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
