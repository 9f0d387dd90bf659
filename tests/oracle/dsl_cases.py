"""What the DSL takes and refuses: pieces of code for both libraries, and where ours differs on purpose, why.

``SAME``: name → code whose answer must be equal. ``DIFFERENT``: name → (code, streamparse's answer, ours, the reason).
"""

from typing import Any


def _topology(body: str, answer: str = "answer = wired(T)") -> str:
    return "class T(Topology):\n" + "".join(f"    {line}\n" for line in body.splitlines()) + answer + "\n"


def _expression(text: str) -> str:
    return f"answer = {text}"


STREAMS = [
    "list(Stream().fields)",
    "list(Stream(['a', 'b']).fields)",
    "list(Stream(('a', 'b')).fields)",
    "list(Stream(fields=[]).fields)",
    "Stream(['a']).name",
    "Stream(['a'], 'n').name",
    "Stream(['a'], name='n', direct=True).direct",
    "Stream(['a']).direct",
    "Stream('a')",
    "Stream(5)",
    "Stream({'a': 1})",
    "Stream(['a', 5])",
    "Stream(['a', None])",
    "Stream([b'a'])",
    "Stream(['a'], name=None)",
    "Stream(['a'], name=5)",
    "Stream(['a'], name=['n'])",
    "Stream(['a'], direct=1)",
    "Stream(['a'], direct=None)",
    "Stream(['a'], direct='yes')",
]

GROUPINGS = [
    "grouping(Grouping.fields('a'))",
    "grouping(Grouping.fields('a', 'b'))",
    "grouping(Grouping.fields(['a', 'b']))",
    "grouping(Grouping.SHUFFLE)",
    "grouping(Grouping.GLOBAL)",
    "grouping(Grouping.DIRECT)",
    "grouping(Grouping.ALL)",
    "grouping(Grouping.NONE)",
    "grouping(Grouping.LOCAL_OR_SHUFFLE)",
    "Grouping.fields()",
    "Grouping.fields([])",
    "Grouping.fields('a') == Grouping.fields(['a'])",
    "Grouping.fields('a') == Grouping.fields('b')",
    "Grouping.SHUFFLE == Grouping.NONE",
]

SPECS = [
    "Words.spec().name",
    "Words.spec(name='w').name",
    "Words.spec('w').name",
    "Counts.spec('c', [], 2, {}).name",
    "par_of(Words.spec())",
    "par_of(Words.spec(par=7))",
    "par_of(Wide.spec())",
    "par_of(Wide.spec(par=1))",
    "par_of(Words.spec(par={'prod': 4, 'beta': 1}))",
    "Words.spec(par=0)",
    "Words.spec(par=-1)",
    "Words.spec(par=1.0)",
    "Words.spec(par='2')",
    "Words.spec(par=[2])",
    "Words.spec(par={'prod': 0})",
    "Words.spec(par={'prod': -5})",
    "Words.spec(par={'prod': '4'})",
    "Words.spec(par={'prod': 1.5})",
    "Words.spec(par={5: 5})",
    "Words.spec(par={None: 5})",
    "config_of(Words.spec())",
    "config_of(Wide.spec())",
    "config_of(Wide.spec(config={}))",
    "config_of(Words.spec(config={'a': [1, {'b': None}]}))",
    "Words.spec(config='{}')",
    "Words.spec(config=5)",
    "Words.spec(config=[('a', 1)])",
    "Words.spec(config={'a': object()})",
    "Words.spec(config={('a',): 1})",
    "Words.spec(unknown=5)",
    "Words.spec(inputs=[])",
    "Counts.spec(outputs=['a'])",
    "Component.spec()",
    "Counts.spec(inputs='lines')",
    "Counts.spec(inputs=5)",
    "Counts.spec(inputs=[5])",
    "Counts.spec(inputs=['lines'])",
    "Counts.spec(inputs=[None])",
    "Counts.spec(inputs=[Words])",
    "Counts.spec(inputs={'lines': Grouping.ALL})",
    "Counts.spec(inputs={Words: Grouping.ALL})",
    "Counts.spec(inputs={5: Grouping.ALL})",
    "Counts.spec(inputs={Words.spec(name='w'): 'shuffle'})",
    "Counts.spec(inputs={Words.spec(name='w'): None})",
    "Counts.spec(inputs={Words.spec(name='w'): Grouping})",
    "Words.spec(name='w')['default'].streamId",
    "Words.spec(name='w')['errors'].streamId",
    "Words.spec(name='w')['errors'].componentId",
    "Words.spec(name='w')['nothing']",
    "Words.spec(name='w')[None]",
    "Sink.spec(name='s')['default']",
    "GlobalStreamId(componentId='a', streamId='b').streamId",
    "GlobalStreamId('a', 'b').componentId",
]

