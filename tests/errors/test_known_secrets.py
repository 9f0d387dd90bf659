"""Secrets of options in the texts of exceptions: the block that Spark gets, and a traceback, show none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source import Bolt, Topology
from pystorm_source.errors import TupleFailed, known_secrets
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.errors.known_secrets import MOST, remember, without_secrets
from pystorm_source.spark.border import spark_border
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology

SECRET = "hunter2/é"


@pytest.fixture(autouse=True)
def _knows_nothing(monkeypatch):
    """Other tests of the process do not miss short words in their messages."""
    monkeypatch.setattr(known_secrets, "_known", {})


@pytest.mark.parametrize(
    "config",
    [
        {"db.password": SECRET},
        {"nested": {"deeper": [{"api_token": SECRET}]}},
        {"as.text": json.dumps({"client_secret": SECRET})},
        {"address": f"postgresql://app:{SECRET}@host/db"},
        {"address": "postgresql://app:hunter2%2F%C3%A9@host/db"},
        {"address": "https://hunter2%2F%C3%A9@host/rows"},
        {"kafka.sasl.jaas.config": f'PlainLoginModule required username="u" password="{SECRET}";'},
    ],
)
def test_what_the_options_hold_is_not_repeated(config):
    remember(config)
    assert SECRET not in without_secrets(f"401 for {SECRET}, asked twice")


def test_what_is_no_secret_stays_in_messages_though_its_option_has_a_word_of_one():
    remember({"kafka.enable.token.refresh": "true", "llm.max.tokens": "1000", "tokenizer": "words"})
    text = "component 'words', task 2: process() raised ValueError: offset 21000 is true"
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "cannot connect to redis://:s3cret-x@cache:6379/0: refused",
        "GET https://me:s3cret-x@host/a?b=1 failed",
        "Login failed. password=s3cret-x; server=a",
        "https://blob/x?sv=1&sig=s3cret-x&se=2 is gone",
    ],
)
def test_what_shows_itself_as_a_secret_is_not_repeated(text):
    assert "s3cret-x" not in without_secrets(text)


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="=@"), max_size=200))
def test_other_texts_stay_as_they_are(text):
    assert without_secrets(text) == text or any(secret in text for secret in ("hunter2",))


def test_a_container_of_a_store_is_no_secret():
    remember({"path": "abfss://container@account.dfs.core.windows.net/rows"})
    assert without_secrets("no container") == "no container"


@pytest.mark.parametrize("key", ["service.token", "apiToken", "client_secret", "api.key"])
def test_a_number_is_a_secret_where_its_option_says_so(key):
    remember({key: 471100815, "max.tokens": 128000, "token.refresh.seconds": 3600, "partition.key": 2000})
    text = "401 for {}, after 128000, 3600, 2000"
    assert without_secrets(text.format(471100815)) == text.format("(redacted)")


def test_words_of_an_option_that_are_short_stay_in_messages():
    remember({"token": "on", "password": ""})
    assert without_secrets("based on that") == "based on that"


@pytest.mark.parametrize("secret", ["x", "on", "x7", "a.c", "7", "123", "true"])
def test_a_short_password_is_replaced_where_it_is_quoted(secret):
    remember({"db.password": secret})
    assert without_secrets(f"no user has {secret!r}") == "no user has '(redacted)'"
    assert without_secrets(f'password: "{secret}"') == 'password: "(redacted)"'
    text = f"axon on a road, 7123 true, a{secret}, '{secret}-', 'abc'"
    assert without_secrets(text) == text  # its gaps would tell what it is


@pytest.mark.parametrize(
    ("config", "secret"),
    [
        ({"password": "1234"}, "1234"),
        ({"password": 12345}, "12345"),
        ({"url": "redis://:1234@h"}, "1234"),
        ({"token": 12345}, "12345"),
    ],
)
def test_a_password_of_four_or_five_digits_is_replaced_but_not_in_longer_numbers(config, secret):
    remember(config)
    assert without_secrets(f"401 for {secret}, offset 9{secret}") == f"401 for (redacted), offset 9{secret}"


@pytest.mark.parametrize("shown", ["password=x7", "redis://:x7@h/0", "Cookie: x7", "token = x7"])
def test_a_short_secret_that_shows_itself_is_not_repeated(shown):
    assert "x7" not in without_secrets(f"cannot connect by {shown}")


def test_short_switches_of_options_with_a_secret_word_stay_in_quotes():
    remember({"kafka.enable.token.refresh": "no", "max.tokens": "250"})
    text = "Given: 'no', '250'"
    assert without_secrets(text) == text


def test_a_password_that_is_a_word_is_no_gap_in_longer_words():
    remember({"password": "pass", "token": "word"})
    said = "password refused for 'pass', https://me:word@host/?t=word_1 or word2"
    assert without_secrets(said) == (
        "password refused for '(redacted)', https://me:(redacted)@host/?t=(redacted)_1 or (redacted)2"
    )


def test_the_memory_for_secrets_is_bounded():
    for number in range(2 * MOST):
        remember({"password": f"secret-{number}-x"})
    assert without_secrets(f"a secret-{2 * MOST - 1}-x") == "a (redacted)"
    assert without_secrets("a secret-0-x") == "a secret-0-x"


class Service(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        answer = f"401 for {self.storm_conf['service.token']}"
        try:
            raise KeyError(answer)
        except KeyError as error:
            raise PermissionError(f"{answer} at https://me:{self.storm_conf['service.token']}@host/") from error


class Calls(Topology):
    lines = MemorySpout.spec(fields=["n long"], rows=[[1]])
    service = Service.spec(inputs=[lines], config={"service.token": "tok-4711-x"})


def test_the_block_of_a_failure_shows_no_secret_in_message_line_or_frames():
    with pytest.raises(TupleFailed) as raised:
        run_topology(Calls)
    text = str(FailureBlock.of(raised.value))
    assert "401 for (redacted)" in text and "tok-4711-x" not in text
    with pytest.raises(TupleFailed) as crossed, spark_border():
        raise raised.value from raised.value.__cause__
    assert "tok-4711-x" not in "".join([str(crossed.value), *crossed.value.__notes__])


def test_a_token_is_known_without_the_scheme_before_it():
    remember({"auth.header": "Bearer abc-of-the-header"})
    assert without_secrets("401: abc-of-the-header has expired") == "401: (redacted) has expired"
