"""Topology → Plan: tasks, order, edges, configuration, and every refusal with its message."""

import functools
import pickle
import sys
import threading
import types

import pytest

from cython_core.compiled.bolt import CompiledBolt
from pystorm_source import (
    ArrowBolt,
    AsyncBolt,
    BatchingBolt,
    Bolt,
    GlobalStreamId,
    Grouping,
    PartitionedSpout,
    Spout,
    Stream,
    TicklessBatchingBolt,
    Topology,
)
from pystorm_source.errors import OptionError, TopologyError, UsageError
from pystorm_source.plan import EdgePlan, compile_plan, load_topology


class Lines(PartitionedSpout):
    outputs = ["line string", "n long"]

    def next_tuple(self):
        pass


class Batches(PartitionedSpout):
    outputs = ["line string"]

    def next_batch(self):
        pass


class Words(Bolt):
    outputs = ["word string", Stream(["word", "n"], name="counts")]

    def process(self, tup):
        pass


class WordCount(Topology):
    config = {"a": 1, "topology.debug": True}
    last = Words.spec(inputs={GlobalStreamId("words", "counts"): Grouping.fields("n", "word")}, config={"a": 3})
    words = Words.spec(inputs={GlobalStreamId("lines"): Grouping.ALL}, par=3)
    lines = Lines.spec(par=2)


def test_tasks_are_numbered_from_one_without_gaps():
    plan = compile_plan(WordCount)
    assert {component.name: component.tasks for component in plan.components} == {
        "last": (1,),
        "words": (2, 3, 4),
        "lines": (5, 6),
    }


def test_components_stand_upstream_first_however_they_are_declared():
    assert [component.name for component in compile_plan(WordCount).components] == ["lines", "words", "last"]


def test_a_spout_of_batches_cannot_have_a_direct_default_stream():
    class Straight(Topology):
        lines = type("Straight", (Batches,), {"outputs": [Stream(["line string"], direct=True)]}).spec()

    with pytest.raises(TopologyError, match=r"'lines' of Straight gives Arrow batches, whose rows name no task.*Given"):
        compile_plan(Straight)


class Locked:
    def __init__(self):
        self.lock = threading.Lock()

    def choose_tasks(self, task, values):
        return []


def test_a_custom_grouping_that_cannot_be_copied_says_so():
    class Keyed(Topology):
        lines = Lines.spec()
        words = Words.spec(inputs={lines: Grouping.custom(Locked())})

    with pytest.raises(
        TopologyError,
        match=r"of 'words' on stream 'default' of 'lines' cannot be copied .*lock.*prepare\(\). Given: Locked",
    ):
        compile_plan(Keyed)


def order_of(edges, spouts):
    """The compiled order of a topology with these edges between one-letter components."""
    names = sorted({name for pair in edges for name in pair} | set(spouts))
    body = {
        name: Lines.spec() if name in spouts else Words.spec(inputs=[GlobalStreamId(a) for a, b in edges if b == name])
        for name in names
    }
    return [component.name for component in compile_plan(type("T", (Topology,), body)).components]


@pytest.mark.parametrize(
    ("edges", "spouts"),
    [
        ("sa ab bc", "s"),
        ("sa sb ac bc", "s"),
        ("sa ta ab sb", "st"),
        ("sd dc cb ba", "s"),
        ("sa sb sc sd da ab bc", "s"),
        ("za ab zb bc ac", "z"),
    ],
)
def test_every_producer_comes_before_its_consumers(edges, spouts):
    edges = [tuple(edge) for edge in edges.split()]
    order = order_of(edges, spouts)
    assert sorted(order) == sorted({name for edge in edges for name in edge})
    for producer, consumer in edges:
        assert order.index(producer) < order.index(consumer)


def test_a_cycle_has_an_order_too():
    order = order_of([("s", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "d")], "s")
    assert order == ["s", "a", "b", "c", "d"]


def test_a_cycle_begins_where_the_spout_feeds_it_however_it_is_declared():
    class Cycle(Topology):
        c = Words.spec(inputs=[GlobalStreamId("b")])
        lines = Lines.spec()
        a = Words.spec(inputs=[lines, c])
        b = Words.spec(inputs=[a])

    assert [component.name for component in compile_plan(Cycle).components] == ["lines", "a", "b", "c"]