OUTPUTS = [
    "['a', 'b']",
    "('a', 'b')",
    "[Stream(['a'])]",
    "['a', Stream(['b'], name='n')]",
    "[Stream(['b'], name='n'), 'a', 'b']",
    "'a'",
    "5",
    "[5]",
    "['a', 5]",
    "[None]",
    "{'a': 1}",
]

SHAPES = {
    "one spec": "w = Words.spec()\nc = Counts.spec(inputs=w)",
    "a list": "w = Words.spec()\nc = Counts.spec(inputs=[w])",
    "a tuple": "w = Words.spec()\nc = Counts.spec(inputs=(w,))",
    "a list of streams": "w = Words.spec()\nc = Counts.spec(inputs=[w, w['errors']])",
    "a dict": "w = Words.spec()\nc = Counts.spec(inputs={w: Grouping.fields('word'), w['errors']: Grouping.GLOBAL})",
    "every grouping": "w = Words.spec()\n"
    "a = Counts.spec(inputs={w: Grouping.ALL})\nb = Counts.spec(inputs={w: Grouping.NONE})\n"
    "c = Counts.spec(inputs={w: Grouping.LOCAL_OR_SHUFFLE})\nd = Counts.spec(inputs={w: Grouping.SHUFFLE})",
    "the same stream twice in a list": "w = Words.spec(name='w')\nc = Counts.spec(inputs=[w, w['default'], w])",
    "names given": "w = Words.spec(name='given')\nc = Counts.spec(name='too', inputs=[w])",
    "a bolt of two inputs": "w = Words.spec()\nv = Words.spec()\nc = Counts.spec(inputs=[w, v])",
    "a chain": "w = Words.spec()\nc = Counts.spec(inputs=[w])\ns = Sink.spec(inputs={c: Grouping.fields(['count'])})",
    "a direct default stream in a list": "p = Pointed.spec()\nc = Counts.spec(inputs=[p])",
    "a direct stream in a dict": "p = Pointed.spec()\nc = Counts.spec(inputs={p['named']: Grouping.DIRECT})",
    "a cycle by the names of attributes": "w = Words.spec()\n"
    "a = Counts.spec(inputs=[w, GlobalStreamId('b', 'default')])\nb = Counts.spec(inputs=[a])",
    "a cycle by given names": "w = Words.spec()\n"
    "a = Counts.spec(name='A', inputs=[w, GlobalStreamId('B', 'default')])\nb = Counts.spec(name='B', inputs=[a])",
    "only a spout": "w = Words.spec()",
    "config": "config = {'a': 1}\nw = Words.spec()",
}

REFUSED = {
    "no spout": "c = Counts.spec(inputs=[GlobalStreamId('c', 'default')])",
    "a bolt without inputs": "w = Words.spec()\nc = Counts.spec()",
    "a bolt with empty inputs": "w = Words.spec()\nc = Counts.spec(inputs={})",
    "a spout without outputs": "class W(Spout):\n    outputs = None\nw = W.spec()",
    "a spout with empty outputs": "class W(Spout):\n    outputs = []\nw = W.spec()",
    "a name used twice": "w = Words.spec()\nv = Words.spec(name='w')",
    "one spec in two attributes": "w = Words.spec()\nv = w",
    "an unknown field": "w = Words.spec()\nc = Counts.spec(inputs={w: Grouping.fields('nothing')})",
    "one known and one unknown field": "w = Words.spec()\nc = Counts.spec(inputs={w: Grouping.fields('word', 'x')})",
    "a field of another stream": "w = Words.spec()\nc = Counts.spec(inputs={w['errors']: Grouping.fields('word')})",
    "a spout's instance": "w = Words(BytesIO(), BytesIO())",
    "a bolt's instance": "w = Words.spec()\nc = Counts(input_stream=BytesIO(), output_stream=BytesIO())",
    "config that is a list": "config = [1]\nw = Words.spec()",
    "config that is None": "config = None\nw = Words.spec()",
    "config that is a str": "config = 'x'\nw = Words.spec()",
}

