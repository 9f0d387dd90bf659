"""Kafka's spouts over a real broker: what a record becomes, where a query begins, what a range holds."""

import datetime
import json
import time
from itertools import pairwise

import pytest

from pystorm_source.errors import DataLossError, OptionError, SchemaError, WorldError
from pystorm_source.spouts import KafkaBatchSpout, KafkaSpout
from pystorm_source.spouts.kafka.consumers import MOST_CONSUMERS
from pystorm_source.spouts.kafka.records import FIELDS
from tests.spouts.contract import PartitionedSpoutContract
from tests.spouts.drive import Driven
from tests.spouts.kafka.topic import SPOUTS, Topic, numbers, until, values_of

both = pytest.mark.parametrize("cls", SPOUTS)


class TestContract(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, kafka) -> Driven:
        topic = Topic(kafka, 2)
        topic.write(numbers(0, 60))
        topic.write(numbers(60, 80), 1)
        return topic.spout(fields=["offset long", "value string"])


@both
def test_a_record_has_the_columns_of_sparks_source(kafka, cls):
    topic = Topic(kafka, 2)
    topic.write([b"\xff\x00"], 1, key=b"k", timestamp=1_700_000_000_123)
    driven = topic.spout(cls, fields=FIELDS)
    ((_, row),) = driven.read(f"{topic.name}-1", 0, 1)
    when = datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=datetime.UTC)
    assert row == (b"k", b"\xff\x00", topic.name, 1, 0, when, 0)


@both
def test_nulls_stay_null_and_empty_stays_empty(kafka, cls):
    topic = Topic(kafka)
    topic.write([None, b""], key=b"")
    topic.write(["x"])
    fields = ["key binary", "value string"]
    rows = topic.spout(cls, fields=fields).read(f"{topic.name}-0", 0, 3)
    assert [row for _, row in rows] == [(b"", None), (b"", ""), (None, "x")]


@both
def test_headers_come_in_order_with_repeated_and_null_ones(kafka, cls):
    topic = Topic(kafka)
    topic.write(["a"], headers=[("h", b"1"), ("h", None), ("g", b"")])
    topic.write(["b"])
    spec = cls.spec(servers=kafka.bootstrap, subscribe=topic.name, fields=["value string"], include_headers=True)
    rows = Driven(spec).read(f"{topic.name}-0", 0, 2)
    headers = [{"key": "h", "value": b"1"}, {"key": "h", "value": None}, {"key": "g", "value": b""}]
    assert [row for _, row in rows] == [("a", headers), ("b", None)]


def test_the_time_of_the_broker_is_told_from_that_of_the_producer(kafka):
    topic = Topic(kafka, message_timestamp_type="LogAppendTime")
    topic.write(["a"])
    assert values_of(topic.spout(fields=["timestampType int"]).read(f"{topic.name}-0", 0, 1)) == [1]


@both
def test_a_value_that_is_no_text_is_named(kafka, cls):
    topic = Topic(kafka)
    topic.write(["fine", b"\xff"])
    with pytest.raises(Exception) as caught:
        topic.spout(cls).read(f"{topic.name}-0", 0, 2)
    cause = caught.value if isinstance(caught.value, SchemaError) else caught.value.__cause__
    assert isinstance(cause, SchemaError)
    assert f"{topic.name}-0" in str(cause)


@both
def test_json_is_decoded_and_what_is_none_fails_or_is_dropped_with_its_record(kafka, cls):
    topic = Topic(kafka)
    topic.write(['{"id": 1, "item": "a"}', "no json", None, '{"id": 2}'])
    config = {"value.format": "json", "value.schema": "id long, item string"}

    def read(**more):
        spec = cls.spec(
            servers=kafka.bootstrap, subscribe=topic.name, fields=["offset long", "value"], config={**config, **more}
        )
        return [row for _, row in Driven(spec).read(f"{topic.name}-0", 0, 4)]

    with pytest.raises(Exception) as caught:
        read()
    assert f"{topic.name}-0, offset 1" in str(caught.value.__cause__)
    kept = [(0, {"id": 1, "item": "a"}), (2, None), (3, {"id": 2, "item": None})]
    assert read(**{"decode.errors": "drop"}) == kept
    assert read(**{"decode.errors": "null"}) == [kept[0], (1, None), *kept[1:]]