def test_edges_hold_positions():
    plan = compile_plan(WordCount)
    assert set(plan.edges) == {
        EdgePlan("words", "counts", "last", "fields", (1, 0)),
        EdgePlan("lines", "default", "words", "all", ()),
    }


class Chooses:
    def choose_tasks(self, task, values):
        return [task]


def test_edges_of_every_grouping():
    direct = type("D", (Words,), {"outputs": ["a", Stream(["b", "c"], name="named", direct=True)]})
    made = direct.spec(inputs=[GlobalStreamId("lines")])
    chooser = Chooses()

    class T(Topology):
        lines = Lines.spec()
        first = made
        by_list = Words.spec(inputs=[made["named"], GlobalStreamId("by_name")])
        by_dict = Words.spec(inputs={made["named"]: Grouping.DIRECT})
        by_name = Words.spec(inputs=[GlobalStreamId("first", "named")])
        partial = Words.spec(inputs={lines: Grouping.partial_key("n", "line")})
        chosen = Words.spec(inputs={lines: Grouping.custom(chooser)})

    assert set(compile_plan(T).edges) == {
        EdgePlan("lines", "default", "first", "shuffle"),
        EdgePlan("first", "named", "by_list", "direct"),
        EdgePlan("by_name", "default", "by_list", "shuffle"),
        EdgePlan("first", "named", "by_dict", "direct"),
        EdgePlan("first", "named", "by_name", "direct"),
        EdgePlan("lines", "default", "partial", "partial_key", (1, 0)),
        EdgePlan("lines", "default", "chosen", "custom", (), chooser),
    }


def test_groupings_in_storms_words():
    """As Storm's multilang handshake has them in ``stream->target->grouping`` and ``source->stream->grouping``."""
    to = Stream(["a"], name="to", direct=True)
    made = type("D", (Words,), {"outputs": [to]}).spec(inputs=[GlobalStreamId("lines")])

    class T(Topology):
        lines = Lines.spec()
        direct = made
        by_fields = Words.spec(inputs={lines: Grouping.fields("n", "line")})
        by_key = Words.spec(inputs={lines: Grouping.partial_key("n")})
        one = Words.spec(inputs={lines: Grouping.GLOBAL})
        local = Words.spec(inputs={lines: Grouping.LOCAL_OR_SHUFFLE})
        chosen = Words.spec(inputs={lines: Grouping.custom(Chooses())})
        pointed = Words.spec(inputs=[made["to"]])

    plan = compile_plan(T)
    assert {edge.consumer: plan.storm_grouping(edge) for edge in plan.edges} == {
        "direct": {"type": "SHUFFLE"},
        "by_fields": {"type": "FIELDS", "fields": ["n", "line"]},
        "by_key": {"type": "PARTIAL_KEY", "fields": ["n"]},
        "one": {"type": "FIELDS", "fields": []},
        "local": {"type": "LOCAL_OR_SHUFFLE"},
        "chosen": {"type": "CUSTOM_OBJECT"},
        "pointed": {"type": "DIRECT"},
    }


def test_a_context_has_storms_keys():
    context = compile_plan(WordCount).context_of("words", 3, "task")
    assert context == {
        "place": "task",
        "taskid": 3,
        "componentid": "words",
        "task->component": {"1": "last", "2": "words", "3": "words", "4": "words", "5": "lines", "6": "lines"},
        "streams": ["default", "counts"],
        "stream->outputfields": {"default": ["word"], "counts": ["word", "n"]},
        "stream->target->grouping": {"counts": {"last": {"type": "FIELDS", "fields": ["n", "word"]}}},
        "source->stream->grouping": {"lines": {"default": {"type": "ALL"}}},
        "source->stream->fields": {"lines": {"default": ["line", "n"]}},
    }


class ByEnvironment(Topology):
    words = Words.spec(inputs=[GlobalStreamId("lines")], par={"prod": 4, "beta": 2})
    lines = Lines.spec(par={"prod": 2, "beta": 1})
    last = Words.spec(inputs=[GlobalStreamId("words")])


