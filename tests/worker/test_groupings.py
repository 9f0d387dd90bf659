"""Groupings as a plan wires them: custom objects of their own, Storm's hash, values that no receiver can change."""

import threading
from collections import defaultdict

import pyarrow as pa
import pytest

from cython_core.routing.route import java_deep_hash
from pystorm_source import Bolt, Grouping, ReliableSpout, Stream
from pystorm_source.errors import OptionError, TupleFailed
from tests.worker.running import Numbers, pair, rows, topology, worker_of

TASK_N = pa.schema([("task", pa.int64()), ("n", pa.int64())])


class Where(Bolt):
    """Emits its own task and what it got."""

    outputs = ["task long", "n long"]

    def initialize(self, conf, context):
        self.task = context["taskid"]

    def process(self, tup):
        self.emit((self.task, tup.values[0]))


def by_task(grouping, par=3, spouts=1, overrides=None, total=60):
    """What each task of the bolt got of the numbers 0 … total - 1, in order of arrival."""
    s = Numbers.spec(par=spouts)
    worker = worker_of(
        topology(s=s, b=Where.spec(inputs={s: grouping}, par=par)), "b", (0, 1), TASK_N, overrides=overrides
    )
    found = defaultdict(list)
    for task, n in rows(worker.run("s", "p", 0, total)):
        found[task].append(n)
    return dict(found)


class Turns:
    """Sends every second tuple to the first target, the others to the last; remembers how it was prepared."""

    def __init__(self, start=0):
        self.turn = start
        self.targets = None

    def prepare(self, context, stream, targets):
        assert self.targets is None, "prepared twice"
        assert context["componentid"] == stream.component == "s"
        assert stream.stream == "default"
        assert context["task->component"][str(targets[0])] == "b"
        self.task, self.targets = context["taskid"], targets

    def choose_tasks(self, task, values):
        assert task == self.task
        self.turn += 1
        return [self.targets[0 if self.turn % 2 else -1]]


def test_a_custom_grouping_is_prepared_once_with_the_ascending_targets():
    shared = Turns()
    assert by_task(Grouping.custom(shared)) == {2: list(range(0, 60, 2)), 4: list(range(1, 60, 2))}
    assert (shared.turn, shared.targets) == (0, None), "the topology's own object is left alone"


def test_every_producer_task_has_a_custom_grouping_of_its_own():
    """Three producers each begin with their first target: with one shared object the turns would mix."""
    found = by_task(Grouping.custom(Turns()), spouts=3)
    assert {task: sorted(got) for task, got in found.items()} == {
        4: [n for start in (0, 20, 40) for n in range(start, start + 20, 2)],
        6: [n for start in (0, 20, 40) for n in range(start + 1, start + 20, 2)],
    }


class ByValue:
    def choose_tasks(self, task, values):
        return [2 + values[0] % 2, 4]


def test_a_custom_grouping_needs_no_prepare():
    found = by_task(Grouping.custom(ByValue()))
    assert found == {2: list(range(0, 60, 2)), 3: list(range(1, 60, 2)), 4: list(range(60))}


class Unprepared(ByValue):
    def prepare(self, context, stream, targets):
        raise LookupError("no table of keys")


def test_a_prepare_that_raises_is_named():
    with pytest.raises(
        TupleFailed, match=r"component 's', task 1: Unprepared.prepare\(\) raised LookupError: no table of keys"
    ):
        by_task(Grouping.custom(Unprepared()))


class Wrong:
    def choose_tasks(self, task, values):
        return [1]


def test_a_wrong_answer_names_grouping_component_and_stream():
    with pytest.raises(TupleFailed, match=r"Wrong.choose_tasks, the grouping of stream 'default' of 's', must answer"):
        by_task(Grouping.custom(Wrong()))


def test_partial_key_is_wired_by_its_fields():
    """Every number is a key of its own: the two tasks that a key may go to depend on it, so all tasks get some."""
    found = by_task(Grouping.partial_key("n"), par=4, total=400)
    assert sorted(n for got in found.values() for n in got) == list(range(400))
    assert all(80 < len(got) < 120 for got in found.values())


class Dispatch(Bolt):
    """Sends every number to the task of bolt "b" that it picks by its context, and remembers what it was answered."""

    outputs = [Stream(fields=["n long"], direct=True)]

    def initialize(self, conf, context):
        self.tasks = sorted(int(task) for task, name in context["task->component"].items() if name == "b")
        self.answers = []

    def process(self, tup):
        task = self.tasks[tup.values.n % len(self.tasks)]
        self.answers.append(self.emit(tup.values, direct_task=task, need_task_ids=True))


