"""Every way of paging gives each row once, whatever the pages look like and however they grow."""

import json
from itertools import pairwise
from random import Random

import pytest

from pystorm_source import Topology
from pystorm_source.errors import OptionError, SchemaError, TupleFailed
from pystorm_source.spouts import HttpSpout
from pystorm_source.spouts.http.paging import back
from pystorm_source.testing import run_topology, verify_spout
from tests.source.spark_calls import Checkpoint, Run
from tests.spouts.http.api import PAGINGS, Desk, Enduring, PageAnswers, Rescuing, Rows, api, options


@pytest.fixture
def server():
    with api() as found:
        yield found


def journaled(server, folder, paging, topology="Rows", **more):
    found = {
        "topology": f"tests.spouts.http.api:{topology}",
        "journal.path": str(folder / "journal"),
        "batch.target.millis": "100",
        "spout.poll.seconds": "0.02",
    }
    return {**found, **options(server, paging, **more)}


def ids(checkpoint):
    return [row[0] for rows in checkpoint.rows for row in rows]


def until(run, checkpoint, count, most=60):
    for _ in range(most):
        if len(ids(checkpoint)) >= count:
            return
        run.trigger()
    raise AssertionError(f"{ids(checkpoint)} after {most} micro-batches")


@pytest.mark.parametrize("count", [0, 1, 12, 24, 37])
@pytest.mark.parametrize("most", [10, 12, 100])
@pytest.mark.parametrize("paging", PAGINGS)
def test_all_rows_come_once_and_in_order(server, paging, most, count):
    """Pages are smaller than, as large as, and never larger than what is asked for."""
    server.most = most
    server.fill(count)
    assert [row[0] for row in run_topology(Rows, config=options(server, paging)).rows("rows")] == server.ids()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("paging", PAGINGS)
def test_rows_that_are_added_at_any_time_come_once(server, tmp_path, paging, seed):
    """Between two requests and between two micro-batches, in one process and the next."""
    chance = Random(seed)
    server.most = chance.choice([10, 12, 100])
    checkpoint, found = Checkpoint(), journaled(server, tmp_path, paging)
    for _ in range(3):
        run = Run(found, checkpoint)
        for _ in range(3):
            server.grows = [chance.randrange(9) for _ in range(chance.randrange(8))]
            server.fill(chance.randrange(15))
            run.trigger()
        run.reader.stop()
    server.grows = []
    until(Run(found, checkpoint), checkpoint, len(server.ids()))
    assert ids(checkpoint) == server.ids()


@pytest.mark.parametrize("paging", PAGINGS)
def test_available_now_reads_all_there_is_and_ends(server, tmp_path, paging):
    server.fill(13)
    checkpoint, found = Checkpoint(), journaled(server, tmp_path, paging)
    for more in (0, 4, 0):
        server.fill(more)
        run = Run(found, checkpoint, available_now=True)
        run.drain()
        run.reader.stop()
        assert ids(checkpoint) == server.ids()


@pytest.mark.parametrize("paging", PAGINGS)
def test_an_idle_api_is_asked_once_each_poll(server, tmp_path, paging):
    server.fill(12)
    checkpoint = Checkpoint()
    run = Run(journaled(server, tmp_path, paging, spout__poll__seconds=0.2), checkpoint)
    until(run, checkpoint, 12)
    run.trigger()
    begin = len(server.asked)
    for _ in range(12):
        run.trigger()
    times = [request["at"] for request in server.asked[begin:]]
    assert len(times) > 3
    assert len(times) - 1 <= (times[-1] - times[0]) / 0.2 * 1.1
    assert server.connections <= 2, "the connection is kept"


def test_an_api_that_has_ever_another_empty_page_is_not_asked_without_a_pause(server, tmp_path):
    """By a field that says whether there is more, which lies."""
    server.fill(2)
    endless = journaled(server, tmp_path, "token", http__more="", spout__poll__seconds=0.3)
    checkpoint = Checkpoint()
    run = Run(endless, checkpoint)
    for _ in range(8):
        run.trigger()
    assert ids(checkpoint) == [1, 2]
    times = [request["at"] for request in server.asked]
    assert len(times) <= ((times[-1] - times[0]) / 0.3 + 1) * 11


