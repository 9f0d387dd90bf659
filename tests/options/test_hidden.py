"""Options that hold a secret go through Spark under keys that it hides."""

import re

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.options.hidden import hidden, meant, revealed

SPARK = re.compile("(?i)secret|password|token|access[.]?key")
"""As spark.redaction.regex is by default: of a key or of a text."""

SECRETS = {
    "topology.rate.limit.redis": "redis://:hunter2@host:6379/0",
    "kafka.sasl.jaas.config": 'org.apache.Plain required username="u" password="hunter2";',
    "kafka.sasl.password": "hunter2",
    "kafka.ssl.key.pem": "-----BEGIN PRIVATE KEY-----hunter2",
    "kafka.sasl.oauthbearer.config": "hunter2",
    "avro.registry.basic.auth.user.info": "u:hunter2",
    "config": '{"topology.rate.limit.redis": "redis://:hunter2@host:6379/0"}',
    "journal.path": "s3://key:hunter2@bucket/journal",
}


@pytest.mark.parametrize("key", SECRETS)
def test_spark_hides_what_holds_a_secret(key):
    ((sent, text),) = hidden({key: SECRETS[key]}).items()
    assert SPARK.search(sent) or SPARK.search(text)
    assert revealed({sent.lower(): text}) == {key: SECRETS[key]}


@pytest.mark.parametrize(
    "given",
    [
        {"topology.rate.limit.redis": "redis://host:6379/0"},
        {"topology": "package.module:Class", "path": "/in", "config": '{"service.url": "http://host"}'},
        {"secret.topology.rate.limit.redis": "redis://:hunter2@host:6379/0"},
        {"config": '{"topology.max.spout.pending":10}', "lines": '["ä","b"]', "endingOffsets": '{ "a": 1 }'},
    ],
)
def test_other_options_go_as_they_are(given, caplog):
    assert hidden(given) == given
    revealed(given)
    assert not caplog.messages


def test_what_the_user_hides_stays_hidden():
    asked = {"Secret.service.url": "http://host/by-name", "path": "/in"}
    texts = meant(asked)
    assert texts == {"service.url": "http://host/by-name", "path": "/in"}
    assert hidden(texts, asked) == {"secret.service.url": "http://host/by-name", "path": "/in"}


def test_an_option_that_is_given_both_ways_is_refused_without_its_text():
    with pytest.raises(OptionError, match="keep that one") as refused:
        revealed({"Topology.Rate.Limit.Redis": "redis://:hunter2@a", "secret.topology.rate.limit.redis": "redis://b"})
    assert "hunter2" not in str(refused.value)


def test_a_secret_that_spark_shows_is_warned_of_without_its_text(caplog):
    revealed({"topology.rate.limit.redis": "redis://:hunter2@a", "kafka.sasl.password": "hunter2"})
    (warning,) = caplog.messages
    assert "give 'secret.topology.rate.limit.redis'" in warning
    assert "hunter2" not in warning
