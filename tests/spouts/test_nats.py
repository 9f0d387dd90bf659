"""NatsSpout against a real nats-server, mostly as Spark calls it, without Spark."""

import datetime
import logging
import re
import time
from contextlib import suppress

import nkeys
import pytest
from nats.aio.client import Client
from nats.errors import Error
from nats.js.api import RetentionPolicy

from cython_core.executors.executor import ComponentFailed
from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import DataLossError, OptionError, WorldError
from pystorm_source.spouts import NatsSpout, nats_messages
from pystorm_source.spouts.nats_connection import NatsConnection
from pystorm_source.spouts.nats_messages import NatsMessages
from testbed.certificates import self_signed
from testbed.nats_server import nats_server
from tests.channel.reports.made_reports import wait_until
from tests.source.queries import Query
from tests.source.spark_calls import Checkpoint, Run
from tests.spouts.contract import PartitionedSpoutContract
from tests.spouts.drive import Driven
from tests.spouts.nats_world import NatsWorld
from tests.spouts.queue_topologies import TextSpout
from tests.spouts.slow_link import link


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with nats_server(tmp_path_factory.mktemp("nats")) as found:
        yield found


@pytest.fixture
def world(server):
    """A stream that is there, and empty."""
    found = NatsWorld(server.url)
    found.make()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def closed(monkeypatch):
    """What the test kit leaves open: it cleans no instance up."""
    made, begun = [], NatsConnection.__init__

    def begins(self, options):
        made.append(self)
        begun(self, options)

    monkeypatch.setattr(NatsConnection, "__init__", begins)
    yield
    for each in made:
        each.close()


def options(world, topology="Texts", **more):
    return {
        "topology": f"tests.spouts.queue_topologies:{topology}",
        "nats.servers": world.url,
        "nats.stream": world.stream,
        "maxOffsetsPerTrigger": "7",
        "spout.poll.seconds": "0",
        **{key.replace("__", "."): str(value) for key, value in more.items()},
    }


def rows(checkpoint):
    return [row for batch in checkpoint.rows for row in batch]


def numbers(checkpoint):
    return [int(row[-1]) for row in rows(checkpoint)]


def until(run, checkpoint, count, seconds=20):
    end = time.monotonic() + seconds
    while len(rows(checkpoint)) < count:
        assert time.monotonic() < end, rows(checkpoint)
        run.trigger()


class TestContract(PartitionedSpoutContract):
    """Two subjects, and sequences that were deleted."""

    @pytest.fixture
    def driven(self, world):
        for n in range(0, 60, 3):
            world.put(n, subject="a")
            world.put(n + 1, n + 2, subject="b")
        world.take_out(3, 4, 5, 30, 60)
        names = [f"{world.stream}.a", f"{world.stream}.b"]
        return Driven(TextSpout.spec(servers=world.url, stream=world.stream, subjects=names))


def test_a_row_has_subject_sequence_time_headers_and_data(world):
    world.put(7, headers={"kind": "gift"})
    world.put(8)
    checkpoint = Checkpoint()
    until(Run(options(world, "Sequences"), checkpoint), checkpoint, 2)
    first, second = rows(checkpoint)
    assert (*first[:2], dict(first[3]), first[4]) == (f"{world.stream}.a", 1, {"kind": "gift"}, b"7")
    assert (second[1], second[3], second[4]) == (2, None, b"8")
    assert first[2] == world.time_of(1)
    by_tuple = Driven(NatsSpout.spec(servers=world.url, stream=world.stream)).read(world.stream, 1, 3)
    assert [(row[2], row[3] and dict(row[3])) for _, row in by_tuple] == [
        (first[2], {"kind": "gift"}),
        (second[2], None),
    ]


def test_a_query_goes_on_where_its_checkpoint_ends(world):
    world.put(*range(20))
    checkpoint, found = Checkpoint(), options(world)
    until(Run(found, checkpoint), checkpoint, 7)
    run = Run(found, checkpoint)
    until(run, checkpoint, 20)
    world.put(*range(20, 23))
    until(run, checkpoint, 23)
    assert numbers(checkpoint) == list(range(23))


def test_available_now_reads_to_the_end_and_ends(world):
    checkpoint, found = Checkpoint(), options(world)
    for count in (12, 0, 3):
        world.put(*range(count))
        run = Run(found, checkpoint, available_now=True)
        run.drain()
        run.reader.stop()
    assert numbers(checkpoint) == [*range(12), *range(3)]


