"""``kafka.oauth_cb``: what is refused when options are read, what is called, and a real broker that takes tokens."""

import base64
import json
import logging
import os
import re
import time
from functools import partial

import pytest

from cython_core.executors.executor import ComponentFailed
from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError, WorldError
from pystorm_source.spouts import KafkaSpout
from pystorm_source.spouts.kafka.oauth import KEY, Tokens
from pystorm_source.spouts.kafka.options import KafkaOptions
from tests.spouts.drive import Driven
from tests.spouts.kafka.topic import Topic, values_of

HERE = "tests.spouts.kafka.test_oauth"
OAUTH = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
SECRET = "s3cret-provider-key"
asked = []


def unsigned(ends, subject="reader"):
    """A token without a signature, as the broker of the tests takes it."""
    parts = {"alg": "none"}, {"sub": subject, "iat": time.time() - 1, "exp": ends}
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def token(config):
    asked.append((os.getpid(), config))
    ends = time.time() + 60
    return unsigned(ends), ends


def named(config):
    ends = time.time() + 60
    return unsigned(ends), ends, "reader", {"team": "orders"}


def unreachable(config):
    raise ConnectionError("the provider of tokens is away")


def worthless(config):
    return "no.token.", time.time() + 60


def wordless(config):
    return "only the token"


def odd(config):
    return (*token(config), "reader", {"not a name!": "x"})


async def later(config):
    return "t", 1.0


def nothing_taken():
    return "t", 1.0


class Provider:
    def __call__(self, config):
        return token(config)


provider = Provider()
bound = partial(token)


def options(given, **more):
    client = {f"kafka.{key}": value for key, value in {**OAUTH, KEY: given, **more}.items()}
    return KafkaOptions.of({"kafka.bootstrap.servers": "b:1", "subscribe": "a", **client})


# --- when options are read ---


@pytest.mark.parametrize("name", ["token", "provider", "bound", "Provider.__call__.__get__"])
def test_a_function_is_named(name):
    assert options(f"{HERE}:{name}").properties[KEY] == f"{HERE}:{name}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("token", "as package.module:function"),
        (f"{HERE}.token", "as package.module:function"),
        (f"{HERE}:", "as package.module:function"),
        (":token", "as package.module:function"),
        (f"{HERE}:token()", "as package.module:function"),
        ("lambda config: 1", "as package.module:function"),
        ("no_such_module:token", "module 'no_such_module' cannot be imported by this Python"),
        (f"{HERE}:absent", "has no function 'absent'"),
        (f"{HERE}:SECRET", "has no function 'SECRET'"),
        (f"{HERE}:later", "plain def, not async"),
        (f"{HERE}:nothing_taken", "called with one argument"),
    ],
)
def test_what_names_no_function_is_refused(name, said):
    with pytest.raises(OptionError, match=f"option 'kafka.oauth_cb'.*{said}") as refused:
        options(name)
    assert str(refused.value).endswith(f"Given: {name!r}")


def test_a_module_that_raises_is_refused(tmp_path, monkeypatch):
    (tmp_path / "raising_tokens.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        OptionError, match=r"cannot be imported: it raises ZeroDivisionError: .*raising_tokens.py\", line 1"
    ):
        options("raising_tokens:token")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"security.protocol": "SSL"}, "not SSL and OAUTHBEARER"),
        ({"sasl.mechanism": "PLAIN"}, "not SASL_PLAINTEXT and PLAIN"),
        ({"sasl.oauthbearer.method": "oidc"}, "both get tokens"),
    ],
)
def test_a_function_that_would_not_be_called_is_refused(more, said):
    with pytest.raises(OptionError, match=f"option 'kafka.oauth_cb'.*{said}"):
        options(f"{HERE}:token", **more)


@pytest.mark.parametrize(
    "given",
    [
        {"sasl.mechanism": "AWS_MSK_IAM"},
        {"sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler"},
        {"sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;"},
    ],
)
def test_who_comes_with_the_classes_for_msk_is_shown_the_way(given):
    client = {f"kafka.{key}": value for key, value in given.items()}
    with pytest.raises(OptionError, match="kafka.oauth_cb=package.module:function"):
        KafkaOptions.of({"kafka.bootstrap.servers": "b:1", "subscribe": "a", **client})


def test_what_the_provider_is_told_is_in_no_repr():
    assert SECRET not in repr(options(f"{HERE}:token", **{"sasl.oauthbearer.config": SECRET}))


# --- what it answers ---