@both
def test_ranges_cut_anywhere_are_the_whole(kafka, cls):
    topic = Topic(kafka)
    topic.write(numbers(0, 3000))
    driven = topic.spout(cls)
    spout = driven.instance("task")
    cuts = [0, 1, 2, 499, 500, 501, 1700, 2999, 3000]
    rows = []
    for start, end in pairwise(cuts):
        rows += values_of(driven.read(f"{topic.name}-0", start, end, spout))
    assert rows == numbers(0, 3000)
    assert values_of(driven.read(f"{topic.name}-0", 10, 20, spout)) == numbers(10, 20)
    spout.cleanup()


def test_more_partitions_than_consumers_are_read_in_turn(kafka):
    topic = Topic(kafka, MOST_CONSUMERS + 2)
    for partition in range(MOST_CONSUMERS + 2):
        topic.write([f"{partition}.{number}" for number in range(40)], partition)
    driven = topic.spout()
    spout = driven.instance("task")
    for start in range(0, 40, 10):
        for partition in range(MOST_CONSUMERS + 2):
            rows = values_of(driven.read(f"{topic.name}-{partition}", start, start + 10, spout))
            assert rows == [f"{partition}.{number}" for number in range(start, start + 10)]
    spout.cleanup()


def test_a_range_that_was_broken_off_is_read_again(kafka):
    topic = Topic(kafka)
    topic.write(numbers(0, 2000))
    driven = topic.spout()
    spout = driven.instance("task")
    spout.open(f"{topic.name}-0", 0, 2000)
    chunks = spout._chunks
    assert len(next(chunks)[0]) == 500  # a task that fails here leaves the consumer as it is
    assert values_of(driven.read(f"{topic.name}-0", 0, 2000, spout)) == numbers(0, 2000)
    spout.cleanup()


def test_new_partitions_begin_at_their_earliest(kafka):
    from confluent_kafka.admin import NewPartitions

    topic = Topic(kafka)
    topic.write(numbers(0, 5))
    query = topic.query()
    query.still = False
    query.drain()
    kafka.admin.create_partitions([NewPartitions(topic.name, 2)])[topic.name].result(20)
    kafka.await_leaders(topic.name, 2)
    topic.write(numbers(5, 9), 1)
    until(lambda: query.driven.driver.snapshot({}, {}).heads.get(f"{topic.name}-1") == (0, 4))
    assert sorted(values_of([(None, row) for row in query.drain()])) == numbers(5, 9)
    assert query.known == {f"{topic.name}-0": 5, f"{topic.name}-1": 4}


def test_a_pattern_takes_whole_names_and_later_topics_and_none_of_kafkas_own(kafka):
    first = Topic(kafka)
    first.write(["1"])
    prefix = f"p{first.name}."
    kafka.create(f"{prefix}a")
    kafka.create(f"x{prefix}a")
    driven = first.spout(subscribePattern=f"{prefix.replace('.', '[.]')}.*|__consumer_offsets")
    assert set(driven.driver.partitions()) == {f"{prefix}a-0"}
    kafka.create(f"{prefix}b")
    assert set(driven.driver.partitions()) == {f"{prefix}a-0", f"{prefix}b-0"}


def test_assign_reads_the_partitions_that_it_names(kafka):
    topic = Topic(kafka, 3)
    spec = KafkaSpout.spec(servers=kafka.bootstrap, assign={topic.name: [0, 2]})
    assert Driven(spec).driver.partitions() == [f"{topic.name}-0", f"{topic.name}-2"]
    spec = KafkaSpout.spec(servers=kafka.bootstrap, assign={topic.name: [0, 3]})
    with pytest.raises(WorldError, match=r"partitions \[3\] of topic"):
        Driven(spec).driver.partitions()


def test_a_topic_that_there_never_was_is_an_error(kafka):
    spec = KafkaSpout.spec(servers=kafka.bootstrap, subscribe="no-such-topic")
    with pytest.raises(WorldError, match="does not have topic 'no-such-topic'"):
        Driven(spec).driver.partitions()


