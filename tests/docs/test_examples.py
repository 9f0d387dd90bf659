"""The Python blocks of the pages run as they stand, one after the other as in a notebook, on a real Spark."""

import importlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import psycopg
import pytest
import yaml
from pyspark.errors import AnalysisException
from redis import Redis

from pystorm_source import ArrowBolt, Topology
from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.source.offsets.offsets import parse
from pystorm_source.source.request import ReadRequest
from pystorm_source.testing import run_topology, verify_spout
from testbed.mosquitto_server import mosquitto_binary, mosquitto_server
from testbed.nats_server import nats_server
from testbed.sqs_server import CREDENTIALS, sqs_server
from tests.channel.reports.made_reports import wait_until
from tests.docs.pages import LESSONS, ROOT, Block, blocks, pages
from tests.docs.postgres_server import killable_postgres
from tests.missing import missing
from tests.source.pages import pages as rest_pages
from tests.spouts.events.stream import stream as event_stream
from tests.spouts.http.api import api as http_api
from tests.spouts.mqtt_world import MqttWorld
from tests.spouts.nats_world import NatsWorld
from tests.states.redis_process import redis_process

on_spark = pytest.mark.spark
pytestmark = pytest.mark.timeout(240)


def run(spark, page: str, replaced: dict[str, str] | None = None, given: list[Block] | None = None) -> dict:
    """The names that its blocks leave behind. ``replaced``: what stands for a place on the reader's machine."""
    # Classes of __main__ travel by value: so do those of a cell.
    names = {"__name__": "__main__", "spark": spark}
    for block in blocks(ROOT / page, "python") if given is None else given:
        text = block.text
        for old, new in (replaced or {}).items():
            text = text.replace(old, new)
        exec(compile("\n" * (block.line - 1) + text, page, "exec"), names)
    return names


def table(spark, name: str) -> Counter:
    return Counter(tuple(row) for row in spark.table(name).collect())


@on_spark
def test_ten_lines_of_the_readme(spark, capsys):
    first = blocks(ROOT / "README.md", "python")[0]
    assert len([line for line in first.text.splitlines() if line.strip()]) <= 15
    run(spark, "README.md", given=[first])
    once = ["cow", "jumped", "over", "moon", "dog", "laughed"]
    assert table(spark, "words") == Counter({("the",): 3} | {(word,): 1 for word in once})
    assert re.search(r"\|\s*the\|\s*3\|", capsys.readouterr().out)


@on_spark
def test_files_in_the_place_of_memory(spark, tmp_path):
    """What the README says about its first example."""
    (tmp_path / "a.log").write_text("one two\ntwo\n")
    text = blocks(ROOT / "README.md", "python")[0].text.splitlines()
    swapped = [
        "    lines = FilesSpout.spec()" if "MemorySpout.spec" in line else line.replace("MemorySpout", "FilesSpout")
        for line in text
    ]
    block = "\n".join(swapped).replace("(spark, Words)", f"(spark, Words, path={str(tmp_path / '*.log')!r})")
    run(spark, "README.md", given=[Block("python", block, 1)])
    assert table(spark, "words") == Counter({("one",): 1, ("two",): 2})


def drain(frame, name: str, mode: str = "complete") -> None:
    """Runs the frame as a query over what is there, into that table in memory."""
    writer = frame.writeStream.format("memory").queryName(name).outputMode(mode)
    writer.trigger(availableNow=True).start().awaitTermination()


@on_spark
def test_increments_of_semantics(spark):
    drain(run(spark, "docs/SEMANTICS.md")["totals"], "totals")
    assert table(spark, "totals") == Counter([("the", 2), ("cow", 1)])


@on_spark
def test_spouts_and_dead_letters_of_delivery(spark):
    names = run(spark, "docs/DELIVERY.md")
    drain(names["sold"], "sold")
    assert table(spark, "sold") == Counter([("a", 4), ("b", 2)])
    drain(names["frame"], "halves", "append")
    rows = spark.table("halves").select("half", "epitaph")
    assert Counter(map(tuple, rows.collect())) == Counter([(1, None), (None, "[1] failed 2 times: ValueError: odd")])


