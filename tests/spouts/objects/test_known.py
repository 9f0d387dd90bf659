"""The set of what is known, and the list that offsets point into, against a plain model."""

import uuid

from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from pystorm_source.spouts.objects import known as of_known
from pystorm_source.spouts.objects import log as of_log
from pystorm_source.spouts.objects.known import KnownObjects
from pystorm_source.spouts.objects.log import ObjectLog
from pystorm_source.spouts.objects.segment import LANES, Found, Segment

objects = st.builds(
    Found,
    st.text("abc/=é", min_size=1, max_size=4),
    st.integers(1, 50),
    st.integers(0, 3),
    st.sampled_from(["", "x", "y"]),
)
lists = st.lists(st.lists(objects, max_size=8, unique_by=lambda each: each.path), max_size=12)


@given(lists, st.booleans(), st.integers(0, 20), st.integers(0, 12))
@settings(max_examples=40, deadline=None)
def test_an_object_is_unknown_once(found, by_version, recent, earlier):
    of_known._MOST_RECENT, before = recent, of_known._MOST_RECENT
    try:
        segments = [Segment.behind(None, each, lambda path: False) for each in found[:earlier]]
        known = KnownObjects(by_version, lambda: (None, [each.digests(None) for each in segments]))
        key = (
            (lambda each: (each.path, each.etag, each.size, each.modified if not each.etag else 0))
            if by_version
            else (lambda each: each.path)
        )
        seen = {key(each) for part in found[:earlier] for each in part}
        for part in found[earlier:]:
            expected = [each for each in part if key(each) not in seen]
            assert known.unknown(part) == expected
            known.add(expected)
            seen |= set(map(key, expected))
    finally:
        of_known._MOST_RECENT = before


@given(lists, st.integers(2, 4), st.sets(st.integers(0, 12)), st.data())
@settings(max_examples=20, deadline=None)
def test_an_offset_means_the_same_objects_for_any_process_at_any_time(found, small, restarts, data):
    """Segments are appended and joined, drivers die, and each range gives what it gave."""
    of_log.MOST_SMALL, before = small, of_log.MOST_SMALL
    try:
        store, model = MemoryStore(), {lane: [] for lane in range(LANES)}
        log = ObjectLog(lambda is_patient: store, "list")
        task = ObjectLog(lambda is_patient: store, "list")  # of a process that lives on while segments are joined
        for number, each in enumerate(filter(None, found)):
            if number in restarts:
                log = ObjectLog(lambda is_patient: store, "list")
            last = Segment.behind(log.last, [one._replace(path=uuid.uuid4().hex) for one in each], lambda path: False)
            log.append(last)
            for lane in range(LANES):
                model[lane] += last.parts(lane, 0, 1 << 60)
        for lane, parts in model.items():
            if not parts:
                continue
            places = [part.at for part in parts] + [parts[-1].at + parts[-1].end - parts[-1].begin]
            start, end = sorted(data.draw(st.lists(st.sampled_from(places), min_size=2, max_size=2)))
            expected = [part for part in parts if start <= part.at < end]
            for reader in (task, ObjectLog(lambda is_patient: store, "list")):
                read = [part for each in reader.around(lane, start, end) for part in each.parts(lane, start, end)]
                assert [part for part in read if part.within(start, end, False)] == expected
        assert len(store.list().collect()) <= 2 * small + 2
    finally:
        of_log.MOST_SMALL = before
