"""A key ``topology.*`` that looks misspelt is refused at every door, wherever the configuration stands."""

import json

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from pystorm_source import Bolt, Input, Topology
from pystorm_source.errors import OptionError
from pystorm_source.operator.apply import operator_of
from pystorm_source.plan import compile_plan
from pystorm_source.sink.request import SinkRequest
from pystorm_source.source.request import ReadRequest
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology

WRONG = {"topology.schedular": "threads"}
MEANT = r"unknown key 'topology.schedular': did you mean 'topology.scheduler'\? Given: "
COLUMNS = StructType([StructField("line", StringType())])


class Take(Bolt):
    outputs = ["line string"]

    def process(self, tup):
        self.emit(list(tup.values))


class Ends(Bolt):
    def process(self, tup):
        pass


def topology(first, bolt=Take, own=None, config=None):
    body = {"rows": first, "bolt": bolt.spec(inputs=[first], config=own), "config": config or {}}
    return type("Made", (Topology,), body)


def spout():
    return MemorySpout.spec(fields=["line string"], rows=[["a"]])


def source(options, **made):
    return ReadRequest.of(options, "made", compile_plan(topology(spout(), **made), any_environment=True))


def operator(options, **made):
    return operator_of(COLUMNS, topology(Input.spec(["line string"]), **made), options)


def sink(options, **made):
    plan = compile_plan(topology(Input.spec(["line string"]), Ends, **made), any_environment=True)
    return SinkRequest.of(options, "made", plan)


def kit(options, **made):
    return run_topology(topology(spout(), **made), config=json.loads(options.get("config", "{}")))


DOORS = pytest.mark.parametrize("door", [source, operator, sink, kit])


@DOORS
@pytest.mark.parametrize("place", ["own", "config"])
def test_in_a_class(door, place):
    with pytest.raises(OptionError, match=MEANT):
        door({}, **{place: WRONG})


@DOORS
def test_in_the_option_config(door):
    with pytest.raises(OptionError, match=MEANT):
        door({"config": json.dumps(WRONG)})


@DOORS
def test_keys_of_storm_and_of_the_users_own_pass(door):
    door({}, config={"topology.workers": 2, "topology.city": "Bern", "my.key": 1}, own={"topology.tasks": 2})


def test_the_component_is_named():
    with pytest.raises(OptionError, match=f"config of component 'bolt': {MEANT}"):
        compile_plan(topology(spout(), own=WRONG))
