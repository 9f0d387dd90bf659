"""MqttSpout against a real mosquitto, behind a journal, mostly as Spark calls it, without Spark."""

import logging
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.api.queue_spout import QueueSpout
from pystorm_source.api.seen_keys import digest_of
from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.journal.writer import BatchWriter
from pystorm_source.options import parse
from pystorm_source.spouts import MqttSpout, mqtt_connection
from pystorm_source.spouts.mqtt_options import MqttOptions
from pystorm_source.spouts.mqtt_session import MqttSession
from pystorm_source.testing import verify_spout
from testbed.certificates import self_signed
from testbed.mosquitto_server import mosquitto_binary, mosquitto_server
from tests.channel.reports.made_reports import wait_until
from tests.missing import missing
from tests.source.queries import Query
from tests.source.spark_calls import Checkpoint, Run
from tests.spouts.mqtt_world import MqttWorld
from tests.spouts.slow_link import link


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if mosquitto_binary() is None:
        missing("mosquitto", "mosquitto")
    with mosquitto_server(tmp_path_factory.mktemp("mosquitto")) as found:
        yield found


@pytest.fixture
def world(server):
    found = MqttWorld(server)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def closed(monkeypatch):
    """What the tests leave open: no instance of a run that ended by an error is cleaned up."""
    made, begun = [], MqttSession.__init__

    def begins(self, *arguments):
        made.append(self)
        begun(self, *arguments)

    monkeypatch.setattr(MqttSession, "__init__", begins)
    yield made
    for each in made:
        each.close()


def options(world, folder, topology="Payloads", **more):
    return {
        "topology": f"tests.spouts.queue_topologies:{topology}",
        "mqtt.host": "127.0.0.1",
        "mqtt.port": str(world.server.port),
        "mqtt.topics": f"{world.name}/#",
        "mqtt.client_id": world.name,
        "journal.path": str(folder / "journal"),
        "batch.target.millis": "300",
        "maxOffsetsPerTrigger": "100000",
        "spout.poll.seconds": "0.02",
        **{key.replace("__", "."): str(value) for key, value in more.items()},
    }


def begin(found, checkpoint):
    """A run whose session is there: from now on the broker keeps messages for it."""
    run = Run(found, checkpoint)
    run.trigger()
    return run


def rows(checkpoint):
    return [row for batch in checkpoint.rows for row in batch]


def numbers(checkpoint):
    return [int(row[0]) for row in rows(checkpoint)]


def until(run, checkpoint, count, seconds=20):
    end = time.monotonic() + seconds
    while len(rows(checkpoint)) < count:
        assert time.monotonic() < end, rows(checkpoint)
        run.trigger()


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_each_message_gives_its_row_once_and_in_order(world, tmp_path, protocol):
    checkpoint, found = Checkpoint(), options(world, tmp_path, mqtt__protocol=protocol)
    run = begin(found, checkpoint)
    world.put(*range(200))
    until(run, checkpoint, 200)
    world.put(*range(200, 230))
    until(run, checkpoint, 230)
    for _ in range(2):
        run.trigger()
    assert numbers(checkpoint) == list(range(230))


def test_a_row_has_topic_payload_qos_retain_and_properties(world, tmp_path):
    world.put("old", topic="kept", retain=True)
    checkpoint = Checkpoint()
    run = begin(options(world, tmp_path, "Readings"), checkpoint)
    world.put("7", topic="a/b", kind="gift")
    world.put("8", qos=2)
    world.put("9", qos=0)
    until(run, checkpoint, 4)
    found = [
        (topic.removeprefix(world.name), payload, qos, retain, dict(more))
        for topic, payload, qos, retain, more in rows(checkpoint)
    ]
    assert found == [
        ("/kept", b"old", 1, True, {}),
        ("/a/b", b"7", 1, False, {"kind": "gift"}),
        ("/a", b"8", 1, False, {}),
        ("/a", b"9", 0, False, {}),
    ]
    world.put(topic="kept", retain=True)


def test_messages_that_come_while_no_query_runs_are_kept_and_available_now_reads_them(world, tmp_path):
    checkpoint, found = Checkpoint(), options(world, tmp_path)
    begin(found, checkpoint).reader.stop()
    world.put(*range(30))
    run = Run(found, checkpoint, available_now=True)
    run.drain()
    run.reader.stop()
    assert numbers(checkpoint) == list(range(30))


