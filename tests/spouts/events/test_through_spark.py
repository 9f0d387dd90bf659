"""EventStreamSpout as Spark calls it, without Spark: each event once, whatever the server does."""

from itertools import pairwise

import pytest

from pystorm_source.errors import OptionError, TopologyError, TupleFailed
from pystorm_source.spouts import EventStreamSpout
from tests.source.spark_calls import Checkpoint, Run
from tests.spouts.events.stream import options, stream


@pytest.fixture
def server():
    with stream() as found:
        yield found


def ids(checkpoint):
    return [int(row[0]) for rows in checkpoint.rows for row in rows]


def until(run, checkpoint, count, most=60):
    for _ in range(most):
        if len(ids(checkpoint)) >= count:
            return
        run.trigger()
    raise AssertionError(f"{ids(checkpoint)} after {most} micro-batches")


def last_ids(server):
    return [headers.get("Last-Event-ID") for _, headers in server.asked]


def test_one_connection_gives_each_event_once(server, tmp_path):
    server.fill(10)
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path), checkpoint)
    until(run, checkpoint, 10)
    server.fill(5)
    until(run, checkpoint, 15)
    assert ids(checkpoint) == list(range(1, 16))
    assert checkpoint.rows[0][0] == ("1", "edit", '{"n": 1}\nmore')
    assert last_ids(server) == [None]


def test_a_new_process_goes_on_behind_the_last_event_in_the_journal(server, tmp_path):
    server.fill(30)
    checkpoint, found = Checkpoint(), options(server, tmp_path)
    while len(ids(checkpoint)) < 30:
        run = Run(found, checkpoint)
        run.trigger()
        run.reader.stop()
    assert ids(checkpoint) == list(range(1, 31))


def test_another_task_asks_for_the_events_behind_its_cursor(server):
    server.fill(9)
    spout = EventStreamSpout()
    spout._start({"events.url": server.url}, {})
    first, cursor = spout.read(spout.first_cursor(""), 4)
    spout.cleanup()
    spout = EventStreamSpout()
    spout._start({"events.url": server.url}, {})
    rest, _ = spout.read(cursor, 100)
    again, _ = spout.read(spout.first_cursor(""), 4)  # an attempt of which nothing counts
    spout.cleanup()
    assert first == again
    assert [row["id"] for row in rest] == ["5", "6", "7", "8", "9"]
    assert last_ids(server) == [None, "4", None]


@pytest.mark.parametrize("missing", range(1, 8))
def test_half_an_event_at_the_end_of_a_connection_is_never_given(server, tmp_path, missing):
    server.fill(3)
    server.before = b"retry: 10\n\n"
    server.faults = [-missing]
    checkpoint = Checkpoint()
    until(Run(options(server, tmp_path), checkpoint), checkpoint, 3)
    assert ids(checkpoint) == [1, 2, 3]
    assert last_ids(server) == [None, "2"]


@pytest.mark.parametrize("fault", [429, 500, 503, 204, (429, {"Retry-After": "0"}), -1000])
def test_a_trouble_that_passes_costs_no_event(server, tmp_path, fault):
    server.fill(4)
    server.before = b"retry: 10\n\n"
    server.faults = [-1, fault, fault]
    checkpoint = Checkpoint()
    until(Run(options(server, tmp_path), checkpoint), checkpoint, 4)
    assert ids(checkpoint) == [1, 2, 3, 4]


def test_the_stream_says_when_to_connect_again(server, tmp_path):
    server.before = b"retry: 400\n\n"
    server.faults = [-1, -1]
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path), checkpoint)
    while len(server.asked) < 3:
        run.trigger()
    times = [at for at, _ in server.asked]
    assert all(0.4 <= later - at for at, later in pairwise(times))


def test_a_slow_server_is_waited_for(server, tmp_path):
    server.fill(2)
    server.pause = 0.002
    checkpoint = Checkpoint()
    until(Run(options(server, tmp_path), checkpoint), checkpoint, 2)
    assert ids(checkpoint) == [1, 2]
    assert len(server.asked) == 1


def test_available_now_reads_what_there_is_and_ends(server, tmp_path):
    server.fill(20)
    checkpoint = Checkpoint()
    for more in (0, 3):
        server.fill(more)
        run = Run(options(server, tmp_path), checkpoint, available_now=True)
        run.drain()
        run.reader.stop()
    assert ids(checkpoint) == list(range(1, 24))


def read_slowly(server, tmp_path, monkeypatch):
    monkeypatch.setattr("pystorm_source.spouts.events.spout.WAIT_SECONDS", 2.0)  # a busy machine pauses, too
    server.pause = 0.0005
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path, maxOffsetsPerTrigger=1000), checkpoint, available_now=True)
    run.drain()
    run.reader.stop()
    return checkpoint


def test_available_now_reads_on_while_the_server_sends(server, tmp_path, monkeypatch):
    """Slowly, over several micro-batches."""
    server.fill(40)
    checkpoint = read_slowly(server, tmp_path, monkeypatch)
    assert ids(checkpoint) == list(range(1, 41))
    assert len(checkpoint.rows) > 2


def test_available_now_ends_although_the_server_never_pauses(server, tmp_path, monkeypatch):
    monkeypatch.setattr("pystorm_source.spouts.events.spout.ENOUGH_SECONDS", 0.5)
    server.fill(100_000)
    checkpoint = read_slowly(server, tmp_path, monkeypatch)
    found = ids(checkpoint)
    assert 0 < len(found) < 10_000
    assert found == list(range(1, len(found) + 1))


def test_a_query_begins_behind_the_id_that_it_is_given(server, tmp_path):
    server.fill(9)
    checkpoint = Checkpoint()
    until(Run(options(server, tmp_path, events__last_event_id="6"), checkpoint), checkpoint, 3)
    assert ids(checkpoint) == [7, 8, 9]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ((401, {}, b"no: s3cret-token"), "401 Unauthorized"),
        ((200, {"Content-Type": "text/html"}, b"<html>"), "200 OK, text/html"),
        ((302, {"Location": "http://127.0.0.1:9/"}), "302 Found"),
    ],
)
def test_an_answer_that_is_no_stream_fails_and_shows_no_secret(server, tmp_path, fault, said):
    server.faults = [fault] * 5
    found = options(server, tmp_path, events__token="s3cret-token")
    with pytest.raises(TupleFailed, match=said) as caught:
        Run(found, Checkpoint()).trigger()
    assert server.asked[0][1]["Authorization"] == "Bearer s3cret-token"
    assert "s3cret" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_event_that_is_too_large_fails(server, tmp_path):
    server.before = b"data: " + b"x" * 5000
    with pytest.raises(TupleFailed, match=r"larger than events\.most\.bytes"):
        until(Run(options(server, tmp_path, events__most__bytes=1000), Checkpoint()), Checkpoint(), 1)


@pytest.mark.parametrize("url", ["", "ftp://x", "https://me:hunter2@example.org"])
def test_a_wrong_address_is_refused(server, tmp_path, url):
    with pytest.raises(OptionError, match=r"events\.url") as caught:
        Run({**options(server, tmp_path), "events.url": url}, Checkpoint())
    assert "hunter2" not in str(caught.value)


def test_a_stream_is_not_replayable():
    class Again(EventStreamSpout):
        replayable = True

    with pytest.raises(TopologyError, match="cannot be `replayable`"):
        Again().initialize({}, {})
