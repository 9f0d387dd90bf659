"""Two processes with a topology each: what is counted, and over which time."""

import os

import pytest

from benchmarks.harness.components import ConstNull, ConstSpout, NullBolt
from benchmarks.harness.programs import processors
from benchmarks.harness.two_processes import TwoProcesses, Window, rate
from pystorm_source.api import Topology


def test_the_rate_is_over_the_time_in_which_either_ran():
    assert rate([Window(300, 10.0, 12.0), Window(100, 10.5, 14.0)]) == 100.0


def test_both_count_again_and_again():
    with TwoProcesses(ConstNull, 10) as both:
        assert all(both.tuples_per_second(50) > 0 for _ in range(2))


class ElsewhereBolt(NullBolt):
    """Refuses to run on more than one processor."""

    def initialize(self, conf, context):
        (cpu,) = os.sched_getaffinity(0)
        assert cpu in processors()


class Pinned(Topology):
    spout = ConstSpout.spec()
    last = ElsewhereBolt.spec(inputs=[spout])


def test_each_has_one_processor():
    with TwoProcesses(Pinned, 10) as both:
        assert both.tuples_per_second(10) > 0


class BrokenBolt(NullBolt):
    def initialize(self, conf, context):
        raise ValueError("no")


class Broken(Topology):
    spout = ConstSpout.spec()
    last = BrokenBolt.spec(inputs=[spout])


def test_a_process_that_has_ended_is_no_silence(capfd):
    with pytest.raises(RuntimeError, match="has ended"):
        TwoProcesses(Broken, 10)
    assert "ValueError: no" in capfd.readouterr().err