@pytest.mark.parametrize(
    ("environment", "tasks"),
    [("prod", [(5, 6), (1, 2, 3, 4), (7,)]), ("beta", [(3,), (1, 2), (4,)])],
)
def test_par_by_environment(environment, tasks):
    plan = compile_plan(ByEnvironment, {"topology.environment": environment})
    assert [(c.name, c.tasks) for c in plan.components] == list(zip(["lines", "words", "last"], tasks, strict=True))
    left_open = compile_plan(ByEnvironment, any_environment=True)
    assert left_open.in_environment(environment).components == plan.components
    assert left_open.in_environment("prod").in_environment(environment).components == plan.components


def test_an_environment_that_par_does_not_have():
    said = r"`par` of '{}' is given for the environments 'prod', 'beta': .*'topology.environment'. Given: {}$"
    with pytest.raises(OptionError, match=said.format("words", "none")):
        compile_plan(ByEnvironment)
    with pytest.raises(OptionError, match=said.format("words", "'local'")):
        compile_plan(ByEnvironment, {"topology.environment": "local"})
    assert compile_plan(WordCount).in_environment("local") == compile_plan(WordCount)


def test_open_streams_are_those_that_nobody_takes():
    plan = compile_plan(WordCount)
    assert [(component.name, stream.name) for component, stream in plan.open_streams] == [
        ("words", "default"),
        ("last", "default"),
        ("last", "counts"),
    ]


def test_configuration_overrides_before_class_component_on_top():
    plan = compile_plan(WordCount, {"a": 2, "b": [1, {"c": None}]})
    conf = plan.conf_of(plan.component("words"))
    assert conf == {"a": 2, "b": [1, {"c": None}], "topology.debug": True, "topology.name": "WordCount"}
    assert plan.conf_of(plan.component("last"))["a"] == 3
    assert compile_plan(WordCount).conf_of(plan.component("words"))["a"] == 1


def test_the_name():
    assert compile_plan(WordCount).name == "WordCount"
    assert compile_plan(WordCount, {"topology.name": "other"}).name == "other"


def test_the_same_topology_gives_the_same_plan():
    one, same = compile_plan(WordCount), compile_plan(WordCount)
    assert one == same
    assert repr(one) == repr(same)
    assert one != compile_plan(WordCount, {"a": 5})
    assert pickle.loads(pickle.dumps(one)) == one


def test_the_plan_does_not_share_what_may_change():
    overrides = {"b": [1]}
    plan = compile_plan(WordCount, overrides)
    overrides["b"].append(2)
    assert plan.conf_of(plan.component("words"))["b"] == [1]


def test_a_component_may_change_its_conf():
    plan = compile_plan(WordCount, {"b": [1]})
    plan.conf_of(plan.component("words"))["b"].append(2)
    assert plan == compile_plan(WordCount, {"b": [1]})


def test_a_plan_prints_its_picture():
    assert str(compile_plan(WordCount)).splitlines() == [
        "topology WordCount",
        "  spout lines (Lines) tasks [5, 6]",
        "  bolt words (Words) tasks [2, 3, 4]",
        "    <- lines.default by all",
        "    -> open default: word string",
        "  bolt last (Words) tasks [1]",
        "    <- words.counts by fields",
        "    -> open default: word string",
        "    -> open counts: word, n",
    ]


def test_what_a_plan_answers():
    plan = compile_plan(WordCount)
    assert [spout.name for spout in plan.spouts] == ["lines"]
    assert plan.component("lines").is_partitioned
    assert not plan.component("words").is_spout
    assert plan.component("words").stream("counts").fields == ("word", "n")
    for call in (lambda: plan.component("x"), lambda: plan.component("words").stream("x")):
        with pytest.raises(KeyError):
            call()
    with pytest.raises(AttributeError):
        plan.name = "x"


# --- refused ---


