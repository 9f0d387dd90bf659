"""Secrets among the options never show."""

from typing import Annotated

import pytest
from msgspec import Meta, field

from pystorm_source.errors import OptionError
from pystorm_source.options import Options, parse, shown


class Login(Options, frozen=True, kw_only=True):
    password: Annotated[str, Meta(min_length=8, description="The password.")] = field(name="db.password", default="")


def test_an_error_names_the_key_and_not_the_secret():
    with pytest.raises(OptionError) as raised:
        parse(Login, {"db.password": "hunter2"})
    assert "db.password" in str(raised.value)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("key", ["kafka.ssl.key.password", "authToken", "client_secret", "fs.s3a.access.key"])
def test_keys_that_name_secrets(key):
    assert shown(key, "hunter2") == "'(redacted)'"


def test_other_keys_show_their_value():
    assert shown("path", "/data") == "'/data'"
