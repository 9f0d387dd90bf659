"""What a ring with several readers promises besides the contract: the order of readers, what is woken and kept."""

import gc
import sys
import weakref

import pytest

from cython_core.primitives.parker import Parker
from cython_core.queues.queues import BroadcastReader, BroadcastRing
from tests.core.queues.test_threads import run


class Value:
    """Something that can be seen to go."""


def woken(place):
    """Whether a wake came since it was prepared; prepares it anew."""
    came = not place.parked
    if not came:
        place.cancel()
    place.prepare()
    return came


def test_each_reader_reads_everything():
    ring = BroadcastRing(4, {"a": (), "b": (), "c": ()})
    assert ring.offer_many(range(4)) == 4
    assert [reader.drain(9) for reader in ring.readers] == [[0, 1, 2, 3]] * 3


def test_who_reads_behind_others_waits_for_the_slowest_of_them():
    ring = BroadcastRing(8, {"journal": (), "replica": (), "application": ("journal", "replica")})
    journal, replica, application = ring.readers
    ring.offer_many("abcd")
    journal.drain(3)
    assert (application.poll("nothing"), len(application)) == ("nothing", 0)
    replica.poll()
    assert application.drain(9) == ["a"]
    replica.drain(9)
    assert application.drain(9) == ["b", "c"]


def test_a_reference_is_let_go_when_the_slowest_reader_has_passed_it():
    ring = BroadcastRing(4, {"quick": (), "slow": ()})
    quick, slow = ring.readers
    value = Value()
    gone = weakref.ref(value)
    before = sys.getrefcount(value)
    ring.offer(value)
    assert sys.getrefcount(value) == before + 1
    assert quick.poll() is value
    assert sys.getrefcount(value) == before + 1
    del value
    gc.collect()
    assert gone() is not None
    assert slow.poll() is gone()
    gc.collect()
    assert gone() is None


def test_room_is_what_the_slowest_reader_leaves():
    ring = BroadcastRing(4, {"quick": (), "slow": ()})
    quick, slow = ring.readers
    assert ring.offer_many(range(9)) == 4
    quick.drain(4)
    assert not ring.offer(4)
    slow.drain(2)
    assert ring.offer_many(range(4, 9)) == 2
    assert (quick.drain(9), slow.drain(9)) == ([4, 5], [2, 3, 4, 5])


def test_what_arrives_wakes_every_consumer():
    ring = BroadcastRing(4, {"a": (), "b": ()})
    places = [Parker(), Parker()]
    ring.consumers.extend(places)
    for place in places:
        place.prepare()
    assert ring.offer_many([]) == 0
    assert [woken(place) for place in places] == [False, False]
    ring.offer(1)
    assert [woken(place) for place in places] == [True, True]
    ring.offer_many(range(9))
    assert [woken(place) for place in places] == [True, True]
    assert not ring.offer(9)
    assert [woken(place) for place in places] == [False, False]


def test_those_that_wait_for_room_are_woken_when_half_is_free():
    ring = BroadcastRing(4, {"quick": (), "slow": ()})
    quick, slow = ring.readers
    ring.offer_many(range(4))
    place = Parker()
    place.prepare()
    ring.blocked.append(place)
    quick.drain(4)
    slow.poll()
    assert place.parked
    assert ring.blocked == [place]
    slow.poll()
    assert not place.parked
    assert ring.blocked == []


def test_a_thread_that_sleeps_for_room_goes_on():
    ring = BroadcastRing(4, {"a": (), "b": ()})
    items = list(range(3000))

    def write():
        place = Parker()
        sent = 0
        while sent < len(items):
            went = ring.offer_many(items[sent : sent + 3])
            sent += went
            if not went:
                place.prepare()
                ring.blocked.append(place)
                if len(ring) < ring.capacity:
                    place.cancel()
                else:
                    assert place.park(20.0)

    def read(reader):
        def body():
            place = Parker()
            ring.consumers.append(place)
            taken = []
            while len(taken) < len(items):
                got = reader.drain(2)
                taken += got
                if not got:
                    place.prepare()
                    if len(reader):
                        place.cancel()
                    else:
                        assert place.park(20.0)
            assert taken == items

        return body

    run(write, *[read(reader) for reader in ring.readers])


@pytest.mark.parametrize(
    ("readers", "told"),
    [({}, "Given: {}"), ({"a": ("b",), "b": ()}, "Given: ['b']"), ({"a": ("a",)}, "Given: ['a']")],
)
def test_readers_that_cannot_be_are_refused(readers, told):
    with pytest.raises(ValueError) as raised:
        BroadcastRing(4, readers)
    assert told in str(raised.value)


def test_a_reader_of_another_name_is_refused():
    with pytest.raises(ValueError, match="Given: 'b'"):
        BroadcastReader(BroadcastRing(4, {"a": ()}), "b")
