"""Questions to the tasks' processes: only the runner's are answered, and each asker gets what there is."""

import socket
import stat
import sys
import threading
from contextlib import closing, suppress
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.channel.client import RunnerClient
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.protocol import (
    ASK,
    GREETING_BYTES,
    MOST_ASK,
    MOST_BODY,
    NONCE_BYTES,
    FrameReader,
    frame,
    greeting,
)
from pystorm_source.channel.reports.questions import QuestionListener
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.records.question import ask
from pystorm_source.records.standstill import RangeState, TaskState, decoded, encoded
from tests.channel.reports.made_reports import TOKEN, Caller, body, wait_until
from tests.sizes import sized

pytestmark = pytest.mark.timeout(60)

LONG = 20.0
BUSY = TaskState(component="slow", task=2, in_call=True, method="process", seconds=12.0, frames=("bolts.py:7 in f",))
RANGE = RangeState(place="partition 'a' [0, 9) of spout 's'", process=7, host="h", seconds=13.0, tasks=(BUSY,))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "private" / "0123456789ab.ask"


@pytest.fixture
def server(path):
    made = ReportServer("127.0.0.1", 0, TOKEN, ask_at=partial(QuestionListener.at, path, "Shop", "0123456789abcdef"))
    made.start()
    with closing(made):
        yield made


def connected(server):
    sender = RunnerClient(Runner(*server.address, TOKEN)).reports
    assert sender.send(body(), LONG)
    wait_until(server.take, "the report that says hello")
    return sender


def test_a_range_that_is_read_answers_and_the_runner_names_itself(server, path):
    sender = connected(server)
    with sender.reading(lambda: encoded(RANGE)):
        (run,) = ask([path], LONG)
    assert (run.asked.topology, run.asked.run, run.asked.asked, run.missing) == ("Shop", "0123456789abcdef", 1, 0)
    assert run.ranges == (RANGE,)
    (run,) = ask([path], LONG)
    assert (run.ranges, run.missing) == ((), 0), "nothing is read any more"
    assert sender.send(body(), LONG), "reports go the same way as before"
    assert server.dropped == {}


def test_the_first_range_of_a_process_opens_the_connection(server, path):
    sender = RunnerClient(Runner(*server.address, TOKEN)).reports
    with sender.reading(lambda: encoded(RANGE)):
        wait_until(lambda: [each.ranges for each in ask([path], LONG)] == [(RANGE,)], "the answer")


def test_only_this_user_can_ask_and_nothing_is_left_behind(server, path):
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    server.close()
    assert not path.exists()
    assert ask([path], LONG) == ()


def test_many_can_ask_at_once_and_one_that_reads_nothing_stops_none(server, path):
    sender = connected(server)
    silent = [socket.socket(socket.AF_UNIX) for _ in range(6)]
    with sender.reading(lambda: encoded(RANGE)):
        for each in silent:
            each.connect(str(path))
        assert [run.ranges for run in ask([path], LONG)] == [(RANGE,)]
    for each in silent:
        each.close()


def test_a_connection_without_a_hello_is_not_asked(server, path):
    with closing(Caller(server.address)) as caller:
        caller.send(body())
        wait_until(server.take)
        (run,) = ask([path], LONG)
        assert run.asked.asked == 0
        caller.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            caller.socket.recv(1)


def test_a_process_that_does_not_answer_is_counted(server, path):
    with closing(Caller(server.address)) as caller:
        caller.send(b"h" + b"n" * NONCE_BYTES)
        caller.send(body())
        wait_until(server.take)
        (run,) = ask([path], 0.2)
        assert (run.asked.asked, run.missing) == (1, 1)
        asked = b"".join(FrameReader(TOKEN, b"n" * NONCE_BYTES).feed(caller.socket.recv(4096)))
        assert asked == ASK
        assert "1 of 1 processes have not answered" in str(run)


@pytest.mark.parametrize(
    "answer",
    [
        b'{"kind":"range","place":"\xff"}',
        # From Python 3.14 on no answer is long enough to be nested too deeply.
        b'{"kind":"range","place":"a","odd":' + b"[" * 20_000 + b"]" * 20_000 * (sys.version_info < (3, 14)) + b"}",
        b'{"kind":"range","place":"\\ud800"}',
        b"x",
    ],
    ids=["not UTF-8", "deep", "lone surrogate", "no JSON"],
)
def test_an_answer_that_cannot_be_read_is_counted(server, path, answer):
    sender = connected(server)
    with sender.reading(lambda: answer):
        (run,) = ask([path], LONG)
    assert (run.asked.asked, run.ranges, run.missing, run.unreadable) == (1, (), 0, 1)
    assert "1 of 1 processes have answered what cannot be read" in str(run)


