"""SocketSpout against a real server on the loopback interface."""

import contextlib
import logging
import socket
import threading
import time

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError
from pystorm_source.spouts import SocketSpout

PATIENCE = 20


class Server:
    """Listens on a port of this machine; ``accept`` waits for the spout."""

    def __init__(self, port=0):
        self.listener = socket.create_server(("127.0.0.1", port))
        self.listener.settimeout(PATIENCE)
        self.port = self.listener.getsockname()[1]
        self.connections = []

    def accept(self):
        connection, _ = self.listener.accept()
        connection.settimeout(PATIENCE)
        self.connections.append(connection)
        return connection

    def close(self):
        for each in (*self.connections, self.listener):
            with contextlib.suppress(OSError):
                each.close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


class Told:
    """A spout in no topology, and the lines that it emitted."""

    def __init__(self, port, options=None, clock=None):
        self.lines = []
        self.spout = SocketSpout()
        if clock is not None:
            self.spout.clock = clock
        self.skipped = 0
        self.spout.send_message = self.hear
        conf = {"host": "127.0.0.1", "port": str(port), "socket.reconnect.millis": "1", **(options or {})}
        self.spout._start(conf, {"componentid": "lines", "taskid": 1, "place": "task"})

    def hear(self, message):
        if message["command"] == "emit":
            self.lines.append(message["tuple"][0])
        elif message["command"] == "metrics":
            self.skipped += message["params"]

    def until(self, count):
        """Asks until there are so many lines."""
        end = time.monotonic() + PATIENCE
        while len(self.lines) < count:
            assert time.monotonic() < end, self.lines
            self.spout.next_tuple()
        return self.lines


@pytest.fixture
def told(server):
    told = Told(server.port)
    told.spout.next_tuple()
    yield told
    told.spout.cleanup()


def test_lines_come_whole_however_they_are_cut_on_their_way(server, told):
    connection = server.accept()
    for piece in (b"one\ntw", b"o", b"\r\n", b"\nStra\xc3", b"\x9fe\n"):
        connection.sendall(piece)
        told.spout.next_tuple()
    assert told.until(4) == ["one", "two", "", "Straße"]


def test_nothing_there_is_no_wait(told):
    began = time.monotonic()
    for _ in range(100):
        told.spout.next_tuple()
    assert told.lines == []
    assert time.monotonic() - began < PATIENCE


def test_what_stands_behind_the_last_line_end_is_a_line_when_the_server_closes(server, told):
    connection = server.accept()
    connection.sendall(b"one\ntwo")
    connection.close()
    assert told.until(2) == ["one", "two"]


def test_it_connects_again(server, told):
    for number in range(3):
        accepted = threading.Thread(target=lambda text: server.accept().sendall(text), args=(b"%d\n" % number,))
        accepted.start()
        told.until(number + 1)
        accepted.join()
        server.connections[-1].close()
    assert told.lines == ["0", "1", "2"]


def test_a_server_that_comes_later_is_found(server, caplog):
    port = server.port
    server.close()
    late = Told(port)
    late.spout.next_tuple()
    assert "cannot connect" in caplog.text
    again = Server(port)
    try:
        sender = threading.Thread(target=lambda: again.accept().sendall(b"here\n"))
        sender.start()
        assert late.until(1) == ["here"]
        sender.join()
    finally:
        late.spout.cleanup()
        again.close()


def test_pauses_between_attempts_grow(server, caplog):
    port = server.port
    server.close()
    clock = ManualClock()
    told = Told(port, {"socket.reconnect.millis": "1000"}, clock)
    attempts = []
    for second in range(64):
        caplog.clear()
        told.spout.next_tuple()
        if "cannot connect" in caplog.text:
            attempts.append(second)
        clock.advance(1)
    assert attempts == [0, 1, 3, 7, 15, 31, 61], "30 seconds at most"


def test_bytes_that_are_no_text_are_replaced_or_skipped_and_counted(server, caplog):
    skipping = Told(server.port, {"socket.encoding.errors": "skip"})
    skipping.spout.next_tuple()
    skips = server.accept()
    replacing = Told(server.port)
    replacing.spout.next_tuple()
    replaces = server.accept()
    with caplog.at_level(logging.WARNING):
        for connection in (skips, replaces):
            connection.sendall(b"one\n\xff\xfe\ntwo\n")
        assert skipping.until(2) == ["one", "two"]
        assert replacing.until(3) == ["one", "\ufffd\ufffd", "two"]
    assert "a line of 2 bytes is skipped" in caplog.text
    assert skipping.skipped == 1
    skipping.spout.cleanup()
    replacing.spout.cleanup()


def test_a_line_without_an_end_comes_in_pieces(server):
    told = Told(server.port, {"socket.max.line.bytes": "16"})
    told.spout.next_tuple()
    connection = server.accept()
    connection.sendall(b"x" * 40 + b"\nshort\n" + b"y" * 33)
    connection.close()
    assert [len(line) for line in told.until(7)] == [16, 16, 8, 5, 16, 16, 1]
    assert "".join(told.lines) == "x" * 40 + "short" + "y" * 33
    told.spout.cleanup()


@pytest.mark.parametrize(
    "options",
    [
        *[{"port": "0"}, {"port": "70000"}, {"port": "http"}, {"host": ""}],
        *[{"socket.encoding": "utf-16"}, {"socket.encoding": "a\0"}],
    ],
    ids=str,
)
def test_wrong_options_are_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        Told(1, options)


def test_host_and_port_are_needed():
    with pytest.raises(OptionError, match="'host' is needed"):
        SocketSpout()._start({}, {"componentid": "lines", "taskid": 1, "place": "task"})
