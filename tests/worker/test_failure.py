"""What the user reads when a component fails: component, task, method, values, offset, range."""

import pytest

from pystorm_source.errors import PystormError, TupleFailed
from pystorm_source.worker.failure import shortened
from tests.worker.running import Batches, Numbers, Pass, above, rows, topology, worker_of


class Boom(Exception):
    pass


def failing(method, on, error=None):
    """A worker whose spout or bolt raises in this method."""

    def raises(self, *arguments):
        raise error or Boom("it broke")

    base = {"spout": Numbers, "batches": Batches, "bolt": Pass}[on]
    cls = type("Failing", (base,), {method: raises})
    s = (cls if on != "bolt" else Numbers).spec(par=2 if method == "split" else 1)
    b = (cls if on == "bolt" else Pass).spec(inputs=[s], par=1 if method == "process" else 2)
    return worker_of(topology(s=s, b=b), "b")


@pytest.mark.parametrize(
    ("method", "on", "words"),
    [
        ("initialize", "spout", "component 's', task 1: initialize() raised Boom: it broke; in "),
        ("initialize", "bolt", "component 'b', task 3: initialize() raised Boom: it broke; in "),
        ("activate", "spout", "component 's', task 1: activate() raised Boom: it broke; in "),
        ("split", "spout", "component 's', task 1: split() raised Boom: it broke; in "),
        ("open", "spout", "component 's', task 1: open() raised Boom: it broke; in "),
        ("next_tuple", "spout", "component 's', task 1: next_tuple() raised Boom: it broke; in "),
        ("next_batch", "batches", "component 's', task 1: next_batch() raised Boom: it broke; in "),
        ("process", "bolt", "raised Boom: it broke; tuple (5,) of s.default; offset 5; in "),
        ("close", "spout", "component 's', task 1: close() raised Boom: it broke; in "),
        ("deactivate", "spout", "component 's', task 1: deactivate() raised Boom: it broke; in "),
    ],
)
def test_every_method_is_named(method, on, words):
    worker = failing(method, on)
    with pytest.raises(TupleFailed) as caught:
        rows(worker.run("s", "part-0", 5, 9))
    message = str(caught.value)
    assert words in message
    assert message.endswith("in partition 'part-0' [5, 9) of spout 's'")
    assert type(caught.value.__cause__) is Boom
    assert isinstance(caught.value, PystormError)
    assert worker.broken is (method != "split")  # which is asked before anything is begun
    worker.stop()


@pytest.mark.parametrize(("error", "words"), [(Boom("it broke"), "it broke"), (None, "not from the constructor")])
def test_a_constructor_is_named_too(error, words):
    class Builds(Pass):
        def __init__(self):
            if error:
                raise error
            self.emit((1,))

    with pytest.raises(TupleFailed, match=r"component 'b', task 2: __init__\(\) raised") as caught:
        above(Builds)
    assert words in str(caught.value)


def test_a_constructor_that_needs_arguments():
    class Needs(Pass):
        def __init__(self, size):
            pass

    with pytest.raises(TupleFailed, match=r"component 'b', task 2: __init__\(\) raised TypeError: .*size"):
        above(Needs)


def test_without_a_call_of_super_init():
    class Own(Pass):
        def __init__(self):
            self.mine = 5

    assert len(rows(above(Own).run("s", "p", 0, 3))) == 3


@pytest.mark.parametrize(
    ("values", "stream", "words"),
    [
        ("x", None, "All Tuples must be either lists or tuples, received <class 'str'> instead."),
        ((1, 2), None, "wrong number of fields: stream 'default' of 'b' declares ['n']; Given: (1, 2)"),
        ((1,), "other", "Unknown stream ID: Emits declares the streams 'default' in `outputs`; declare the fields"),
        ((1,), "other", "outputs = [Stream(['word', 'count'], name='other')]. Given: 'other'"),
        (("abc",), None, "Given: 'abc'"),
    ],
)
def test_emits_that_are_refused_name_who_emitted(values, stream, words):
    class Emits(Pass):
        def process(self, tup):
            self.emit(values, stream=stream)

    with pytest.raises(TupleFailed) as caught:
        rows(above(Emits).run("s", "p", 7, 9))
    assert "component 'b', task 2: process() raised" in str(caught.value)
    assert words in str(caught.value)
    assert "; tuple (7,) of s.default; offset 7; in partition 'p'" in str(caught.value)


def test_an_emit_without_any_outputs_says_that_none_are_declared():
    class Undeclared(Pass):
        outputs = None

        def process(self, tup):
            self.emit([1])

    with pytest.raises(TupleFailed, match="Unknown stream ID: Undeclared declares no stream in `outputs`; declare the"):
        rows(above(Undeclared).run("s", "p", 7, 9))


def test_a_spout_names_the_last_offset_that_it_said():
    class Stops(Numbers):
        def next_tuple(self):
            if self.at == 7:
                raise Boom
            super().next_tuple()

    s = Stops.spec()
    with pytest.raises(TupleFailed, match=r"next_tuple\(\) raised Boom: ; last offset 6; in "):
        rows(worker_of(topology(s=s), "s").run("s", "p", 5, 9))


