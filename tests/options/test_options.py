"""The option table: types, bounds, near misses, and errors that name key, value and meaning."""

import re
from pathlib import Path
from typing import Annotated

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from pystorm_source.errors import OptionError, UsageError
from pystorm_source.options import (
    TABLES,
    EngineOptions,
    Options,
    SourceOptions,
    check_known,
    fields_of,
    meaning_of,
    parse,
)
from pystorm_source.options.rate_limit import rate_limits
from tests.docs.test_option_pages import ALL

ROOT = Path(__file__).resolve().parents[2]

QUEUE = "topology.executor.receive.buffer.size"
BATCH = "topology.producer.batch.size"
DYNAMIC = "topology.producer.batch.dynamic"
FLUSH = "topology.batch.flush.interval.millis"
SKIPS = "topology.spout.recvq.skips"
SCHEDULER = "topology.scheduler"
WAIT = "topology.{}.wait.{}"

# Every key of queues, batches and waits that Storm 2 has, and its defaults; where ours is another: ours.
QUEUE_KEYS = {
    QUEUE: 1024,
    BATCH: 100,
    DYNAMIC: False,
    FLUSH: 1,
    SKIPS: 3,
    SCHEDULER: "inline",
    **{
        WAIT.format(who, what): default
        for who, (level1, level2) in {"spout": (0, 0), "bolt": (1, 1000), "backpressure": (1, 1000)}.items()
        for what, default in {
            "strategy": "org.apache.storm.policy.WaitStrategyProgressive",
            "park.microsec": 100,
            "progressive.level1.count": level1,
            "progressive.level2.count": level2,
            "progressive.level3.sleep.millis": 1,
        }.items()
    },
}


def test_every_option_has_a_meaning_of_one_line_and_a_default():
    for table in TABLES:
        for key, field in fields_of(table).items():
            meaning = meaning_of(field)
            assert meaning.endswith("."), key
            assert "\n" not in meaning
            assert not field.required
        assert table() == parse(table, {})


def test_keys_differ_whatever_their_case():
    keys = [key.lower() for table in TABLES for key in fields_of(table)]
    assert len(set(keys)) == len(keys)


def test_parsed_tables_are_frozen():
    with pytest.raises(AttributeError):
        parse(EngineOptions, {}).debug = True


@pytest.mark.parametrize("key", [QUEUE, QUEUE.upper(), "Topology.Executor.Receive.Buffer.Size"])
@pytest.mark.parametrize("value", [4096, "4096", 4096.0])
def test_case_does_not_count_and_texts_are_converted(key, value):
    assert parse(EngineOptions, {key: value, "other": object()}).receive_buffer_size == 4096


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), ("true", True), ("TRUE", True), ("1", True), (False, False), ("false", False), ("0", False)],
)
def test_booleans(value, expected):
    assert parse(SourceOptions, {"failOnDataLoss": value}).fail_on_data_loss is expected


@pytest.mark.parametrize(
    "key", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxOffsetsPerPartition", "minPartitions"]
)
def test_optional_numbers(key):
    name = fields_of(SourceOptions)[key].name
    assert getattr(parse(SourceOptions, {key: "5"}), name) == 5
    assert getattr(parse(SourceOptions, {key: None}), name) is None
    assert getattr(parse(SourceOptions, {}), name) is None


BAD = [
    (EngineOptions, QUEUE, ["1", 0, -5, (1 << 24) + 1, "many", "", None, True, [1], 2.5, "0x10"]),
    (EngineOptions, BATCH, [0, "0", -1, "a hundred", None, False]),
    (EngineOptions, DYNAMIC, ["often", None, 2]),
    (EngineOptions, FLUSH, [-1, 0.5, "1ms", None, 60_001]),
    (EngineOptions, SKIPS, [-1, "few", None, (1 << 31) + 1]),
    (EngineOptions, SCHEDULER, ["thread", "Inline", "", None, 2]),
    *[(EngineOptions, key, [5, None, ["x"]]) for key in QUEUE_KEYS if key.endswith("wait.strategy")],
    *[
        (EngineOptions, key, [-1, "-1", "long", None, 1.5, 1 << 32])
        for key in QUEUE_KEYS
        if ".wait." in key and not key.endswith("wait.strategy")
    ],
    (EngineOptions, "topology.debug", ["yes", "on", 2, None, "", []]),
    (EngineOptions, "topology.name", [5, None, ["x"]]),
    (SourceOptions, "topology", [5, None]),
    (SourceOptions, "streams", ["two", "ALL", "", 1, None]),
    (SourceOptions, "maxOffsetsPerTrigger", ["0", 0, -1, "lots", "1.5", True]),
    (SourceOptions, "minOffsetsPerTrigger", [0, "x"]),
    (SourceOptions, "maxOffsetsPerPartition", [0, "x"]),
    (SourceOptions, "minPartitions", [0, "-3", "x"]),
    (SourceOptions, "failOnDataLoss", ["maybe", None, 5]),
    (SourceOptions, "includeMetadata", ["ja", None]),
    (SourceOptions, "delivery.guarantee", ["at-least-once", "", None]),
    (SourceOptions, "batch.target.millis", [0, "-1", "1s"]),
    (SourceOptions, "backpressure.initialRate", [0, "-1", "fast"]),
    (SourceOptions, "output.batch.rows", [0, (1 << 24) + 1, "10k"]),
]


