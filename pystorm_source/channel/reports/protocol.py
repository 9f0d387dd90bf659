"""The wire protocol between a task and the runner. Pure.

::

    runner → task   greeting: b"pystorm1", nonce (32 bytes)                              once
    task → runner   frame: length of the body (4 bytes, big-endian), mac (32), body      first a hello, then reports
    runner → task   a frame, too, with the body b"stacks"                                if a person asks
    task → runner   frame: what its threads do                                           the answer

    task → runner   frame: "l" and what it wants of a rate limit                         when calls wait
    runner → task   frame: "l" and the permits                                           the answer

    mac = HMAC-SHA256(token, nonce + sequence (8 bytes, big-endian) + body)

Both sides count the frames of a direction, from 0; the number is in the mac, not on the wire. So a frame is valid at
one place of one connection only: replaying, reordering or dropping a frame makes every mac from there on wrong. No body
is read before its mac is checked.

The runner's frames use a random nonce from the task's hello. So a listener that has recorded a runner cannot make a
task answer, and a frame of one direction is invalid in the other.

The first byte of a task's body tells what it is: ``{`` a report (JSON), ``h`` a hello (and the nonce), ``s`` an answer
(and JSON), ``l`` a wish for permits (and JSON).
"""

import hmac
import os
import struct
from collections.abc import Iterator
from threading import Lock

MAGIC = b"pystorm1"
NONCE_BYTES = 32
GREETING_BYTES = len(MAGIC) + NONCE_BYTES
MOST_BODY = 64 * 1024
"""Bytes of a report. Too large: a client may fill the driver's memory. Too small: a topology of many components is not
reported."""

HELLO, ANSWER, LEASE = b"h", b"s", b"l"
"""The first byte of a task's body that is not a report; LEASE also begins the runner's answer to one."""
ASK = b"stacks"
"""The body of a runner's frame. It has no other meaning."""
MOST_ASK = 1024
"""Bytes of the body of a runner's frame. Too large: a runner may fill a task's memory. Too small: the answer to a wish
for permits, with the name of its limit, is not taken."""

_MAC_BYTES = 32
_HEAD = struct.Struct(f"!I{_MAC_BYTES}s")
_SEQUENCE = struct.Struct("!Q")
MOST_FRAME = _HEAD.size + MOST_BODY

# OpenSSL has internal locks: a process forked while another thread holds one could never sign a frame.
_signing = Lock()
os.register_at_fork(before=_signing.acquire, after_in_parent=_signing.release, after_in_child=_signing.release)


class FrameRefused(Exception):
    """The received bytes are not a frame of this connection; ``reason`` says why. No later bytes can be one."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


def greeting(nonce: bytes) -> bytes:
    """The runner's first message. ``nonce``: 32 random bytes, never used before."""
    return MAGIC + nonce


def nonce_of(greeted: bytes) -> bytes:
    """The nonce of a greeting. Raises FrameRefused if the bytes are not a greeting."""
    if len(greeted) != GREETING_BYTES or not greeted.startswith(MAGIC):
        raise FrameRefused("no greeting")
    return greeted[len(MAGIC) :]


def hello(nonce: bytes) -> bytes:
    """The body of a task's first frame. ``nonce``: as for ``greeting``, for the runner's frames."""
    return HELLO + nonce


def frame(token: bytes, nonce: bytes, sequence: int, body: bytes) -> bytes:
    """A body as it is sent. Raises ValueError if the body is too long."""
    if len(body) > MOST_BODY:
        raise ValueError(f"a report has at most {MOST_BODY} bytes. Given: {len(body)}")
    return _HEAD.pack(len(body), _mac(token, nonce, sequence, body)) + body


def _mac(token: bytes, nonce: bytes, sequence: int, body: bytes) -> bytes:
    with _signing:
        return hmac.digest(token, nonce + _SEQUENCE.pack(sequence) + body, "sha256")


class FrameReader:
    """Extracts the frames of one direction from its bytes, in pieces of any size. Keeps less than one frame.

    ``most``: bytes of a body.
    """

    def __init__(self, token: bytes, nonce: bytes, most: int = MOST_BODY):
        self._token = token
        self._nonce = nonce
        self._most = most
        self._kept = bytearray()
        self.frames = 0
        """How many were valid."""

    @property
    def in_frame(self) -> bool:
        """Whether a frame has begun but not ended."""
        return bool(self._kept)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the bodies that are complete and whose mac is right. Raises FrameRefused for the first that is not."""
        self._kept += data
        while len(self._kept) >= _HEAD.size:
            length, mac = _HEAD.unpack_from(self._kept)
            if length > self._most:
                raise FrameRefused("too long")
            if len(self._kept) < _HEAD.size + length:
                return
            body = bytes(self._kept[_HEAD.size : _HEAD.size + length])
            if not hmac.compare_digest(mac, _mac(self._token, self._nonce, self.frames, body)):
                raise FrameRefused("wrong mac")
            del self._kept[: _HEAD.size + length]
            self.frames += 1
            yield body
