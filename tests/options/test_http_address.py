"""Addresses in options: which are taken, and how messages show them."""

import pytest

from pystorm_source.errors import OptionError
from pystorm_source.options.http_address import check_address, shown_address


@pytest.mark.parametrize(
    "url", ["http://h", "https://h:8443/a?key=1", "HTTPS://h/a@b", "http://h:80/?a=b@c", "http://[::1]:80/"]
)
def test_addresses_of_http_are_taken(url):
    check_address("http.url", url)


@pytest.mark.parametrize(
    "url", ["h", "h:80", "ws://h", "http://", "https://:443/", "https://h:0", "https://h:x", "http://[h"]
)
def test_others_are_refused_with_key_value_and_remedy(url):
    with pytest.raises(OptionError, match=r"option 'http\.url' is the address of an API, .*Given: "):
        check_address("http.url", url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("h/rows?key=word", "h/rows"),
        ("word@h/rows", "h/rows"),
        ("me:word@h:80/rows?a=b", "h:80/rows"),
        ("me:word@h:80/rows?a=@b", "(redacted)"),
        ("https://wo?rd@h", "https://(redacted)"),
        ("https://wo#rd@h", "https://h"),
        ("https://h/rows?a=@b", "https://h/rows"),
        ("https://h/rows#word", "https://h/rows"),
        (" https://word@h", "https://h"),
        ("ws://me:word@h/?word", "ws://h/"),
        ("https:/h?word", "https:/h"),
        ("https://h/a@b", "https://h/a@b"),
    ],
)
def test_what_is_no_address_is_shown_without_them_too(url, shown):
    assert shown_address(url) == repr(shown)


@pytest.mark.parametrize("url", ["https://me:12?word@h/rows", "https://me:12#word@h/rows", "https://wo?rd@h"])
def test_a_user_or_password_with_a_question_mark_is_refused_too(url):
    with pytest.raises(OptionError, match=r"'http\.url' has no user or password in it: .*Given: 'https://"):
        check_address("http.url", url)


@pytest.mark.parametrize("user", ["word", "word:", "me:word", "me:wo/rd", "me:w@rd", "word@me"])
def test_no_message_has_a_user_or_password(user):
    url = f"https://{user}@h/rows?key=word"
    with pytest.raises(OptionError) as raised:
        check_address("http.url", url)
    assert shown_address(url) == "'https://h/rows'"
    assert (
        "w@rd" not in str(raised.value)
        and "wo/rd" not in str(raised.value)
        and "word" not in str(raised.value).replace("password", "")
    )