def test_a_stream_is_read_by_several_tasks(world):
    world.put(*range(40))
    checkpoint = Checkpoint()
    until(Run(options(world, minPartitions=4, maxOffsetsPerTrigger=40), checkpoint), checkpoint, 40)
    assert sorted(numbers(checkpoint)) == list(range(40))


def test_ranges_that_follow_one_another_are_read_by_one_consumer(world):
    world.put(*range(30))
    driven = Driven(TextSpout.spec(servers=world.url, stream=world.stream))
    task = driven.instance("task")
    found = [row for start in range(1, 31, 5) for _, row in driven.read(world.stream, start, start + 5, task)]
    assert [int(text) for _, text in found] == list(range(30))
    assert len(world.consumers()) == 1
    assert driven.read(world.stream, 3, 5, task) == driven.read(world.stream, 3, 5)
    assert len(world.consumers()) == 2, "of this task and of the last one"


@pytest.mark.parametrize("lose", ["consumer", "message", "connection"])
def test_what_is_lost_on_the_way_comes_once_all_the_same(world, monkeypatch, lose):
    monkeypatch.setattr(nats_messages, "PULL", 10)
    world.put(*range(40))
    driven = Driven(TextSpout.spec(servers=world.url, stream=world.stream))
    task = driven.instance("task")
    taken = NatsMessages._take

    async def loses(self, message):
        if self._count == 10 and len(self._got) == 4 and not world.lost:
            world.lost = True
            if lose == "consumer":
                await self._client.jetstream().delete_consumer(self._stream, self._consumer)
            elif lose == "connection":
                await self._client.close()
            else:
                return
        await taken(self, message)

    world.lost = False
    monkeypatch.setattr(NatsMessages, "_take", loses)
    monkeypatch.setattr(nats_messages, "ANSWER_SECONDS", 0.2)
    task.open(world.stream, 1, 41)
    found = []
    while page := page_of(task, 41):
        found += [each.sequence for each in page]
    assert found == list(range(1, 41))
    assert world.lost


def page_of(task, end):
    """As the engine asks for it."""
    for _ in range(3):
        with suppress(RetryLater):
            return task._messages.page(end)
    raise AssertionError("no page in three attempts")


def test_a_message_that_is_larger_than_a_request_may_bring_comes(world, monkeypatch):
    monkeypatch.setattr(nats_messages, "PULL_BYTES", 1000)
    texts = ["1", "2", "3" * 3000, "4", "5" * 3000, "6" * 500]
    world.put(*texts)
    found = Driven(TextSpout.spec(servers=world.url, stream=world.stream)).read(world.stream, 1, 7)
    assert [text for _, (_, text) in found] == texts


@pytest.mark.parametrize("start", ["latest", "sequence", "time", "late"])
def test_a_new_query_begins_where_it_is_told_to(world, start):
    world.put(*range(10))
    time = datetime.datetime.now(datetime.UTC) if start == "late" else world.time_of(6)
    more = {
        "latest": {"startingOffsets": "latest"},
        "sequence": {"nats__start": 6},
        "time": {"nats__start": time.isoformat()},
        "late": {"nats__start": time.isoformat()},
    }[start]
    checkpoint, found = Checkpoint(), options(world, **more)
    run = Run(found, checkpoint)
    run.trigger()
    world.put(10, 11)
    first = 10 if start in ("latest", "late") else 5
    until(run, checkpoint, 12 - first)
    assert numbers(checkpoint) == list(range(first, 12))


@pytest.mark.parametrize("offsets", ["latest", '{"messages": {"S": 3}}'])
def test_two_options_that_say_where_a_query_begins_are_refused(world, offsets):
    with pytest.raises(OptionError, match="both say where a new query begins"):
        Run(options(world, nats__start=6, startingOffsets=offsets), Checkpoint()).trigger()


def test_a_start_behind_the_end_is_refused(world):
    with pytest.raises(OptionError, match=r"'nats\.start' lies behind the end of stream"):
        Run(options(world, nats__start=5), Checkpoint()).trigger()


def test_messages_that_were_trimmed_unread_fail(world, caplog):
    world.put(*range(10))
    checkpoint, found = Checkpoint(), options(world)
    until(Run(found, checkpoint), checkpoint, 10)
    world.put(*range(10, 30))
    world.trim(23)
    with pytest.raises(DataLossError, match=r"PYSTORM_DATA_LOST"):
        until(Run(found, checkpoint), checkpoint, 11)
    run = Run(found | {"failOnDataLoss": "false"}, checkpoint)
    until(run, checkpoint, 18)
    assert numbers(checkpoint) == [*range(10), *range(22, 30)]