def test_a_failed_tuple():
    class Fails(Pass):
        def process(self, tup):
            self.fail(tup)

    with pytest.raises(TupleFailed) as caught:
        rows(above(Fails).run("s", "p", 5, 9))
    assert str(caught.value) == (
        "[PYSTORM_TUPLE_FAILED] component 'b', task 2: the tuple was failed; tuple (5,) of s.default; offset 5; "
        "4 attempts; no retry is left (topology.max.spout.retries=3): allow for more, or go on without it by "
        "topology.dead.letter=stream or drop; "
        "in partition 'p' [5, 9) of spout 's'"
    )
    assert caught.value.__cause__ is None


def test_the_error_of_a_run_is_worth_more_than_that_of_its_close(caplog):
    class Twice(Numbers):
        def next_tuple(self):
            raise Boom("first")

        def close(self):
            raise ValueError("second")

    s = Twice.spec()
    with pytest.raises(TupleFailed, match="first"):
        rows(worker_of(topology(s=s), "s").run("s", "p", 0, 3))
    (record,) = caplog.records
    first, *frames, last = record.getMessage().splitlines()
    assert (first, last) == ("close() of component 's', task 1 raised", "ValueError: second")
    assert [frame for frame in frames if frame.startswith("  File ")] == [frames[1]] and "in close" in frames[1]


def test_a_failed_open_closes_those_before_it():
    closed = []

    class Opens(Numbers):
        def open(self, partition, start, end):
            if start > 0:
                raise Boom
            super().open(partition, start, end)

        def close(self):
            closed.append(self.task_id)

    s = Opens.spec(par=3)
    with pytest.raises(TupleFailed, match=r"task 2: open\(\)"):
        rows(worker_of(topology(s=s), "s").run("s", "p", 0, 9))
    assert closed == [1]


class Mute:
    def __repr__(self):
        raise RuntimeError("will not print")


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("will not print")


@pytest.mark.parametrize(("method", "on"), [("initialize", "bolt"), ("process", "bolt"), ("next_tuple", "spout")])
def test_an_exception_that_does_not_print_is_named(method, on):
    worker = failing(method, on, MuteError())
    with pytest.raises(TupleFailed, match=rf"{method}\(\) raised MuteError, which does not print") as caught:
        rows(worker.run("s", "p", 5, 9))
    assert method != "process" or "; tuple (5,) of s.default; offset 5; in partition" in str(caught.value)


@pytest.mark.parametrize("letter", ["fail", "stream"])
def test_an_exception_of_50_megabytes_is_cut(letter):
    class Says(Pass):
        exit_on_exception = False

        def process(self, tup):
            raise Boom("x" * 50_000_000)

    overrides = {"topology.max.spout.retries": 0, "topology.dead.letter": letter}
    worker = above(Says, overrides=overrides)
    reasons = []
    for executor in worker.executors:
        if executor.component == "s":
            executor.retries._send = lambda row: reasons.append(row[1]) or True
    try:
        assert rows(worker.run("s", "p", 5, 7)) == []
    except TupleFailed as error:
        reasons.append(str(error))
    assert len(reasons) == (1 if letter == "fail" else 2)
    assert all("Boom: xxx" in reason and len(reason) < 5000 for reason in reasons)


def test_a_thousand_bad_tuples_fill_no_log(caplog):
    class Bad(Pass):
        exit_on_exception = False

        def process(self, tup):
            raise Boom(f"number {tup.values.n}")

    overrides = {"topology.max.spout.retries": 0, "topology.dead.letter": "drop"}
    worker = above(Bad, overrides=overrides)
    assert rows(worker.run("s", "p", 0, 1000)) == []
    worker.stop()
    assert sum(1 + record.getMessage().count("\n") for record in caplog.records) < 50
    assert "997 more in " in caplog.text and "Boom: number 999" in caplog.text
    assert len(worker.errors) == 100 and worker.report()["components"]["b"]["errors"] == 1000


class Huge:
    def __repr__(self):
        return "h" * 10_000


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), "()"),
        ((1,), "(1,)"),
        (("a", 1), "('a', 1)"),
        ((Mute(), 1), "(<Mute that does not print>, 1)"),
        ((10**5000,), "(<int that does not print>,)"),
    ],
)
def test_values_are_shown(values, expected):
    assert shortened(values) == expected


@pytest.mark.parametrize(
    "values", [("x" * 10**6,), (b"x" * 10**6, 1), tuple(range(10**5)), (Huge(), Huge()), ("a" * 150, "b" * 150)]
)
def test_long_values_are_cut(values):
    text = shortened(values)
    assert len(text) == 201
    assert text.endswith("…")
    assert text.startswith("(")


def test_a_value_that_does_not_fit_its_column_is_an_exception_like_any_other():
    """Of a bolt that goes on, and whose tuples have no time-out: the rows before and after it are whole."""

    class Misfit(Pass):
        exit_on_exception = False
        auto_fail = False

        def process(self, tup):
            self.emit(["abc"] if tup.values.n == 1 else tup.values)

    overrides = {"topology.enable.message.timeouts": False}
    worker = above(Misfit, overrides=overrides)
    assert rows(worker.run("s", "p", 0, 3)) == [(0,), (2,)]
    (failure,) = worker.errors
    assert failure.component == "b" and "'abc'" in str(failure.__cause__)
