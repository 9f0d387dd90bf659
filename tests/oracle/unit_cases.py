"""Components without a topology, as unit tests for pystorm use them: what they would send, by ``send_message``.

``SAME`` and ``DIFFERENT`` are as in ``dsl_cases``.
"""

from typing import Any

SETUP = """
said = []

class Told:
    def send_message(self, message):
        said.append(message)

def made(kind, body="", **names):
    cls = type("Made", (Told, kind), names)
    component = cls(input_stream=BytesIO(), output_stream=BytesIO())
    component._setup_component({}, {"componentid": "made", "taskid": 1})
    said.clear()  # setting up says something about logs
    return component

def tup(number, *values):
    return Tuple(number, "words", "default", 3, values)

def tick():
    return Tuple("t", "__system", "__tick", -1, (1,))

def acks():
    return [[m["command"], m["id"]] for m in said if m["command"] in ("ack", "fail") and m["id"] != "t"]
"""

BOLT = "b = made(Bolt)\n"
CURRENT = "b = made(Bolt)\nb._current_tups = [tup('1', 'a')]\n"
SPOUT = "s = made(Spout)\n"
RELIABLE = "s = made(ReliableSpout)\n"
BATCHING = (
    "calls = []\n"
    "b = made(BatchingBolt, process_batch=lambda self, key, tups: calls.append([key, [t.id for t in tups]]),"
    " group_key=lambda self, tup: tup.values[0])\n"
)