def test_messages_that_are_trimmed_between_plan_and_task_fail(world, caplog):
    world.put(*range(10))
    world.trim(4)
    spec = dict(servers=world.url, stream=world.stream)
    with pytest.raises(ComponentFailed) as failed:
        Driven(TextSpout.spec(**spec)).read(world.stream, 1, 11)
    assert re.search(r"sequences \[1, 4\) of stream .* are gone: it begins at 4 now", str(failed.value.__cause__))
    lenient = Driven(TextSpout.spec(**spec, config={"failOnDataLoss": False}))
    assert [sequence for _, (sequence, _) in lenient.read(world.stream, 1, 11)] == list(range(4, 11))
    world.trim(11)
    assert lenient.read(world.stream, 8, 11) == []
    assert "sequences [8, 11) of stream" in caplog.text
    with pytest.raises(ComponentFailed) as failed:
        Driven(TextSpout.spec(**spec)).read(world.stream, 11, 15)
    assert re.search(r"sequences \[11, 15\) .* ends before them", str(failed.value.__cause__))


def test_messages_that_were_trimmed_before_a_query_began_or_deleted_one_by_one_are_no_loss(world):
    world.put(*range(20))
    world.trim(6)
    world.take_out(9, 20)
    checkpoint = Checkpoint()
    until(Run(options(world), checkpoint), checkpoint, 13)
    assert numbers(checkpoint) == [5, 6, 7, *range(9, 19)]


def test_a_stream_that_was_made_anew_is_noticed(world):
    world.put(*range(10))
    checkpoint, found = Checkpoint(), options(world)
    until(Run(found, checkpoint), checkpoint, 10)
    world.delete()
    world.make()
    world.put(70)
    with pytest.raises(DataLossError, match=r"PYSTORM_DATA_LOST"):
        until(Run(found, checkpoint), checkpoint, 11)
    until(Run(found | {"failOnDataLoss": "false"}, checkpoint), checkpoint, 11)
    assert numbers(checkpoint) == [*range(10), 70]


def test_a_stream_that_is_not_there_yet_is_waited_for(server):
    world = NatsWorld(server.url)
    checkpoint = Checkpoint()
    run = Run(options(world), checkpoint)
    run.trigger()
    world.make()
    world.put(1)
    until(run, checkpoint, 1)
    assert numbers(checkpoint) == [1]
    world.close()


def test_a_server_that_is_killed_and_comes_again_loses_nothing(tmp_path):
    with nats_server(tmp_path) as server:
        world = NatsWorld(server.url)
        world.make()
        world.put(*range(20))
        checkpoint = Checkpoint()
        run = Run(options(world), checkpoint)
        until(run, checkpoint, 20)
        server.kill()
        for _ in range(3):
            run.trigger()
        server.start()
        world.put(*range(20, 25))
        until(run, checkpoint, 25)
        assert numbers(checkpoint) == list(range(25))
        world.close()


def test_a_stream_that_deletes_what_was_acknowledged_is_refused(server):
    world = NatsWorld(server.url)
    world.make(retention=RetentionPolicy.WORK_QUEUE)
    with pytest.raises(WorldError, match="read another stream, which has this one as its source"):
        Run(options(world), Checkpoint()).trigger()
    world.close()


