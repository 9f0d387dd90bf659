"""Values on their way between rows and batches: types that Arrow cannot select from, maps, and what cannot be read."""

import logging

import pyarrow as pa
import pytest

from pystorm_source import ArrowBolt, Bolt, Grouping, Stream
from pystorm_source.errors import TupleFailed
from tests.worker.running import N, Numbers, above, numbers, pair, rows, topology, worker_of

UNREADABLE = 2932897  # days: the first that Python has no date of


def spout_of(column, field):
    """Gives one batch of that column."""

    class Once(Numbers):
        outputs = [field]
        next_tuple = Numbers.__mro__[1].next_tuple

        def next_batch(self):
            if self.at == self.end:
                return None
            self.at = self.end
            return pa.record_batch([column], names=["v"])

    return Once


class Values(Bolt):
    """Passes its value on, and counts its rows."""

    outputs = [Stream(["v"], name="default"), Stream(["n long"], name="counted")]

    def process(self, tup):
        self.seen(tup.values)

    def seen(self, values):
        type(self).found.append(values[0])
        self.emit([len(type(self).found)], stream="counted")


class ValuesOfBatches(ArrowBolt, Values):
    def process_batch(self, batch):
        for value in batch.column(0).to_pylist():
            self.seen([value])


VIEWS = {
    "text": lambda: pa.array(["a", None, "b" * 20, "ä"], pa.string_view()),
    "bytes": lambda: pa.array([b"a", None, b"b" * 20], pa.binary_view()),
    "inside": lambda: pa.array([["a"], None, [], ["b", None]], pa.list_(pa.string_view())),
    "runs": lambda: pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array([1, None])),
}


@pytest.mark.parametrize("bolt", [Values, ValuesOfBatches])
@pytest.mark.parametrize("form", VIEWS)
@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="pyarrow >= 16")
def test_a_grouping_splits_batches_of_what_arrow_cannot_take_from(form, bolt):
    column = VIEWS[form]()
    bolt.found = []
    source = spout_of(column, "v").spec()
    counted = topology(s=source, b=bolt.spec(inputs={source: Grouping.SHUFFLE}, par=3))
    worker = worker_of(counted, "b", stream="counted")
    assert len(numbers(worker.run("s", "p", 0, 1))) == len(column)
    assert sorted(map(repr, bolt.found)) == sorted(map(repr, column.to_pylist()))
    worker.stop()


class PassRows(Bolt):
    outputs = ["v map<string, int>"]

    def process(self, tup):
        self.emit(tup.values)


class PassPairs(ArrowBolt):
    outputs = ["v map<string, int>"]

    def process_batch(self, batch):
        self.emit_many(batch.column(0).to_pylist())


@pytest.mark.parametrize("bolts", [[PassRows], [PassPairs], [PassPairs, PassRows], [PassRows, PassPairs]])
def test_a_map_passes_through_both_forms(bolts):
    """Bolts of rows get a dict, as an emit has it, and Arrow's pairs are taken."""
    type = pa.map_(pa.string(), pa.int32())
    column = pa.array([[("x", 0)], [("a", 1), ("b", None)], None, []], type).slice(1)
    below = source = spout_of(column, "v map<string, int>").spec()
    parts = {"s": source}
    for number, bolt in enumerate(bolts):
        below = parts[f"b{number}"] = bolt.spec(inputs=[below])
    worker = worker_of(topology(**parts), f"b{len(bolts) - 1}", schema=pa.schema([("v", type)]))
    assert rows(worker.run("s", "p", 0, 1)) == [([("a", 1), ("b", None)],), (None,), ([],)]
    worker.stop()


def days(*values):
    return pa.array(values, pa.int32()).view(pa.date32())


class Day(Bolt):
    outputs = ["n long"]
    exit_on_exception = False

    def process(self, tup):
        self.emit([tup.values.v.day])


class DayOrFail(Day):
    exit_on_exception = True


class DaysByColumn(Day):
    def process_many(self, tups):
        self.emit_many([day.day for day in tups.column("v")])


class DaysOrFail(DaysByColumn):
    exit_on_exception = True


def of_days(bolt, overrides=None):
    return above(bolt, spout_of(days(*[0] * 500, UNREADABLE, *[1] * 99), "v date"), overrides=overrides)


@pytest.mark.parametrize("bolt", [Day, DaysByColumn])
@pytest.mark.parametrize("retries", [0, 2])
def test_a_row_that_cannot_be_read_fails_and_the_others_go_on(retries, bolt, caplog):
    caplog.set_level(logging.CRITICAL)
    worker = of_days(bolt, {"topology.max.spout.retries": retries, "topology.dead.letter": "drop"})
    assert sorted(numbers(worker.run("s", "p", 0, 1))) == [1] * 500 + [2] * 99
    assert worker.report()["components"]["s"]["dead_letters"] == 1
    worker.stop()


@pytest.mark.parametrize("bolt", [DayOrFail, DaysOrFail])
def test_without_exit_on_exception_the_error_names_field_and_row(bolt):
    worker = of_days(bolt)
    with pytest.raises(TupleFailed, match=r"field 'v' \(date32\[day\]\) of s.* cannot be read .* in row 500 "):
        list(worker.run("s", "p", 0, 1))
    worker.stop()


class FailsAll(ArrowBolt):
    outputs = ["n long"]

    def process_batch(self, batch):
        self.fail(batch)


def test_a_dead_letter_of_what_cannot_be_read_says_so():
    made = pair(FailsAll, spout_of(days(0, UNREADABLE), "v date"))
    overrides = {"topology.max.spout.retries": 0, "topology.dead.letter": "stream"}
    texts = pa.schema([("values", pa.string())])
    worker = worker_of(made, "s", [-1] * 5 + [0, -1], texts, overrides, stream="__dead_letter")
    found = [text for (text,) in rows(worker.run("s", "p", 0, 1))]
    assert found == ['["1970-01-01"]', '["<date32[day] that cannot be read>"]']
    worker.stop()


class Wide(Bolt):
    outputs = ["v int"]

    def process(self, tup):
        self.emit_batch(pa.record_batch([pa.array([1 << 40])], names=["x"]))


class Takes(ArrowBolt):
    outputs = ["n long"]

    def process_batch(self, batch):
        self.emit_batch(batch)


def test_a_column_that_does_not_fit_the_declared_type_is_named():
    source = Numbers.spec()
    wide = Wide.spec(inputs=[source])
    worker = worker_of(topology(s=source, w=wide, b=Takes.spec(inputs=[wide])), "b", schema=N)
    with pytest.raises(TupleFailed, match=r"field 'v' \(int32\) of w.default can not hold a value of type int"):
        list(worker.run("s", "p", 0, 1))
    worker.stop()