def direct_worker(dispatch, par=3):
    s = Numbers.spec()
    d = dispatch.spec(inputs=[s])
    return worker_of(topology(s=s, d=d, b=Where.spec(inputs=[d], par=par)), "b", (0, 1), TASK_N)


@pytest.mark.parametrize("par", [1, 3])
def test_a_direct_task_found_by_the_context_gets_its_tuples(par):
    worker = direct_worker(Dispatch, par)
    found = rows(worker.run("s", "p", 0, 30))
    assert sorted(found) == sorted((3 + n % par, n) for n in range(30))
    (dispatch,) = (executor.instance for executor in worker.executors if executor.component == "d")
    assert dispatch.answers == [[3 + n % par] for n in range(30)]


def test_a_direct_task_that_does_not_subscribe_gets_nothing():
    class Astray(Dispatch):
        def initialize(self, conf, context):
            super().initialize(conf, context)
            self.tasks = [1, 2, 99]  # the spout's, its own, nobody's

    worker = direct_worker(Astray)
    assert rows(worker.run("s", "p", 0, 30)) == []
    (astray,) = (executor.instance for executor in worker.executors if executor.component == "d")
    assert astray.answers == [[]] * 30
    assert worker.report()["components"]["d"]["transferred"] == 0


def test_a_plain_emit_on_a_direct_stream_fails_the_task():
    class Plain(Dispatch):
        def process(self, tup):
            self.emit(tup.values)

    with pytest.raises(TupleFailed, match="stream 'default' of 'd' is direct: name a task"):
        rows(direct_worker(Plain).run("s", "p", 0, 1))