def test_the_first_page_of_unknown_size_is_looked_behind_by_every_second_request(server, tmp_path):
    server.most = 3
    server.fill(3)
    checkpoint = Checkpoint()
    run = Run(journaled(server, tmp_path, "page"), checkpoint)
    for _ in range(10):
        run.trigger()
    asked = [request["query"]["page"] for request in server.asked]
    assert asked[:2] == ["1", "2"] and all(one != other for one, other in pairwise(asked))
    server.fill(1)
    until(run, checkpoint, 4)
    assert ids(checkpoint) == [1, 2, 3, 4]
    for _ in range(4):
        run.trigger()
    assert {request["query"]["page"] for request in server.asked[-3:]} == {"2"}, "its size is known now"


def test_a_time_that_several_rows_share_loses_none_of_them(server, tmp_path):
    server.fill(4)
    server.rows[""].append({"id": 5, "text": "5", "at": {"time": "2026-01-01T00:00:04Z"}})
    found = {"http__url": f"{server.url}/time", "http__next": "at.time", "http__overlap": 2}
    checkpoint = Checkpoint()
    run = Run(journaled(server, tmp_path, "since", "Late", **found), checkpoint)
    server.most = 50
    until(run, checkpoint, 5)
    server.rows[""].append({"id": 6, "text": "late", "at": {"time": "2026-01-01T00:00:03Z"}})
    until(run, checkpoint, 6)
    assert ids(checkpoint) == [1, 2, 3, 4, 5, 6]
    assert server.asked[-1]["query"]["since"] == "2026-01-01T00:00:02Z"


def test_the_class_says_all_and_options_win(server):
    for name in ("north", "south"):
        server.fill(7, name)
    rows = run_topology(Desk, config={"http.url": server.url + "/link/{partition}"}).rows("issues")
    assert sorted(row[2] for row in rows) == sorted(f"{name}{n}" for name in ("north", "south") for n in range(1, 8))
    assert {row[1]["time"].isoformat() for row in rows if row[0] == 7} == {"2026-01-01T00:00:07+00:00"}


def test_partitions_of_an_option_are_read_in_turn(server):
    server.fill(7, "a b")
    server.fill(7, "c")
    given = options(server, http__url=server.url + "/offset/{partition}", http__partitions='["a b", "c"]')
    server.rows["a%20b"] = server.rows["a b"]
    assert len(run_topology(Rows, config=given).rows("rows")) == 14
    assert [request["path"] for request in server.asked[:2]] == ["/offset/a%20b", "/offset/c"]


def test_the_query_of_the_address_is_sent_and_the_place_of_the_page_replaces_its_own(server):
    read = options(server, http__url=f"{server.url}/offset?label=a&label=b&offset=7&empty=#top", http__first=2)
    server.fill(3)
    assert [row[0] for row in run_topology(Rows, config=read).rows("rows")] == [3]
    assert server.asked[0]["line"] == "/offset?label=a&label=b&empty=&limit=12&offset=2"


@pytest.mark.parametrize("paging", ["none", "cursor", "offset", "csv"])
def test_a_page_that_is_as_it_was_is_not_sent_again(server, tmp_path, paging):
    server.etags = True
    server.fill(7)
    checkpoint, found = Checkpoint(), journaled(server, tmp_path, paging)
    run = Run(found, checkpoint)
    until(run, checkpoint, 7)
    for _ in range(5):
        run.trigger()
    assert server.statuses()[304] >= 2
    server.fill(1)
    until(run, checkpoint, 8)
    assert ids(checkpoint) == server.ids()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"http.url": ""}, "'http.url' is the address of an API"),
        ({"http.url": "https://me:hunter2@example.org"}, "no user or password in it"),
        ({"http.url": "https://example.org/{partition}"}, "'http.partitions' is needed"),
        ({"http.partitions": "a,b"}, "has {partition} in it"),
        ({"http.paging": "since"}, "'http.next' is needed"),
        ({"http.overlap": 3, "http.paging": "since", "http.next": "id"}, "sets `remembered`"),
        ({"http.paging": "page", "http.first": "one"}, "is a whole number"),
        ({"http.token": "a", "http.user": "b", "http.password": "c"}, "set one of them"),
        ({"http.user": "b"}, "needs http.password"),
        ({"http.token": "a", "http.auth.header.Authorization": "b"}, "both set the header Authorization"),
        ({"http.format": "csv", "http.rows": "data"}, "are paths in a JSON document"),
        ({"http.format": "ndjson", "http.more": "more"}, "are paths in a JSON document"),
        ({"http.paging": "cursor", "http.next": "id", "http.format": "csv"}, "take another paging"),
    ],
)
def test_options_that_do_not_go_together_are_refused(wrong, says):
    with pytest.raises((OptionError, TupleFailed), match=says) as raised:
        run_topology(Rows, config={"http.url": "http://127.0.0.1:9/x", **wrong})
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"http.rows": "data"}, "no list of rows at http.rows='data'.*an object of .*items.*nothing there"),
        ({"http.rows": ""}, "dict there"),
    ],
)
def test_a_page_without_rows_names_what_is_there(server, config, says):
    with pytest.raises((SchemaError, TupleFailed), match=says):
        run_topology(Rows, config=options(server, "none") | config)