@pytest.mark.parametrize("more", [{"mqtt__receive_maximum": 10}, {"mqtt__protocol": "3.1.1"}])
def test_available_now_reads_more_than_may_be_in_flight(world, tmp_path, more):
    checkpoint, found = Checkpoint(), options(world, tmp_path, **more)
    begin(found, checkpoint).reader.stop()
    world.put(*range(50))
    run = Run(found, checkpoint, available_now=True)
    run.drain()
    run.reader.stop()
    assert numbers(checkpoint) == list(range(50))


def test_messages_that_are_journaled_and_not_acknowledged_come_again_and_make_no_second_row(
    world, tmp_path, monkeypatch, closed
):
    checkpoint, found = Checkpoint(), options(world, tmp_path)
    begin(found, checkpoint)
    world.put(*range(30), *[7] * 5)
    with monkeypatch.context() as dies:
        dies.setattr(QueueSpout, "_pystorm_batch_ended", lambda self, is_journaled: 1 / 0)
        with pytest.raises(TupleFailed, match="ZeroDivisionError"):
            Run(found, checkpoint).trigger()
    run = Run(found, checkpoint)  # reads the journal
    world.put(*range(30, 40), 7)
    until(run, checkpoint, 46)
    for _ in range(2):
        run.trigger()
    assert numbers(checkpoint) == [*range(30), *[7] * 5, *range(30, 40), 7]
    assert not closed[-1]._unacked


def test_messages_of_an_attempt_that_broke_off_come_again(world, tmp_path, monkeypatch):
    checkpoint, found = Checkpoint(), options(world, tmp_path)
    begin(found, checkpoint)
    world.put(*range(15))
    with monkeypatch.context() as fails:
        fails.setattr(BatchWriter, "commit", lambda self, notes=None: 1 / 0)
        with pytest.raises(TupleFailed, match="ZeroDivisionError"):
            Run(found, checkpoint).trigger()
    until(Run(found, checkpoint), checkpoint, 15)
    assert numbers(checkpoint) == list(range(15))


@pytest.mark.parametrize(("most", "remembered"), [(10, 10_000), (10_000, 20_000), (32_767, 32_767)])
def test_more_is_remembered_than_a_broker_should_have_under_way(world, tmp_path, most, remembered):
    """mosquitto sends more after a reconnection; the campaign of kills has seen second rows of these."""
    spout = MqttSpout()
    spout._start(options(world, tmp_path, mqtt__receive_maximum=most), {})
    assert spout.remembered == remembered


def test_the_broker_sends_no_more_than_the_receive_maximum_before_it_is_acknowledged(world, tmp_path, monkeypatch):
    most, received = [], MqttSession.receive

    def receive(self, count, seconds):
        found = received(self, count, seconds)
        most.append(len(self._unacked))
        return found

    monkeypatch.setattr(MqttSession, "receive", receive)
    checkpoint = Checkpoint()
    run = begin(options(world, tmp_path, mqtt__receive_maximum=10), checkpoint)
    world.put(*range(35))
    until(run, checkpoint, 35)
    assert numbers(checkpoint) == list(range(35))
    assert max(most) == 10


def test_equal_messages_are_rows_of_their_own_also_under_one_identifier(world, tmp_path):
    """mosquitto numbers messages from 1 to 65,535; others take the lowest number that is free."""
    checkpoint = Checkpoint()
    run = begin(options(world, tmp_path), checkpoint)
    world.put(*[7] * 40)
    until(run, checkpoint, 40)
    spout = MqttSpout()
    spout._start(options(world, tmp_path), {})
    message = type("Message", (), {"mid": 1, "dup": False, "topic": "t", "payload": b"7", "qos": 1})()
    receipt = type("Receipt", (), {"mid": 1, "message": message})()
    seen = spout._pystorm_all_messages()._seen
    assert seen.add(digest_of(spout._key(receipt)))
    assert seen.add(digest_of(spout._key(receipt))), "a new one"
    message.dup = True
    assert not seen.add(digest_of(spout._key(receipt))), "the same one again"


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_equal_messages_behind_a_session_that_the_broker_has_lost_are_rows_of_their_own(
    world, tmp_path, monkeypatch, protocol, closed
):
    """The packet identifiers begin at 1 again, and a killed attempt makes the broker mark them as delivered before."""
    checkpoint, found = Checkpoint(), options(world, tmp_path, mqtt__protocol=protocol)
    run = begin(found, checkpoint)
    world.put(*[1] * 5)
    until(run, checkpoint, 5)
    run.reader.stop()
    forget_session(world)
    run = Run(found, checkpoint)
    run.trigger()
    run.trigger()
    world.put(*[1] * 5)
    with monkeypatch.context() as fails:
        fails.setattr(BatchWriter, "commit", lambda self, notes=None: 1 / 0)
        with pytest.raises(TupleFailed, match="ZeroDivisionError"):
            Run(found, checkpoint).trigger()
    until(Run(found, checkpoint), checkpoint, 10)
    assert numbers(checkpoint) == [1] * 10
    assert not closed[-1]._unacked