COMPONENTS = {
    "identity before the start": "b = Counts(input_stream=BytesIO(), output_stream=BytesIO())\n"
    "answer = [b.topology_name, b.task_id, b.component_name, b.debug, b.storm_conf, b.context, b.logger]",
    "process id": "import os\nanswer = Counts(input_stream=BytesIO(), output_stream=BytesIO()).pid == os.getpid()",
    "an unknown serializer": "Counts(input_stream=BytesIO(), output_stream=BytesIO(), serializer='pickle')",
    "no serializer": "Counts(input_stream=BytesIO(), output_stream=BytesIO(), serializer=None)",
    "msgpack": "Counts(input_stream=BytesIO(), output_stream=BytesIO(), serializer='msgpack')",
    "defaults of a bolt": "b = Bolt\nanswer = [b.auto_ack, b.auto_anchor, b.auto_fail, b.exit_on_exception, b.par]",
    "process to be defined": "Bolt(input_stream=BytesIO(), output_stream=BytesIO()).process(Tuple(1, 'a', 'b', 1, ()))",
    "next_tuple to be defined": "Spout(input_stream=BytesIO(), output_stream=BytesIO()).next_tuple()",
    "callbacks that may stay undefined": "s = Words(input_stream=BytesIO(), output_stream=BytesIO())\n"
    "answer = [s.ack('1'), s.fail('1'), s.activate(), s.deactivate(), s.initialize({}, {})]",
    "a tick": "answer = [Bolt.is_tick(Tuple(1, '__system', '__tick', -1, (5,))),"
    " Bolt.is_tick(Tuple(1, 'a', '__tick', 1, ()))]",
    "a heartbeat": "answer = [Bolt.is_heartbeat(Tuple(1, '__system', '__heartbeat', -1, ())),"
    " Bolt.is_heartbeat(Tuple(1, '__system', '__heartbeat', 1, ()))]",
    "setup": "b = Counts(input_stream=BytesIO(), output_stream=BytesIO())\n"
    "b._setup_component({'topology.name': 'T', 'topology.debug': True}, {'taskid': 3, 'componentid': 'c'})\n"
    "answer = [b.topology_name, b.task_id, b.component_name, b.debug, b.logger.name.split('.')[-1], b.logger.level]",
    "the name of the logger": "b = Counts(input_stream=BytesIO(), output_stream=BytesIO())\n"
    "b._setup_component({}, {'taskid': 3, 'componentid': 'c'})\nanswer = b.logger.name",
    "setup of an old Storm": "b = Counts(input_stream=BytesIO(), output_stream=BytesIO())\n"
    "b._setup_component({}, {'taskid': 3, 'task->component': {'3': 'c'}})\n"
    "answer = [b.topology_name, b.component_name, b.debug, b.logger.level]",
    "messages of log": "class L(Counts):\n    def send_message(self, message): said.append(message)\n"
    "said = []\nb = L(input_stream=BytesIO(), output_stream=BytesIO())\nb.log('a')\nb.log(5, 'trace')\n"
    "b.log('c', 'warning')\nb.log('d', 'critical')\nb.log('e', 'nonsense')\nanswer = said",
    "message of report_metric": "class L(Counts):\n    def send_message(self, message): said.append(message)\n"
    "said = []\nL(input_stream=BytesIO(), output_stream=BytesIO()).report_metric('n', 5)\nanswer = said",
    "messages of raise_exception": "class L(Counts):\n    def send_message(self, message): said.append(message)\n"
    "said = []\nb = L(input_stream=BytesIO(), output_stream=BytesIO())\n"
    "try:\n    {}['gone']\nexcept KeyError as e:\n    b.raise_exception(e)\n    b.raise_exception(e, [])\n"
    "answer = [[m['command'], m.get('msg', '').splitlines()[:2], m.get('msg', '').splitlines()[-1:]] for m in said]",
}