def test_a_row_that_does_not_fit_fails_or_is_left_out(server):
    server.fill(3)
    server.rows[""][1]["id"] = "two"
    with pytest.raises((SchemaError, TupleFailed), match="does not fit `outputs`.*'?two"):
        run_topology(Rows, config=options(server))
    assert run_topology(Enduring, config=options(server)).rows("rows") == [(1, "1"), (3, "3")]


@pytest.mark.parametrize("paging", PAGINGS)
def test_it_keeps_the_laws_of_cursors(server, paging):
    server.most = 10
    server.fill(37)
    verify_spout(Rows.rows, options(server, paging), grow=lambda: server.fill(5))


@pytest.mark.parametrize("paging", ["none", "ndjson", "csv"])
def test_what_does_not_fit_the_fields_is_rescued(server, paging):
    server.fill(3)
    for row, text in zip(server.rows[""], ["x", 7, None], strict=True):
        row["text"] = text if paging != "csv" else "" if text is None else text
    found = run_topology(Rescuing, config=options(server, paging)).rows("rows")
    undeclared = [{} if paging == "csv" else {"at": row["at"]} for row in server.rows[""]]
    expected = [(1, None, {"text": "x"} | undeclared[0]), (2, 7, undeclared[1]), (3, None, undeclared[2])]
    assert [(*row[:2], {} if row[2] is None else json.loads(row[2])) for row in found] == expected


def test_values_of_a_row_without_names_are_rescued_by_position(server):
    server.rows[""] = [[1, 7], [2, "x", "more"]]
    found = run_topology(Rescuing, config=options(server, "none")).rows("rows")
    assert [(*row[:2], row[2] and json.loads(row[2])) for row in found] == [
        (1, 7, None),
        (2, None, {"text": "x", "_c2": "more"}),
    ]


@pytest.mark.parametrize(("rescued", "rest"), [(None, ()), ("more", ('{"_c2_":3}',))])
def test_a_further_value_of_a_row_without_names_is_no_field(server, rescued, rest):
    server.rows[""] = [[1, 2, 3]]

    class Positions(Topology):
        rows = HttpSpout.spec(fields=["_c2 int", "b int"], rescued=rescued)

    assert run_topology(Positions, config=options(server, "none")).rows("rows") == [(1, 2, *rest)]


@pytest.mark.parametrize("paging", PAGINGS)
def test_available_now_reads_on_behind_rows_that_are_left_out(server, tmp_path, paging):
    """A full page stays full if a row of it is left out."""
    server.fill(60)
    for row in (*server.rows[""][12:24], server.rows[""][30]):
        row["text"] = 5
        row["id"] = row["id"] if PAGINGS[paging].get("http.next") == "id" else "bad"
    checkpoint, found = Checkpoint(), journaled(server, tmp_path, paging, "Enduring", spout__poll__seconds=5)
    run = Run(found, checkpoint, available_now=True)
    run.drain()
    run.reader.stop()
    expected = [n for n in range(1, 61) if n not in (*range(13, 25), 31)]
    assert ids(checkpoint) == expected


@pytest.mark.parametrize("more", ["has_more", ""])
def test_available_now_reads_on_behind_empty_pages_if_the_service_says_so(server, tmp_path, monkeypatch, more, caplog):
    """A service filters its pages: row 1, and row 40 behind 38 empty ones."""

    def by_token(handler, rows, query):
        at = int(query.get("cursor", 1))
        items = [{"id": at}] if at in (1, 40) else []
        return 200, {"items": items, "@odata.next": at + 1 if at < 40 else None, "has_more": at < 40}, {}

    monkeypatch.setattr(PageAnswers, "by_token", by_token)
    checkpoint = Checkpoint()
    run = Run(journaled(server, tmp_path, "token", http__more=more), checkpoint, available_now=True)
    run.drain()
    run.reader.stop()
    assert ids(checkpoint) == ([1, 40] if more else [1])
    assert ("10 pages in a row had no new rows" in caplog.text) == (not more)