def test_a_session_that_is_lost_within_a_micro_batch_ends_it(world, tmp_path):
    taken, spout = [], MqttSpout()
    spout._start(options(world, tmp_path), {})
    spout.emit = lambda values, *more, **others: taken.append(bytes(values[1]))
    spout._pystorm_resume(None)
    spout.next_tuple()
    world.put(7, 8)
    wait_until(lambda: asked(spout) is None and len(taken) == 2)
    spout.cleanup()
    forget_session(world)
    assert asked(spout) is False, "first the journal forgets"
    assert '"seen":""' in spout._pystorm_notes()
    spout._pystorm_batch_ended(True)
    assert asked(spout) is None
    world.put(7, 7)
    wait_until(lambda: asked(spout) is None and len(taken) == 4)


def test_a_new_message_under_the_key_of_one_that_is_held_is_a_row_and_both_are_acknowledged(world, tmp_path):
    spout = MqttSpout()
    spout._start(options(world, tmp_path), {})
    messages = spout._pystorm_all_messages()
    digest = digest_of([1, b"7"])
    messages._held[digest] = "old"
    messages._seen.add(digest)
    spout._pystorm_is_new([1, b"7"])
    assert digest not in messages._held
    assert messages._seen.add(digest)
    assert list(messages._held.values()) == ["old"]


def asked(spout):
    """Once more, at once."""
    spout._pystorm_all_messages()._due = 0
    return spout.next_tuple()


def forget_session(world):
    """As a broker does that loses its sessions, or when one has expired."""
    client = Client(CallbackAPIVersion.VERSION2, world.name, protocol=MQTTv5)
    client.connect("127.0.0.1", world.server.port, clean_start=True)
    client.loop_start()
    wait_until(client.is_connected)
    client.disconnect()
    client.loop_stop()


def test_messages_that_do_not_count_come_again_while_the_process_lives(world, tmp_path):
    taken, spout = [], MqttSpout()
    spout._start(options(world, tmp_path, mqtt__receive_maximum=10), {})
    spout.emit = lambda values, *more, **others: taken.append(int(values[1]))
    spout._pystorm_resume(None)
    spout.next_tuple()
    world.put(*range(10))
    wait_until(lambda: asked(spout) is None and len(taken) == 10)
    taken.clear()
    spout._pystorm_batch_ended(False)
    spout._pystorm_resume(None)
    wait_until(lambda: asked(spout) is None and len(taken) == 10)
    spout._pystorm_notes()
    spout._pystorm_batch_ended(True)
    world.put(*range(10, 20))
    wait_until(lambda: asked(spout) is None and len(taken) == 20)
    assert taken == list(range(20))


def test_messages_that_a_subclass_was_given_when_it_raised_come_again(world, tmp_path):
    class Enriches(MqttSpout):
        refused = 2

        def receive(self, count):
            found = list(super().receive(count))
            if found and self.refused:
                self.refused -= 1
                raise ConnectionError("the other service is down")
            return found

    taken, spout = [], Enriches()
    spout._start(options(world, tmp_path, mqtt__receive_maximum=10), {})
    spout.emit = lambda values, *more, **others: taken.append(int(values[1]))
    spout._pystorm_resume(None)
    spout.next_tuple()
    world.put(*range(10))

    def is_read():
        with suppress(ConnectionError):
            asked(spout)
        return len(taken) == 10

    wait_until(is_read)
    assert sorted(taken) == list(range(10))