def test_users_and_certificates_are_checked_and_no_secret_is_shown(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    pem, (seed, public) = str(self_signed(tmp_path / "nats.pem")), new_nkey()
    (tmp_path / "app.nk").write_bytes(seed)
    denied = {"publish": {"deny": "$JS.API.STREAM.INFO.>"}}
    users = [
        {"user": "reader", "password": "right-horse"},
        {"user": "narrow", "password": "right-horse", "permissions": denied},
        {"nkey": public},
    ]
    tls = {"cert_file": pem, "key_file": pem, "ca_file": pem, "verify": True}
    with nats_server(tmp_path / "server", tls=tls, authorization={"users": users, "timeout": 5}) as server:
        server_url = server.url.replace("nats://", "tls://")
        context = Driven(NatsSpout.spec(servers=server_url, stream="S", config=files(pem))).driver._connection.tls
        world = NatsWorld(server_url, user="reader", password="right-horse", tls=context)
        world.make()
        world.put(*range(3))

        def read(**more):
            checkpoint = Checkpoint()
            until(Run(options(world, **more) | files(pem), checkpoint), checkpoint, 3)
            return numbers(checkpoint)

        assert read(nats__user="reader", nats__password="right-horse") == [0, 1, 2]
        assert read(nats__nkey=tmp_path / "app.nk") == [0, 1, 2]
        with pytest.raises(WorldError, match=r"(?i)authorization violation.*See that user and files") as wrong:
            read(nats__user="reader", nats__password="hunter2hunter2")
        with pytest.raises(WorldError, match=r"(?i)permissions violation.*\$JS\.API\.STREAM\.INFO"):
            read(nats__user="narrow", nats__password="right-horse")
        with pytest.raises(WorldError, match="CERTIFICATE_VERIFY_FAILED"):
            Run(options(world, nats__user="reader", nats__password="right-horse"), Checkpoint()).trigger()
        assert "hunter2" not in str(wrong.value) + caplog.text
        world.close()


def new_nkey():
    """A seed and its public key."""
    import base64
    import os

    raw = os.urandom(32)
    prefix, kind = 18 << 3, 20 << 3  # of a seed, and of a user
    head = bytes((prefix | (kind >> 5), (kind & 31) << 3))
    payload = head + raw
    seed = base64.b32encode(payload + nkeys.crc16(payload).to_bytes(2, "little")).rstrip(b"=")
    return seed, nkeys.from_seed(bytearray(seed)).public_key.decode()


def files(pem):
    return {"nats.tls.ca.file": pem, "nats.tls.cert.file": pem}


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"nats.servers": "localhost:4222"}, r"'nats\.servers' names servers by nats://"),
        ({"nats.servers": ""}, r"'nats\.servers' names servers"),
        *(
            ({"nats.servers": f"nats://h:4222,{other}"}, rf"names servers by nats:// or tls:// and a host.*'{other}'")
            for other in ("ws://h:80", "wss://h", "nats://", "nats://:4222", "tls:///x", "nats://h:0", "nats://h:70000")
        ),
        (
            {"nats.servers": "nats://app:secret-word@h:4222"},
            r"has a user or a token.*nats\.token.*Given: 'nats://h:4222'",
        ),
        ({"nats.subjects": "a b"}, r"'nats\.subjects' has subjects of words with dots .*Given: 'a b'"),
        ({"nats.subjects": "a..b"}, r"Given: 'a\.\.b'"),
        ({"nats.subjects": "a.>.b"}, r"Given: 'a\.>\.b'"),
        ({"nats.creds": "/nowhere"}, r"the file of nats\.creds cannot be used: .*No such file"),
        ({"nats.creds": __file__}, r"it has no JWT and seed"),
        ({"nats.nkey": __file__}, r"the file of nats\.nkey cannot be used"),
        ({"nats.stream": "shop.orders"}, r"'nats\.stream' is the name of one stream, .* Given: 'shop\.orders'"),
        ({"nats.stream": "a.b"}, r"nats\.stream"),
        ({"nats.subjects": "a.*,a.b"}, r"'nats\.subjects' has subjects of which a message may fit two"),
        ({"nats.subjects": "a.>,a.b.c"}, r"'nats\.subjects'"),
        ({"nats.start": "latest"}, r"for earliest and latest set startingOffsets"),
        ({"nats.start": "2026-01-31T12:00:00"}, r"a time with its zone"),
        ({"nats.tls.ca.file": "/nowhere"}, r"cannot be used: .*No such file"),
    ],
)
def test_wrong_options_are_refused(world, wrong, what):
    with pytest.raises(OptionError, match=what):
        NatsSpout().initialize(options(world) | wrong, {})


def test_no_secret_is_in_a_refusal_of_servers(world):
    with pytest.raises(OptionError) as failed:
        NatsSpout().initialize(options(world) | {"nats.servers": "nats://token-word@h:4222"}, {})
    assert "token-word" not in str(failed.value)


@pytest.mark.parametrize("more", [{"nats.servers": "tls"}, {"nats.tls.ca.file": "pem"}])
def test_a_server_without_tls_is_refused_before_the_user_signs_in(tmp_path, monkeypatch, more):
    pem, sent, connect = str(self_signed(tmp_path / "nats.pem")), [], Client._connect_command
    monkeypatch.setattr(Client, "_connect_command", lambda self: sent.append(self) or connect(self))
    with nats_server(tmp_path / "server") as server:
        world = NatsWorld(server.url)
        world.make()
        sent.clear()
        found = {"nats.servers": server.url.replace("nats://", "tls://")} if "nats.servers" in more else {}
        found |= {"nats.tls.ca.file": pem} if "nats.tls.ca.file" in more else {}
        with pytest.raises(WorldError, match="TLS is asked for, and the server has none"):
            Run(options(world) | found, Checkpoint()).trigger()
        assert not sent
        world.close()


