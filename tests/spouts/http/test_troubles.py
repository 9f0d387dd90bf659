"""What a service in trouble, a proxy or a wrong secret does to a query."""

import logging
import ssl
import sys
from typing import Any, ClassVar

import pytest

from pystorm_source import Topology
from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.spouts import HttpSpout
from pystorm_source.spouts.http.options import HttpOptions
from pystorm_source.spouts.http.paging import Step
from pystorm_source.testing import ManualClock, run_topology
from testbed.certificates import self_signed
from tests.source.spark_calls import Checkpoint, Run
from tests.spouts.http.api import Rows, api, http_date, options
from tests.spouts.http.test_paging import ids, journaled, until

SECRET = "s3cret-hunter2"


@pytest.fixture
def server():
    with api() as found:
        yield found


def read(server, clock=None, **more):
    return [row[0] for row in run_topology(Rows, config=options(server, **more), clock=clock).rows("rows")]


@pytest.mark.parametrize(
    "fault",
    [
        408,
        425,
        429,
        500,
        502,
        503,
        504,
        (403, {"Retry-After": "2"}),
        "cut",
        "reset",
        (200, {}, b"<html>gateway</html>"),
    ],
)
def test_a_trouble_that_passes_costs_no_row(server, fault):
    server.fill(12)
    server.faults = [None, fault, fault]
    assert read(server) == server.ids()


def test_a_service_that_is_silent_is_asked_again(server):
    server.fill(3)
    server.faults = ["silent"]
    assert read(server, http__read__timeout__millis=100) == [1, 2, 3]


@pytest.mark.parametrize("of", ["seconds", "date"])
def test_retry_after_is_waited_for(server, of):
    server.fill(3)
    wait = "7" if of == "seconds" else http_date(7)
    server.faults = [(429, {"Retry-After": wait}), (503, {"Retry-After": wait})]
    clock = ManualClock()
    begin = clock.monotonic()
    assert read(server, clock) == [1, 2, 3]
    assert 12 <= clock.monotonic() - begin <= 20


def test_without_a_word_the_pauses_grow(server):
    server.fill(1)
    server.faults = [500] * 6
    clock = ManualClock()
    begin = clock.monotonic()
    assert read(server, clock) == [1]
    assert 0.5 * (2**6 - 1) <= clock.monotonic() - begin <= 0.6 * (2**6 - 1) + 3


def test_a_service_that_is_not_there_ends_the_query_after_the_time_for_that():
    with pytest.raises(TupleFailed, match=r"PYSTORM_SPOUT_UNAVAILABLE.*'http://127.0.0.1:9/x'.*Connection refused"):
        run_topology(Rows, config={"http.url": "http://127.0.0.1:9/x?key=hunter2", "spout.unavailable.timeout": "30s"})


def test_a_body_that_is_never_what_it_should_be_is_an_error(server):
    server.faults = [(200, {}, b"<html>not found</html>")] * 5
    with pytest.raises(TupleFailed, match=r"no json .* 3 times: check http.url.*Given: '<html>not found"):
        read(server)


@pytest.mark.parametrize(
    ("status", "says"),
    [(400, "400 Bad Request: check the parameters"), (401, "check http.token"), (404, "check http.url"), (410, "Gone")],
)
def test_a_refusal_names_address_status_remedy_and_answer(server, status, says):
    server.faults = [(status, {}, b"because " + b"x" * 500)]
    with pytest.raises(TupleFailed, match=says) as raised:
        read(server, http__url=f"{server.url}/offset?key={SECRET}")
    assert f"'{server.url}/offset' was answered" in str(raised.value)
    assert "Given: 'because x" in str(raised.value) and "x" * 201 not in str(raised.value)
    assert SECRET not in str(raised.value)


WAYS = {
    "token": ({"http__token": SECRET}, f"Bearer {SECRET}"),
    "basic": ({"http__user": "me", "http__password": SECRET}, "Basic bWU6czNjcmV0LWh1bnRlcjI="),
    "header": ({"http__auth__header__Authorization": f"Key {SECRET}"}, f"Key {SECRET}"),
}