def test_what_another_process_has_journaled_is_not_read_from_an_old_connection(world, tmp_path):
    """It waits there without DUP, in the buffer of the socket. The receive maximum ends reading before its end."""
    found, taken = options(world, tmp_path, mqtt__receive_maximum=2), {}
    old, other = MqttSpout(), MqttSpout()
    for spout in (old, other):
        rows = taken[spout] = []
        spout._start(found, {})
        spout.emit = lambda values, *more, rows=rows, **others: rows.append(int(values[1]))
    old._pystorm_resume(None)
    old.next_tuple()
    world.put(0, 1)
    other._pystorm_resume(None)
    wait_until(lambda: asked(other) is None and taken[other] == [0, 1])
    notes = other._pystorm_notes()
    other._pystorm_batch_ended(True)
    asked(other)
    old._pystorm_resume(notes)
    world.put(2)
    wait_until(lambda: asked(old) is None and 2 in taken[old])
    assert taken[old] == [2]


def test_a_session_without_a_subscription_gets_one(world, tmp_path, monkeypatch):
    """A task was killed before it had subscribed."""
    checkpoint, found = Checkpoint(), options(world, tmp_path, mqtt__protocol="3.1.1")
    with monkeypatch.context() as dies:
        dies.setattr(Client, "subscribe", lambda self, *arguments: 1 / 0)
        with pytest.raises(TupleFailed, match="ZeroDivisionError"):
            Run(found, checkpoint).trigger()
    run = begin(found, checkpoint)
    world.put(*range(5))
    until(run, checkpoint, 5)
    assert numbers(checkpoint) == list(range(5))


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_retained_message_is_one_row_also_behind_a_new_connection(world, tmp_path, protocol, closed):
    world.put(7, topic="kept", retain=True)
    world.put(8, topic="loose", retain=True, qos=0)
    checkpoint = Checkpoint()
    found = options(world, tmp_path, mqtt__protocol=protocol, mqtt__topics=f"{world.name}/#,{world.name}/kept")
    until(begin(found, checkpoint), checkpoint, 3)
    for each in closed:
        each.close()
    run = Run(found, checkpoint)
    world.put(9)
    until(run, checkpoint, 4)
    run.trigger()
    assert sorted(numbers(checkpoint)) == [7, 7, 8, 9], "two filters, two deliveries"
    assert not closed[-1]._unacked
    world.put("", topic="kept", retain=True)
    world.put("", topic="loose", retain=True)


def test_a_connection_that_the_broker_has_given_up_is_made_again_at_once(world):
    session = session_of(world)
    session.receive(1, 0.1)
    for n in range(2):
        session._connection._client.socket().shutdown(socket.SHUT_RDWR)
        session._connection._used -= 100  # of a query with a long trigger
        world.put(n)
        (found,) = session.receive(1, 1.0)
        session.acknowledge([found])
        if n and found.message.payload != str(n).encode():  # the broker had not read its acknowledgement
            (found,) = session.receive(1, 1.0)
            session.acknowledge([found])
        assert found.message.payload == str(n).encode()
    session._connection._client.socket().shutdown(socket.SHUT_RDWR)
    with pytest.raises(RetryLater):  # nor was it idle, nor is a broker asked without end
        session.receive(1, 1.0)


def session_of(world, **more):
    found = {key: value for key, value in options(world, Path(), **more).items() if key.startswith("mqtt.")}
    return MqttSession(parse(MqttSpout.Options, found), logging.getLogger("test"))


def test_a_kept_session_comes_over_a_slow_link(world, tmp_path, monkeypatch):
    checkpoint, found = Checkpoint(), options(world, tmp_path)
    begin(found, checkpoint).reader.stop()
    world.put(*["7" * 20_000] * 40)
    monkeypatch.setattr(mqtt_connection, "CONNECT_SECONDS", 0.5)
    with link(world.server.port, rate=400_000) as port:
        run = Run(found | {"mqtt.port": str(port)}, checkpoint)
        until(run, checkpoint, 40)
        run.reader.stop()
    assert len(rows(checkpoint)) == 40


