"""conf/defaults.yaml, options/typed.py and docs/OPTIONS.md say what the option tables say."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from docs import option_pages
from pystorm_source.journal.options import JournalOptions
from pystorm_source.options import TABLES, EngineOptions, SourceOptions, fields_of, parse
from pystorm_source.options.typed import ReadOptions
from pystorm_source.options.wait_strategy import check_wait_strategies
from pystorm_source.spouts.events.options import EventStreamOptions
from pystorm_source.spouts.files.dead_letters import DeadLetterOptions
from pystorm_source.spouts.files.options import FilesOptions
from pystorm_source.spouts.http.options import HttpOptions
from pystorm_source.spouts.kafka.options import KafkaOptions
from pystorm_source.spouts.mqtt_options import MqttOptions
from pystorm_source.spouts.nats_options import NatsOptions
from pystorm_source.spouts.objects.options import ObjectsOptions
from pystorm_source.spouts.postgres.options import PostgresOptions
from pystorm_source.spouts.rate import RateOptions
from pystorm_source.spouts.redis_stream import RedisStreamOptions
from pystorm_source.spouts.socket import SocketOptions
from pystorm_source.spouts.sqs_options import SqsOptions

ROOT = Path(__file__).resolve().parents[2]
REMEDY = "run: python -m docs.option_pages --write"
ALL = (
    *(*TABLES, JournalOptions, DeadLetterOptions, EventStreamOptions, FilesOptions, HttpOptions),
    *(KafkaOptions, MqttOptions, NatsOptions, ObjectsOptions, PostgresOptions, RateOptions),
    *(RedisStreamOptions, SocketOptions, SqsOptions),
)


@pytest.mark.parametrize(("path", "page"), option_pages.PAGES.items())
def test_what_is_committed_is_what_the_table_prints(path, page):
    assert (ROOT / path).read_text(encoding="utf-8") == getattr(option_pages, page)(), REMEDY


def test_every_key_of_every_table_is_in_a_section():
    shown = {key: section for section in option_pages.sections() for key in section.fields}
    assert set(shown) == {key for table in ALL for key in fields_of(table)}


def test_the_common_keys_come_first_and_are_few():
    common, *others = option_pages.sections()
    assert common.title == "Common"
    assert list(common.fields) == [key for table in (*TABLES, JournalOptions) for key in table.common]
    assert 10 <= len(common.fields) <= 14
    assert not set(common.fields) & {key for section in others[:3] for key in section.fields}


def test_what_a_table_says_of_its_keys_is_said_of_keys_that_it_has():
    for table in ALL:
        assert {*table.common, *table.further, *table.takes_json, *table.for_batches} <= set(fields_of(table))


def test_at_most_a_hundred_keys_stand_before_the_further_ones():
    *first, further = option_pages.sections()
    assert further.title == "Further keys"
    keys = [key for section in first for key in section.fields]
    assert len(set(keys)) <= 100 and not set(keys) & set(further.fields)


def test_the_typed_options_are_those_of_the_tables():
    keys = {key for table in ALL for key in fields_of(table) if not key.endswith(".*")}
    assert set(ReadOptions.__annotations__) == keys - {"topology"}
    assert not ReadOptions.__required_keys__
    hints = ReadOptions.__annotations__
    assert hints["topology.scheduler"] == Literal["inline", "threads"] | None
    assert hints["topology.message.timeout.secs"] == float | None
    assert hints["startingOffsets"] == str | dict[str, Any] | None


def test_defaults_are_the_defaults():
    """The YAML file, read as a user's would be, gives every table its defaults."""
    defaults = yaml.safe_load((ROOT / "pystorm_source/conf/defaults.yaml").read_text())
    assert parse(EngineOptions, defaults) == EngineOptions()
    assert parse(SourceOptions, defaults) == SourceOptions()
    assert parse(RateOptions, defaults) == RateOptions()
    assert parse(FilesOptions, defaults | {"path": "x"}) == FilesOptions(path="x")
    events = {"events.url": "http://x"}
    assert parse(EventStreamOptions, defaults | events) == parse(EventStreamOptions, events)
    assert parse(HttpOptions, defaults) == parse(HttpOptions, {})
    assert parse(JournalOptions, defaults) == JournalOptions()
    assert parse(SocketOptions, defaults | {"host": "x", "port": 1}) == SocketOptions(host="x", port=1)
    redis = {"redis.url": "redis://x", "redis.streams": "y"}
    assert parse(RedisStreamOptions, defaults | redis) == RedisStreamOptions(url="redis://x", streams="y")
    mqtt = {"mqtt.host": "x", "mqtt.topics": "y", "mqtt.client_id": "z"}
    assert parse(MqttOptions, defaults | mqtt) == MqttOptions(host="x", topics="y", client_id="z")
    nats = {"nats.servers": "nats://x", "nats.stream": "y"}
    assert parse(NatsOptions, defaults | nats) == NatsOptions(servers="nats://x", stream="y")
    assert parse(SqsOptions, defaults | {"sqs.queue": "x"}) == SqsOptions(queue="x")
    kafka = {"subscribe": "x", "kafka.bootstrap.servers": "x:1"}
    assert parse(KafkaOptions, defaults | kafka) == parse(KafkaOptions, kafka)
    keys = {key for table in ALL for key, field in fields_of(table).items() if not field.required}
    assert set(defaults) == {key for key in keys if not key.endswith(".*")}


def test_every_key_stands_under_its_meaning():
    lines = (ROOT / "pystorm_source/conf/defaults.yaml").read_text().splitlines()
    for number, line in enumerate(lines):
        if re.match(r"[\w.]+: ", line):
            assert re.fullmatch(r"# .{20,}\(.+\)", lines[number - 1]), line


def test_every_key_is_a_row_of_its_table():
    page = (ROOT / "docs/OPTIONS.md").read_text()
    for section in option_pages.sections():
        rows = re.search(rf"^## {section.title}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)[1]
        named = re.findall(r"^\| (`[^|]+`) \|", rows, re.MULTILINE)
        assert sorted(key for row in named for key in row.strip("`").split("`, `")) == sorted(section.fields)
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines() if row.startswith("|")}
        assert widths == ({4} if section.fields else set())


def default(key):
    return fields_of(EngineOptions)[key].default


@pytest.mark.parametrize("preset", ["latency", "throughput"])
def test_presets_are_taken(preset):
    given = yaml.safe_load((ROOT / "pystorm_source/conf" / f"{preset}.yaml").read_text())
    assert set(given) <= set(fields_of(EngineOptions))
    engine = parse(EngineOptions, given)
    assert all(getattr(engine, fields_of(EngineOptions)[key].name) != default(key) for key in given)
    check_wait_strategies(engine)


def test_the_command_line_prints_and_refuses():
    def run(*arguments):
        command = [sys.executable, "-m", "docs.option_pages", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert run("markdown").stdout == option_pages.markdown()
    assert run("yaml").stdout == option_pages.yaml()
    assert run("typed").stdout == option_pages.typed()
    assert run().returncode == run("html").returncode == 2
