"""Passwords in URLs that are not escaped: no message, repr, record or plan shows any part of one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.errors import ArgumentError, OptionError, PystormError
from pystorm_source.errors.redaction import redacted, without_credentials, without_inline
from pystorm_source.journal.options import JournalOptions
from pystorm_source.options import parse
from pystorm_source.options.http_address import check_address, shown_address
from pystorm_source.options.redis_url import check_redis_url, shown_url
from pystorm_source.spouts.events.options import EventStreamOptions
from pystorm_source.spouts.http.options import HttpOptions
from pystorm_source.spouts.nats_options import NatsOptions
from pystorm_source.spouts.nats_options import shown as server_shown
from pystorm_source.spouts.objects.options import ObjectsOptions
from pystorm_source.spouts.postgres.client import PostgresClient
from pystorm_source.spouts.postgres.options import PostgresOptions
from pystorm_source.spouts.redis_stream import RedisStreamOptions
from pystorm_source.states import SqlStore
from pystorm_source.states.store_at import store_at


@st.composite
def passwords(draw):
    """A password with characters that end other parts of a URL, if they are not escaped; each of its words."""
    words = draw(st.lists(st.from_regex(r"[A-Z][a-z]{2}[0-9]{2}", fullmatch=True), min_size=1, max_size=4, unique=True))
    marks = st.text("?#/@%:&=+,;", max_size=2)
    return draw(marks) + "".join(word + draw(marks) for word in words), words


ADDRESSES = ["https://me:{}@h/rows", "https://me:{}@h:80/rows?a=1#b", "HTTP://:{}@h", "ws://me:{}@h/x?mail=a@b"]
STORES = [
    "redis://me:{}@h",
    "redis://:{}@h:6379/0",
    "postgresql://app:{}@h/db?x=1",
    "nats://me:{}@h:4222",
    "s3://key:{}@bucket/x",
]


def said(call, *arguments):
    """The repr of what it returns, or the text of what it raises."""
    try:
        return repr(call(*arguments))
    except (PystormError, ValueError) as error:
        return str(error)


@pytest.mark.parametrize("address", [*ADDRESSES, *STORES])
@given(password=passwords())
def test_no_part_of_a_password_that_is_not_escaped_is_shown(address, password):
    text, words = password
    url = address.format(text)
    shown = [
        shown_address(url),
        shown_url(url),
        server_shown(url),
        without_credentials(url),
        redacted("address", url),
        redacted("config", {"addresses": [url], "as.text": f'{{"address": {json.dumps(url)}}}'}),
        without_inline(f"cannot connect to '{url}': refused"),
        said(check_address, "http.url", url),
        said(check_redis_url, url),
        said(store_at, url, "table"),
        said(parse, HttpOptions, {"http.url": url}),
        said(parse, EventStreamOptions, {"events.url": url}),
        said(parse, NatsOptions, {"nats.servers": url, "nats.stream": "s"}),
        said(parse, RedisStreamOptions, {"redis.url": url, "redis.streams": "s"}),
        said(lambda: PostgresClient(parse(PostgresOptions, {"postgres.dsn": url, "postgres.slot": "s"})).place),
        said(parse, ObjectsOptions, {"path": url}),
        said(parse, JournalOptions, {"journal.path": url}),
    ]
    assert not [(word, each) for word in words for each in map(str, shown) if word in each]


@pytest.mark.parametrize("password", ["a@b", "a/b", "@a:b", "a@b?c=d"])
def test_a_password_that_libpq_would_take_for_a_host_is_refused(password):
    options = parse(PostgresOptions, {"postgres.dsn": f"postgresql://app:{password}@h/db", "postgres.slot": "s"})
    with pytest.raises(OptionError, match=r"'postgres\.dsn' has @ or / in .*: write %40 for @ and %2F for /"):
        PostgresClient(options)


@pytest.mark.parametrize("password", ["a?b", "a#b", "a%40b", "a%2Fb"])
def test_a_password_that_libpq_reads_is_taken(password):
    dsn = f"postgresql://app:{password}@h/db"
    assert PostgresClient(parse(PostgresOptions, {"postgres.dsn": dsn, "postgres.slot": "s"})).place == (
        "host=h dbname=db user=app"
    )


@pytest.mark.parametrize("password", ["a@b", "@a:b", "a@b?c"])
def test_a_password_that_sqlalchemy_would_take_for_a_host_is_refused(password):
    with pytest.raises(ArgumentError, match="has several @: write %40 for each @"):
        SqlStore(f"postgresql://app:{password}@h/db", "table")
    SqlStore("sqlite:////tmp/a@b@c.db", "table")
