"""A server or a connection that goes away: it is waited for, and no row is lost; what stays wrong is an error."""

import os
import pwd

import psycopg
import pytest

from pystorm_source import RetryLater
from pystorm_source.errors import WorldError
from pystorm_source.testing.driven import Driven
from testbed.certificates import self_signed
from tests.docs.postgres_server import killable_postgres
from tests.spouts.postgres.shop import LOGICAL, ChangeSpout, Shop


def keyed(shop, **more):
    return Driven(ChangeSpout.spec(config=shop.options(postgres__slot="", postgres__key="id", **more)))


def test_a_value_that_the_client_cannot_take_is_no_outage(shop):
    with pytest.raises(WorldError, match="timestamp too large"):
        keyed(shop).driver._client.rows("SELECT '20000-01-01'::timestamptz")


@pytest.fixture(scope="module")
def secured():
    """A server with TLS, and a certificate that nothing has signed."""
    with killable_postgres(LOGICAL) as server:
        path = self_signed(server._folder / "server.pem")  # in a folder that its user may enter
        os.chmod(path, 0o600)
        if os.getuid() == 0:
            account = pwd.getpwnam("postgres")
            os.chown(path, account.pw_uid, account.pw_gid)
        server.stop()
        for setting in ("ssl=on", f"ssl_cert_file={path}", f"ssl_key_file={path}"):
            server._command += ["-c", setting]
        server.start()
        yield server


def test_a_server_with_tls_that_is_killed_is_waited_for(secured):
    with psycopg.connect(secured.place, autocommit=True) as connection:
        shop = Shop(secured, connection, "killed")
    clients = [keyed(shop, postgres__sslmode="require").driver._client for _ in range(8)]  # of which some see an EOF
    for client in clients:
        assert client.rows("SELECT 1") and client.connection().pgconn.ssl_in_use
    secured.kill()
    for client in clients * 2:
        with pytest.raises(RetryLater):
            client.rows("SELECT 1")
    secured.start()
    assert clients[0].rows("SELECT 1")


def test_a_certificate_that_is_not_trusted_is_refused(secured, tmp_path):
    with psycopg.connect(secured.place, autocommit=True) as connection:
        shop = Shop(secured, connection, "untrusted")
    for wrong in ("/nowhere.crt", secured._folder / "data" / "PG_VERSION"):
        with pytest.raises(WorldError, match="certificate"):
            keyed(shop, postgres__sslmode="verify-full", postgres__sslrootcert=wrong).driver.snapshot({}, {})