def test_a_name_that_utf8_does_not_have_is_answered_all_the_same(server, path):
    sender = connected(server)
    with sender.reading(lambda: encoded(RangeState(place="a\udcff", tasks=(BUSY,)))):
        (run,) = ask([path], LONG)
    assert (run.ranges[0].place, run.ranges[0].tasks) == ("a\ufffd", (BUSY,))


class Pretender:
    """Listens as a runner would, and knows what one has sent to another connection."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.answers = []
        self.client = RunnerClient(Runner(*self.listener.getsockname(), TOKEN))
        self.sender = self.client.reports

    def tries(self, data, token=TOKEN):
        """Sends the data after the greeting; what the process sends until it closes, or is done with it."""
        with self.sender.reading(self._answer):
            caller, _ = self.listener.accept()
            with closing(caller):
                caller.settimeout(LONG)
                caller.sendall(greeting(b"g" * NONCE_BYTES))
                head = self._exactly(caller, 4 + 32 + 1 + NONCE_BYTES)
                with suppress(OSError):
                    caller.sendall(data(head[-NONCE_BYTES:]))
                    caller.shutdown(socket.SHUT_WR)
                    while more := caller.recv(4096):
                        head += more
                wait_until(lambda: not self.sender._link.is_open)
                return head[4 + 32 + 1 + NONCE_BYTES :]

    def _answer(self):
        self.answers.append(threading.current_thread().name)
        return encoded(RANGE)

    @staticmethod
    def _exactly(caller, size):
        data = b""
        while len(data) < size:
            data += caller.recv(size - len(data))
        return data


@pytest.fixture(scope="module")
def pretender():
    made = Pretender()
    yield made
    made.client.close()
    made.listener.close()


def test_a_question_of_the_runner_is_answered(pretender):
    answer = pretender.tries(lambda nonce: frame(TOKEN, nonce, 0, ASK))
    assert encoded(RANGE) in answer
    assert pretender.answers.pop() == "pystorm-channel"


RECORDED = frame(TOKEN, b"another connection's nonce......", 0, ASK)


@settings(max_examples=sized(40), deadline=None)
@given(st.data())
def test_no_other_bytes_are_answered(pretender, data):
    """Garbage, a changed byte, another token, a frame of another connection, of another place, a task's own."""

    def changed(nonce):
        whole = bytearray(frame(TOKEN, nonce, 0, ASK))
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
        return bytes(whole)

    wrong = data.draw(
        st.sampled_from(
            [
                changed,
                lambda nonce: data.draw(st.binary(max_size=200)),
                lambda nonce: frame(b"x" * 32, nonce, 0, ASK),
                lambda nonce: frame(TOKEN, nonce, 1, ASK),
                lambda nonce: frame(TOKEN, b"g" * NONCE_BYTES, 0, ASK),
                lambda nonce: RECORDED,
                lambda nonce: frame(TOKEN, nonce, 0, b"x" * (MOST_ASK + 1)),
                lambda nonce: frame(TOKEN, nonce, 0, b"something else"),
                lambda nonce: b"\xff" * GREETING_BYTES,
            ]
        )
    )
    assert pretender.tries(wrong) == b""
    assert pretender.answers == []


def test_an_answer_is_bounded_and_loses_what_matters_least():
    waiting = tuple(TaskState(component=f"c{n}", task=n, waits="input") for n in range(2000))
    long = TaskState(component="slow", task=1, in_call=True, frames=tuple("f" * 300 for _ in range(20)))
    many = RangeState(place="p", tasks=(*waiting, long))
    assert decoded(encoded(many)) == many
    short = decoded(encoded(many, MOST_BODY))
    assert short.tasks == (long,)
    shorter = decoded(encoded(RangeState(place="p", tasks=(long,) * 50), MOST_BODY))
    assert {len(task.frames) for task in shorter.tasks} == {1}
    assert decoded(encoded(RangeState(place="p", tasks=(long,) * 500), MOST_BODY)).tasks == ()


@given(st.binary(max_size=200))
def test_a_line_that_is_none_is_passed_over(line):
    assert decoded(line) is None