class TestStartingAtATime:
    @pytest.fixture
    def topic(self, kafka):
        topic = Topic(kafka, 2)
        for second in range(10):
            topic.write([str(second)], timestamp=1_700_000_000_000 + second * 1000)
        topic.write(["old"], 1, timestamp=1_600_000_000_000)
        return topic

    def test_everywhere(self, topic):
        driven = topic.spout(startingTimestamp=1_700_000_003_500, startingOffsetsByTimestampStrategy="latest")
        heads = driven.driver.snapshot({}, {}).heads
        assert heads == {f"{topic.name}-0": (4, 10), f"{topic.name}-1": (1, 1)}
        # A query that has begun is where its checkpoint says.
        heads = driven.driver.snapshot({f"{topic.name}-0": 2}, {}).heads
        assert heads == {f"{topic.name}-0": (0, 10), f"{topic.name}-1": (0, 1)}

    def test_nothing_is_that_late(self, topic):
        driven = topic.spout(startingTimestamp=1_700_000_003_500)
        with pytest.raises(OptionError, match=f"{topic.name}-1"):
            driven.driver.snapshot({}, {})

    def test_by_partition(self, topic):
        times = json.dumps({topic.name: {"0": 1_700_000_009_000}})
        heads = topic.spout(startingOffsetsByTimestamp=times).driver.snapshot({}, {}).heads
        assert heads == {f"{topic.name}-0": (9, 10), f"{topic.name}-1": (0, 1)}

    def test_and_ending_at_one(self, topic):
        driven = topic.spout(endingTimestamp=1_700_000_003_500)
        assert driven.driver.snapshot({}, {}).heads == {f"{topic.name}-0": (0, 4), f"{topic.name}-1": (0, 1)}
        times = json.dumps({topic.name: {"0": 1_700_000_009_000, "1": 1_500_000_000_000}})
        driven = topic.spout(endingOffsetsByTimestamp=times, startingTimestamp=1_600_000_000_000)
        assert driven.driver.snapshot({}, {}).heads == {f"{topic.name}-0": (0, 9), f"{topic.name}-1": (0, 0)}
        driven = topic.spout(endingTimestamp=1_700_000_005_000, startingTimestamp=1_600_000_000_000)
        assert driven.driver.snapshot({}, {}).heads == {f"{topic.name}-0": (0, 5), f"{topic.name}-1": (0, 1)}


def test_records_that_kafka_has_deleted_are_data_loss_or_skipped(kafka):
    from confluent_kafka import TopicPartition

    topic = Topic(kafka)
    topic.write(numbers(0, 10))
    kafka.admin.delete_records([TopicPartition(topic.name, 0, 6)])
    heads = until(lambda: topic.spout().driver.snapshot({}, {}).heads == {f"{topic.name}-0": (6, 10)})
    assert heads
    with pytest.raises(Exception) as caught:
        topic.spout().read(f"{topic.name}-0", 2, 10)
    assert isinstance(caught.value.__cause__, DataLossError)
    assert "[2, 6)" in str(caught.value.__cause__)
    driven = topic.spout(failOnDataLoss=False)
    assert values_of(driven.read(f"{topic.name}-0", 2, 10)) == numbers(6, 10)
    assert values_of(driven.read(f"{topic.name}-0", 2, 5)) == []
    # Beyond the end: what was read there once was another topic.
    assert values_of(driven.read(f"{topic.name}-0", 20, 30)) == []


def test_a_topic_made_anew_is_another_one_even_if_it_is_longer(kafka):
    topic = Topic(kafka)
    topic.write(numbers(0, 5))
    query = topic.query(failOnDataLoss=False)
    query.still = False
    query.drain()
    kafka.delete(topic.name)
    kafka.create(topic.name)
    topic.write(numbers(100, 120))
    name = f"{topic.name}-0"
    snapshot = until(lambda: (s := query.driven.driver.snapshot(query.known, query.state)).heads and s)
    assert snapshot.heads == {f"{name}@2": (0, 20)}  # name-0 has vanished: the source's rules for data loss hold
    assert values_of(query.driven.read(f"{name}@2", 0, 20)) == numbers(100, 120)
    known = {f"{name}@2": 20}
    query.restart()
    again = query.driven.driver.snapshot(known, snapshot.state)
    assert again == snapshot
    kafka.delete(topic.name)
    kafka.create(topic.name)
    third = until(lambda: (s := query.driven.driver.snapshot(known, snapshot.state)).heads and s)
    assert third.heads == {f"{name}@3": (0, 0)}