def refused(match, **components):
    overrides = components.pop("overrides", None)
    topology = type("T", (Topology,), {"lines": Lines.spec(), **components})
    with pytest.raises(TopologyError, match=match) as caught:
        compile_plan(topology, overrides)
    assert "Given: " in str(caught.value)
    assert isinstance(caught.value, UsageError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (None, "give the class"),
        ("jobs.words:Words", "import the class, and give it instead of its name"),
        (WordCount(), "it is an instance: give the class, WordCount without parentheses"),
        (int, "give the class"),
        (Lines, "Lines is a spout: make it a part of a topology, `class "),
        (Lines.spec(), "it is a component: make it a part of a topology, `class "),
    ],
)
def test_what_is_no_topology(given, remedy):
    with pytest.raises(TopologyError) as caught:
        compile_plan(given)
    assert caught.value.code == "PYSTORM_INVALID_ARGUMENT"
    assert f"a topology is a subclass of pystorm_source.Topology: {remedy}" in caught.value.message
    assert caught.value.message.endswith(f". Given: {given!r}") and "\n" not in caught.value.message


@pytest.mark.parametrize("given", [WordCount, WordCount(), Lines, Lines.spec()])
def test_an_object_as_the_value_of_an_option(given):
    """Spark hands its text on."""
    with pytest.raises(OptionError, match="'topology' is the name of a class") as caught:
        load_topology(str(given))
    assert caught.value.code == "PYSTORM_INVALID_ARGUMENT"
    assert "read_stream(spark, Class)" in caught.value.message
    assert caught.value.message.endswith(f". Given: {str(given)!r}")


def test_a_class_of_a_notebook_by_its_name():
    """Here as in Spark's processes: their ``__main__`` is another one."""
    with pytest.raises(OptionError, match="'__main__' has no Topology 'Words'") as caught:
        load_topology("__main__:Words")
    assert caught.value.code == "PYSTORM_NAME_NOT_FOUND"
    for remedy in ("read_stream(spark, Words)", "register(spark, Words)", "put it into a module: 'jobs.words:Words'"):
        assert remedy in caught.value.message
    assert caught.value.message.endswith(". Given: '__main__:Words'")


def test_a_topology_without_components():
    with pytest.raises(TopologyError, match="needs components.*Given: Empty"):
        compile_plan(type("Empty", (Topology,), {}))


def test_a_bolt_without_process():
    refused(
        r"bolt 'b' of T must define process\(tup\). Given: B",
        b=type("B", (Bolt,), {}).spec(inputs=[GlobalStreamId("lines")]),
    )


def test_a_batching_bolt_without_process_batch():
    inputs = [GlobalStreamId("lines")]
    refused(
        r"bolt 'b' of T must define process_batch\(key, tups\). Given: B",
        b=type("B", (BatchingBolt,), {}).spec(inputs=inputs),
    )
    own = type("B", (BatchingBolt,), {"process_batches": lambda self: self._batches.clear()})
    compile_plan(type("T", (Topology,), {"lines": Lines.spec(), "b": own.spec(inputs=inputs)}))


def test_an_arrow_bolt_without_process_batch():
    inputs = [GlobalStreamId("lines")]
    refused(
        r"bolt 'b' of T must define process_batch\(batch\). Given: B", b=type("B", (ArrowBolt,), {}).spec(inputs=inputs)
    )
    for name in ("process", "process_batches"):
        wrong = type("B", (ArrowBolt,), {name: lambda self, tup: None})
        refused(
            rf"must define process_batch\(batch\): {name}\(\) of an ArrowBolt is never called. Given: B",
            b=wrong.spec(inputs=inputs),
        )
    rows = type("B", (Bolt,), {"process_batch": lambda self, batch: None})
    refused(
        r"must define process\(tup\), or derive from ArrowBolt, whose process_batch\(batch\) gets Arrow batches",
        b=rows.spec(inputs=inputs),
    )


def test_process_batch_of_an_arrow_bolt_is_no_coroutine_and_yields_nothing():
    async def waits(self, batch):
        pass

    def yields(self, batch):
        yield batch

    for method, said in ((waits, "process_batch"), (yields, r"process_batch\(\) of 'b' of T must not yield")):
        made = type("B", (ArrowBolt,), {"process_batch": method})
        refused(said, b=made.spec(inputs=[GlobalStreamId("lines")]))


