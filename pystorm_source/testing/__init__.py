"""The test kit: a topology runs inside a test, without Spark and without waiting::

    result = run_topology(WordCount, config={"sentences.total": 2})
    assert result.rows("counts") == [("cow", 1), ("moon", 1)]

Time is a ``ManualClock`` that advances whenever a topology would wait, so ticks and pauses take no time.
"""

from pystorm_source.clock import ManualClock, SystemClock
from pystorm_source.testing.bolt_contract import verify_bolt
from pystorm_source.testing.result import Result
from pystorm_source.testing.run import run_topology
from pystorm_source.testing.script import ABORT, EOF, FAIL, ON, PAUSE, ScriptedSpout
from pystorm_source.testing.spout_contract import verify_spout

__all__ = [
    "ABORT",
    "EOF",
    "FAIL",
    "ON",
    "PAUSE",
    "ManualClock",
    "Result",
    "ScriptedSpout",
    "SystemClock",
    "run_topology",
    "verify_bolt",
    "verify_spout",
]