@pytest.mark.parametrize("way", WAYS)
def test_who_asks_is_said(server, way):
    server.fill(7)
    given, expected = WAYS[way]
    server.tokens = {expected}
    assert read(server, **given) == server.ids()


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_in_no_error_log_record_or_cursor(server, tmp_path, way, caplog):
    """The service says the secret again in its refusal."""
    caplog.set_level(logging.DEBUG)
    given, expected = WAYS[way]
    server.fill(7)
    checkpoint = Checkpoint()
    found = journaled(server, tmp_path, "link", http__auth__header__X_Api_Key=SECRET, **given)
    found["http.auth.header.X-Api-Key"] = found.pop("http.auth.header.X_Api_Key")
    server.tokens = {expected}
    run = Run(found, checkpoint)
    until(run, checkpoint, 7)
    assert server.asked[-1]["headers"]["X-Api-Key"] == SECRET
    server.tokens = {"another"}
    with pytest.raises(TupleFailed) as raised:
        until(run, checkpoint, 8)
    secrets = (SECRET, expected.rpartition(" ")[2])
    error, shown = raised.value, []
    while error is not None:
        shown += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    assert any("was answered by 401" in text for text in shown)
    written = [path.read_bytes().decode("latin-1") for path in (tmp_path / "journal").rglob("*") if path.is_file()]
    assert any("cursors" in text for text in written)
    for text in [*shown, caplog.text, *written, *checkpoint.offsets, *map(str, run.reported)]:
        assert not any(secret in text for secret in secrets), text


def test_the_options_hide_their_secrets():
    given = {"token": SECRET, "auth_headers": {"x-shop": SECRET}}
    assert SECRET not in repr(HttpOptions(**given))
    assert SECRET not in repr(HttpOptions(user="me", password=SECRET))
    assert SECRET not in repr(HttpOptions(oauth_url="https://x", oauth_client="c", oauth_secret=SECRET))


def test_a_next_page_with_the_secret_in_its_address_is_refused(server, tmp_path):
    server.fill(30)
    found = {"http__url": f"{server.url}/link?key={SECRET}", "http__token": SECRET}
    with pytest.raises(TupleFailed, match="would lie in the journal in clear") as raised:
        run_topology(Rows, config=options(server, "link", **found))
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("secret", "query"),
    [
        ('hä"nter\\2', "key=%68%C3%A4%22nter%5c2"),  # as no quoting of ours writes it
        ("hunter 2", "key=hunter+2"),
        ("x7", "key=x7"),
    ],
)
def test_a_secret_in_another_form_is_refused_too(server, secret, query):
    server.fill(30)
    found = {"http__url": f"{server.url}/link?{query}", "http__token": secret}
    with pytest.raises(TupleFailed, match="would lie in the journal in clear"):
        run_topology(Rows, config=options(server, "link", **found))


class OwnPaging(HttpSpout):
    outputs = ["id long"]
    cursor: ClassVar[Any] = None

    def following(self, cursor, page, limit):
        return Step(0, self.cursor, False)


@pytest.mark.parametrize("cursor", [{"at": ['hä"nter']}, {'hä"nter': 1}, 'of hä"nter', 4711])
def test_a_secret_in_a_cursor_of_an_own_paging_is_refused(server, cursor):
    server.fill(3)

    class Own(OwnPaging):
        pass

    Own.cursor = cursor

    class Desk(Topology):
        rows = Own.spec()

    secret = "4711" if cursor == 4711 else 'hä"nter'
    with pytest.raises(TupleFailed, match="would lie in the journal in clear"):
        run_topology(Desk, config=options(server, "none", http__token=secret))
    assert run_topology(Desk, config=options(server, "none", http__token="4")).rows("rows") == [(1,), (2,), (3,)]


def test_a_short_token_is_no_secret_of_every_cursor(server, tmp_path):
    server.fill(30)
    found = run_topology(Rows, config=options(server, "link", http__token="1"))
    assert len(found.rows("rows")) == 30