def test_all_messages_of_a_tls_record_come_at_once(world, tmp_path):
    pem = str(self_signed(tmp_path / "link.pem"))
    begin(options(world, tmp_path), Checkpoint()).reader.stop()
    world.put(*range(300))
    with link(world.server.port, pem=pem) as port:
        session = session_of(world, mqtt__port=port, mqtt__tls__ca__file=pem)
        found, calls = 0, 0
        while found < 300:
            found += len(session.receive(1000, 0.5))
            calls += 1
            assert calls < 40, found
        session.close()


def test_two_sessions_share_a_topic(world, tmp_path):
    checkpoint = Checkpoint()
    shared = options(world, tmp_path, "SharedPayloads", mqtt__topics=f"$share/g/{world.name}/#", streams="all")
    del shared["mqtt.client_id"]
    run = begin(shared, checkpoint)
    world.put(*range(60))
    until(run, checkpoint, 60)
    assert sorted(numbers(checkpoint)) == list(range(60))
    assert {component for _, component, _ in rows(checkpoint)} == {"one", "two"}


def test_a_broker_that_stops_and_starts_again_loses_nothing(tmp_path):
    if mosquitto_binary() is None:
        missing("mosquitto", "mosquitto")
    with mosquitto_server(tmp_path / "broker") as server:
        world = MqttWorld(server)
        checkpoint, found = Checkpoint(), options(world, tmp_path)
        run = begin(found, checkpoint)
        world.put(*range(20))
        until(run, checkpoint, 20)
        server.stop()
        for _ in range(3):
            run.trigger()
        server.start()
        wait_until(world.client.is_connected)
        world.put(*range(20, 40))
        until(run, checkpoint, 40)
        world.close()
        assert numbers(checkpoint) == list(range(40))


def test_a_session_that_another_client_takes_over_is_taken_back(world, tmp_path, closed):
    checkpoint, found = Checkpoint(), options(world, tmp_path)
    run = begin(found, checkpoint)
    world.put(*range(5))
    until(run, checkpoint, 5)
    other = Run(options(world, tmp_path / "other"), Checkpoint())
    other.trigger()
    world.put(*range(5, 10))
    until(run, checkpoint, 10)
    assert numbers(checkpoint) == list(range(10))


def test_a_second_client_of_one_name_is_told_of(world):
    one, two = session_of(world), session_of(world)
    one.receive(1, 0.1)
    two.receive(1, 0.1)
    with pytest.raises(RetryLater, match=r"another client has mqtt\.client_id '.*', too: every spout"):
        one.receive(1, 10.0)


def test_a_spout_has_one_instance(world, tmp_path):
    spout, names = MqttSpout(), {"1": "messages", "2": "messages"}
    with pytest.raises(OptionError, match=r"one instance reads a session.*Given: par=2"):
        spout._start(options(world, tmp_path), {"componentid": "messages", "task->component": names})


def test_two_spouts_of_one_session_are_refused(world, tmp_path):
    with pytest.raises(OptionError, match=r"'one' and 'two' have the same mqtt\.client_id"):
        Run(options(world, tmp_path, "SameSession", streams="all"), Checkpoint())


def test_a_broker_that_grants_no_acknowledgements_and_a_wrong_filter_are_refused(tmp_path, world):
    if mosquitto_binary() is None:
        missing("mosquitto", "mosquitto")
    with pytest.raises(TupleFailed, match=r"PYSTORM_EXTERNAL_FAILURE.*Invalid subscription filter"):
        begin(options(world, tmp_path, mqtt__topics="a/#/b"), Checkpoint())
    with mosquitto_server(tmp_path / "broker", "allow_anonymous true", "max_qos 0") as server:
        weak = MqttWorld(server)
        with pytest.raises(TupleFailed, match="grants QoS 0 only"):
            begin(options(weak, tmp_path / "weak"), Checkpoint())
        weak.close()