@pytest.mark.parametrize(("table", "key", "value"), [(t, k, v) for t, k, values in BAD for v in values])
def test_bad_values_name_key_meaning_and_value(table, key, value):
    with pytest.raises(OptionError) as caught:
        parse(table, {key.lower(): value})
    message = str(caught.value)
    assert f"option {key!r}: " in message
    assert meaning_of(fields_of(table)[key]) in message
    assert message.endswith(f"Given: {value!r}")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, UsageError)
    assert caught.value.__cause__ is None


def test_every_queue_key_is_taken():
    taken = fields_of(EngineOptions)
    assert len(QUEUE_KEYS) == 21
    defaults = parse(EngineOptions, {})
    for key, default in QUEUE_KEYS.items():
        assert getattr(defaults, taken[key].name) == default, key
        other = {str: "mine:Own", bool: True, int: 2}[type(default)] if key != SCHEDULER else "threads"
        assert getattr(parse(EngineOptions, {key.upper(): str(other)}), taken[key].name) == other, key


def test_every_queue_key_is_in_the_pages():
    for page in ("docs/OPTIONS.md", "pystorm_source/conf/defaults.yaml"):
        text = (ROOT / page).read_text()
        for key in QUEUE_KEYS:
            assert f"`{key}`" in text or f"\n{key}: " in text, (page, key)


def test_the_keys_of_a_situation_go_together():
    given = {"strategy": "a:B", "park.microsec": 1, "progressive.level1.count": 2, "progressive.level2.count": 3,
             "progressive.level3.sleep.millis": 4}  # fmt: skip
    for who in ("spout", "bolt", "backpressure"):
        engine = parse(EngineOptions, {WAIT.format(who, what): value for what, value in given.items()})
        assert engine.wait_options(who) == ("a:B", 1, 2, 3, 4)
        others = {"spout", "bolt", "backpressure"} - {who}
        assert all(engine.wait_options(other).park_microsec == 100 for other in others)


@pytest.mark.parametrize(
    ("given", "nanos"),
    [({}, 1_000_000), ({FLUSH: 7}, 7_000_000), ({FLUSH: 0}, 0), ({BATCH: 1}, 0), ({QUEUE: 3}, 0), ({QUEUE: 4}, 10**6)],
)
def test_flush_ticks_are_off_where_asked_and_where_no_batch_waits_to_be_full(given, nanos):
    assert parse(EngineOptions, given).flush_interval_nanos == nanos


@pytest.mark.parametrize(("queue", "batch"), [(4, 3), (100, 51), (2, 2)])
def test_a_batch_is_at_most_half_the_queue(queue, batch):
    with pytest.raises(OptionError, match=rf"at most half of {QUEUE}.*\({queue}\).*Given: {batch}"):
        parse(EngineOptions, {QUEUE: queue, BATCH: batch})
    assert parse(EngineOptions, {QUEUE: queue, BATCH: queue // 2}).producer_batch_size == queue // 2


@pytest.mark.parametrize(("queue", "batch"), [(2, 1), (3, 1), (128, 64), ("199", 99), (200, 100), (4096, 100)])
def test_the_default_batch_is_at_most_half_of_a_queue_that_was_asked_for(queue, batch):
    assert parse(EngineOptions, {QUEUE: queue}).producer_batch_size == batch


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
        ("max_offsets_per_trigger", "maxOffsetsPerTrigger"),
        ("startingOffset", "startingOffsets"),
        ("failondataloss_", "failOnDataLoss"),
        ("topology.producer.batchsize", BATCH),
        ("TOPOLOGIE", "topology"),
        ("steam", "stream"),
    ],
)
def test_unknown_keys_suggest_the_near_one(given, near):
    with pytest.raises(OptionError) as caught:
        check_known([given], TABLES)
    assert caught.value.code == "PYSTORM_UNKNOWN_OPTION"
    assert caught.value.message.startswith(f"unknown option {given!r}: did you mean {near!r}?")
    assert str(caught.value).endswith(f"Given: {given!r}")


class Few(Options, frozen=True, kw_only=True):
    password: str = msgspec.field(name="db.password", default="")