@pytest.mark.parametrize("cls", SPOUTS)
def test_compaction_leaves_gaps_and_loses_nothing_else(kafka, cls):
    topic = Topic(
        kafka,
        cleanup_policy="compact",
        segment_ms=1,
        min_cleanable_dirty_ratio=0.001,
        max_compaction_lag_ms=1,
        delete_retention_ms=1,
    )
    topic.write(numbers(0, 100), key=lambda value: str(int(value) % 7))
    time.sleep(0.01)  # the segment's age
    topic.write(["last"], key="last")
    topic.write(["end"], key="end")
    driven = topic.spout(cls)
    spout = driven.instance("task")
    place = f"{topic.name}-0"
    until(lambda: len(driven.read(place, 0, 102, spout)) == 9)
    assert values_of(driven.read(place, 0, 102, spout)) == [*numbers(93, 100), "last", "end"]
    # A range of which nothing is left, and ranges that end in a gap.
    assert values_of(driven.read(place, 10, 50, spout)) == []
    assert values_of(driven.read(place, 50, 95, spout)) == ["93", "94"]
    assert values_of(driven.read(place, 95, 100, spout)) == numbers(95, 100)
    spout.cleanup()


@both
def test_transactions_are_read_as_the_isolation_level_says(kafka, cls):
    topic = Topic(kafka)
    place = f"{topic.name}-0"
    topic.write(["before"])
    committed = topic.transaction("a")
    topic.write_in(committed, ["c1", "c2"])
    committed.commit_transaction(30)
    aborted = topic.transaction("b")
    topic.write_in(aborted, numbers(0, 600))
    aborted.abort_transaction(30)
    topic.write(["between"])
    opened = topic.transaction("c")
    topic.write_in(opened, ["open"])
    topic.write(["behind"])

    reader = topic.spout(cls, kafka_isolation_level="read_committed")
    # before, c1, c2, marker, 600 aborted, marker, between | open, behind
    assert reader.driver.snapshot({}, {}).heads == {place: (0, 606)}
    assert values_of(reader.read(place, 0, 606)) == ["before", "c1", "c2", "between"]
    spout = reader.instance("task")
    assert values_of(reader.read(place, 0, 4, spout)) == ["before", "c1", "c2"]
    assert values_of(reader.read(place, 4, 300, spout)) == []
    assert values_of(reader.read(place, 300, 606, spout)) == ["between"]

    everything = topic.spout(cls)
    assert everything.driver.snapshot({}, {}).heads == {place: (0, 608)}
    rows = ["before", "c1", "c2", *numbers(0, 600), "between", "open", "behind"]
    assert values_of(everything.read(place, 0, 608)) == rows

    opened.commit_transaction(30)
    until(lambda: reader.driver.snapshot({}, {}).heads == {place: (0, 609)})
    # The last offset is a marker: nothing comes there, and the range ends all the same.
    assert values_of(reader.read(place, 606, 609, spout)) == ["open", "behind"]
    spout.cleanup()


def test_offsets_are_committed_for_a_group_that_is_named(kafka):
    from confluent_kafka import ConsumerGroupTopicPartitions

    topic = Topic(kafka, 2)
    topic.write(numbers(0, 5))
    driven = topic.spout(kafka_group_id=f"group-{topic.name}")

    def committed():
        request = ConsumerGroupTopicPartitions(f"group-{topic.name}")
        (answer,) = kafka.admin.list_consumer_group_offsets([request]).values()
        return {(place.topic, place.partition): place.offset for place in answer.result(20).topic_partitions}

    driven.driver.commit({f"{topic.name}-0": 3, f"{topic.name}-1": 0})
    until(lambda: committed() == {(topic.name, 0): 3, (topic.name, 1): 0})
    topic.spout().driver.commit({f"{topic.name}-0": 5})  # without a group nothing is committed
    assert committed()[topic.name, 0] == 3


def test_brokers_that_nobody_reaches_are_named_after_the_retries():
    spec = KafkaSpout.spec(
        servers="127.0.0.1:1",
        subscribe="orders",
        config={"fetchOffset.numRetries": 2, "fetchOffset.retryIntervalMs": 1, "kafka.default.api.timeout.ms": 200},
    )
    with pytest.raises(WorldError, match=r"asked 3 times.*bootstrap.servers='127.0.0.1:1'"):
        Driven(spec).driver.partitions()


def test_a_task_that_hears_nothing_says_where(kafka):
    topic = Topic(kafka)
    topic.write(["a"])
    driven = topic.spout(kafkaConsumer_pollTimeoutMs=300)
    with pytest.raises(Exception) as caught:
        driven.read(f"{topic.name}-0", 0, 1 << 40)
    assert isinstance(caught.value.__cause__, WorldError)
    assert "at offset 1" in str(caught.value.__cause__)
    assert kafka.bootstrap in str(caught.value.__cause__)


def test_minpartitions_splits_evenly(kafka):
    spout = KafkaBatchSpout()
    assert spout.split("orders-0", 10, 110, 4) == [35, 60, 85]
