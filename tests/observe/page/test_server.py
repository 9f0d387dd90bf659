"""`pystorm-source ui`, as a process, asked over sockets: nothing without the token, whatever is asked."""

import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Thread
from time import sleep
from urllib.parse import quote, urlsplit

import pytest

from pystorm_source.cli.page_server import Limits, OpenConnections, server_of
from pystorm_source.observe.page.runs import Runs
from tests.observe.page.runs import MARKUP, orders, renamed, write_run
from tests.sizes import sized

REFUSED = b"not found\n"


@contextmanager
def served(*arguments: object, **more: str) -> Iterator[str]:
    """The address of a page; its process ends with the context, by Ctrl-C."""
    command = [sys.executable, "-m", "pystorm_source", "ui", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **more}) as process:
        try:
            yield process.stdout.readline().strip()
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGINT)
            status = process.wait(30)
    assert status == 130


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[tuple[str, int, str]]:
    """Host, port and token of a page of two runs."""
    folder = tmp_path_factory.mktemp("records")
    older = write_run(folder / "Orders-1.jsonl", [orders(batch) for batch in range(20)])
    os.utime(older, (1, 1))
    write_run(folder / "Marked-2.jsonl", [renamed(orders(119), MARKUP)])
    with served(folder) as address:
        parts = urlsplit(address)
        yield parts.hostname, parts.port, parts.path.strip("/")


def ask(page, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(page[0], page[1], timeout=20)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_it_listens_on_loopback_alone_and_its_token_is_long(page):
    host, _, token = page
    assert host == "127.0.0.1" and len(token) >= 43


def test_the_page_comes_with_a_policy_and_is_kept_nowhere(page):
    answer, body = ask(page, f"/{page[2]}/")
    assert answer.status == 200 and body.startswith(b"<!doctype html>")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store" and answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Server"] is None


def test_the_newest_run_is_shown_and_others_can_be_chosen(page):
    _, body = ask(page, f"/{page[2]}/view")
    newest = json.loads(body)
    assert newest["title"] == MARKUP[0] and list(newest["runs"].values()) == ["Marked-2", "Orders-1"]
    _, body = ask(page, f"/{page[2]}/view?run={list(newest['runs'])[1]}")
    assert json.loads(body)["title"] == "Orders"


@pytest.mark.parametrize("run", ["../../etc/passwd", "/etc/passwd", "%2e%2e%2fsecret", "0" * 16, "x" * 9000, "%00"])
def test_a_run_is_named_by_its_id_alone(page, run):
    _, body = ask(page, f"/{page[2]}/view?run={run}")
    assert json.loads(body)["title"] == MARKUP[0]


def test_what_has_not_changed_is_not_sent_again(page):
    answer, _ = ask(page, f"/{page[2]}/view")
    again, body = ask(page, f"/{page[2]}/view", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status, body) == (304, b"")


@pytest.mark.parametrize(
    "path", ["view/", "views", "view/../view", "..", "static/x", "%2e%2e/", "openapi.json", "docs"]
)
def test_with_the_token_there_are_three_addresses(page, path):
    answer, _ = ask(page, f"/{page[2]}/{path}")
    assert answer.status == 404


def test_tasks_that_cannot_be_asked_are_told(page):
    answer, body = ask(page, f"/{page[2]}/stacks")
    assert answer.status == 200 and answer.headers["Cache-Control"] == "no-store"
    assert body.startswith(b"Its tasks cannot be asked: ")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "NONSENSE"])
def test_it_can_only_be_read(page, method):
    answer, _ = ask(page, f"/{page[2]}/view", method)
    assert answer.status in (400, 405)