def test_an_unknown_key_without_a_near_one_is_told_of_few_options_or_where_all_are():
    with pytest.raises(OptionError, match=r"own goes into option 'config'.* Options are: db.password. Given: 'zzzzzz'"):
        check_known(["zzzzzz"], (Few,))
    with pytest.raises(OptionError, match=r"own goes into option 'config'.* docs/OPTIONS.md has all options. Given"):
        check_known(["topology", "zzzzzz"], TABLES)


def test_known_keys_pass_whatever_their_case():
    check_known([key.upper() for table in TABLES for key in fields_of(table)], TABLES)
    check_known([], TABLES)


class Needs(Options, frozen=True, kw_only=True):
    """A table like a user's spout may declare."""

    where: Annotated[str, Meta(description="Where it is.")] = msgspec.field(name="my.where")
    size: int = 5


def test_a_needed_key_says_so():
    with pytest.raises(
        OptionError, match=r"option 'my.where' is needed: Where it is. Set it by \.option\('my.where', .*Given: nothing"
    ):
        parse(Needs, {"size": 1})
    assert parse(Needs, {"MY.WHERE": "here"}) == Needs(where="here", size=5)


def test_a_field_without_description_has_no_meaning():
    assert meaning_of(fields_of(Needs)["size"]) == ""
    with pytest.raises(OptionError, match="option 'size': .*Given: 'x'"):
        parse(Needs, {"my.where": "a", "size": "x"})


def test_a_table_is_read_once():
    assert fields_of(EngineOptions) is fields_of(EngineOptions)
    with pytest.raises(TypeError):
        fields_of(EngineOptions)["topology.name"] = None


@pytest.mark.parametrize("table", [SourceOptions, EngineOptions])
def test_half_a_character_is_refused_by_its_key(table):
    """Which no text encoding has: what reads the value later would raise anything."""
    for key in fields_of(table):
        with pytest.raises(OptionError, match=re.escape(repr(key))):
            parse(table, {key: "a\ud800"})


@pytest.mark.parametrize(
    ("table", "key", "value", "says"),
    [
        (SourceOptions, "maxOffsetsPerTrigger", "ten", "takes a whole number, at least 1, such as 1000. "),
        (SourceOptions, "output.batch.rows", 0, "takes a whole number, 1 to 16777216, such as 32768. "),
        (SourceOptions, "failOnDataLoss", "maybe", "takes true or false. "),
        (SourceOptions, "streams", "two", "takes 'one' or 'all'. "),
        (SourceOptions, "maxTriggerDelay", 5, 'takes a text, such as "15m". '),
        (
            EngineOptions,
            "topology.message.timeout.secs",
            "soon",
            "takes a number, more than 0, at most 100000000, such as 30.0. ",
        ),
    ],
)
def test_a_bad_value_is_told_what_is_taken_and_an_example(table, key, value, says):
    with pytest.raises(OptionError) as refused:
        parse(table, {key: value})
    assert f"option {key!r}: {says}{meaning_of(fields_of(table)[key])} Given: {value!r}" in str(refused.value)


def test_what_a_type_does_not_tell_stands_in_brackets():
    class Named(Options, frozen=True, kw_only=True):
        names: Annotated[dict[str, int], Meta(description="Numbers by name.")]
        name: Annotated[str, Meta(description="A name.", pattern="^[a-z]+$")] = "x"

    with pytest.raises(OptionError, match=r"\(expected a text matching regex"):
        parse(Named, {"names": {}, "name": "5"})


def test_of_a_table_the_wrong_entry_is_named():
    class Named(Options, frozen=True, kw_only=True):
        names: Annotated[dict[str, int], Meta(description="Numbers by name.")]

    with pytest.raises(OptionError, match=r"takes texts by name, and {'b': 'two'} is wrong\. Numbers by name\."):
        parse(Named, {"names": {"a": 1, "b": "two"}})


@pytest.mark.parametrize("limits", [{"price": 50}, '{"price": 50}'])
def test_a_limit_without_a_time_is_told_the_form(limits):
    with pytest.raises(OptionError, match=r"says 50 of 'price': write .* such as '50/s'"):
        rate_limits(parse(EngineOptions, {"topology.rate.limit": limits}).rate_limit)


_wrong = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.__name__)
@given(value=_wrong)
@settings(max_examples=30, deadline=None)
def test_no_error_of_an_option_shows_the_words_of_its_parser(table, value):
    needed = {key: "x" for key, field in fields_of(table).items() if field.required}
    for key in fields_of(table):
        try:
            parse(table, {**needed, key.replace("*", "x"): value})
        except OptionError as error:
            said = error.message.partition(" Given: ")[0].replace(meaning_of(fields_of(table)[key]), "")
            assert "$" not in said, said
            assert "`" not in said, said