@pytest.mark.parametrize("other", [CompiledBolt, BatchingBolt, AsyncBolt])
def test_an_arrow_bolt_is_of_no_other_kind(other):
    both = type("B", (other, ArrowBolt), {"process_batch": lambda self, batch: None})
    refused(
        rf"bolt 'b' of T is .*{other.__name__}, whose .*it cannot be both: derive it from one of them. Given: B",
        b=both.spec(inputs=[GlobalStreamId("lines")]),
    )


def many(base=Bolt, **body):
    return type("B", (base,), {"process_many": lambda self, tups: None, **body})


def test_a_bolt_with_process_many_needs_no_process():
    inputs = [GlobalStreamId("lines")]
    for bolt in (many(), many(Words)):
        compile_plan(type("T", (Topology,), {"lines": Lines.spec(), "b": bolt.spec(inputs=inputs)}))


def test_a_process_that_would_never_be_called():
    inputs = [GlobalStreamId("lines")]
    for bolt in (many(process=Words.process), type("B", (many(),), {"process": Words.process})):
        refused(r"'b' of T defines process_many.*never be called.*Given: B.process", b=bolt.spec(inputs=inputs))


def test_a_process_many_that_would_never_be_called():
    compiled = type("Compiled", (CompiledBolt, Bolt), {})
    for base, kind, method in (
        (BatchingBolt, "BatchingBolt", "process_batch"),
        (TicklessBatchingBolt, "BatchingBolt", "process_batch"),
        (ArrowBolt, "ArrowBolt", "process_batch"),
        (AsyncBolt, "AsyncBolt", "async def process"),
        (compiled, "CompiledBolt", "cdef int process_tuple"),
    ):
        bolt = many(base).spec(inputs=[GlobalStreamId("lines")])
        refused(rf"'b' of T is of the class {kind}, whose tuples come to {method}.*never to process_many", b=bolt)


def test_spouts_without_a_way_to_read():
    refused("exactly one of.*defines neither", s=type("S", (PartitionedSpout,), {"outputs": ["a"]}).spec())
    both = {"outputs": ["a"], "next_tuple": lambda self: None, "next_batch": lambda self: None}
    refused("exactly one of.*defines both", s=type("S", (PartitionedSpout,), both).spec())
    refused(r"spout 's' of T must define next_tuple\(\). Given: S", s=type("S", (Spout,), {"outputs": ["a"]}).spec())


def test_batches_are_rows_of_the_default_stream():
    named = type("S", (Batches,), {"outputs": [Stream(["a"], name="rows")]})
    refused(r"gives Arrow batches.*default stream.*Given: the streams \['rows'\]", s=named.spec())


def test_spout_and_bolt_at_once():
    class Both(Bolt, Spout):
        outputs = ["a"]

        def process(self, tup):
            pass

        def next_tuple(self):
            pass

    refused(
        "must be a Spout or a Bolt, not both. Given: Both", s=Bolt.spec.__func__(Both, inputs=[GlobalStreamId("lines")])
    )


def yields(self, *args):
    yield 1


async def waits(self, *args):
    pass


async def waits_and_yields(self, *args):
    yield 1


@pytest.mark.parametrize(
    ("function", "word"), [(yields, "not yield"), (waits, "not async"), (waits_and_yields, "not yield")]
)
def test_functions_that_would_never_run(function, word):
    """Called, they make a generator or coroutine that is never run: every tuple would silently come to nothing."""
    refused(
        rf"process\(\) of 'b' of T.*{word}",
        b=type("B", (Bolt,), {"process": function}).spec(inputs=[GlobalStreamId("lines")]),
    )
    for base, method in [(Spout, "next_tuple"), (PartitionedSpout, "next_tuple"), (PartitionedSpout, "next_batch")]:
        spout = type("S", (base,), {"outputs": ["a"], method: function})
        refused(rf"{method}\(\) of 's' of T.*{word}", s=spout.spec())


def test_other_callables_are_fine():
    partial = type("B", (Bolt,), {"process": functools.partialmethod(lambda self, n, tup: None, 5)})
    compile_plan(type("T", (Topology,), {"lines": Lines.spec(), "b": partial.spec(inputs=[GlobalStreamId("lines")])}))