def mutated(token: str, chance: random.Random) -> str:
    """A path that is nearly right."""
    at = chance.randrange(len(token))
    other = chance.choice("abcXYZ019-_.~%/ ")
    return chance.choice(
        [
            lambda: f"/{token[:at]}{other}{token[at + 1 :]}/" if other != token[at] else f"/{token}{other}/",
            lambda: f"/{token[:at]}{token[at + 1 :]}/",
            lambda: f"/{token[:at]}{other}{token[at:]}/",
            lambda: f"/{token.swapcase()}/",
            lambda: f"/{token[::-1]}/",
            lambda: f"/{token[:at]}%{ord(token[at]):02x}{token[at + 1 :]}/",
            lambda: f"/{token[:at]}%00{token[at:]}/",
            lambda: f"//{token}/",
            lambda: f"/{token}",
            lambda: f"/{token}//",
            lambda: f"/{token}/{token}/",
            lambda: f"/./{token}/",
            lambda: f"/x/../{token}/view",
            lambda: f"/%2f{token}/view",
            lambda: f"/view?token={token}",
            lambda: f"/?{token}",
            lambda: f"/{token};/view",
            lambda: f"/{quote(token[:at] + chr(chance.randrange(128, 0x2FFF)))}/view",
            lambda: "/" + "".join(chance.choice("abcXYZ019-_") for _ in range(chance.randrange(60))) + "/view",
            lambda: "/" * chance.randrange(1, 9),
            lambda: f"/{token * chance.randrange(2, 20)}/view",
        ]
    )()