def test_refused_users_topics_and_certificates_are_named_and_no_secret_is_shown(tmp_path, caplog):
    if mosquitto_binary() is None:
        missing("mosquitto", "mosquitto")
    caplog.set_level(logging.DEBUG, "pystorm")
    pem = str(self_signed(tmp_path / "broker.pem"))
    (tmp_path / "users").write_text("reader:right-horse\n")
    passwords = mosquitto_binary().replace("sbin/mosquitto", "bin/mosquitto_passwd")
    subprocess.run([passwords, "-U", str(tmp_path / "users")], check=True)
    settings = [f"certfile {pem}", f"keyfile {pem}", f"password_file {tmp_path}/users"]
    with mosquitto_server(tmp_path / "broker", *settings) as server:
        tls = MqttSession(parse_options(pem), logging.getLogger("test")).tls
        world = MqttWorld(server, ("reader", "right-horse"), tls)

        def run(**more):
            found = options(world, tmp_path, mqtt__username="reader", mqtt__password="right-horse")
            return Run(found | {key.replace("__", "."): value for key, value in more.items()}, checkpoint)

        checkpoint = Checkpoint()
        secure = {"mqtt__tls__ca__file": pem}
        signed_in = run(**secure)
        signed_in.trigger()
        world.put(1)
        until(signed_in, checkpoint, 1)
        with pytest.raises(TupleFailed, match=r"PYSTORM_EXTERNAL_FAILURE.*[Nn]ot authorized.*user, password") as wrong:
            run(**secure, mqtt__password="hunter2hunter2").trigger()
        with pytest.raises(TupleFailed, match="CERTIFICATE_VERIFY_FAILED"):
            run(mqtt__tls="true").trigger()
        assert "hunter2" not in str(wrong.value) + caplog.text
        world.close()


def parse_options(pem):
    return parse(
        MqttSpout.Options,
        {"mqtt.host": "127.0.0.1", "mqtt.topics": "t", "mqtt.client_id": "c", "mqtt.tls.ca.file": pem},
    )


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"mqtt.topics": " , "}, r"'mqtt\.topics' names no topic"),
        ({"mqtt.client_id": ""}, r"client_id"),
        ({"mqtt.receive_maximum": "65535"}, r"receive_maximum"),
        ({"mqtt.protocol": "4"}, r"mqtt\.protocol"),
        ({"mqtt.tls.ca.file": "/nowhere"}, r"cannot be used: .*No such file"),
    ],
)
def test_wrong_options_are_refused(world, tmp_path, wrong, what):
    with pytest.raises(OptionError, match=what):
        MqttSpout().initialize(options(world, tmp_path) | wrong, {})


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_a_killed_task_and_a_broker_that_restarts_double_and_lose_nothing(spark, tmp_path):
    if mosquitto_binary() is None:
        missing("mosquitto", "mosquitto")
    with mosquitto_server(tmp_path / "broker") as server:
        world = MqttWorld(server)
        found = options(world, tmp_path, "KilledMqtt", path=tmp_path / "killed")
        begin(found | {"topology": options(world, tmp_path)["topology"]}, Checkpoint())  # the session
        world.put(*range(40))
        query = Query(tmp_path)
        running = query.start(spark.readStream.format("pystorm").options(**found).load(), processingTime="0 seconds")
        try:
            wait_until(lambda: len(query.rows) == 40 and running.lastProgress)
            assert (tmp_path / "killed").exists()
            server.stop()
            before = running.lastProgress["batchId"]
            wait_until(lambda: running.lastProgress["batchId"] >= before + 2)  # the query lives
            server.start()
            wait_until(world.client.is_connected)
            world.put(*range(40, 60))
            wait_until(lambda: len(query.rows) == 60)
        finally:
            running.stop()
            world.close()
        assert running.exception() is None
        assert sorted(int(payload) for (payload,) in query.rows) == list(range(60))


def test_what_is_acknowledged_right_before_the_end_does_not_come_again(world, tmp_path):
    given = parse(MqttOptions, {key: each for key, each in options(world, tmp_path).items() if key.startswith("mqtt.")})
    made = lambda: MqttSession(given, logging.getLogger("test"), lambda: True)  # noqa: E731
    session = made()
    session.receive(1, 0.1)
    session.close()
    for _ in range(20):
        world.put(*range(50))
        session, found = made(), []
        while len(found) < 50:
            found += session.receive(50, 1.0)
        session.acknowledge(found)
        session.close()
        assert [receipt.message.dup for receipt in found] == [False] * 50


def test_it_keeps_the_laws_of_queues(world, tmp_path):
    given = {key: value for key, value in options(world, tmp_path).items() if key.startswith("mqtt.")}
    subscribed = MqttSession(parse(MqttOptions, given), logging.getLogger("test"), lambda: True)
    assert subscribed.receive(1, 1.0) == []  # the broker keeps a session from here on
    subscribed.close()
    world.put(*range(23))
    verify_spout(MqttSpout, given)
