"""Bolts run by pystorm through its pipes, and by our engine: the same calls, verdicts, anchors and emits."""

import pytest

from tests.oracle import runs
from tests.oracle.conftest import ANSWERS

PIPES = ANSWERS.with_name("pipes.py")

LETTERS = [["a", 0], ["b", 1], ["a", 2], ["c", 3]]


def bolt(body, *attributes, base="Bolt", script=LETTERS, last_ticks=1):
    lines = [f"class Subject({base}):", "    outputs = ['a', 'n']", *(f"    {line}" for line in attributes)]
    lines += [f"    {line}" for line in body.strip("\n").split("\n")]
    return {"code": "\n".join(lines) + "\n", "script": script, "last_ticks": last_ticks}


def batching(body, *attributes, script, last_ticks=2):
    keyed = ("def group_key(self, tup): return tup.values.a", *attributes)
    return bolt(body, *keyed, base="BatchingBolt", script=script, last_ticks=last_ticks)


EMITS = """
def process(self, tup):
    calls.append(list(tup.values))
    self.emit(list(tup.values))
"""
NOTES = """
def process_batch(self, key, tups):
    calls.append([key, [tup.values.n for tup in tups]])
"""
RAISES = """
def process(self, tup):
    calls.append(list(tup.values))
    if tup.values.a == 'b':
        raise KeyError('b')
    self.emit(tup.values)
"""
BATCH_RAISES = """
def process_batch(self, key, tups):
    calls.append([key, [tup.values.n for tup in tups]])
    if key == 'b' and tups and tups[0].values.n < 10:
        raise KeyError(key)
    if tups:
        self.emit([key, len(tups)])
"""
TICKED = [*LETTERS, "tick", ["d", 4], "tick", ["e", 5], ["e", 6], "tick", "tick", ["f", 7]]

SCENARIOS = {
    "all automatic": bolt(EMITS),
    "without anchors": bolt(EMITS, "auto_anchor = False"),
    "without acks": bolt(EMITS, "auto_ack = False"),
    "acks by hand": bolt(
        "def process(self, tup):\n    calls.append(tup.values.n)\n    if tup.values.a != 'b': self.ack(tup)",
        "auto_ack = False",
    ),
    "acks by id": bolt("def process(self, tup):\n    self.ack(tup.id)", "auto_ack = False"),
    "fails by hand": bolt(
        "def process(self, tup):\n    self.fail(tup) if tup.values.a == 'b' else self.ack(tup)", "auto_ack = False"
    ),
    "a fail and then the automatic ack": bolt("def process(self, tup):\n    if tup.values.a == 'b': self.fail(tup)"),
    "no anchors for one": bolt(
        "def process(self, tup):\n    self.emit(tup.values, anchors=[] if tup.values.a == 'b' else None)"
    ),
    "anchored to one that was kept": bolt(
        "def process(self, tup):\n"
        "    if tup.values.n == 0: self.kept = tup\n"
        "    elif tup.values.n == 3:\n"
        "        self.emit(tup.values, anchors=[self.kept, tup])\n"
        "        self.ack(self.kept); self.ack(tup)\n"
        "    else: self.ack(tup)",
        "auto_ack = False",
    ),
    "an error that fails the tuple": bolt(RAISES, "exit_on_exception = False"),
    "an error that fails nothing": bolt(RAISES, "exit_on_exception = False", "auto_fail = False"),
    "ticks": bolt(
        "def process(self, tup):\n    calls.append(list(tup.values))\n"
        # The one that ends a micro-batch says 0 here.
        "def process_tick(self, tup):\n    calls.append(['tick', tup.values[0] or 1])",
        script=[["a", 0], "tick", ["b", 1], ["c", 2], "tick", "tick"],
    ),
    "emits of a tick": bolt(
        "def process(self, tup):\n    pass\ndef process_tick(self, tup):\n    self.emit(['tick', 1])",
        script=[["a", 0], "tick", ["b", 1]],
    ),
    "batches": batching(NOTES, script=TICKED),
    "batches of every tick": batching(NOTES, "ticks_between_batches = 0", script=TICKED),
    "batches of every third tick": batching(NOTES, "ticks_between_batches = 2", script=TICKED, last_ticks=3),
    "batches after idle ticks": batching(NOTES, script=["tick", "tick", "tick", ["a", 0], "tick", ["b", 1], "tick"]),
    "batches that emit": batching(
        "def process_batch(self, key, tups):\n    self.emit([key, len(tups)])", script=TICKED
    ),
    "batches without anchors": batching(
        "def process_batch(self, key, tups):\n    self.emit([key, len(tups)])", "auto_anchor = False", script=TICKED
    ),
    "batches without acks": batching(NOTES, "auto_ack = False", script=TICKED),
    "batches acked by hand": batching(
        "def process_batch(self, key, tups):\n    for tup in tups[:1]: self.ack(tup)", "auto_ack = False", script=TICKED
    ),
    "batches, one of which is wrong": batching(BATCH_RAISES, "exit_on_exception = False", script=TICKED),
}

STUCK = batching(BATCH_RAISES, "exit_on_exception = False", "auto_fail = False", script=TICKED)

# The task dies: what came until then is compared. pystorm tells Storm which tuples failed; here none is left to know.
DYING = {
    "an error": bolt(RAISES),
    "an error in a tick": bolt(
        "def process(self, tup):\n    calls.append(tup.values.n)\n"
        "def process_tick(self, tup):\n    raise KeyError('tick')",
        script=[["a", 0], "tick", ["b", 1]],
    ),
    "an error in a batch": batching(BATCH_RAISES, script=TICKED),
}


@pytest.fixture(scope="module")
def theirs(oracle):
    return oracle(
        PIPES, SCENARIOS | {"stuck": STUCK} | {f"dying: {name}": scenario for name, scenario in DYING.items()}
    )


def without_empty_batches(answer):
    """pystorm processes the groups that were done before an error once more, empty; ours does not."""
    return {**answer, "calls": [call for call in answer["calls"] if not (isinstance(call, list) and call[1:] == [[]])]}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_bolt_behaves_as_in_pystorm(name, theirs):
    assert runs.run(SCENARIOS[name]) == without_empty_batches(theirs[name])
    assert not theirs[name]["died"]


def test_a_batch_that_nobody_fails_stops_nobody(theirs):
    """pystorm tries it again at each tick, and the groups behind it for ever wait: a micro-batch would never end."""
    assert theirs["stuck"]["calls"].count(["b", [1]]) > 2
    assert ["c", [3]] not in theirs["stuck"]["calls"]
    ours = runs.run(STUCK)
    assert [key for key, _ in ours["calls"]] == list("abcdef")
    assert [id for id, verdict in ours["verdicts"].items() if verdict is None] == ["1"]


@pytest.mark.parametrize("name", DYING)
def test_a_bolt_dies_as_in_pystorm(name, theirs):
    ours, of_theirs = runs.run(DYING[name]), theirs[f"dying: {name}"]
    assert ours["died"] and of_theirs["died"]
    assert ours["calls"] == of_theirs["calls"]


def test_the_runs_differ(theirs):
    """Runs that noted nothing down would all be equal."""
    assert len({str(answer) for answer in theirs.values()}) > len(SCENARIOS) - 3
    assert any(answer["anchored"] for answer in theirs.values())
    assert {verdict for answer in theirs.values() for verdict in answer["verdicts"].values()} == {"ack", "fail", None}
    assert any([] in call for answer in theirs.values() for call in answer["calls"] if isinstance(call, list))
