"""Asks a library: runs pieces of code against streamparse, or against ours under the same names, and says what came.

Runs in two interpreters: in the one of the tests, and as a program in a virtual environment that has streamparse::

    python answers.py streamparse < cases.json > answers.json

A case is the text of a block; what its variable ``answer`` holds is its answer, or the exception that it raised, by the
name of the built-in type that it is.
"""

import builtins
import importlib
import io
import json
import sys
import textwrap

NAMES = (
    "BatchingBolt",
    "Bolt",
    "Grouping",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
)
NAMES += ("Stream", "StormHandler", "TicklessBatchingBolt", "Topology", "Tuple")

# What the cases are about; both libraries make these classes.
PRELUDE = """
class Words(Spout):
    outputs = ["word", Stream(["why"], name="errors")]
    def next_tuple(self):
        pass

class Pointed(Spout):
    outputs = [Stream(["a"], direct=True), Stream(["b"], name="named", direct=True)]
    def next_tuple(self):
        pass

class Counts(Bolt):
    outputs = ["word", "count"]
    def process(self, tup):
        pass

class Sink(Bolt):
    def process(self, tup):
        pass

class Wide(Counts):
    par = 3
    config = {"width": 5}
"""


def namespace_of(library):
    """What the cases see: the library's names, the prelude's classes, and ways to look at what differs in shape."""
    module = importlib.import_module(library)
    theirs = library == "streamparse"
    names = {name: getattr(module, name) for name in NAMES if hasattr(module, name)}
    names["Component"] = importlib.import_module(f"{library}.component").Component
    names["GlobalStreamId"] = importlib.import_module(f"{library}.thrift").GlobalStreamId
    names["BytesIO"] = io.BytesIO
    names.update(_theirs() if theirs else _ours())
    exec(PRELUDE, names)
    return names


def _theirs():
    def grouping(one):
        return {"fields([])": "GLOBAL"}.get(repr(one), repr(one))

    def wired(topology):
        return sorted(
            [spec.name, source.componentId, source.streamId, grouping(by)]
            for spec in topology.specs
            for source, by in spec.inputs.items()
        )

    def values_type(source, stream, fields):
        bolt = importlib.import_module("streamparse").Bolt(input_stream=io.BytesIO(), output_stream=io.BytesIO())
        bolt._setup_component(
            {}, {"componentid": "b", "taskid": 1, "source->stream->fields": {source: {stream: fields}}}
        )
        return bolt._source_tuple_types[source][stream].__name__

    def config_of(spec):
        return json.loads(spec.config)

    def par_of(spec):
        return spec.par

    return {"grouping": grouping, "wired": wired, "values_type": values_type, "config_of": config_of, "par_of": par_of}


def _ours():
    from cython_core.tuples.tuple import values_class_of

    def grouping(one):
        return f"fields({list(one.names)!r})" if one.kind == "fields" else one.kind.upper()

    def wired(topology):
        return sorted(
            [spec.name, one.producer.name, one.stream.name, grouping(one.grouping)]
            for spec in topology.specs
            for one in topology.subscriptions(spec)
        )

    def values_type(source, stream, fields):
        made = values_class_of(source, stream, tuple(fields))
        return made if made is None else made.__name__

    def config_of(spec):
        return spec.config

    def par_of(spec):
        return spec.par

    return {"grouping": grouping, "wired": wired, "values_type": values_type, "config_of": config_of, "par_of": par_of}


def answers(library, cases):
    """Name of a case → what it gives: ``{"gives": value}`` or ``{"raises": name of a built-in exception}``."""
    names = namespace_of(library)
    return {name: _answer(dict(names), text) for name, text in cases.items()}


def _answer(names, text):
    try:
        exec(textwrap.dedent(text), names)
    except Exception as error:
        built_in = next(kind for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind)
        return {"raises": built_in.__name__}
    return {"gives": json.loads(json.dumps(names.get("answer"), default=repr))}


if __name__ == "__main__":
    json.dump(answers(sys.argv[1], json.load(sys.stdin)), sys.stdout)
