"""``topology.rate.limit``: names and rates, and what is refused."""

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.options import EngineOptions, parse
from pystorm_source.options.rate_limit import rate_limits

KEY = "topology.rate.limit"


@pytest.mark.parametrize(
    ("text", "calls", "seconds"),
    [
        ("100/s", 100, 1),
        ("30/m", 30, 60),
        ("30 / min", 30, 60),
        ("500/10s", 500, 10),
        ("1/h", 1, 3600),
        ("9/d", 9, 86400),
    ],
)
def test_rates(text, calls, seconds):
    assert rate_limits({"api": text})["api"] == ("api", calls, seconds)


def test_it_is_given_as_a_table_or_as_json():
    assert rate_limits('{"api": "5/s", "mail": "1/m"}') == rate_limits({"api": "5/s", "mail": "1/m"})
    assert parse(EngineOptions, {KEY: '{"api": "5/s"}'}).limits["api"].calls == 5
    assert rate_limits("") == {}


def test_a_share_of_a_limit():
    assert rate_limits({"api": "5/s"})["api"].shared(10) == ("api", 0.5, 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("100/s", "is no JSON: give an object"),
        ("[1]", "is no table"),
        ({"api": "100"}, "says '100' of 'api': write a whole number of calls and a time, such as '100/s'"),
        ({"api": "0/s"}, "says '0/s' of 'api': allow 1 to 1000000 calls"),
        ({"api": "1/2d"}, "says '1/2d' of 'api'"),
        ({"api": "1/0s"}, "says '1/0s' of 'api'"),
        ({"api": 100}, "says 100 of 'api'"),
        ({" ": "1/s"}, "a limit without a name"),
    ],
)
def test_what_is_no_limit_is_refused(value, message):
    with pytest.raises(OptionError, match=f"'topology.rate.limit'.*{message}.*Given: "):
        rate_limits(value)


def test_it_is_refused_where_options_are_read():
    with pytest.raises(OptionError, match="such as '100/s'"):
        parse(EngineOptions, {KEY: '{"api": "many"}'})


@pytest.mark.parametrize(
    "url",
    ["redis://cache", "redis://u:p%40w@cache:6380/2", "rediss://[::1]:6379", "unix:///tmp/r.s", "redis://h?x=a@b"],
)
def test_where_a_redis_is(url):
    assert parse(EngineOptions, {f"{KEY}.redis": url}).rate_limit_redis == url


@pytest.mark.parametrize(
    ("url", "message", "shown"),
    [
        ("cache:6379", "does not begin with redis://", "cache:6379"),
        ("http://:secret@cache", "does not begin with redis://", "http://cache"),
        ("redis://", "names no host", "redis://"),
        ("redis://:se/cret@cache:6379/0", "is no URL", "redis://cache:6379/0"),
        ("redis://:se?cret@cache:6379/0", "is no URL", "redis://(redacted)"),
        ("redis://me:12?cret@cache/0", "has a password that is not escaped", "redis://(redacted)"),
        ("redis://me:12#cret@cache/0", "has a password that is not escaped", "redis://cache/0"),
        ("redis://secret@cache:many/0", "is no URL", "redis://cache:many/0"),
        ("redis://cache/first?password=secret", "ends with no number", "redis://cache/first"),
        ("unix://", "names no socket", "unix://"),
    ],
)
def test_a_url_of_no_redis_is_refused_without_its_password(url, message, shown):
    with pytest.raises(OptionError, match=f"'topology.rate.limit.redis' {message}.*give redis://") as found:
        parse(EngineOptions, {f"{KEY}.redis": url})
    assert str(found.value).endswith(f"Given: {shown!r}")
    assert "cret" not in str(found.value)


def test_a_redis_and_fixed_shares_are_refused_together():
    given = {f"{KEY}.redis": "redis://:secret@cache", f"{KEY}.tasks": 3}
    with pytest.raises(OptionError, match=r"leave one of them out\. Given: .*'redis://cache'.*tasks=3"):
        parse(EngineOptions, given)


def test_options_show_no_password():
    assert "secret" not in repr(parse(EngineOptions, {f"{KEY}.redis": "redis://:secret@cache"}))