@pytest.mark.timeout(300)
def test_ten_thousand_requests_without_the_token_get_nothing(page):
    host, port, token = page
    chance = random.Random(20260301)
    connection = HTTPConnection(host, port, timeout=20)
    for _ in range(sized(10_000)):
        path = mutated(token, chance).replace(" ", "%20")
        method = chance.choice(["GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "PROPFIND"])
        headers = chance.choice([{}, {"Cookie": f"token={token}"}, {"Authorization": f"Bearer {token}"}, {"Host": "x"}])
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 404 and body == (b"" if method == "HEAD" else REFUSED), (method, path)
        assert token not in str(answer.headers)
    connection.close()


@pytest.mark.parametrize(
    "line",
    [
        b"GET http://127.0.0.1/x/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /\xff\xfe/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /x/view HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"",
    ],
    ids=["absolute", "long", "version", "TLS", "not UTF-8", "websocket", "nonsense", "nothing"],
)
def test_what_is_no_request_gets_nothing_and_the_page_goes_on(page, line):
    with socket.create_connection(page[:2], timeout=20) as connection:
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        said = b""
        with suppress(ConnectionResetError):
            while chunk := connection.recv(65536):
                said += chunk
    assert not said or re.match(rb"HTTP/1\.1 4\d\d ", said)
    assert b"Orders" not in said and page[2].encode() not in said
    assert ask(page, f"/{page[2]}/view")[0].status == 200


def until_closed(connection: socket.socket) -> int:
    """Blocking, until the server closes it: the bytes that came before. Raises TimeoutError if it does not."""
    read = 0
    with suppress(ConnectionResetError):
        while data := connection.recv(65536):
            read += len(data)
    return read


def test_idle_connections_keep_no_browser_out(page):
    """The oldest without the token give way; a connection that had the token stays."""
    known = HTTPConnection(page[0], page[1], timeout=20)
    known.request("GET", f"/{page[2]}/view")
    assert known.getresponse().read()
    idle = [socket.create_connection(page[:2], timeout=20) for _ in range(200)]
    try:
        assert ask(page, f"/{page[2]}/view")[0].status == 200
        known.request("GET", f"/{page[2]}/view")
        assert known.getresponse().status == 200, "on the same connection"
        assert list(map(until_closed, idle[:130])) == [0] * 130
    finally:
        known.close()
        for each in idle:
            each.close()


@contextmanager
def in_this_process(folder: Path, **limits: float) -> Iterator[tuple[tuple[str, int], OpenConnections]]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = server_of(Runs(folder), "token", Limits(**limits))
    thread = Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        yield listener.getsockname(), server.config.http.args[0]
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def test_slow_connections_are_closed(tmp_path):
    """That send nothing, that drip a request or its body, that do not read their answers."""
    write_run(tmp_path / "Orders-1.jsonl", [orders(batch) for batch in range(300)])
    asked = b"GET /token/view HTTP/1.1\r\nHost: x\r\n"
    with in_this_process(tmp_path, request_seconds=1.0, answer_seconds=1.0) as (where, connected), ExitStack() as stack:
        silent, dripping, filling, unread = (
            stack.enter_context(socket.create_connection(where, timeout=20)) for _ in range(4)
        )
        filling.sendall(asked + b"Content-Length: 1000000\r\n\r\n")
        unread.sendall((asked + b"\r\n") * 2000)
        for slow in (dripping, filling):
            with suppress(ConnectionError):
                while True:  # until it is closed: pytest's deadline says that it is not
                    slow.sendall(b"X")
                    sleep(0.01)
        assert until_closed(silent) == 0
        while connected:  # until the last one is closed, too: what reads nothing cannot see it
            sleep(0.01)
        assert ask(where, "/token/view")[0].status == 200


def test_a_file_is_followed_as_it_grows(tmp_path):
    path = tmp_path / "Orders-1.jsonl"
    write_run(path, [orders(0)], ended=False)
    with served(path) as address:
        parts = urlsplit(address)
        where = parts.hostname, parts.port
        assert json.loads(ask(where, f"{parts.path}view")[1])["series"]["batch"] == [0]
        with path.open("a") as file:
            file.write(orders(1).to_json() + "\n")
        assert json.loads(ask(where, f"{parts.path}view")[1])["series"]["batch"] == [0, 1]


def test_without_a_path_it_shows_the_queries_of_this_user(tmp_path):
    """Of folders that another user could have written to, none is read."""
    own = tmp_path / f"pystorm-source-{os.getuid()}-progress-{os.getpid()}"
    open_to_all = tmp_path / f"pystorm-source-{os.getuid()}-progress-{os.getppid()}"
    for folder, mode in ((own, 0o700), (open_to_all, 0o777)):
        folder.mkdir()
        folder.chmod(mode)
        write_run(folder / f"Run-{mode:o}.jsonl", [orders(1)])
    with served(TMPDIR=str(tmp_path)) as address:
        parts = urlsplit(address)
        view = json.loads(ask((parts.hostname, parts.port), f"{parts.path}view")[1])
    assert list(view["runs"].values()) == ["Run-700"]


def ui(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pystorm_source", "ui", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_path_that_is_not_there_is_refused():
    done = ui("/nowhere/at/all")
    assert (
        done.returncode == 2 and "PYSTORM_INVALID_OPTION" in done.stderr and "Given: '/nowhere/at/all'" in done.stderr
    )


def test_a_port_that_is_taken_is_refused(tmp_path, page):
    done = ui(tmp_path, "--port", page[1])
    assert done.returncode == 2 and "Address already in use" in done.stderr and f"{page[1]}" in done.stderr


@pytest.mark.parametrize("given", ["Orders-1.jsonl", "."])
def test_the_page_of_a_run_is_written_into_a_file(tmp_path, given):
    write_run(tmp_path / "Orders-1.jsonl", [orders(batch) for batch in range(20)])
    command = [sys.executable, "-m", "pystorm_source", "ui", given, "--output", "Orders-1.html"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "Orders-1.html\n")
    assert "Orders" in Path(tmp_path, "Orders-1.html").read_text()


@pytest.mark.parametrize("text", ["", "{}{}", "[1]\nnull\n"])
def test_a_file_without_records_is_refused(tmp_path, text):
    (tmp_path / "x.jsonl").write_text(text)
    command = [sys.executable, "-m", "pystorm_source", "ui", "x.jsonl", "--output", "x.html"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "holds no records" in done.stderr and not list(tmp_path.glob("*.html"))