def test_a_direct_emit_on_a_plain_stream_fails_the_task():
    class Directed(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            self.emit(tup.values, direct_task=3)

    with pytest.raises(TupleFailed, match="stream 'default' of 'd' is not direct: declare it"):
        rows(direct_worker(Directed).run("s", "p", 0, 1))


JAVA = {"topology.fields.grouping.hash": "java"}


@pytest.mark.parametrize("par", [2, 3, 7])
def test_java_hash_sends_a_key_to_the_task_that_storm_chooses(par):
    found = by_task(Grouping.fields("n"), par=par, overrides=JAVA)
    assert found == {2 + task: [n for n in range(60) if java_deep_hash([n]) % par == task] for task in range(par)}


class Words(Numbers):
    outputs = ["word string", "n long"]
    words = ["storm", "sp\U0001f600rk", None, ["nested", 1], {"a": 1.5}, "-"]

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit((self.words[self.at % len(self.words)], self.at), self.at)
        self.at += 1


class Second(Where):
    def process(self, tup):
        self.emit((self.task, tup.values[1]))


def test_java_hash_goes_over_all_selected_values_in_the_order_of_the_grouping():
    s = Words.spec()
    b = Second.spec(inputs={s: Grouping.fields("n", "word")}, par=5)
    worker = worker_of(topology(s=s, b=b), "b", (0, 1), TASK_N, overrides=JAVA)
    found = rows(worker.run("s", "p", 0, 100))
    assert len(found) == 100
    for task, n in found:
        assert task == 2 + java_deep_hash([n, Words.words[n % len(Words.words)]]) % 5


def test_java_hash_refuses_a_key_that_storm_could_not_have():
    class Sets(Words):
        words = [{1, 2}]

    s = Sets.spec()
    b = Second.spec(inputs={s: Grouping.fields("word")}, par=2)
    worker = worker_of(topology(s=s, b=b), "b", (0, 1), TASK_N, overrides=JAVA)
    with pytest.raises(TupleFailed, match="topology.fields.grouping.hash=java cannot hash a value of type set"):
        rows(worker.run("s", "p", 0, 1))


def test_the_hash_is_stable_or_java():
    with pytest.raises(OptionError, match=r"topology.fields.grouping.hash.*Given: 'md5'"):
        by_task(Grouping.fields("n"), overrides={"topology.fields.grouping.hash": "md5"})


class Lists(Numbers):
    """Emits the same kind of list again and again, and keeps what it has emitted."""

    outputs = ["n long", "words array<string>"]

    def initialize(self, conf, context):
        self.kept = []

    def next_tuple(self):
        if self.at == self.end:
            return False
        words = ["a", ["b"]]
        self.kept.append(words)
        self.emit([self.at, words], self.at)
        self.at += 1


class Spoils(Bolt):
    """Emits how long the lists were on arrival, then changes them."""

    outputs = ["outer long", "inner long"]

    def process(self, tup):
        words = tup.values.words
        self.emit((len(words), len(words[1])))
        words[1].append("more")
        words.append("more")


LENGTHS = pa.schema([("outer", pa.int64()), ("inner", pa.int64())])
COPIES = {"topology.testing.always.try.serialize": True}


def lengths(overrides, bolts, view):
    s = Lists.spec()
    body = {name: Spoils.spec(inputs={s: grouping}, par=par) for name, grouping, par in bolts}
    worker = worker_of(topology(s=s, **body), view, (0, 1), LENGTHS, overrides=overrides)
    found = rows(worker.run("s", "p", 0, 20))
    (spout,) = (executor.instance for executor in worker.executors if executor.component == "s")
    return found, spout.kept


class Everybody:
    def choose_tasks(self, task, values):
        return [2, 3, 4]


@pytest.mark.parametrize("grouping", [Grouping.ALL, Grouping.custom(Everybody())], ids=str)
def test_always_try_serialize_keeps_the_tasks_of_a_bolt_apart(grouping):
    found, kept = lengths(COPIES, [("b", grouping, 3)], "b")
    assert found == [(2, 1)] * 60
    assert kept == [["a", ["b"]]] * 20


@pytest.mark.parametrize("grouping", [Grouping.SHUFFLE, Grouping.fields("words"), Grouping.GLOBAL, Grouping.NONE])
@pytest.mark.parametrize("view", ["b", "c"])
def test_always_try_serialize_keeps_subscribers_apart(grouping, view):
    found, kept = lengths(COPIES, [("b", grouping, 2), ("c", grouping, 1)], view)
    assert found == [(2, 1)] * 20
    assert kept == [["a", ["b"]]] * 20


def test_always_try_serialize_keeps_a_producer_apart_from_its_only_subscriber():
    found, kept = lengths(COPIES, [("b", Grouping.SHUFFLE, 1)], "b")
    assert found == [(2, 1)] * 20
    assert kept == [["a", ["b"]]] * 20


def test_without_it_values_go_by_reference():
    found, kept = lengths({}, [("b", Grouping.ALL, 3)], "b")
    assert sorted(found) == sorted([(2, 1), (3, 2), (4, 3)] * 20)
    assert kept == [["a", ["b", "more", "more", "more"], "more", "more", "more"]] * 20


class Resends(ReliableSpout):
    """One list, again and again until it is acked."""

    outputs = ["n long", "words array<string>"]
    sent = False

    def next_tuple(self):
        if self.sent:
            return False
        self.sent = True
        self.emit([0, ["a", ["b"]]], tup_id=1)


class SpoilsAndFails(Spoils):
    auto_ack = False
    seen: list = []

    def process(self, tup):
        self.seen.append(len(tup.values[1]))
        super().process(tup)
        self.fail(tup)


@pytest.mark.parametrize(("overrides", "seen"), [(COPIES, [2, 2, 2, 2]), ({}, [2, 3, 4, 5])])
def test_what_a_reliable_spout_sends_again_is_what_it_sent_only_where_values_are_copied(overrides, seen):
    SpoilsAndFails.seen = []
    overrides = {**overrides, "topology.dead.letter": "drop"}
    worker = worker_of(pair(SpoilsAndFails, Resends), "b", (0, 1), LENGTHS, overrides=overrides)
    assert rows(worker.run_round({})) == []
    assert SpoilsAndFails.seen == seen


def test_a_value_that_cannot_be_copied_is_named():
    class Locks(Lists):
        def next_tuple(self):
            self.emit((self.at, [threading.Lock()]), self.at)

    worker = worker_of(pair(Spoils, Locks), "b", (0, 1), LENGTHS, overrides=COPIES)
    with pytest.raises(
        TupleFailed, match=r"always.try.serialize: the values of stream 'default' of 's' cannot be copi"
    ):
        rows(worker.run("s", "p", 0, 1))


def test_copied_values_are_still_named():
    class Forwards(Lists):
        def next_tuple(self):
            if self.at == self.end:
                return False
            self.emit((self.at, ["x"]), self.at)
            self.at += 1

    class Hands(Bolt):
        outputs = ["n long", "words array<string>"]

        def process(self, tup):
            self.emit(tup.values)  # a named tuple

    class Ends(Bolt):
        outputs = ["outer long", "inner long"]

        def process(self, tup):
            self.emit((len(tup.values.words), tup.values.n))

    s = Forwards.spec()
    h = Hands.spec(inputs=[s])
    worker = worker_of(topology(s=s, h=h, e=Ends.spec(inputs=[h])), "e", (0, 1), LENGTHS, overrides=COPIES)
    assert rows(worker.run("s", "p", 0, 3)) == [(1, 0), (1, 1), (1, 2)]
