"""Kafka's options: Spark's names, Java's client properties, and what is refused with a remedy. No broker."""

import pytest

from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.options import check_known
from pystorm_source.source.request import ReadRequest
from pystorm_source.spouts import KafkaBatchSpout, KafkaSpout
from pystorm_source.spouts.kafka.consumers import DEFAULTS, OWN
from pystorm_source.spouts.kafka.options import KafkaOptions
from pystorm_source.spouts.kafka.properties import client_properties, made_client
from pystorm_source.spouts.kafka.topics import Partition
from tests.spouts.drive import Driven

SERVERS = {"kafka.bootstrap.servers": "broker:9092"}


def properties(**given):
    return client_properties({"bootstrap.servers": "b:1", **{key.replace("_", "."): v for key, v in given.items()}})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "exactly one"),
        ({"subscribe": "a", "assign": '{"a": [0]}'}, r"\['subscribe', 'assign'\]"),
        ({"subscribe": " , "}, "names nothing"),
        ({"assign": "{}"}, "names nothing"),
        ({"assign": '{"a": 0}'}, "assign"),
        ({"subscribePattern": "("}, "no regular expression"),
        ({"subscribe": "a", "startingOffsetsByTimestamp": "7"}, "startingOffsetsByTimestamp"),
        ({"subscribe": "a", "startingOffsetsByTimestamp": "[" * 100_000}, "startingOffsetsByTimestamp"),
        ({"subscribe": "a", "startingOffsetsByTimestamp": '{"a": {"0": -1}}'}, "startingOffsetsByTimestamp"),
        ({"subscribe": "a", "startingOffsetsByTimestampStrategy": "earliest"}, "Strategy"),
        ({"subscribe": "a", "endingOffsetsByTimestamp": "7"}, "endingOffsetsByTimestamp"),
        ({"subscribe": "a", "startingTimestamp": 8, "endingTimestamp": 7}, "endingTimestamp' lies before.*Given: 7"),
        ({"subscribe": "a", "kafka.default.api.timeout.ms": "soon"}, "default.api.timeout.ms"),
    ],
)
def test_what_makes_no_sense_is_refused(given, said):
    with pytest.raises(OptionError, match=said):
        KafkaOptions.of({**SERVERS, **given})


@pytest.mark.parametrize(("key", "value"), [("endingTimestamp", "7"), ("endingOffsetsByTimestamp", '{"a": {"0": 7}}')])
def test_a_stream_refuses_an_end_that_a_batch_read_takes(key, value):
    named = {"topology": "tests.spouts.topologies:Orders", **SERVERS, "subscribe": "a", key: value}
    request = ReadRequest.of(named)
    request.check_batch()
    with pytest.raises(OptionError, match=f"'{key}' is for spark.read.*AvailableNow"):
        request.check_streaming()


def test_the_brokers_are_needed():
    with pytest.raises(OptionError, match="kafka.bootstrap.servers"):
        KafkaOptions.of({"subscribe": "a"})


@pytest.mark.parametrize(
    "key", ["auto.offset.reset", "key.deserializer", "value.deserializer", "enable.auto.commit", "interceptor.classes"]
)
def test_what_sparks_source_refuses_is_refused(key):
    with pytest.raises(OptionError, match=f"kafka.{key}' is not supported: "):
        KafkaOptions.of({**SERVERS, "subscribe": "a", f"kafka.{key}": "x"})


def test_keys_come_in_lower_case_as_spark_gives_them():
    options = KafkaOptions.of({"KAFKA.bootstrap.servers": "b:1", "subscribepattern": "x.*", "failondataloss": "false"})
    assert options.subscribe_pattern == "x.*"
    assert not options.fail_on_data_loss
    assert options.properties == {"bootstrap.servers": "b:1"}
    check_known(["kafka.bootstrap.servers", "KAFKA.anything", "subscribePattern"], [KafkaOptions])
    with pytest.raises(OptionError, match="unknown option .kafkaa"):
        check_known(["kafkaa.bootstrap"], [KafkaOptions])


def test_names_of_the_java_client_are_translated():
    assert properties(fetch_max_wait_ms=5, request_timeout_ms="7", max_poll_records=1, check_crcs=True) == {
        "bootstrap.servers": "b:1",
        "fetch.wait.max.ms": "5",
        "socket.timeout.ms": "7",
        "check.crcs": "true",
    }


@pytest.mark.parametrize("package", ["", "kafkashaded."])
@pytest.mark.parametrize(
    ("module", "mechanism"), [("plain.PlainLoginModule", "PLAIN"), ("scram.ScramLoginModule", "SCRAM-SHA-512")]
)
def test_jaas_of_plain_and_scram_is_translated(package, module, mechanism):
    jaas = f'{package}org.apache.kafka.common.security.{module} required username="me" password="a\\"b;c=\'d\'";'
    found = properties(sasl_jaas_config=jaas, security_protocol="SASL_SSL")
    assert found["sasl.username"] == "me"
    assert found["sasl.password"] == "a\"b;c='d'"
    assert found["sasl.mechanism"] == mechanism
    assert properties(sasl_jaas_config=jaas, sasl_mechanism="SCRAM-SHA-256")["sasl.mechanism"] == "SCRAM-SHA-256"


