import datetime

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError
from pystorm_source.spouts import RateSpout
from tests.spouts.contract import PartitionedSpoutContract
from tests.spouts.drive import Driven

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