def test_a_slow_link_is_no_outage(world, monkeypatch):
    monkeypatch.setattr(nats_messages, "ANSWER_SECONDS", 0.4)
    world.put(*["7" * 50_000] * 30)
    with link(int(world.url.rpartition(":")[2]), rate=1_000_000) as port:
        task = Driven(TextSpout.spec(servers=f"nats://127.0.0.1:{port}", stream=world.stream)).instance("task")
        task.open(world.stream, 1, 31)
        found = []
        while page := task._messages.page(31):
            found += [each.sequence for each in page]
        task.cleanup()
    assert found == list(range(1, 31))


def test_what_is_left_of_a_stream_is_not_given_for_another_one_of_its_name(world):
    world.put(*range(1, 11))
    world.take_out(2, 3, 4)
    driven = Driven(TextSpout.spec(servers=world.url, stream=world.stream, config={"failOnDataLoss": False}))
    task = driven.instance("task")
    driven.read(world.stream, 1, 5, task)
    world.delete()
    world.make()
    world.put(*range(101, 111))
    again = f"{world.stream} 2"
    assert [text for _, (_, text) in driven.read(again, 5, 9, task)] == ["105", "106", "107", "108"]


def test_a_connection_that_the_server_has_given_up_is_made_again_at_once(tmp_path):
    with nats_server(tmp_path) as server:
        world = NatsWorld(server.url)
        world.make()
        connection = Driven(TextSpout.spec(servers=world.url, stream=world.stream)).driver._connection

        def last():
            return connection.run(lambda _, js: js.stream_info(world.stream)).state.last_seq

        assert last() == 0
        server.stop()
        server.start()
        assert last() == 0
        server.stop()
        with pytest.raises(RetryLater):
            last()
        world.close()


def test_a_stream_that_has_all_the_consumers_it_may_have_is_waited_for(server):
    world = NatsWorld(server.url)
    world.make(max_consumers=1)
    world.put(*range(8))
    driven = Driven(TextSpout.spec(servers=world.url, stream=world.stream))
    driven.read(world.stream, 1, 3)
    task = driven.instance("task")
    task.open(world.stream, 3, 5)
    with pytest.raises(RetryLater, match="maximum consumers"):
        task._messages.page(5)
    world.forget_consumers()
    assert [each.sequence for each in task._messages.page(5)] == [3, 4]
    world.close()


def test_a_client_that_was_too_slow_to_sign_in_is_not_refused(world):
    connection = Driven(TextSpout.spec(servers=world.url, stream=world.stream)).driver._connection
    assert isinstance(connection._raised(Error("nats: 'Authentication Timeout'")), RetryLater)
    assert isinstance(connection._raised(Error("nats: 'Authorization Violation'")), WorldError)


@pytest.mark.parametrize("subjects", ["a.*,b.*", "a.b,a.c", "a,a.b", "a.*.c,a.b.d", ">"])
def test_subjects_that_no_message_fits_twice_are_taken(world, subjects):
    NatsSpout().initialize(options(world, nats__subjects=subjects), {})


def test_fields_that_no_message_has_are_refused(world):
    class Wrong(NatsSpout):
        outputs = ["data int"]

    with pytest.raises(OptionError, match=r"outputs may have subject string, .* data string\. Given: 'data int'"):
        Wrong().initialize(options(world), {})


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_a_killed_task_and_a_killed_server_double_and_lose_nothing(spark, tmp_path):
    with nats_server(tmp_path / "nats") as server:
        world = NatsWorld(server.url)
        world.make()
        world.put(*range(40))
        marker = tmp_path / "killed"
        found = options(world, "KilledNats", path=marker, maxOffsetsPerTrigger=30, spout__poll__seconds=0.2)
        query = Query(tmp_path)
        spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "200")  # of an idle query, else 10 s
        running = query.start(spark.readStream.format("pystorm").options(**found).load(), processingTime="0 seconds")
        try:
            wait_until(lambda: marker.exists() and len(query.rows) == 40)
            server.kill()
            wait_until(lambda: "unavailable" in str(running.lastProgress))  # the query lives
            server.start()
            world.put(*range(40, 60))
            wait_until(lambda: len(query.rows) == 60)
        finally:
            running.stop()
            spark.conf.unset("spark.sql.streaming.noDataProgressEventInterval")
            world.close()
        assert running.exception() is None
        assert [int(text) for _, text in query.rows] == list(range(60))
