"""What queues of values promise besides the contract: any bytes-like object in, bytes out, whole values only."""

import array
import sys
import time
from struct import Struct

import numpy as np
import pytest

from cython_core.mpsc_values import MpscValues
from cython_core.spsc_values import SpscValues
from tests.core.queues.test_threads import ITEMS, run

PAYLOAD = Struct("<QQQ")


@pytest.fixture(params=[SpscValues, MpscValues])
def values(request):
    return request.param


@pytest.mark.parametrize("width", [1, 3, 8, 64, 100])
def test_values_of_any_width_come_out_as_they_went_in(values, width):
    queue = values(8, width)
    sent = bytes(range(200)) * 5
    taken = b""
    for start in range(0, 10 * width, width):
        value = (sent * (width + 1))[start : start + width]
        assert queue.offer(value)
        if start // width % 3 == 2:
            taken += queue.drain(2)
    taken += queue.drain(100)
    assert taken == (sent * (width + 1))[: 10 * width]


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda raw: array.array("q", raw), np.frombuffer])
def test_anything_bytes_like_goes_in(values, make):
    queue = values(8, 8)
    raw = bytes(range(24))
    assert queue.offer_many(make(raw)) == 3
    assert queue.drain(3) == raw


def test_a_drain_is_an_array_for_numpy(values):
    queue = values(128, 8)
    assert queue.offer_many(np.arange(100)) == 100
    assert np.frombuffer(queue.drain(100), np.int64).tolist() == list(range(100))


@pytest.mark.parametrize("width", [0, -1])
def test_width_below_one_is_refused(values, width):
    with pytest.raises(ValueError, match=f"Given: {width}"):
        values(8, width)


def test_values_beyond_memory_are_refused(values):
    with pytest.raises(MemoryError):
        values(1 << 40, 1 << 40)


@pytest.mark.parametrize("length", [0, 7, 9, 16])
def test_a_value_of_another_width_is_refused(values, length):
    queue = values(8, 8)
    with pytest.raises(ValueError, match=f"8 bytes; Given: {length}"):
        queue.offer(bytes(length))
    assert len(queue) == 0


@pytest.mark.parametrize("length", [1, 7, 15])
def test_half_a_value_is_refused(values, length):
    queue = values(8, 8)
    with pytest.raises(ValueError, match=f"Given: {length} bytes"):
        queue.offer_many(bytes(length))
    assert len(queue) == 0


@pytest.mark.parametrize("wrong", [None, 7, "text", [1, 2]])
def test_what_is_not_bytes_like_is_refused(values, wrong):
    queue = values(8, 8)
    with pytest.raises(TypeError):
        queue.offer(wrong)
    with pytest.raises(TypeError):
        queue.offer_many(wrong)


def test_what_is_not_contiguous_is_refused(values):
    with pytest.raises((ValueError, BufferError)):
        values(8, 8).offer_many(memoryview(bytes(64))[::2])


def test_no_reference_is_kept(values):
    value = bytearray(8)
    before = sys.getrefcount(value)
    queue = values(8, 8)
    queue.offer(value)
    queue.offer_many(value)
    assert sys.getrefcount(value) == before
    value.extend(b"no buffer of it is held")
    assert queue.drain(2) == bytes(16)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("batch", [1, 23])
def test_values_of_several_producers_come_out_whole(batch):
    queue = MpscValues(64, PAYLOAD.size)

    def produce(producer):
        def body():
            n = 0
            while n < ITEMS:
                numbers = range(n, min(n + batch, ITEMS))
                went = queue.offer_many(b"".join(PAYLOAD.pack(producer, i, i * 31 ^ producer) for i in numbers))
                if not went:
                    time.sleep(0)
                n += went

        return body

    def consume():
        expected = [0] * 3
        while sum(expected) < 3 * ITEMS:
            drained = queue.drain(batch)
            if not drained:
                time.sleep(0)
            for producer, n, mixed in PAYLOAD.iter_unpack(drained):
                assert (n, mixed) == (expected[producer], n * 31 ^ producer)
                expected[producer] += 1

    run(*[produce(producer) for producer in range(3)], consume)
    assert len(queue) == 0
