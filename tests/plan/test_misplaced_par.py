"""``par`` where it has no effect, and other words for it: one message says where it belongs."""

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from pystorm_source import Bolt, Input, Topology
from pystorm_source.errors import OptionError
from pystorm_source.operator.apply import operator_of
from pystorm_source.options import SourceOptions, check_known
from pystorm_source.plan import compile_plan
from pystorm_source.source.request import ReadRequest
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology

MEANT = r"number of tasks of a component is `par` of its spec.*Given: "


class Split(Bolt):
    outputs = ["word string"]

    def process(self, tup):
        self.emit([tup.values.line])


class ReadsIt(Split):
    def initialize(self, conf, context):
        self.handicap = conf["par"]


def made(cls=Split, config=None, topology_config=None):
    lines = MemorySpout.spec(fields=["line string"], rows=[["a"]])
    body = {"lines": lines, "words": cls.spec(inputs=[lines], config=config), "config": topology_config or {}}
    return type("Made", (Topology,), body)


@pytest.mark.parametrize("word", ["par", "parallelism", "num_tasks", "parallelism_hint"])
def test_an_option_of_that_name_is_told_where_it_belongs(word):
    with pytest.raises(OptionError, match=MEANT):
        check_known([word], [SourceOptions])


@pytest.mark.parametrize("config", [{"config": {"par": 4}}, {"topology_config": {"par": 4}}])
def test_a_par_in_a_configuration_that_nothing_reads_is_refused(config):
    with pytest.raises(OptionError, match=MEANT):
        compile_plan(made(**config))
    with pytest.raises(OptionError, match=MEANT):
        run_topology(made(), config={"par": 4})


def test_a_key_of_that_name_that_a_component_reads_is_its_own():
    assert run_topology(made(ReadsIt, {"par": 72})).rows("words") == [("a",)]


@pytest.mark.parametrize("words", [{"parallelism": 4}, {"parallelism_hint": 4}, {"tasks": 4}])
def test_a_spec_says_which_argument_is_meant(words):
    with pytest.raises(TypeError, match=f"Split.spec takes no .*{MEANT}"):
        Split.spec(**words)
    with pytest.raises(TypeError, match=f"MemorySpout.spec takes no .*{MEANT}"):
        MemorySpout.spec(**words)


def test_an_argument_that_is_near_to_one_is_told_with_it():
    with pytest.raises(TypeError, match=r"Split.spec takes no 'input': did you mean 'inputs'\?"):
        Split.spec(input=[])
    with pytest.raises(TypeError, match=r"takes no 'zzz': it takes .*config=\{'zzz': ...\}.*Given: zzz=1"):
        Split.spec(zzz=1)


class Own(Bolt):
    @classmethod
    def spec(cls, *, price, **keywords):
        int(price, base=[])  # a TypeError of its own
        return super().spec(**keywords)


def test_a_type_error_within_a_spec_of_the_users_own_stays_as_it_is():
    with pytest.raises(TypeError, match="integer"):
        Own.spec(price="1")


def test_sources_and_operators_say_it_too():
    class Made(Topology):
        rows = Input.spec(["line string"])
        words = Split.spec(inputs=[rows])

    with pytest.raises(OptionError, match=MEANT):
        operator_of(StructType([StructField("line", StringType())]), Made, {"par": "4"})
    plan = compile_plan(made(), any_environment=True)
    for options in ({"par": "4"}, {"config": '{"par": 4}'}):
        with pytest.raises(OptionError, match=MEANT):
            ReadRequest.of(options, "made", plan)
