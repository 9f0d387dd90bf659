"""The laws of every PartitionedSpout. A spout's test subclasses ``PartitionedSpoutContract`` and gives it a world."""

import pickle
import random
from itertools import pairwise

import pytest

from tests.spouts.drive import Driven


class PartitionedSpoutContract:
    """Subclasses define the fixture ``driven``: a spout over a world that stands still, with a few dozen rows or
    more.
    """

    @pytest.fixture
    def driven(self, tmp_path) -> Driven:
        raise NotImplementedError

    @pytest.fixture
    def ranges(self, driven):
        """partition → (earliest, latest)."""
        heads = dict(driven.driver.snapshot({}, {}).heads)
        # Spouts that begin now have rows behind them once they are known.
        known = {name: 0 for name, (earliest, latest) in heads.items() if earliest == latest > 0}
        for name, (earliest, latest) in driven.driver.snapshot(known, {}).heads.items() if known else ():
            heads[name] = (max(earliest, latest - 5000), latest)
        assert any(latest > earliest for earliest, latest in heads.values())
        return heads

    def test_offsets_lie_in_the_range_and_ascend(self, driven, ranges):
        for name, (start, end) in ranges.items():
            offsets = [offset for offset, _ in driven.read(name, start, end)]
            assert offsets == sorted(offsets)
            assert all(start <= offset < end for offset in offsets)

    def test_a_range_reads_the_same_again(self, driven, ranges):
        spout = driven.instance("task")
        for name, (start, end) in ranges.items():
            first = driven.read(name, start, end, spout)
            assert driven.read(name, start, end, spout) == first
            assert driven.read(name, start, end) == first

    def test_ranges_that_meet_are_the_whole(self, driven, ranges):
        rng = random.Random(7)
        for name, (start, end) in ranges.items():
            whole = driven.read(name, start, end)
            for parts in (2, 3, 7, 20):
                wished = driven.driver.split(name, start, end, parts)
                self.check_cuts(driven, name, [start, *wished, end], whole)
                if wished:
                    cuts = sorted(rng.sample(range(start + 1, end), min(parts, end - start - 1)))
                    self.check_cuts(driven, name, [start, *cuts, end], whole)

    def check_cuts(self, driven, name, cuts, whole):
        rows = []
        spout = driven.instance("task")
        for low, high in pairwise(cuts):
            part = driven.read(name, low, high, spout)
            assert all(low <= offset < high for offset, _ in part)
            rows += part
        assert rows == whole

    def test_split_is_pure_and_inside(self, driven, ranges):
        for name, (start, end) in ranges.items():
            for parts in (1, 2, 5, 1000):
                cuts = driven.driver.split(name, start, end, parts)
                assert cuts == driven.instance("driver").split(name, start, end, parts)
                assert cuts == sorted(set(cuts))
                assert all(start < cut < end for cut in cuts)
                assert len(cuts) < max(2, parts)

    def test_align_stays_between_start_and_head(self, driven, ranges):
        rng = random.Random(8)
        driven.driver.snapshot({}, {})
        for name, (start, end) in ranges.items():
            for _ in range(20):
                cut = rng.randint(start + 1, end)
                assert start <= driven.driver.align(name, start, cut) <= end

    def test_an_empty_range_is_exhausted(self, driven, ranges):
        for name, (start, end) in ranges.items():
            assert driven.read(name, start, start) == []
            assert driven.read(name, end, end) == []

    def test_a_snapshot_is_a_function_of_known_and_state(self, driven):
        first = driven.driver.snapshot({}, {})
        assert driven.driver.snapshot({}, {}) == first
        known = {name: latest for name, (_, latest) in first.heads.items()}
        second = driven.driver.snapshot(known, dict(first.state))
        assert driven.driver.snapshot(known, dict(first.state)) == second
        assert driven.instance("driver").snapshot(known, dict(first.state)) == second
        for name, offset in known.items():
            assert name in second.retired or second.heads[name][1] == offset

    def test_memo_and_names_fit_an_offset(self, driven):
        snapshot = driven.driver.snapshot({}, {})
        for key, value in snapshot.state.items():
            assert isinstance(key, str)
            assert type(value) in (int, str)
        for name, (earliest, latest) in snapshot.heads.items():
            name.encode("utf-8")
            assert type(earliest) is int
            assert type(latest) is int
            assert 0 <= earliest <= latest

    def test_partitions_earliest_and_latest_agree_with_snapshot(self, driven):
        heads = driven.driver.snapshot({}, {}).heads
        assert sorted(driven.driver.partitions()) == sorted(heads)
        for name, (_, latest) in heads.items():
            assert driven.driver.latest(name) == latest

    def test_the_class_pickles_and_opens_anew(self, driven, ranges):
        pickled = pickle.dumps(driven.cls)
        name, (start, end) = next(iter(ranges.items()))
        before = driven.read(name, start, end)
        driven.cls = pickle.loads(pickled)
        assert driven.read(name, start, end) == before
