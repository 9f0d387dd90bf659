"""Frames cross a link whole, in order and once, whatever their sizes and however the two ends take turns."""

import mmap
import os
import random
from itertools import repeat

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cython_core.links.link_end import DAMAGED, LinkEnd, link_bytes

CAPACITIES = st.sampled_from([32, 64, 256, 4096])
FRAMES = st.lists(
    st.tuples(st.integers(0, 65535), st.lists(st.integers(0, 60) | st.integers(0, 5000), max_size=4)), max_size=30
)


def link(down=64, up=64, fds=(-1, -1)):
    """Both ends and their memory."""
    memory = mmap.mmap(-1, link_bytes(down, up))
    parent = LinkEnd(memory, down, up, True, *fds)
    return parent, LinkEnd(memory, down, up, False, *reversed(fds)), memory


@given(FRAMES, CAPACITIES, CAPACITIES, st.booleans(), st.randoms(use_true_random=False))
def test_frames_come_out_as_they_went_in(frames, down, up, from_parent, chance):
    sender, receiver = ends(down, up, from_parent)
    sent = [(kind, [chance.randbytes(size) for size in sizes]) for kind, sizes in frames]
    waiting, got = list(sent), []
    while len(got) < len(sent):
        if chance.random() < 0.5:
            if sender.writes:
                sender.flush()
            elif waiting:
                assert sender.write(*waiting.pop(0)) is not sender.writes
        elif (frame := receiver.read()) is not None:
            got.append(frame)
    assert got == [(kind, b"".join(parts)) for kind, parts in sent]
    assert receiver.read() is None
    assert not sender.writes


def ends(down, up, from_parent):
    parent, child, _ = link(down, up)
    return (parent, child) if from_parent else (child, parent)


def test_one_frame_waits_for_another():
    parent, _, _ = link()
    assert not parent.write(1, [b"x" * 100])
    with pytest.raises(ValueError, match="behind the whole of the last one"):
        parent.write(2, [b"y"])


def test_a_frame_of_nearly_half_a_ring_crosses_at_once():
    parent, child, _ = link(256)
    assert parent.write(3, [b"x" * 50, b"y" * 70])
    assert child.read() == (3, b"x" * 50 + b"y" * 70)


def test_parts_are_bytes_of_any_kind():
    parent, child, _ = link(4096)
    parent.write(0, [b"ab", bytearray(b"cd"), memoryview(b"xefx")[1:3], memoryview(bytearray(8)).cast("Q")])
    assert child.read() == (0, b"abcdef" + bytes(8))


@pytest.mark.parametrize("ring", [1 << 12, 1 << 20])  # in pieces, and at once
def test_the_memory_of_a_large_frame_is_used_again_once_nothing_views_it(ring):
    parent, child, _ = link(ring)

    def sent(byte, length=100_000):
        assert parent.write(1, [byte * length]) is (ring > 2 * length)
        while (frame := child.read()) is None:
            parent.flush()
        assert memoryview(frame[1]).readonly
        return frame[1]

    first, second = sent(b"a"), sent(b"b")
    view = memoryview(first)[10:]
    place = pyarrow.py_buffer(first).address
    assert place % 64 == 0
    del first
    third = sent(b"c")
    assert pyarrow.py_buffer(third).address != place
    assert [bytes(each)[:3] for each in (view, second, third)] == [b"aaa", b"bbb", b"ccc"]
    del view
    again = sent(b"d", 90_000)
    assert pyarrow.py_buffer(again).address == place
    assert len(again) == 90_000
    assert bytes(again) == b"d" * 90_000


def test_what_is_taken_is_seen_by_the_other_end():
    parent, child, _ = link()
    assert parent.taken == 0
    child.taken = 1 << 40
    assert parent.taken == 1 << 40


def test_a_ring_wakes_the_end_that_sleeps_and_no_other_one():
    fds = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2)]
    try:
        parent, child, _ = link(fds=fds)
        assert not parent.ring()
        child.prepare()
        assert parent.ring()
        assert not parent.ring()
        assert os.eventfd_read(fds[1]) == 1
        child.prepare()
        child.answer()
        assert not parent.ring()
        with pytest.raises(BlockingIOError):
            os.eventfd_read(fds[0])
    finally:
        for fd in fds:
            os.close(fd)


def test_an_end_is_rung_for_room_only_if_it_sleeps_for_want_of_it():
    fds = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2)]
    try:
        parent, child, _ = link(fds=fds)
        child.prepare()
        assert not parent.ring_for_room()
        child.answer()
        assert not child.write(1, [b"x" * 100])
        child.prepare()
        assert parent.ring_for_room()
        assert os.eventfd_read(fds[1]) == 1
    finally:
        for fd in fds:
            os.close(fd)


@pytest.mark.parametrize("capacity", [0, 16, 48, 1 << 32])
def test_other_capacities_are_refused(capacity):
    with pytest.raises(ValueError, match="is a power of two"):
        link_bytes(64, capacity)


def test_too_little_memory_is_refused():
    with pytest.raises(ValueError, match="a link takes"):
        LinkEnd(bytearray(64), 64, 64, True)


def test_damaged_memory_is_an_error_and_not_a_crash():
    chance, noticed = random.Random(5), 0
    for _ in repeat(None, 2000):
        parent, child, memory = link(256, 32)
        parent.write(1, [bytes(30)])
        parent.write(2, [bytes(200)])
        at = chance.randrange(384, len(memory))
        memory[at] = chance.randrange(256)
        noticed += refused(parent, child)
    assert noticed > 20


def refused(parent, child):
    """Whether the damage was noticed, as one message for good."""
    try:
        for _ in range(20):
            parent.flush()
            child.read()
    except MemoryError:
        with pytest.raises(MemoryError, match=DAMAGED):
            child.read()
        return True
    return False


def test_each_part_of_a_long_frame_wakes_the_other_end():
    """Neither end has a whole frame to ring for, and both would sleep for ever."""
    fds = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2)]
    try:
        parent, child, _ = link(64, 64, fds)
        assert not parent.write(1, [b"x" * 1000])
        parent.prepare()
        while (frame := child.read()) is None:
            assert os.eventfd_read(fds[0]) == 1, "a part was read: there is room for the next one"
            child.prepare()
            parent.flush()
            assert os.eventfd_read(fds[1]) == 1, "the next part is there"
            parent.prepare()
        assert frame == (1, b"x" * 1000)
    finally:
        for fd in fds:
            os.close(fd)
