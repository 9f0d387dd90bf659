"""What a user's traceback shows of an error that leaves one of the package's doors."""

import logging
import traceback
from pathlib import Path

import pytest

from pystorm_source import Bolt, Topology, read_stream, register
from pystorm_source.errors import InternalError, OptionError, PystormError, TopologyError
from pystorm_source.errors.door import door
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology

HERE = __file__
ROOT = Path(HERE).resolve().parents[2]


class Echo(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([tup.values.n])


class Numbers(Topology):
    config = {"topology.rate.limit": {"price": 50}}
    numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
    echo = Echo.spec(inputs=[numbers])


def wrong_class():
    class Wrong(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        echo = Echo.spec(inputs=[numbers], par=0)


class NoSession:
    """Spark is asked for nothing before the topology is checked."""


DOORS = {
    "read_stream": lambda: read_stream(NoSession(), Numbers),
    "by name": lambda: read_stream(NoSession(), "no_such_module:Numbers"),
    "register": lambda: register(NoSession(), Numbers),
    "run_topology": lambda: run_topology(Numbers),
    "spec": lambda: Echo.spec(inputs=5),
    "unknown": lambda: Echo.spec(inputs=[], parallelism=5),
    "class": wrong_class,
}


@pytest.mark.parametrize("call", DOORS.values(), ids=DOORS)
def test_an_error_shows_the_users_frames_and_none_of_the_package(call):
    with pytest.raises(PystormError) as raised:
        call()
    files = [frame.filename for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert set(files) == {HERE}
    assert str(ROOT / "pystorm_source") not in "".join(traceback.format_exception(raised.value))


def test_the_log_has_all_frames_at_debug(caplog):
    with caplog.at_level(logging.DEBUG, "pystorm_source.errors.door"), pytest.raises(OptionError):
        read_stream(NoSession(), Numbers)
    (record,) = caplog.records
    assert "compile_plan" in caplog.handler.format(record)


def test_a_fault_of_this_package_keeps_its_frames():
    def inner():
        raise InternalError("a promise was broken", code="PYSTORM_INTERNAL")

    with pytest.raises(InternalError) as raised:
        door(inner)()
    assert raised.traceback[-1].name == "inner"


def test_frames_of_the_users_own_code_below_the_door_stay():
    def users():
        raise TopologyError("it cannot run", code="PYSTORM_INVALID_TOPOLOGY")

    with pytest.raises(TopologyError) as raised:
        door(users)()
    assert raised.traceback[-1].name == "users"


def test_a_cause_stays_with_its_words():
    with pytest.raises(OptionError) as raised:
        read_stream(NoSession(), "no_such_module:Numbers")
    assert isinstance(raised.value.__cause__, ModuleNotFoundError)
    assert raised.value.__cause__.__traceback__ is None
