"""Kafka with passwords and certificates, on a real broker: what gets in, what is refused; no secret is shown."""

import logging

import pytest

from pystorm_source.errors import WorldError
from pystorm_source.spouts import KafkaSpout
from pystorm_source.spouts.kafka.options import KafkaOptions
from testbed.certificates import self_signed
from testbed.kafka_broker import PASSWORD, USER
from tests.docs.pages import ROOT, blocks
from tests.spouts.drive import Driven
from tests.spouts.kafka.topic import Topic, values_of

JAAS = "org.apache.kafka.common.security"
PLAIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER}
WRONG = "wr0ng-horse"
# Never waited for: a refusal comes at once.
PATIENT = {"kafka.default.api.timeout.ms": 20_000, "kafkaConsumer.pollTimeoutMs": 50_000}


@pytest.fixture(scope="module")
def topic(kafka):
    topic = Topic(kafka)
    topic.write(["a", "b"])
    return topic


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """A certificate that is not trusted."""
    return str(self_signed(tmp_path_factory.mktemp("certificates") / "stranger.pem"))


def spout(topic, listener, given, **options):
    port = topic.cluster.brokers[0].secured[listener]
    client = {f"kafka.{key}": value for key, value in given.items()}
    config = {**PATIENT, **client, "subscribe": topic.name, **options}
    return Driven(KafkaSpout.spec(servers=f"127.0.0.1:{port}", fields=["value string"], config=config))


def reads(driven, topic):
    assert driven.driver.snapshot({}, {}).heads == {f"{topic.name}-0": (0, 2)}
    return values_of(driven.read(f"{topic.name}-0", 0, 2))


def refused(driven, topic):
    """What is said on the driver and in a task, both of them at once."""
    with pytest.raises(WorldError, match="Kafka refuses the client") as planning:
        driven.driver.snapshot({}, {})
    with pytest.raises(Exception) as reading:
        driven.read(f"{topic.name}-0", 0, 2)
    assert isinstance(reading.value.__cause__, WorldError)
    said = [str(planning.value), str(reading.value.__cause__)]
    assert all("look at kafka.security.protocol" in each and "Given: kafka.bootstrap.servers=" in each for each in said)
    return "\n".join(said)


@pytest.mark.parametrize(
    "given",
    [
        {"sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD},
        {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": USER, "sasl.password": PASSWORD},
        {"sasl.jaas.config": f'{JAAS}.plain.PlainLoginModule required username="{USER}" password="{PASSWORD}";'},
        {
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{JAAS}.scram.ScramLoginModule required username="{USER}" password="{PASSWORD}";',
        },
    ],
    ids=["plain", "scram", "plain by jaas", "scram by jaas"],
)
def test_a_password_lets_driver_and_tasks_in(topic, given):
    assert reads(spout(topic, "SASL", {"security.protocol": "SASL_PLAINTEXT", **given}), topic) == ["a", "b"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_an_error_at_once_that_does_not_tell_it(topic, mechanism, caplog):
    caplog.set_level(logging.DEBUG)
    given = {**PLAIN, "sasl.mechanism": mechanism, "sasl.password": WRONG}
    said = refused(spout(topic, "SASL", given), topic)
    assert "_AUTHENTICATION" in said and f"kafka.sasl.username='{USER}', kafka.security.protocol=" in said
    assert WRONG not in said and WRONG not in caplog.text


def test_a_wrong_password_is_told_of_a_pattern_too(topic):
    driven = spout(topic, "SASL", {**PLAIN, "sasl.password": WRONG}, subscribe="", subscribePattern="topic.*")
    with pytest.raises(WorldError, match="Kafka refuses the client"):
        driven.driver.snapshot({}, {})


def test_a_mechanism_that_the_broker_has_not_is_named_with_those_that_it_has(topic):
    given = {**PLAIN, "sasl.mechanism": "SCRAM-SHA-512", "sasl.password": PASSWORD}
    assert "supported mechanisms: PLAIN,SCRAM-SHA-256" in refused(spout(topic, "SASL", given), topic)


def test_certificates_let_driver_and_tasks_in(topic):
    tls = topic.cluster.tls
    assert reads(spout(topic, "TLS", {"security.protocol": "SSL", **tls}), topic) == ["a", "b"]
    java = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": tls["ssl.ca.location"],
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": tls["ssl.certificate.location"],
    }
    assert reads(spout(topic, "TLS", java), topic) == ["a", "b"]


def test_a_broker_whose_certificate_is_not_trusted_is_an_error_at_once(topic, stranger):
    given = {"security.protocol": "SSL", **topic.cluster.tls, "ssl.ca.location": stranger}
    said = refused(spout(topic, "TLS", given), topic)
    assert "certificate verify failed" in said and f"kafka.ssl.ca.location='{stranger}'" in said


def test_a_client_whose_certificate_is_not_trusted_is_an_error_at_once(topic, stranger):
    own = {"ssl.certificate.location": stranger, "ssl.key.location": stranger}
    assert "SSL alert" in refused(spout(topic, "TLS", {"security.protocol": "SSL", **topic.cluster.tls, **own}), topic)


def test_another_protocol_than_the_listeners_is_told_after_the_retries(topic):
    driven = spout(
        topic, "TLS", {"default.api.timeout.ms": 400}, **{"fetchOffset.numRetries": 0, "subscribe": topic.name}
    )
    with pytest.raises(WorldError, match="that they speak kafka.security.protocol"):
        driven.driver.snapshot({}, {})


def test_secrets_are_in_no_name_offset_or_repr(topic):
    driven = spout(topic, "SASL", {**PLAIN, "sasl.password": PASSWORD})
    options = KafkaOptions.of(driven.conf)
    snapshot = driven.driver.snapshot({}, {})
    spec = KafkaSpout.spec(config=driven.conf)
    for shown in (options, options.properties.keys(), snapshot, spec, driven.driver, vars(driven.driver)["_options"]):
        assert PASSWORD not in repr(shown) and PASSWORD not in str(shown)


def test_the_example_of_the_page_is_taken():
    _, block = blocks(ROOT / "docs/KAFKA.md", "python")
    names = {"KafkaSpout": KafkaSpout, "password": PASSWORD}
    exec(compile(block.text, "docs/KAFKA.md", "exec"), names)
    found = KafkaOptions.of(names["secured"].config).properties
    assert (found["sasl.password"], found["ssl.ca.location"]) == (PASSWORD, "/etc/ssl/brokers.pem")