@on_spark
def test_the_listeners_of_metrics(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Later queries of this session are none of theirs.
    added_for_a_moment = "(lambda each: (spark.streams.addListener(each), spark.streams.removeListener(each)))"
    replaced = {"port=9400": "port=0", "spark.streams.addListener": added_for_a_moment}
    assert {"Prometheus", "OpenTelemetry", "JsonLines"} <= run(spark, "docs/METRICS.md", replaced).keys()


def test_the_faq_has_as_many_questions_as_it_says():
    page = (ROOT / "docs/FAQ.md").read_text()
    assert len(re.findall(r"^\*\*[^*]+[?.]\*\* ", page, re.MULTILINE)) == 19
    assert "nineteen first questions" in page


def test_concurrency():
    """Its topology asserts what it gives."""
    assert issubclass(run(None, "docs/CONCURRENCY.md")["Words"], Topology)


def test_logging_in_a_process_as_spark_starts_it(tmp_path):
    """Without a handler at the root: what the page says of levels and forms."""
    levels, own = (block.text for block in blocks(ROOT / "docs/LOGGING.md", "python"))
    assert logged(tmp_path, levels) == [
        "pystorm.component.says - WARNING - passed cow",
        "pystorm.component.says - DEBUG - got cow",
        "pystorm.component.says - WARNING - passed cow",
    ]
    assert logged(tmp_path, levels[: levels.index("run_topology(Quiet)")] + own) == [
        "my_package INFO looked up dog",
        "pystorm.component.says WARNING passed dog",
    ]


def logged(folder: Path, program: str) -> list[str]:
    """The lines of its standard error without their times."""
    (folder / "page.py").write_text(program)
    ended = subprocess.run([sys.executable, folder / "page.py"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    return [re.sub(r"^[\d-]+ [\d:,]+ (- )?", "", line) for line in ended.stderr.splitlines()]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two SQLite files with a gap in their ids."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for shard in ("north", "south"):
        with sqlite3.connect(folder / f"{shard}.db") as database:
            database.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, device TEXT, value REAL)")
        add(folder, shard, [id for id in range(1, 200) if id % 7])
    return folder


def add(folder: Path, shard: str, ids: list[int]) -> None:
    with sqlite3.connect(folder / f"{shard}.db") as database:
        database.executemany(
            "INSERT INTO events VALUES (?, ?, ?)", [(id, f"{shard}-{id % 3}", float(id % 100)) for id in ids]
        )


def alarms(folder: Path, over: float = 90) -> Counter:
    """What must come out, by SQL alone."""
    found = Counter()
    for path in folder.glob("*.db"):
        with sqlite3.connect(path) as database:
            rows = database.execute("SELECT id, device FROM events WHERE value > ?", (over,)).fetchall()
        found.update((path.stem, *row) for row in rows)
    return found


@pytest.mark.campaign
@on_spark
def test_writing_a_spout(spark, shards, tmp_path):
    places = {"/data/shards": str(shards), "/data/checkpoints": str(tmp_path), "/data/alarms": str(tmp_path / "alarms")}
    names = run(spark, "docs/WRITING_A_SPOUT.md", places)

    def written() -> Counter:
        return Counter(tuple(row) for row in spark.read.parquet(str(tmp_path / "alarms")).collect())

    assert written() == alarms(shards)
    # "Run the last statement again after new events came in: it goes on where it was."
    add(shards, "south", list(range(290, 300)))
    again = next(block for block in blocks(ROOT / "docs/WRITING_A_SPOUT.md", "python") if ".writeStream" in block.text)
    statement = again.text[again.text.index("query = (") :]
    for old, new in places.items():
        statement = statement.replace(old, new)
    exec(statement, names)
    assert written() == alarms(shards)
    # The other spouts of the page give the same rows, or those that they promise.
    read, topology, alarm = names["read"], names["Topology"], names["Alarm"]

    def over(spout: type) -> type:
        events = spout.spec()
        return type("Again", (topology,), {"events": events, "alarms": alarm.spec(inputs=[events])})

    quick = read(spark, over(names["QuickEvents"]), path=str(shards), minPartitions=6)
    assert Counter(map(tuple, quick.collect())) == alarms(shards)
    filtered = read(spark, names["FilteredAlarms"], path=str(shards), config={"events.min.value": 95})
    assert Counter(map(tuple, filtered.collect())) == alarms(shards, 94.5)
    series = read(spark, type("SeriesOnly", (topology,), {"series": names["Series"].spec()}))
    assert Counter(map(tuple, series.collect())) == Counter((n, n / 2) for n in range(200_000))


def rows_in(spark, folder):
    """How many rows a sink has written."""
    try:
        return spark.read.schema("id long").parquet(folder).count()
    except AnalysisException:  # the first micro-batch is not over
        return 0


@contextmanager
def stopped_in_order(query):
    """Stops it behind the block, and sees that nothing has ended it."""
    try:
        yield
    finally:
        query.stop()
    assert query.exception() is None


@pytest.mark.campaign
@pytest.mark.timeout(480)
@on_spark
def test_reading_a_rest_api(spark, tmp_path):
    with rest_pages() as server:
        for account in ("", "north", "south"):
            server.fill(250, account)
        for rows in server.rows.values():
            for row in rows:
                row["title"] = row.pop("text")
        places = {"https://example.org": server.url, "/data": str(tmp_path)}
        given = blocks(ROOT / "docs/REST.md", "python")
        names = run(spark, "docs/REST.md", places, given=given[:2])
        query = names["query"]
        with stopped_in_order(query):
            wait_until(lambda: rows_in(spark, f"{tmp_path}/desk") == 250)
            server.busy = 2
            server.rows[""].append({"id": 251, "title": "late"})
            wait_until(lambda: rows_in(spark, f"{tmp_path}/desk") == 251)
        # The other spouts of the page.
        names = run(None, "docs/REST.md", places, given=[given[0], *given[2:]])
        for spout, wanted in (("AllTickets", 2 * 250), ("LateTickets", 251)):
            topology = type("Desk", (names["Topology"],), {"tickets": names[spout].spec()})
            rows = run_topology(topology, config={"path": server.url}).rows("tickets")
            assert len(rows) == len(set(rows)) == wanted


def test_a_recorded_service(tmp_path):
    given, file = blocks(ROOT / "docs/REST.md", "python"), tmp_path / "tickets.yaml"
    with rest_pages() as server:
        server.fill(250)
        for row in server.rows[""]:
            row["title"] = row.pop("text")
        places = {"https://example.org": server.url, "tickets.yaml": str(file)}
        test = run(None, "docs/REST.md", places, given=[given[0], given[-1]])["test_desk_as_recorded"]
        test()
        asked = len(server.asked)
        assert asked >= 3
    test()  # the service is gone
    assert len(server.asked) == asked

    recorded = yaml.safe_load(file.read_text())
    first = deepcopy(recorded["interactions"][0])  # the file has no references
    busy = {"status": {"code": 429, "message": "Busy"}, "headers": {"Retry-After": ["5"]}, "body": {"string": ""}}
    recorded["interactions"].insert(0, {**first, "response": busy})
    file.write_text(yaml.safe_dump(recorded))
    test()
    recorded["interactions"][0]["response"]["status"]["code"] = 500
    file.write_text(yaml.safe_dump(recorded))
    with pytest.raises(TupleFailed, match="HTTP Error 500"):
        test()


def test_a_python_data_source():
    names = run(None, "docs/DATA_SOURCES.md", {})
    rows = [at for (at,) in run_topology(names["Clock"]).rows("seconds")]
    assert len(rows) >= 5
    assert rows == list(range(rows[0], rows[0] + len(rows)))


@on_spark
def test_reading_objects(spark, tmp_path):
    day = tmp_path / "lake" / "orders" / "day=2026-01-01"
    day.mkdir(parents=True)
    for n in range(20):
        (day / f"{n:02d}.json").write_text(f'{{"id": {n}, "item": "hat"}}\n')
    places = {"s3://lake": str(tmp_path / "lake"), '"/data': f'"{tmp_path}'}
    query = run(spark, "docs/OBJECTS.md", places)["query"]
    with stopped_in_order(query):
        wait_until(lambda: rows_in(spark, f"{tmp_path}/orders") == 20)


@on_spark
def test_reading_an_http_api(spark, tmp_path):
    with http_api() as server:
        server.most = 100
        server.tokens = {"Bearer the token of the API"}
        server.fill(250)
        server.rows[""] = [{"id": row["id"], "title": row["text"]} for row in server.rows[""]]
        query = run(spark, "docs/HTTP.md", {"https://example.org": server.url, "/data": str(tmp_path)})["query"]
        with stopped_in_order(query):
            wait_until(lambda: rows_in(spark, f"{tmp_path}/desk") == 250)


@on_spark
def test_reading_an_event_stream(spark, tmp_path):
    with event_stream() as server:
        server.fill(50)
        places = {"https://stream.example.org/changes": server.url, "/data": str(tmp_path)}
        query = run(spark, "docs/EVENT_STREAMS.md", places)["query"]
        with stopped_in_order(query):
            wait_until(lambda: rows_in(spark, f"{tmp_path}/changes") == 50)


@pytest.mark.campaign
@pytest.mark.timeout(480)
@on_spark
def test_reading_a_queue(spark, tmp_path):
    with redis_process(tmp_path) as redis:
        client = Redis.from_url(redis.url)
        client.xgroup_create("orders", "spark", id="0", mkstream=True)
        for n in range(2000):
            client.xadd("orders", {"item": f"item {n}", "quantity": n})
        places = {"redis://localhost:6379/0": redis.url, "/data": str(tmp_path / "data")}
        query = run(spark, "docs/QUEUES.md", places)["query"]
        with stopped_in_order(query):
            wait_until(lambda: rows_in(spark, f"{tmp_path}/data/shop") == 2000)
            wait_until(lambda: client.xpending("orders", "spark")["pending"] == 0)
        written = spark.read.parquet(f"{tmp_path}/data/shop").collect()
        assert sorted((row["quantity"], row["item"]) for row in written) == [(n, f"item {n}") for n in range(2000)]


@pytest.mark.campaign
@pytest.mark.timeout(480)
@on_spark
def test_reading_postgresql(spark, tmp_path):
    settings = {"wal_level": "logical"}
    with killable_postgres(settings) as server, psycopg.connect(server.place, autocommit=True) as database:
        database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, item text, total numeric(10, 2))")
        database.execute("INSERT INTO orders SELECT n, 'tea', n / 4.0 FROM generate_series(1, 50) n")
        places = {
            "host=db.example.org dbname=shop": f"host=127.0.0.1 port={server.port} dbname=postgres",
            "/data": str(tmp_path),
        }
        query = run(spark, "docs/POSTGRES.md", places)["query"]
        try:
            wait_until(lambda: rows_in(spark, f"{tmp_path}/shop") == 50)
            database.execute("UPDATE orders SET total = 0 WHERE id <= 10")
            wait_until(lambda: rows_in(spark, f"{tmp_path}/shop") == 60)
        finally:
            query.stop()
        assert query.exception() is None


@pytest.mark.campaign
@pytest.mark.timeout(480)
@on_spark
def test_reading_amazon_sqs(spark, tmp_path):
    """At a local server, which the environment of Spark's processes knows nothing of."""
    with sqs_server() as server:
        client = server.client()
        queue = client.create_queue(QueueName="orders")["QueueUrl"]
        for n in range(100):
            client.send_message(QueueUrl=queue, MessageBody=str(n))
        local = f'region_name="us-east-1", endpoint_url="{server.url}"'
        places = {
            'region_name="eu-central-1"': local,
            "/data": str(tmp_path / "data"),
            "    orders = SqsSpout": "    orders = Local",
            "class Shop(": f"class Local(SqsSpout):\n    def initialize(self, conf, context):\n"
            f"        __import__('os').environ.update({CREDENTIALS!r})\n        super().initialize(conf, context)\n\n\n"
            "class Shop(",
        }
        query = run(spark, "docs/SQS.md", places)["query"]
        with stopped_in_order(query):
            wait_until(lambda: rows_in(spark, f"{tmp_path}/data/shop") == 100)


@pytest.mark.campaign
@pytest.mark.timeout(480)
@on_spark
def test_reading_nats_jetstream(spark, tmp_path):
    with nats_server(tmp_path / "nats") as server:
        world = NatsWorld(server.url, stream="ORDERS")
        world.make()
        world.put(*range(100))
        places = {"nats://localhost:4222": server.url, "/data": str(tmp_path / "data")}
        query = run(spark, "docs/NATS.md", places)["query"]
        with stopped_in_order(query):
            wait_until(lambda: rows_in(spark, f"{tmp_path}/data/shop") == 100)
        world.close()


@pytest.mark.campaign
@pytest.mark.timeout(480)
@on_spark
def test_reading_mqtt(spark, tmp_path):
    if mosquitto_binary() is None:
        missing("mosquitto", "mosquitto")
    with mosquitto_server(tmp_path / "broker") as server:
        world = MqttWorld(server, name="plant")
        local = f'host="127.0.0.1", config={{"mqtt.port": {server.port}}}'
        places = {'host="broker.example"': local, "/data": str(tmp_path / "data")}
        query = run(spark, "docs/MQTT.md", places)["query"]
        with stopped_in_order(query):
            world.put_until(lambda: rows_in(spark, f"{tmp_path}/data/plant"), topic="north/temperature")
        world.close()


@pytest.mark.campaign
@pytest.mark.timeout(480)
@on_spark
def test_reading_redis_streams(spark, tmp_path):
    with redis_process(tmp_path) as redis:
        client = Redis.from_url(redis.url)
        for n in range(200):
            client.xadd("returns" if n % 2 else "orders", {"item": f"item {n}", "quantity": n})
        places = {"redis://localhost:6379/0": redis.url, "/data": str(tmp_path / "data")}
        query = run(spark, "docs/REDIS_STREAMS.md", places)["query"]
        with stopped_in_order(query):
            wait_until(lambda: rows_in(spark, f"{tmp_path}/data/shop") == 200)
        written = spark.read.parquet(f"{tmp_path}/data/shop").collect()
        assert sorted((row["quantity"], row["item"]) for row in written) == [(n, f"item {n}") for n in range(200)]


def test_the_spout_of_the_page_keeps_the_laws(shards):
    """Without Spark, as its check list advises."""
    names = run(None, "docs/WRITING_A_SPOUT.md", given=blocks(ROOT / "docs/WRITING_A_SPOUT.md", "python")[:2])
    verify_spout(names["EventSpout"], {"path": str(shards)}, grow=lambda: add(shards, "north", [200, 205]))


def test_settings_that_a_spout_declares(tmp_path, monkeypatch):
    """The block that is a module: checked without Spark, as `.load()` checks it."""
    (module,) = blocks(ROOT / "docs/WRITING_A_SPOUT.md", "python", modules=True)
    reading = """
    def next_tuple(self):
        return False
"""
    (tmp_path / "declared_spout.py").write_text(module.text + reading)
    monkeypatch.syspath_prepend(tmp_path)
    spout = importlib.import_module("declared_spout").DeclaredSpout
    plan = compile_plan(type("Declared", (Topology,), {"events": spout.spec()}))
    conf = ReadRequest.of({"events.min.value": "95"}, plan=plan).plan.conf_of(plan.component("events"))
    instance = spout()
    instance.initialize(conf, {})
    assert instance.min_value == 95.0
    with pytest.raises(OptionError, match=r"events\.min\.value.*Events below this are not read\. Given: '-1'"):
        ReadRequest.of({"events.min.value": "-1"}, plan=plan)
    with pytest.raises(OptionError, match=r"unknown option 'events\.max\.value'"):
        ReadRequest.of({"events.max.value": "1"}, plan=plan)


@pytest.mark.campaign
@on_spark
def test_a_word_count_of_streamparses(spark):
    names = run(spark, "docs/MIGRATING.md")
    rows = [tuple(row) for row in spark.table("counts").collect()]
    assert 0 < len(rows) <= 4000
    seen = {
        word: sorted(count for other, count in rows if other == word) for word in ("dog", "cat", "zebra", "elephant")
    }
    for word, counts in seen.items():
        step = 10 if word == "dog" else 1
        assert counts == [step * n for n in range(1, len(counts) + 1)]
    assert max(map(len, seen.values())) - min(map(len, seen.values())) <= 1
    totals = {row.word: row["count"] for row in spark.table("totals").collect()}
    words = totals | {"dog": totals["dog"] / 10}
    assert set(words) == {"dog", "cat", "zebra", "elephant"}
    assert max(words.values()) - min(words.values()) <= 1 and 0 < sum(words.values()) <= 4000
    assert compile_plan(
        type(
            "Writing",
            (names["WordCount"],),
            {"count_bolt": names["WriterBolt"].spec(inputs=[names["WordCount"].word_spout])},
        )
    ).open_streams


def test_imports_under_their_old_names():
    (module,) = blocks(ROOT / "docs/MIGRATING.md", "python", modules=True)
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{module.text}\nprint(Bolt.__module__, StormHandler.__name__)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "pystorm_source.api.bolt StormHandler\n", ended.stderr


def test_testing():
    """Every test of the page passes; there is no Spark."""
    names = run(None, "docs/TESTING.md")
    tests = {name: test for name, test in names.items() if name.startswith("test_")}
    assert len(tests) == 10
    for test in tests.values():
        test()


@on_spark
def test_the_ways_to_see_what_runs(spark, tmp_path, capsys):
    places = {f'"{name}"': repr(str(tmp_path / name)) for name in ("runs", "numbers.html")}
    names = run(spark, "docs/OBSERVING.md", places)
    assert "Numbers" in (tmp_path / "numbers.html").read_text()
    assert (names["record"].rows, names["record"].backlog) == (100, 0)
    assert names["listener"].records == []
    assert re.search(r"^Numbers \[100\] \d+\.\d+$", capsys.readouterr().out, re.MULTILINE)


class Listening:
    """The session, and the listeners that a page adds to it."""

    def __init__(self, spark):
        self.streams = self
        self.added = []
        self._to = spark.streams

    def addListener(self, listener):
        self._to.addListener(listener)
        self.added.append(listener)

    def remove(self):
        for listener in self.added:
            self._to.removeListener(listener)


@on_spark
def test_the_ways_out_of_the_metrics(spark, tmp_path):
    session = Listening(spark)
    run(session, "docs/METRICS.md", {"port=9400": "port=0", '"progress.jsonl"': repr(str(tmp_path / "progress.jsonl"))})
    session.remove()
    assert len(session.added) == 3


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_python_block_compiles(page):
    """Also of blocks that are run on Spark alone."""
    for block in blocks(page, "python") + blocks(page, "python", modules=True):
        compile("\n" * (block.line - 1) + block.text, page.name, "exec")


def test_columns():
    """Its topology asserts what it gives."""
    names = run(None, "docs/COLUMNS.md")
    assert issubclass(names["Checked"], ArrowBolt)


def test_processes():
    """Its topology asserts what it gives."""
    assert run(None, "docs/PROCESSES.md")["Parsed"].parse.processes == 2


@on_spark
def test_operator(spark):
    """Its blocks as one: the test kit's is asserted by itself."""
    checked = run(spark, "docs/OPERATOR.md")["checked"]
    assert Counter(map(tuple, checked.collect())) == Counter([(1, "a.example", 200), (2, "b.example", 200)])


@on_spark
def test_stages(spark):
    """Its blocks as one, which assert what they give."""
    names = run(spark, "docs/STAGES.md")
    counted = {row.word: row.n for row in names["counts"].collect()}
    assert counted == {"cow": 2, "moon": 1, "dog": 1}
    assert sorted(map(tuple, names["totals"].collect())) == [("cow", 1), ("cow", 2), ("dog", 1)]


@on_spark
def test_sink(spark):
    """It asserts its effects itself."""
    try:
        names = run(spark, "docs/SINK.md")
        assert names["name"] == "pystorm_appends"
        assert [row["values"] for row in names["once"].collect()] == ['[8, "us"]']
    finally:
        spark.sql("DROP TABLE IF EXISTS dead_letters")


ORDERS = """
from pystorm_source import Topology, read_stream
from pystorm_source.spouts import MemorySpout


class Orders(Topology):
    rows = [(n, "ann" if n % 2 else "bob", 10.0 * n) for n in [0, 1, 2, 3, 3, 30, 90]]
    orders = MemorySpout.spec(fields=["id long", "customer string", "amount double"], rows=rows)


orders = read_stream(spark, Orders, maxOffsetsPerTrigger=3)
"""


@pytest.mark.campaign
@on_spark
def test_states(spark, tmp_path):
    """Its queries read three micro-batches."""
    given = [Block("python", ORDERS, 1), *blocks(ROOT / "docs/STATES.md", "python")]
    names = run(spark, "docs/STATES.md", {"/data/": f"{tmp_path}/"}, given=given)
    assert names["totals"].multi_get(["ann", "bob", "nobody"]) == [70.0, 1220.0, None]
    assert names["best"].multi_get(["ann", "bob"]) == [31.0, None]
    assert names["many"].multi_get([("ann", 3), ("bob", 90), ("eve", 1)]) == [2, 1, None]


@pytest.mark.campaign
@on_spark
def test_trident(spark, tmp_path):
    """Two micro-batches: "the cow", "jumped over"; then "the moon" and a word that is left out."""
    names = run(spark, "docs/TRIDENT.md", {"/data/": f"{tmp_path}/"})
    assert names["largest"] == {0: "cow", 1: "moon"}
    assert names["state"]().multi_get(["the", "moon", "moo"]) == [2, 1, None]
    assert [changed.get("the") for changed in names["changes"]] == [1, 2]
    assert table(spark, "asked") == Counter(
        {("the", 2): 2, ("cow", 1): 1, ("jumped", 1): 1, ("over", 1): 1, ("moon", 1): 1}
    )
    assert table(spark, "joined") == Counter([("cow", 0, 3), ("moon", 70, 4)])
    assert table(spark, "merged") == Counter([("the", 3), ("cow", 2), ("jumped", 2), ("over", 2), ("moon", 2)])
    once = [(0, "cow", 1), (0, "jumped", 1), (0, "over", 1), (0, "the", 1), (0, "the", 1), (0, "moon", 1)]
    assert table(spark, "tumbling") == Counter(once)
    assert {row for row in table(spark, "sliding") if row[1] == "moon"} == {(0, "moon", 1), (30, "moon", 1)}
    assert names["last"].get("the") == [0, 70]
    assert names["partitioned"].isStreaming


def test_effects(capsys):
    run(None, "docs/EFFECTS.md")
    *lines, names = capsys.readouterr().out.splitlines()
    assert lines == ["19 ['no such payment']", "199 ['too long']"]
    assert names == str([*((n, f"customer {n}") for n in range(4)), (4, None)])


def test_every_python_block_belongs_to_a_test():
    tested = {
        "TRIDENT.md",
        "STATES.md",
        "README.md",
        "SEMANTICS.md",
        "DELIVERY.md",
        "CONCURRENCY.md",
        "LOGGING.md",
        "WRITING_A_SPOUT.md",
        "REST.md",
        "HTTP.md",
        "EVENT_STREAMS.md",
        "OBJECTS.md",
        "POSTGRES.md",
        "QUEUES.md",
        "DATA_SOURCES.md",
        "SQS.md",
        "REDIS_STREAMS.md",
        "NATS.md",
        "MQTT.md",
        "MIGRATING.md",
        "TESTING.md",
        "COLUMNS.md",
        "PROCESSES.md",
        "OPERATOR.md",
        "STAGES.md",
        "EFFECTS.md",
        "SINK.md",
        "PIPELINE.md",  # test_pipeline
        "COOKBOOK.md",  # test_cookbook, test_connect_recipes
    }
    tested |= {"OBSERVING.md", "METRICS.md", "KAFKA.md"}  # tests/spouts/kafka/test_formats
    tested |= {lesson.name for lesson in LESSONS}  # test_lessons
    assert {page.name for page in pages() if blocks(page, "python")} <= tested


def test_the_command_for_an_edited_offset_gives_it_its_checksum(tmp_path):
    (command,) = [block.text for block in blocks(ROOT / "docs/TROUBLESHOOTING.md", "sh") if "sealed" in block.text]
    (tmp_path / "edited.json").write_text('{"offsets": {"lines": {"b": 2, "a": 1}}, "crc": 5, "version": 1}')
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    printed = subprocess.run(command, shell=True, cwd=tmp_path, env=path, capture_output=True, text=True, check=True)
    assert parse(json.loads(printed.stdout), ["lines"]).known("lines") == {"a": 1, "b": 2}