TUPLE = "t = Tuple('1', 'words', 'default', 3, ('a', 2))\n"
TUPLES = {
    "fields": "answer = [t.id, t.component, t.stream, t.task, t.values]",
    "unpacking": "answer = list(t)",
    "indexing": "answer = [t[0], t[-1], list(t[1:3]), len(t)]",
    "beyond its end": "t[5]",
    "equality": "answer = t == Tuple('1', 'words', 'default', 3, ('a', 2))",
    "equality with another": "answer = [t == Tuple(id, 'words', 'default', 3, (v, 2)) for id in '12' for v in 'ab']",
    "equality with a plain tuple": "answer = t == ('1', 'words', 'default', 3, ('a', 2))",
    "hash": "answer = hash(t) == hash(Tuple('1', 'words', 'default', 3, ('a', 2)))",
    "hash of values that have none": "hash(Tuple('1', 'words', 'default', 3, (['a'],)))",
    "order": "answer = t < Tuple('2', 'words', 'default', 3, ())",
    "by keyword": "answer = list(Tuple(id='1', component='c', stream='s', task=1, values=(5,)))",
    "it cannot be changed": "t.id = 5",
    "what it prints": "answer = repr(t)",
    "membership": "answer = ['words' in t, 'nothing' in t]",
    "isinstance": "answer = [isinstance(t, Tuple), isinstance(('1', 'words', 'default', 3, ()), Tuple)]",
    "nothing but values": "t = Tuple(None, None, None, None, ('a',))\n"
    "answer = [t.component, t.stream, t.task, t.values, Bolt.is_tick(t), Bolt.is_heartbeat(t)]",
    "a task by name": "t = Tuple(14, 'some_spout', 'default', 'some_bolt', (1,))\nanswer = [list(t), repr(t), t == t]",
    "odd tuples pickle": "import pickle\nt = Tuple(1, None, 'b', 'c', ('a',))\n"
    "answer = list(pickle.loads(pickle.dumps(t)))",
    "pickle": "import pickle\nanswer = pickle.loads(pickle.dumps(t)) == t",
    "copy": "import copy\nanswer = copy.deepcopy(t) == t",
}

NAMES = [
    ("word_spout", "default"),
    ("word-spout", "default"),
    ("a.b", "the stream"),
    ("wordSpout", "errors2"),
    ("a--b", "s"),
    ("1st", "default"),
    ("spout", "2nd"),
    ("größe", "default"),
]

SAME: dict[str, str] = {
    **{text: _expression(text) for text in [*STREAMS, *GROUPINGS, *SPECS]},
    **{
        f"outputs = {text}": f"class W(Spout):\n    outputs = {text}\n"
        "class T(Topology):\n    w = W.spec()\n    c = Sink.spec(inputs=[w])\nanswer = wired(T)"
        for text in OUTPUTS
        if "'n'" not in text
    },
    **{
        f"outputs = {text}, a named stream": f"class W(Spout):\n    outputs = {text}\n"
        "class T(Topology):\n    w = W.spec()\n    c = Sink.spec(inputs=[w, w['n']])\nanswer = wired(T)"
        for text in OUTPUTS
        if "'n'" in text
    },
    **{f"inputs: {name}": _topology(body) for name, body in SHAPES.items()},
    **{f"refused: {name}": _topology(body) for name, body in REFUSED.items()},
    **{f"component: {name}": text for name, text in COMPONENTS.items()},
    **{f"tuple: {name}": TUPLE + text for name, text in TUPLES.items()},
    **{
        f"values of {source}, {stream}": f"answer = values_type({source!r}, {stream!r}, ['a'])"
        for source, stream in NAMES
    },
}