CASES = {
    "emit of a bolt": BOLT + "answer = [b.emit(['a']), said]",
    "emit of a tuple": BOLT + "b.emit(('a', 5))\nanswer = said",
    "emit of what is no tuple": BOLT + "b.emit('a')",
    "emit of a dict": BOLT + "b.emit({'a': 1})",
    "emit of a generator": BOLT + "b.emit(x for x in 'a')",
    "emit to a stream": BOLT + "b.emit(['a'], stream='errors')\nanswer = said",
    "emit to a task": BOLT + "answer = [b.emit(['a'], direct_task=7), said]",
    "emit to a task that is told": BOLT + "answer = [b.emit(['a'], direct_task=7, need_task_ids=True), said]",
    "emit that asks for tasks": "b = made(Bolt, read_task_ids=lambda self: [3, 4])\n"
    "answer = [b.emit(['a'], need_task_ids=True), said]",
    "emit is anchored to the current tuple": CURRENT + "b.emit(['a'])\nanswer = said",
    "emit is not anchored without auto_anchor": CURRENT + "b.auto_anchor = False\nb.emit(['a'])\nanswer = said",
    "emit with anchors": CURRENT + "b.emit(['a'], anchors=[tup('2', 'b'), '3'])\nanswer = said",
    "emit with no anchors": CURRENT + "b.emit(['a'], anchors=[])\nanswer = said",
    "ack of a tuple": BOLT + "b.ack(tup('1', 'a'))\nanswer = said",
    "ack of an id": BOLT + "b.ack('1')\nanswer = said",
    "fail of a tuple": BOLT + "b.fail(tup('1', 'a'))\nanswer = said",
    "fail of an id": BOLT + "b.fail('1')\nanswer = said",
    "process_tick": BOLT + "answer = [b.process_tick(tick()), said]",
    "emit of a spout": SPOUT + "answer = [s.emit(['a']), said]",
    "emit of a spout with an id": SPOUT + "s.emit(['a'], tup_id=5)\ns.emit(['a'], 5, 'errors', 7)\nanswer = said",
    "emit of a spout that asks for tasks": "s = made(Spout, read_task_ids=lambda self: [3])\n"
    "answer = [s.emit(['a'], need_task_ids=True), said]",
    "a reliable spout needs an id": RELIABLE + "s.emit(['a'])",
    "a reliable spout keeps what it emits": RELIABLE + "s.emit(['a'], tup_id=5, stream='errors')\n"
    "answer = [said, list(s.unacked_tuples.items()), dict(s.failed_tuples)]",
    "a reliable spout forgets what is acked": RELIABLE + "s.emit(['a'], tup_id=5)\ns.ack(5)\n"
    "answer = [said, s.unacked_tuples, dict(s.failed_tuples)]",
    "a reliable spout emits again": RELIABLE + "s.emit(['a'], tup_id=5, stream='x', direct_task=3)\ns.fail(5)\n"
    "answer = [said, list(s.failed_tuples.items()), list(s.unacked_tuples)]",
    "a reliable spout gives up": RELIABLE + "s.emit(['a'], tup_id=5)\nfor _ in range(6):\n    s.fail(5)\n"
    "answer = [len([m for m in said if m['command'] == 'emit']), s.unacked_tuples, dict(s.failed_tuples)]",
    "a reliable spout of one replay": RELIABLE + "s.max_fails = 1\ns.emit(['a'], tup_id=5)\ns.fail(5)\ns.fail(5)\n"
    "answer = [len([m for m in said if m['command'] == 'emit']), s.unacked_tuples, dict(s.failed_tuples)]",
    "a reliable spout without replays": RELIABLE + "s.max_fails = 0\ns.emit(['a'], tup_id=5)\ns.fail(5)\n"
    "answer = [len([m for m in said if m['command'] == 'emit']), s.unacked_tuples]",
    "an ack forgives": RELIABLE + "s.emit(['a'], tup_id=5)\ns.fail(5)\ns.ack(5)\ns.emit(['b'], tup_id=5)\n"
    "answer = [dict(s.failed_tuples), list(s.unacked_tuples.items())]",
    "verdicts of unknown ids": RELIABLE + "s.ack(1)\ns.fail(2)\n"
    "answer = [[m for m in said if m['command'] == 'emit'], s.unacked_tuples]",
    "replays pass through the user's emit": "seen = []\n"
    "class Mine(Told, ReliableSpout):\n"
    "    def emit(self, tup, **kwargs):\n        seen.append(kwargs['tup_id'])\n        super().emit(tup, **kwargs)\n"
    "s = Mine(input_stream=BytesIO(), output_stream=BytesIO())\ns.emit(['a'], tup_id=5)\ns.fail(5)\nanswer = seen",
    "batches are gathered by key": BATCHING + "for n, k in enumerate('abca'):\n    b.process(tup(n, k))\n"
    "answer = [calls, {k: [t.id for t in v] for k, v in b._batches.items()}]",
    "batches fire at the second tick": BATCHING + "for n, k in enumerate('aba'):\n    b.process(tup(n, k))\n"
    "b.process_tick(tick())\nfirst = list(calls)\nb.process_tick(tick())\n"
    "answer = [first, calls, acks(), dict(b._batches)]",
    "ticks while nothing is held are counted": BATCHING + "for _ in range(5):\n    b.process_tick(tick())\n"
    "b.process(tup(1, 'a'))\nb.process_tick(tick())\nanswer = [calls, b._tick_counter]",
    "the counter begins again": BATCHING + "b.process(tup(1, 'a'))\nb.process_tick(tick())\nb.process_tick(tick())\n"
    "b.process(tup(2, 'a'))\nb.process_tick(tick())\nbetween = len(calls)\n"
    "b.process_tick(tick())\nanswer = [between, calls]",
    "every tick": BATCHING + "b.ticks_between_batches = 0\nb.process(tup(1, 'a'))\nb.process_tick(tick())\n"
    "b.process(tup(2, 'a'))\nb.process_tick(tick())\nanswer = [calls, acks()]",
    "every fourth tick": BATCHING + "b.ticks_between_batches = 3\nb.process(tup(1, 'a'))\n"
    "counts = []\nfor _ in range(5):\n    b.process_tick(tick())\n    counts.append(len(calls))\nanswer = counts",
    "batches without auto_ack": BATCHING + "b.auto_ack = False\nb.process(tup(1, 'a'))\nb.process_batches()\n"
    "answer = [calls, acks()]",
    "one batch without keys": "calls = []\n"
    "b = made(BatchingBolt, process_batch=lambda self, key, tups: calls.append([key, [t.id for t in tups]]))\n"
    "for n in range(3):\n    b.process(tup(n, 'a'))\nb.process_batches()\nanswer = [calls, acks()]",
    "emits of a batch are anchored to all of it": "b = made(BatchingBolt, "
    "process_batch=lambda self, key, tups: self.emit([key, len(tups)]), group_key=lambda self, t: t.values[0])\n"
    "for n, k in enumerate('aba'):\n    b.process(tup(n, k))\nb.process_batches()\n"
    "answer = [m for m in said if m['command'] == 'emit']",
    "emit of a batching bolt tells no tasks": BATCHING + "answer = [b.emit(['a'], need_task_ids=True), said]",
    "process_batch to be defined": "b = made(BatchingBolt)\nb.process(tup(1, 'a'))\nb.process_batches()",
    "defaults of a batching bolt": "answer = BatchingBolt.ticks_between_batches",
    "defaults of a tickless batching bolt": "answer = TicklessBatchingBolt.secs_between_batches",
    "an error keeps what comes after it": "calls = []\n"
    "def process_batch(self, key, tups):\n    calls.append(key)\n    if key == 'b':\n        raise KeyError(key)\n"
    "b = made(BatchingBolt, process_batch=process_batch, group_key=lambda self, t: t.values[0])\n"
    "for n, k in enumerate('abc'):\n    b.process(tup(n, k))\n"
    "try:\n    b.process_batches()\nexcept KeyError:\n    calls.append('raised')\n"
    "answer = [calls, acks(), [t.id for k in 'bc' for t in b._batches[k]], b._current_key]",
}

SAME: dict[str, str] = {name: SETUP + text for name, text in CASES.items()}

DIFFERENT: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "a batching bolt and its ticks": (
        SETUP + BATCHING + "b.process_tick(tick())\nanswer = [m['id'] for m in said]",
        {"gives": ["t"]},
        {"gives": []},
        "a tick has no tree here: there is nothing to ack",
    ),
    "a group that is done": (
        SETUP
        + BATCHING
        + "b.process_batch = lambda key, tups: calls.append(sorted(b._batches))\n"
        + "for n, k in enumerate('ab'):\n    b.process(tup(n, k))\nb.process_batches()\nanswer = calls",
        {"gives": [["a", "b"], ["a", "b"]]},
        {"gives": [["a", "b"], ["b"]]},
        "theirs keeps it with an empty list, which is processed again after an error",
    ),
}