@pytest.mark.parametrize("config", [{"a": object()}, {"a": {1}}, {"a": b"x"}])
def test_configuration_that_is_no_json(config):
    refused("must be JSON: .*Given: ", overrides=config)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"topology.producer.batch.size": "many"}, "topology.producer.batch.size"),
        ({"topology.executor.receive.buffer.size": 1}, "receive.buffer.size"),
        ({"TOPOLOGY.DEBUG": "perhaps"}, "topology.debug"),
    ],
)
def test_wrong_engine_keys(overrides, words):
    with pytest.raises(OptionError, match=f"{words}.*Given: "):
        compile_plan(WordCount, overrides)


def test_wrong_engine_keys_of_one_component():
    topology = type("T", (Topology,), {"lines": Lines.spec(config={"pystorm.log.level": "loud"})})
    with pytest.raises(OptionError, match=r"config of component 'lines': option 'pystorm.log.level'.*Given: 'loud'"):
        compile_plan(topology)


# --- by name ---


@pytest.fixture
def module(monkeypatch):
    made = types.ModuleType("jobs_of_a_test")
    made.WordCount, made.Words, made.Topology = WordCount, Words, Topology
    made.Outer = type("Outer", (), {"Inner": WordCount})
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made.__name__


def test_by_name(module):
    assert load_topology(f"{module}:WordCount") is WordCount
    assert load_topology(f"{module}:Outer.Inner") is WordCount


@pytest.mark.parametrize(
    "reference",
    ["", "WordCount", "jobs.WordCount", ":WordCount", "jobs:", ":", ".jobs:WordCount", "jobs.py:X", "a/b:X"],
)
def test_a_reference_of_another_form(reference):
    with pytest.raises(OptionError, match="package.module:Class, such as .*Given: ") as caught:
        load_topology(reference)
    assert str(caught.value).endswith(f"Given: {reference!r}")


def test_a_module_that_cannot_be_imported():
    with pytest.raises(
        OptionError, match=r"'no_such_module_here' cannot be imported.*register\(spark, X\).*Given: "
    ) as caught:
        load_topology("no_such_module_here:X")
    assert isinstance(caught.value.__cause__, ImportError)


@pytest.mark.parametrize("name", ["Missing", "Words", "Outer", "WordCount.x", "Outer.x.y", "WordCont"])
def test_a_name_that_is_no_topology_lists_those_that_are(module, name):
    with pytest.raises(OptionError, match=f"has no Topology {name!r}[;:].* it has: WordCount[.;].*Given: ") as caught:
        load_topology(f"{module}:{name}")
    assert ("Words is a bolt: make it" in caught.value.message) == (name == "Words")
    assert ("; did you mean 'WordCount'? Given" in caught.value.message) == (name in ("WordCount.x", "WordCont"))
    assert caught.value.code == ("PYSTORM_INVALID_ARGUMENT" if name == "Words" else "PYSTORM_NAME_NOT_FOUND")


@pytest.mark.parametrize("method", ["process", "process_many", "process_tick", "initialize", "cleanup"])
def test_a_method_that_yields_would_never_run(method):
    def yields(self, *given):
        yield given

    own = {} if method == "process_many" else {"process": lambda self, tup: None}
    bolt = type("Yields", (Bolt,), {**own, method: yields})
    lines = Lines.spec()
    with pytest.raises(TopologyError, match=rf"{method}\(\) of 'yields' of T must not yield.*self\.emit"):
        compile_plan(type("T", (Topology,), {"lines": lines, "yields": bolt.spec(inputs=[lines])}))


def test_the_types_of_every_stream_are_looked_at():
    class Inner(Bolt):
        outputs = [Stream(["n lng"], name="inner")]

        def process(self, tup): ...

    class Outer(Bolt):
        outputs = ["n long"]

        def process(self, tup): ...

    lines = Lines.spec()
    inner = Inner.spec(inputs=[lines])
    parts = {"lines": lines, "inner": inner, "outer": Outer.spec(inputs=[inner["inner"]])}
    with pytest.raises(UsageError, match=r"field 'n' of inner\.inner.*'lng'") as caught:
        compile_plan(type("T", (Topology,), parts))
    assert caught.value.code == "PYSTORM_INVALID_TYPE"
