"""Secrets of options in the texts of exceptions: the block that Spark gets, and a traceback, show none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source import Bolt, Topology
from pystorm_source.errors import TupleFailed
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.errors.known_secrets import MOST, remember, without_secrets
from pystorm_source.spark.border import spark_border
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology

SECRET = "hunter2/é"


@pytest.mark.parametrize(
    "config",
    [
        {"db.password": SECRET},
        {"nested": {"deeper": [{"api_token": SECRET}]}},
        {"as.text": json.dumps({"client_secret": SECRET})},
        {"address": f"postgresql://app:{SECRET}@host/db"},
        {"address": "postgresql://app:hunter2%2F%C3%A9@host/db"},
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


def test_words_of_an_option_that_are_short_stay_in_messages():
    remember({"token": "on", "password": ""})
    assert without_secrets("based on that") == "based on that"


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