@pytest.mark.parametrize(
    ("jaas", "said"),
    [
        ('com.sun.security.auth.module.Krb5LoginModule required keyTab="k";', "sasl.kerberos.keytab"),
        ('org.apache.kafka.common.security.plain.PlainLoginModule required password="hidden";', "needs username"),
        ("hidden", "no login module"),
    ],
)
def test_other_jaas_is_refused_with_a_remedy_and_without_its_secrets(jaas, said):
    with pytest.raises(OptionError, match=said) as caught:
        properties(sasl_jaas_config=jaas)
    assert "hidden" not in str(caught.value)


def test_pem_stores_are_translated_and_those_of_java_refused():
    found = properties(
        ssl_truststore_type="PEM",
        ssl_truststore_location="/ca.pem",
        ssl_keystore_type="PEM",
        ssl_keystore_location="/me.pem",
        ssl_endpoint_identification_algorithm="",
    )
    assert found == {
        "bootstrap.servers": "b:1",
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert properties(ssl_keystore_location="/me.p12")["ssl.keystore.location"] == "/me.p12"
    for key in ("ssl_truststore_location", "ssl_keystore_location"):
        with pytest.raises(OptionError, match="as PEM files"):
            properties(**{key: "/store.jks"})


def test_what_librdkafka_does_not_know_is_named():
    with pytest.raises(OptionError, match=r"kafka\.no\.such\.thing.*CONFIGURATION\.md.*Given: 'x'"):
        made_client("Consumer", {**properties(no_such_thing="x"), "group.id": "g"})
    with pytest.raises(OptionError, match=r"kafka\.fetch\.max\.bytes'.* must be >= .*Given: '1'"):
        made_client("Consumer", {**properties(fetch_max_bytes="1"), "group.id": "g"})


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("security.providers", "kafka.ssl.ca.location"),
        ("ssl.engine.factory.class", "kafka.ssl.ca.location"),
        ("ssl.trustmanager.algorithm", "kafka.ssl.ca.location"),
        ("ssl.enabled.protocols", "kafka.ssl.cipher.suites"),
        ("sasl.login.class", "kafka.sasl.oauthbearer.method=oidc"),
        ("sasl.client.callback.handler.class", "kafka.sasl.oauthbearer.method=oidc"),
        ("sasl.login.callback.handler.class", "kafka.sasl.kerberos.keytab"),
        ("sasl.oauthbearer.jwt.retriever.class", "kafka.sasl.oauthbearer.token.endpoint.url"),
        ("sasl.login.refresh.window.factor", "leave it out"),
        ("sasl.kerberos.ticket.renew.jitter", "leave it out"),
        ("sasl.oauthbearer.jwks.endpoint.url", "leave it out"),
    ],
)
def test_what_only_the_java_client_can_do_is_refused_with_what_to_do_instead(key, remedy):
    with pytest.raises(OptionError, match=rf"'kafka\.{key}' is of the Java client.*{remedy}.*Given: 'x'"):
        KafkaOptions.of({**SERVERS, "subscribe": "a", f"kafka.{key}": "x"})


def test_secrets_are_in_no_message():
    secret = "hunter2"
    options = KafkaOptions.of({**SERVERS, "subscribe": "a", "kafka.sasl.password": secret, "kafka.ssl.key.pem": secret})
    assert secret not in repr(options)
    with pytest.raises(OptionError) as caught:
        made_client(
            "Consumer", {**properties(sasl_password=secret, ssl_key_pem=secret), "group.id": "g", "x.password": secret}
        )
    assert secret not in str(caught.value)


def test_what_the_tasks_set_is_known_to_librdkafka():
    made_client("Consumer", {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, **DEFAULTS, **OWN})


def test_names_of_partitions_are_read_back():
    for partition in (Partition("a-b.c_d", 7), Partition("a-1", 0, 3)):
        assert Partition.parse(str(partition)) == partition
    assert str(Partition("orders", 0)) == "orders-0"


def test_starting_offsets_in_sparks_form():
    assert KafkaSpout.named_offsets({"orders": {"0": 23, "1": -2}}) == {"orders-0": 23, "orders-1": -2}
    assert KafkaSpout.named_offsets({"orders-0": 23}) is None
    with pytest.raises(OptionError, match="startingOffsets"):
        KafkaSpout.named_offsets({"orders": {"0": -3}})


@pytest.mark.parametrize("cls", [KafkaSpout, KafkaBatchSpout])
def test_fields_are_those_of_kafka_with_their_types(cls):
    def made(fields, **config):
        (stream,) = Driven(cls.spec(servers="b:1", subscribe="a", fields=fields, config=config)).streams
        return stream

    assert made(["value", "offset"]).types == ("binary", "long")
    assert made(["value string not null", "offset long not null"]).types == ("string not null", "long not null")
    assert made(["value"], **{"value.format": "string"}).types == ("string",)
    with pytest.raises(OptionError, match="'length'"):
        made(["value binary", "length int"])
    with pytest.raises(SchemaError, match="'offset'"):
        made(["offset string"])
    with pytest.raises(SchemaError, match="'value' is declared as int, and value.format string gives string"):
        made(["value int"], **{"value.format": "string"})


def test_headers_are_asked_for_where_the_fields_are_declared():
    with pytest.raises(OptionError, match="include_headers=True"):
        Driven(KafkaSpout.spec(servers="b:1", subscribe="a", config={"includeHeaders": True}))
