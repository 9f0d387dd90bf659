"""Frames: those of this connection in this order, and nothing else."""

import hmac
import os
import threading

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pystorm_source.channel.reports import protocol
from pystorm_source.channel.reports.protocol import (
    GREETING_BYTES,
    MOST_BODY,
    MOST_FRAME,
    FrameReader,
    FrameRefused,
    frame,
    greeting,
    nonce_of,
)

TOKEN, NONCE = b"t" * 32, b"n" * 32
bodies = st.lists(st.binary(max_size=300), max_size=6)


def framed(given_bodies, token=TOKEN, nonce=NONCE, first=0):
    return [frame(token, nonce, number, body) for number, body in enumerate(given_bodies, first)]


def read(*pieces):
    reader = FrameReader(TOKEN, NONCE)
    return [body for piece in pieces for body in reader.feed(piece)]


@given(bodies, st.data())
def test_frames_come_out_however_their_bytes_are_cut(given_bodies, data):
    wire = b"".join(framed(given_bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=12)))
    reader = FrameReader(TOKEN, NONCE)
    found = []
    for low, high in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        found += reader.feed(wire[low:high])
        assert len(reader._kept) < MOST_FRAME
    assert found == given_bodies
    assert not reader.in_frame
    assert reader.frames == len(given_bodies)


@given(bodies.filter(bool), st.data())
def test_a_changed_byte_is_refused_and_nothing_behind_it_is_read(given_bodies, data):
    frames = framed(given_bodies)
    which = data.draw(st.integers(0, len(frames) - 1))
    place = data.draw(st.integers(0, len(frames[which]) - 1))
    changed = bytearray(frames[which])
    changed[place] ^= data.draw(st.integers(1, 255))
    reader = FrameReader(TOKEN, NONCE)
    found = []
    try:
        for body in reader.feed(b"".join([*frames[:which], changed, *frames[which + 1 :]])):
            found.append(body)
    except FrameRefused:
        pass
    else:
        assert reader.in_frame, "a longer length waits for bytes that do not come"
    assert found == given_bodies[:which]


@given(bodies, st.data())
def test_only_this_order_is_taken(given_bodies, data):
    frames = framed(given_bodies)
    order = data.draw(st.lists(st.sampled_from(range(len(frames))), max_size=8) if frames else st.just([]))
    assume(order != list(range(len(order))))
    with pytest.raises(FrameRefused, match="wrong mac"):
        read(*(frames[i] for i in order))


@given(st.binary(max_size=200), st.binary(min_size=32, max_size=32), st.binary(min_size=1, max_size=64))
def test_neither_another_nonce_nor_another_token_is_taken(body, nonce, token):
    assume(nonce != NONCE)
    assume(token != TOKEN)
    for wrong in (frame(TOKEN, nonce, 0, body), frame(token, NONCE, 0, body), frame(b"", NONCE, 0, body)):
        with pytest.raises(FrameRefused, match="wrong mac"):
            read(wrong)


@given(st.binary(max_size=3000))
def test_garbage_is_never_a_report(garbage):
    reader = FrameReader(TOKEN, NONCE)
    try:
        assert list(reader.feed(garbage)) == []
    except FrameRefused:
        assert reader.frames == 0


def test_long_frames_are_refused_by_their_head():
    assert read(frame(TOKEN, NONCE, 0, b"x" * MOST_BODY)) == [b"x" * MOST_BODY]
    with pytest.raises(ValueError, match="at most 65536 bytes"):
        frame(TOKEN, NONCE, 0, b"x" * (MOST_BODY + 1))
    with pytest.raises(FrameRefused, match="too long"):
        read((MOST_BODY + 1).to_bytes(4, "big") + b"m" * 32)
    with pytest.raises(FrameRefused, match="too long"):
        read(b"\xff" * 36)


def test_a_greeting_is_a_magic_word_and_a_nonce():
    assert nonce_of(greeting(NONCE)) == NONCE
    assert len(greeting(NONCE)) == GREETING_BYTES
    for wrong in (b"", NONCE, greeting(NONCE)[:-1], greeting(NONCE) + b"x", b"HTTP/1.1" + NONCE):
        with pytest.raises(FrameRefused, match="no greeting"):
            nonce_of(wrong)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_no_process_is_forked_while_a_frame_is_signed(monkeypatch):
    """OpenSSL's locks would stay held in the child."""
    begun, ends, digest = threading.Event(), threading.Event(), hmac.digest

    def slow(*arguments):
        begun.set()
        ends.wait(20)
        return digest(*arguments)

    def forks():
        child = os.fork()
        if child == 0:
            os._exit(0)
        statuses.append(os.waitpid(child, 0)[1])

    statuses = []
    monkeypatch.setattr(protocol.hmac, "digest", slow)
    threads = [threading.Thread(target=frame, args=(TOKEN, NONCE, 0, b"")), threading.Thread(target=forks)]
    threads[0].start()
    assert begun.wait(20)
    threads[1].start()
    threads[1].join(0.2)
    assert statuses == []
    ends.set()
    for thread in threads:
        thread.join(20)
    assert statuses == [0]