def tokens_of(function, clock):
    found = Tokens({KEY: f"{HERE}:token"}, clock, logging.getLogger(__name__))
    found._function = function
    return found


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "token",
        ("token",),
        ["token", 1010.0],
        ("token", "soon"),
        (b"token", 1010.0),
        ("token", 1010.0, None),
        ("token", 1010.0, "p", []),
        ("token", 1010.0, "p", {}, 1),
        ("token", 1000.0),
        ("token", 900),
        ("token", 1_700_000_000_000),
        ("token", float("nan")),
    ],
    ids=repr,
)
def test_an_answer_that_is_none_is_named_without_the_token(answer):
    tokens = tokens_of(lambda config: answer, ManualClock(now=1000.0))
    with pytest.raises((TypeError, ValueError), match="seconds since 1970"):
        tokens("")
    assert tokens.failure is not None and not tokens.holds
    assert "token'" not in str(tokens.failure)


def test_an_earlier_token_holds_until_it_ends(caplog):
    clock = ManualClock(now=1000.0)
    answers = [("one", 1060), ConnectionError("away"), ("two", 1120, "reader", {"a": "b"})]

    def next_answer(config):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    tokens = tokens_of(next_answer, clock)
    assert tokens("x") == ("one", 1060.0) and tokens.holds
    clock.advance(50)
    with pytest.raises(ConnectionError):
        tokens("x")
    assert tokens.holds and isinstance(tokens.failure, ConnectionError)
    assert "gave no new token (ConnectionError); the last one still holds" in caplog.text
    clock.advance(10)
    assert not tokens.holds
    assert tokens("x") == ("two", 1120.0, "reader", {"a": "b"}) and tokens.failure is None


def test_another_property_that_is_wrong_is_named_beside_a_function():
    with pytest.raises(OptionError, match="'kafka.no.such'"):
        spout_at("127.0.0.1:1", "token", **{"kafka.no.such": "x", "subscribe": "a"}).driver.snapshot({}, {})


# --- on a broker ---


@pytest.fixture(scope="module")
def topic(kafka):
    topic = Topic(kafka)
    topic.write(["a", "b"])
    return topic


def spout_at(servers, function, **more):
    client = {f"kafka.{key}": value for key, value in {**OAUTH, KEY: f"{HERE}:{function}"}.items()}
    config = {"kafka.default.api.timeout.ms": 20_000, "kafkaConsumer.pollTimeoutMs": 50_000, **client, **more}
    return Driven(KafkaSpout.spec(servers=servers, fields=["value string"], config=config))


def spout(topic, function, **more):
    port = topic.cluster.brokers[0].secured["OAUTH"]
    return spout_at(f"127.0.0.1:{port}", function, **{"subscribe": topic.name, **more})


@pytest.mark.parametrize("function", ["token", "named", "provider"])
def test_its_tokens_let_driver_and_tasks_in(topic, function):
    driven = spout(topic, function)
    assert driven.driver.snapshot({}, {}).heads == {f"{topic.name}-0": (0, 2)}
    assert values_of(driven.read(f"{topic.name}-0", 0, 2)) == ["a", "b"]


def test_it_is_told_its_configuration(topic):
    asked.clear()
    driven = spout(topic, "token", **{"kafka.sasl.oauthbearer.config": SECRET})
    driven.driver.snapshot({}, {})
    assert asked == [(os.getpid(), SECRET)]  # once: what is asked for first is what librdkafka gets


def test_a_pattern_waits_for_the_token_too(topic):
    driven = spout(topic, "token", subscribe="", subscribePattern=topic.name)
    assert driven.driver.snapshot({}, {}).heads == {f"{topic.name}-0": (0, 2)}


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("unreachable", "Kafka's client has no token: ConnectionError: the provider of tokens is away"),
        ("wordless", "Kafka's client has no token: TypeError: its answer is .token, seconds"),
        # It waits for ten seconds, twice.
        pytest.param("odd", "Kafka's client cannot be made, or does not take the token", marks=pytest.mark.campaign),
        ("worthless", "Kafka refuses the client.*kafka.oauth_cb="),
    ],
)
def test_a_function_without_a_good_token_is_named_at_once(topic, function, said):
    driven = spout(topic, function)
    with pytest.raises(WorldError, match=said) as planning:
        driven.driver.snapshot({}, {})
    assert f"{HERE}:{function}" in str(planning.value)
    with pytest.raises((WorldError, ComponentFailed)) as reading:
        driven.read(f"{topic.name}-0", 0, 2)
    error = reading.value if isinstance(reading.value, WorldError) else reading.value.__cause__
    assert isinstance(error, WorldError) and re.search(said, str(error)) and f"{HERE}:{function}" in str(error)