@pytest.mark.parametrize("following", ["/token/a?cursor={}", "?cursor={}", "/token?cursor={}"])
def test_an_address_without_a_host_is_the_next_page(server, monkeypatch, following):
    server.fill(30)
    server.rows["a"] = server.rows[""]
    answer = PageAnswers.by_token

    def by_token(handler, rows, query):
        status, page, headers = answer(handler, rows, query)
        page["@odata.next"] = following.format(page["@odata.next"])
        return status, page, headers

    monkeypatch.setattr(PageAnswers, "by_token", by_token)
    given = options(server, "token", http__url=f"{server.url}/token/a")
    assert [row[0] for row in run_topology(Rows, config=given).rows("rows")] == server.ids()


@pytest.mark.parametrize("token", ["/wAB+==", "/", "//", "a/b?c=d", "?", "/tokens/x"])
def test_a_token_may_look_like_an_address(server, monkeypatch, token):
    server.fill(1)
    monkeypatch.setattr(PageAnswers, "by_token", lambda *_: (200, {"items": [], "@odata.next": token}, {}))
    run_topology(Rows, config=options(server, "token"))
    assert server.asked[1]["query"]["cursor"] == token


def test_a_page_that_is_full_although_it_is_the_only_one_is_warned_of(server, monkeypatch, caplog):
    server.fill(40)
    monkeypatch.setattr(PageAnswers, "by_none", lambda self, rows, query: (200, self.page(rows, 0, query), {}))
    assert len(run_topology(Rows, config=options(server, "none", http__rows="")).rows("rows")) == 12
    assert "has as many rows as were asked for, 12: if there are more, they are never read" in caplog.text


def test_an_unknown_parameter_is_warned_of(server, monkeypatch, caplog):
    server.fill(12)
    answers = iter([server.rows[""], server.rows[""], []])
    monkeypatch.setattr(PageAnswers, "by_offset", lambda self, rows, query: (200, next(answers, []), {}))
    run_topology(Rows, config=options(server, "offset"))
    assert "have the same 12 rows: if the service does not know the parameter 'offset'" in caplog.text


def test_healthy_pages_are_not_warned_of(server, caplog):
    server.fill(40)
    for paging in PAGINGS:
        run_topology(Rows, config=options(server, paging))
    assert not caplog.text


@pytest.mark.parametrize(
    ("kind", "charset"),
    [("text/csv; charset=ISO-8859-1", "latin-1"), ('text/csv; charset="utf-16"', "utf-16"), ("text/csv", "utf-8")],
)
def test_csv_is_read_in_the_charset_that_the_answer_names(server, monkeypatch, kind, charset):
    body = "text,id\r\ncafé,1\r\n".encode(charset)
    monkeypatch.setattr(PageAnswers, "by_csv", lambda *_: (200, body, {"Content-Type": kind}))
    given = options(server, "csv", http__paging="none")
    assert run_topology(Rows, config=given).rows("rows") == [(1, "café")]


def test_a_query_whose_bytes_are_no_utf8_is_sent_as_it_is(server):
    run_topology(Rows, config=options(server, http__url=f"{server.url}/offset?q=caf%E9&r=%C3%A9"))
    assert server.asked[0]["line"].startswith("/offset?q=caf%E9&r=%C3%A9&")


@pytest.mark.parametrize(
    ("value", "overlap", "expected"),
    [
        ("17", 3.0, "14"),
        ("123456789012345678901234567890123", 1.0, "123456789012345678901234567890122"),
        ("1512085950.000216", 60.0, "1512085890.000216"),
        (1_234_567_890_123_456_789, 2.0, 1_234_567_890_123_456_787),
        ("2026-01-05T10:00:00Z", 60.0, "2026-01-05T09:59:00Z"),
        ("2026-01-05", 3600.0, "2026-01-04"),
        ("2026-01-05", 86400.0, "2026-01-04"),
        ("0001-01-01T00:00:00Z", 60.0, "0001-01-01T00:00:00Z"),
    ],
)
def test_a_place_that_lies_earlier_has_the_form_of_the_other(value, overlap, expected):
    assert back(value, overlap) == expected


@pytest.mark.parametrize("value", ["nan", "soon"])
def test_what_is_no_place_is_named(value):
    with pytest.raises(SchemaError, match="a number or a time of ISO 8601"):
        back(value, 1.0)