OAUTH = {"http__oauth__client__id": "shop", "http__oauth__client__secret": "client-hunter2"}


@pytest.mark.parametrize("path", ["token", "token-by-form"])
def test_a_token_is_fetched_and_renewed_before_it_ends(server, tmp_path, path):
    server.fill(3)
    server.expires_in = 1
    checkpoint = Checkpoint()
    found = journaled(server, tmp_path, "offset", http__oauth__url=f"{server.url}/{path}", **OAUTH)
    run = Run(found, checkpoint)
    until(run, checkpoint, 3)
    assert server.given == 1
    for _ in range(200):
        run.trigger()
        if server.given > 2:
            break
    server.fill(2)
    until(run, checkpoint, 5)
    assert server.given > 2 and ids(checkpoint) == server.ids()
    assert server.statuses()[401] <= 1, "of the first way to send the secret"


def test_a_token_that_is_refused_is_renewed_once(server):
    server.fill(12)
    server.tokens = set()
    url = {"http__oauth__url": f"{server.url}/token", **OAUTH}
    server.faults = [None, None, 401]
    assert read(server, **url) == server.ids()
    assert server.given == 2
    server.faults = [None, 401, None, 401]
    with pytest.raises(TupleFailed, match="was answered by 401"):
        read(server, **url)


def test_a_wrong_secret_names_what_to_check(server):
    found = {**OAUTH, "http__oauth__client__secret": SECRET, "http__oauth__url": f"{server.url}/token"}
    with pytest.raises(TupleFailed, match=r"/token' gave no token: check http.oauth.*error 'invalid_client'") as raised:
        read(server, **found)
    assert SECRET not in str(raised.value)


def test_a_token_service_that_is_busy_is_asked_again(server):
    server.fill(3)
    server.faults = [503]
    assert read(server, http__oauth__url=f"{server.url}/token", **OAUTH) == [1, 2, 3]


def test_a_redirect_to_another_host_leaves_the_secrets_behind(server):
    server.fill(3)
    found = {"http__url": f"{server.url}/elsewhere", "http__paging": "none", "http__rows": "items"}
    secrets = {"http.token": SECRET, "http.auth.header.X-Api-Key": SECRET}
    rows = run_topology(Rows, config={**options(server, **found), **secrets}).rows("rows")
    assert len(rows) == 3
    first, second = (request["headers"] for request in server.asked[:2])
    assert SECRET in first["Authorization"] and first["X-Api-Key"] == SECRET
    assert SECRET not in str(second) and second["Host"].startswith("localhost")


def test_the_user_agent_names_the_project_and_headers_of_the_user_are_sent(server):
    read(server, http__header__Accept="application/x-of-mine")
    assert server.asked[0]["headers"]["User-Agent"].startswith("pystorm-source/")
    assert server.asked[0]["headers"]["Accept"] == "application/x-of-mine"


def test_a_proxy_of_the_environment_is_asked(server, monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.url.replace("http://", "http://me:hunter2@"))
    server.fill(2)
    given = {"http.url": "http://api.example.org/none", "http.rows": "items"}
    assert len(run_topology(Rows, config=given).rows("rows")) == 2
    assert server.asked[0]["headers"]["Proxy-Authorization"].startswith("Basic ")
    assert server.asked[0]["headers"]["Host"] == "api.example.org"


def test_without_urllib3_the_error_says_what_to_install(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "urllib3", None)
    with pytest.raises((OptionError, TupleFailed), match=r"HttpSpout needs the package urllib3: pip install"):
        read(server)


def test_a_certificate_is_checked_by_the_file_that_is_named(tmp_path):
    certificate = self_signed(tmp_path / "service.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with api() as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.url = server.url.replace("http:", "https:")
        server.fill(3)
        assert read(server, http__ca__file=certificate) == [1, 2, 3]
        assert read(server, http__verify="false") == [1, 2, 3]
        with pytest.raises(TupleFailed, match="has a certificate that is not accepted: name the file .* http.ca.file"):
            read(server)
