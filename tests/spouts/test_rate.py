import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source import ArrowBolt, Bolt, Topology
from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError
from pystorm_source.spouts import RateSpout
from pystorm_source.types.arrow import schema_of
from tests.sizes import sized
from tests.spouts.contract import PartitionedSpoutContract
from tests.spouts.drive import Driven
from tests.worker.running import worker_of

NOW = 1_700_000_000.0


class TestContract(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self):
        return Driven(
            RateSpout.spec(rows_per_second=100, num_partitions=3, start_time=int(NOW) - 4), clock=ManualClock(NOW)
        )


class TestContractFromNow(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self):
        return Driven(RateSpout.spec(), {"rowsPerSecond": "7", "numPartitions": "2"}, clock=ManualClock(NOW))


def rows(driven, heads):
    return sorted(row for name, (start, end) in heads.items() for _, row in driven.read(name, start, end))


def test_values_and_timestamps_follow_from_offsets():
    driven = Driven(
        RateSpout.spec(rows_per_second=3, num_partitions=2, start_time=int(NOW)), clock=ManualClock(NOW + 2)
    )
    begin = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
    assert rows(driven, driven.driver.snapshot({}, {}).heads) == [
        (begin + datetime.timedelta(microseconds=value * 1_000_000 // 3), value) for value in range(7)
    ]


@pytest.mark.parametrize(("rate", "partitions"), [(1, 1), (3, 2), (1000, 7), (10, 16)])
def test_nothing_is_from_the_future_and_nothing_is_late(rate, partitions):
    clock = ManualClock(NOW)
    driven = Driven(RateSpout.spec(rows_per_second=rate, num_partitions=partitions, start_time=int(NOW)), clock=clock)
    known = dict.fromkeys(driven.driver.partitions(), 0)
    seen = []
    for step in (0.1, 0.25, 0.0, 1.3, 0.9):
        clock.advance(step)
        heads = driven.driver.snapshot(known, {}).heads
        seen += rows(driven, {name: (known[name], latest) for name, (_, latest) in heads.items()})
        known = {name: latest for name, (_, latest) in heads.items()}
        assert sorted(value for _, value in seen) == list(
            range(round((clock.wall() - NOW) * 1e6) * rate // 1_000_000 + 1)
        )
        assert max(stamp.timestamp() for stamp, _ in seen) <= clock.wall() + 1e-6


def test_before_the_start_there_is_nothing():
    driven = Driven(
        RateSpout.spec(rows_per_second=5, num_partitions=2, start_time=int(NOW) + 60), clock=ManualClock(NOW)
    )
    assert driven.driver.snapshot({}, {}).heads == {"0": (0, 0), "1": (0, 0)}


def test_without_start_time_a_new_query_begins_now_and_a_restart_goes_on():
    clock = ManualClock(NOW)
    driven = Driven(RateSpout.spec(rows_per_second=10), clock=clock)
    ((earliest, latest),) = driven.driver.snapshot({}, {}).heads.values()
    assert earliest == latest
    clock.advance(5)
    restarted = Driven(RateSpout.spec(rows_per_second=10), clock=clock)
    _, end = restarted.driver.snapshot({"0": latest}, {}).heads["0"]
    assert end - latest == 50
    assert len(restarted.read("0", latest, end)) == 50


def test_without_start_time_what_comes_after_the_first_look_is_read_though_no_offset_names_it_yet():
    clock = ManualClock(NOW)
    driven = Driven(RateSpout.spec(rows_per_second=10, num_partitions=2), clock=clock)
    first = driven.driver.snapshot({}, {}).heads
    clock.advance(5)
    later = driven.driver.snapshot({}, {}).heads
    assert {name: earliest for name, (earliest, _) in later.items()} == {
        name: earliest for name, (earliest, _) in first.items()
    }
    assert len(rows(driven, later)) == 50


@pytest.mark.parametrize("options", [{"rowsPerSecond": "0"}, {"rowsPerSecond": "fast"}, {"numPartitions": "-1"}])
def test_wrong_options_are_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        Driven(RateSpout.spec(), options)


@given(
    st.sampled_from([1, 3, 7, 1000, 999_983, 1_000_000_000]),
    st.integers(1, 5),
    st.none() | st.integers(0, 2_000_000_000),
    st.data(),
)
@settings(max_examples=sized(60), deadline=None)
def test_batches_have_the_rows_of_tuples(rate, partitions, start_time, data):
    driven = Driven(RateSpout.spec(rows_per_second=rate, num_partitions=partitions, start_time=start_time))
    partition = str(data.draw(st.integers(0, partitions - 1)))
    start = data.draw(st.integers(0, 1_700_000_000 * rate // partitions))
    end = start + data.draw(st.integers(0, 30))
    spout = driven.instance("task")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pystorm_source.spouts.rate.BATCH_ROWS", data.draw(st.integers(1, 12)))
        spout.open(partition, start, end)
        found = []
        while (batch := spout.next_batch()) is not None:
            assert batch.schema == schema_of(("timestamp", "value"), ("timestamp", "long"))
            found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    assert found == [values for _, values in driven.read(partition, start, end, spout)]


class NullBolt(Bolt):
    outputs = ["value long"]

    def process(self, tup):
        pass


class NullArrowBolt(ArrowBolt):
    outputs = ["value long"]

    def process_batch(self, batch):
        pass


class Seen(RateSpout):
    def ack(self, tup_id):
        pass


@pytest.mark.parametrize(
    ("cls", "bolts", "calls"),
    [
        (RateSpout, [], 3),
        (RateSpout, [NullArrowBolt, NullArrowBolt], 3),
        (RateSpout, [NullArrowBolt, NullBolt], 40_001),
        (Seen, [NullArrowBolt], 40_001),
    ],
)
def test_rows_are_read_by_column_if_nothing_takes_them_one_by_one(cls, bolts, calls):
    rate = cls.spec(rows_per_second=5, start_time=0)
    body = {f"bolt{n}": bolt.spec(inputs=[rate]) for n, bolt in enumerate(bolts)}
    made = type("Made", (Topology,), {"rate": rate, **body})
    view = {"columns": (-1, 0)} if not bolts else {"columns": (0,)}
    worker = worker_of(made, "bolt0" if bolts else "rate", **view)
    rows = sum(batch.num_rows for batch in worker.run("rate", "0", 0, 40_000))
    components = worker.report()["components"]
    worker.stop()
    assert rows == (0 if bolts else 40_000)
    assert components["rate"]["executed"] <= calls and components["rate"]["executed"] >= calls - 1
    assert [components[name]["executed"] for name in body] == [40_000] * len(bolts)