DIFFERENT: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "fields of a tuple": (
        "answer = grouping(Grouping.fields(('a', 'b')))",
        {"gives": "fields([('a', 'b')])"},
        {"gives": "fields(['a', 'b'])"},
        "theirs makes one field out of the tuple, which no stream has",
    ),
    "fields that are no names": (
        "answer = grouping(Grouping.fields(5))",
        {"gives": "fields([5])"},
        {"raises": "TypeError"},
        "a field that is no str exists nowhere: refused at once",
    ),
    "partial key": (
        "answer = str(Grouping.partial_key('a'))",
        {"raises": "AttributeError"},
        {"gives": "partial_key(a)"},
        "ours has it; theirs never got it (STORM-1188)",
    ),
    "custom_object": (
        "answer = str(type(Grouping.custom_object('com.Acme', [])))",
        {"gives": "<class 'streamparse.dsl.stream._Grouping'>"},
        {"raises": "NotImplementedError"},
        "no Java runs here",
    ),
    "custom_serialized of a str": (
        "answer = isinstance(Grouping.custom_serialized('x'), TypeError)",
        {"gives": True},
        {"raises": "TypeError"},
        "theirs returns the error instead of raising it",
    ),
    "custom_serialized": (
        "answer = isinstance(Grouping.custom_serialized(b'x'), TypeError)",
        {"gives": False},
        {"raises": "NotImplementedError"},
        "no Java runs here",
    ),
    "a field twice": (
        "answer = list(Stream(['a', 'a']).fields)",
        {"gives": ["a", "a"]},
        {"raises": "ValueError"},
        "the values could not be named; theirs fails when the bolt starts",
    ),
    "a field without a name": (
        "answer = list(Stream(['']).fields)",
        {"gives": [""]},
        {"raises": "ValueError"},
        "the values could not be named; theirs fails when the bolt starts",
    ),
    "a field with a type": (
        "answer = list(Stream(['word string']).fields)",
        {"gives": ["word string"]},
        {"gives": ["word"]},
        "fields may carry Spark types here",
    ),
    "a stream twice": (
        (
            "class W(Spout):\n"
            "    outputs = [Stream(['a'], 'n'), Stream(['b'], 'n')]\n"
            "answer = W.spec(name='w')['n'].streamId\n"
        ),
        {"gives": "n"},
        {"raises": "ValueError"},
        "theirs silently drops the first one",
    ),
    "par that is a bool": (
        "answer = par_of(Words.spec(par=True))",
        {"gives": True},
        {"raises": "TypeError"},
        "True is no number of tasks",
    ),
    "par that is an empty dict": (
        "answer = par_of(Words.spec(par={}))",
        {"gives": {}},
        {"raises": "ValueError"},
        "it has no environment that could be chosen",
    ),
    "a name that is no str": (
        "answer = Words.spec(name=5).name",
        {"gives": 5},
        {"raises": "TypeError"},
        "theirs fails when the topology is submitted",
    ),
    "an empty name": (
        "answer = Words.spec(name='').name",
        {"gives": ""},
        {"raises": "TypeError"},
        "nobody could name it in an input",
    ),
    "a name of the system": (
        "answer = Words.spec(name='__w').name",
        {"gives": "__w"},
        {"raises": "ValueError"},
        "such names belong to the engine; Storm refuses them when the topology is submitted",
    ),
    "inputs that are one stream": (
        "answer = bool(Counts.spec(inputs=Words.spec(name='w')['default']))",
        {"raises": "TypeError"},
        {"gives": True},
        "one stream is as clear as one spec",
    ),
    "a stream id without a component": (
        "answer = bool(GlobalStreamId())",
        {"gives": True},
        {"raises": "TypeError"},
        "it names nothing; theirs fails when the topology is made",
    ),
    "a subclass": (
        (
            "class T(Topology):\n"
            "    w = Words.spec()\n"
            "class U(T):\n"
            "    c = Counts.spec(inputs=[T.w])\n"
            "answer = wired(U)\n"
        ),
        {"raises": "KeyError"},
        {"gives": [["c", "w", "default", "SHUFFLE"]]},
        "topologies are inherited here",
    ),
    "an empty subclass": (
        ("class T(Topology):\n    w = Words.spec()\nclass U(T):\n    pass\nanswer = [spec.name for spec in U.specs]\n"),
        {"raises": "ValueError"},
        {"gives": ["w"]},
        "topologies are inherited here",
    ),
    "a base without components": (
        ("class T(Topology):\n    pass\nanswer = len(T.specs)\n"),
        {"raises": "ValueError"},
        {"gives": 0},
        "a base class of topologies has none of its own",
    ),
    "the documented cycle": (
        (
            "class T(Topology):\n"
            "    w = Words.spec()\n"
            "    a = Counts.spec(name='A', inputs=[w, GlobalStreamId('b_bolt', 'default')])\n"
            "    b_bolt = Counts.spec(name='B', inputs=[a])\n"
            "answer = wired(T)\n"
        ),
        {"raises": "KeyError"},
        {
            "gives": [
                ["A", "B", "default", "SHUFFLE"],
                ["A", "w", "default", "SHUFFLE"],
                ["B", "A", "default", "SHUFFLE"],
            ]
        },
        "theirs knows components by their names only, so the example of its own documentation fails",
    ),
    "a named direct stream in a list": (
        ("class T(Topology):\n    p = Pointed.spec()\n    c = Counts.spec(inputs=[p['named']])\nanswer = wired(T)\n"),
        {"gives": [["c", "p", "named", "SHUFFLE"]]},
        {"gives": [["c", "p", "named", "DIRECT"]]},
        "theirs infers DIRECT for the default stream only; no tuple of this one would arrive",
    ),
    "a direct stream, shuffled": (
        (
            "class T(Topology):\n"
            "    p = Pointed.spec()\n"
            "    c = Counts.spec(inputs={p: Grouping.SHUFFLE})\n"
            "answer = wired(T)\n"
        ),
        {"gives": [["c", "p", "default", "SHUFFLE"]]},
        {"raises": "ValueError"},
        "Storm refuses the emits when it runs",
    ),
    "a stream that is not direct, taken directly": (
        (
            "class T(Topology):\n"
            "    w = Words.spec()\n"
            "    c = Counts.spec(inputs={w: Grouping.DIRECT})\n"
            "answer = wired(T)\n"
        ),
        {"gives": [["c", "w", "default", "DIRECT"]]},
        {"raises": "ValueError"},
        "Storm refuses the emits when it runs",
    ),
    "one stream by two groupings": (
        (
            "class T(Topology):\n"
            "    w = Words.spec()\n"
            "    c = Counts.spec(inputs={w: Grouping.ALL, GlobalStreamId('w', 'default'): Grouping.SHUFFLE})\n"
            "answer = wired(T)\n"
        ),
        {"gives": [["c", "w", "default", "ALL"]]},
        {"raises": "ValueError"},
        "theirs keeps the last one silently",
    ),
    "an unknown component": (
        (
            "class T(Topology):\n"
            "    w = Words.spec()\n"
            "    c = Counts.spec(inputs=[GlobalStreamId('x', 'default')])\n"
            "answer = wired(T)\n"
        ),
        {"raises": "KeyError"},
        {"raises": "ValueError"},
        "a wrong topology is a ValueError here, with the components that there are",
    ),
    "an unknown stream": (
        (
            "class T(Topology):\n"
            "    w = Words.spec()\n"
            "    c = Counts.spec(inputs=[GlobalStreamId('w', 'x')])\n"
            "answer = wired(T)\n"
        ),
        {"raises": "KeyError"},
        {"raises": "ValueError"},
        "a wrong topology is a ValueError here, with the streams that there are",
    ),
    "a spec of nowhere": (
        (
            "v = Words.spec()\n"
            "class T(Topology):\n"
            "    w = Words.spec()\n"
            "    c = Counts.spec(inputs=[v])\n"
            "answer = wired(T)\n"
        ),
        {"raises": "KeyError"},
        {"raises": "ValueError"},
        "a wrong topology is a ValueError here, with the components that there are",
    ),
    "a spout of streams without fields": (
        ("class W(Spout):\n    outputs = [Stream()]\nclass T(Topology):\n    w = W.spec()\nanswer = len(T.specs)\n"),
        {"gives": 1},
        {"raises": "ValueError"},
        "nothing could be read from it",
    ),
    "JavaBolt": (
        "answer = JavaBolt.spec(name='j', full_class_name='com.Acme', args_list=[]).name",
        {"gives": "j"},
        {"raises": "NotImplementedError"},
        "no Java runs here",
    ),
    "JavaSpout": (
        "answer = JavaSpout.spec(name='j', full_class_name='com.Acme', args_list=[]).name",
        {"gives": "j"},
        {"raises": "NotImplementedError"},
        "no Java runs here",
    ),
    "ShellBolt": (
        "answer = ShellBolt.spec(name='s', command='ruby', script='s.rb').name",
        {"gives": "s"},
        {"raises": "NotImplementedError"},
        "no shell component runs here",
    ),
    "ShellSpout": (
        "answer = ShellSpout.spec(name='s', command='ruby', script='s.rb').name",
        {"gives": "s"},
        {"raises": "NotImplementedError"},
        "no shell component runs here",
    ),
    "thrift_topology": (
        ("class T(Topology):\n    w = Words.spec()\nanswer = bool(T.thrift_topology)\n"),
        {"gives": True},
        {"raises": "AttributeError"},
        "no Thrift is made here",
    ),
    "thrift_spouts": (
        ("class T(Topology):\n    w = Words.spec()\nanswer = list(T.thrift_spouts)\n"),
        {"gives": ["w"]},
        {"raises": "AttributeError"},
        "no Thrift is made here",
    ),
    "write": (
        ("class T(Topology):\n    w = Words.spec()\nanswer = T.write(BytesIO())\n"),
        {"gives": None},
        {"raises": "NotImplementedError"},
        "there is no Nimbus to write to",
    ),
    "read": (
        ("class T(Topology):\n    w = Words.spec()\nf = BytesIO(); T.write(f); f.seek(0); answer = T.read(f)\n"),
        {"gives": None},
        {"raises": "NotImplementedError"},
        "a topology is a class here",
    ),
    "to_flux_dict": (
        ("class T(Topology):\n    w = Words.spec()\nanswer = sorted(T.to_flux_dict('t'))\n"),
        {"gives": ["name", "spouts"]},
        {"raises": "NotImplementedError"},
        "Flux starts Storm",
    ),
    "spec.config": (
        "answer = Words.spec(config={'a': 1}).config",
        {"gives": '{"a": 1}'},
        {"gives": {"a": 1}},
        "nothing is sent to Java: the dict stays one",
    ),
    "a tuple is a tuple": (
        "answer = isinstance(Tuple('1', 'c', 's', 1, ()), tuple)",
        {"gives": True},
        {"gives": False},
        "ours is a compiled class, made a million times a second",
    ),
    "a tuple's _asdict": (
        "answer = sorted(Tuple('1', 'c', 's', 1, ())._asdict())",
        {"gives": ["component", "id", "stream", "task", "values"]},
        {"raises": "AttributeError"},
        "not kept: a compiled class, not a named tuple",
    ),
    "a tuple's _replace": (
        "answer = list(Tuple('1', 'c', 's', 1, ())._replace(task=2))",
        {"gives": ["1", "c", "s", 2, []]},
        {"raises": "AttributeError"},
        "not kept: a compiled class, not a named tuple",
    ),
    "a tuple without arguments": (
        "answer = list(Tuple())[1:]",
        {"raises": "TypeError"},
        {"gives": ["__system", "default", -1, []]},
        "for the short tests of users",
    ),
    "fields that are no attributes": (
        "answer = values_type('a', 'b', ['class', '_x'])",
        {"raises": "ValueError"},
        {"gives": None},
        "such values come as a plain tuple; theirs fails when the bolt starts",
    ),
    "send_message outside of Storm": (
        "Counts(input_stream=BytesIO(), output_stream=BytesIO()).send_message({'command': 'sync'})",
        {"gives": None},
        {"raises": "NotImplementedError"},
        "there is no pipe",
    ),
    "emit outside of Storm": (
        "Counts(input_stream=BytesIO(), output_stream=BytesIO()).emit(['a', 1])",
        {"gives": None},
        {"raises": "RuntimeError"},
        "nobody is there to emit to: run the topology, or replace send_message",
    ),
    "read_command": (
        "Counts(input_stream=BytesIO(b'{}\\nend\\n'), output_stream=BytesIO()).read_command()",
        {"gives": None},
        {"raises": "AttributeError"},
        "there is no pipe",
    ),
    "a name of a metric that is no str": (
        (
            "class L(Counts):\n"
            "    def send_message(self, message): pass\n"
            "L(input_stream=BytesIO(), output_stream=BytesIO()).report_metric(5, 5)\n"
        ),
        {"gives": None},
        {"raises": "TypeError"},
        "it becomes a key of a report",
    ),
}
