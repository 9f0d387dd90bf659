"""Kafka read by streaming queries: limits, restarts, replays, brokers that die, topics that are made anew."""

import itertools
import json

import pytest
from pyspark.errors import StreamingQueryException

from testbed.uncontrolled import UNCONTROLLED
from tests.source.queries import Query
from tests.spouts.kafka.topic import Topic, numbers

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

TOPOLOGIES = ["Orders", "OrderBatches"]
both = pytest.mark.parametrize("topology", TOPOLOGIES)


@pytest.fixture
def query(tmp_path):
    return Query(tmp_path)


def stream(spark, topic, topology="Orders", **options):
    named = {
        "topology": f"tests.spouts.topologies:{topology}",
        "kafka.bootstrap.servers": topic.cluster.bootstrap,
        "subscribe": topic.name,
        **UNCONTROLLED,
    }
    return spark.readStream.format("pystorm").options(**named | options).load()


def values(rows):
    return sorted((value for value, *_ in rows), key=int)


@pytest.mark.campaign
@both
def test_available_now_is_rate_controlled_and_goes_on_from_its_checkpoint(spark, kafka, query, topology):
    topic = Topic(kafka, 2)
    topic.write(numbers(0, 600))
    topic.write(numbers(600, 1000), 1)
    frame = stream(spark, topic, topology, maxOffsetsPerTrigger=400, minPartitions=4)
    assert [len(rows) for rows in query.run(frame)] == [400, 400, 200]
    assert values(query.rows) == numbers(0, 1000)
    # A batch that was planned and not finished is read again, alike; then what has come since.
    query.forget_commit()
    last = query.batches[-1][1]
    topic.write(numbers(1000, 1100), 1)
    again = query.run(frame)
    assert again == [last, again[1]]
    assert values(again[1]) == numbers(1000, 1100)


def test_startingoffsets_in_sparks_form(spark, kafka, query):
    topic = Topic(kafka, 3)
    for partition in range(3):
        topic.write(numbers(partition * 10, partition * 10 + 10), partition)
    starting = f'{{"{topic.name}": {{"0": 7, "1": -1, "2": -2}}}}'
    query.run(stream(spark, topic, startingOffsets=starting))
    assert values(query.rows) == [*numbers(7, 10), *numbers(20, 30)]


def test_new_partitions_and_a_task_that_fails_in_a_running_query(spark, kafka, query, tmp_path):
    from confluent_kafka.admin import NewPartitions

    topic = Topic(kafka)
    topic.write(numbers(0, 50))
    failed = tmp_path / "failed"
    frame = stream(spark, topic, "FailingOrders", config=json.dumps({"fails.once": str(failed)}))
    running = query.start(frame, processingTime="0 seconds")
    try:
        running.processAllAvailable()
        assert failed.exists()
        kafka.admin.create_partitions([NewPartitions(topic.name, 2)])[topic.name].result(20)
        kafka.await_leaders(topic.name, 2)
        topic.write(numbers(50, 80), 1)
        topic.write(numbers(80, 90))
        running.processAllAvailable()
    finally:
        running.stop()
    assert values(query.rows) == numbers(0, 90)


@pytest.mark.campaign
def test_a_topic_made_anew_fails_the_query_or_is_read_from_its_begin(spark, kafka, query):
    topic = Topic(kafka)
    topic.write(numbers(0, 10))
    query.run(stream(spark, topic))
    kafka.delete(topic.name)
    kafka.create(topic.name)
    topic.write(numbers(10, 40))
    with pytest.raises(StreamingQueryException, match=f"{topic.name}-0.*vanished.*failOnDataLoss"):
        query.run(stream(spark, topic))
    query.run(stream(spark, topic, failOnDataLoss="false"))
    assert values(query.rows) == numbers(0, 40)


@pytest.mark.campaign
def test_a_broker_killed_and_started_again_in_mid_batch_costs_and_doubles_nothing(spark, kafka, query):
    topic = Topic(kafka, 2)
    counter = itertools.count()
    for _ in range(4):
        for partition in range(2):
            topic.write([str(next(counter)) for _ in range(2000)], partition)
    broker = kafka.brokers[0]
    running = query.start(stream(spark, topic, maxOffsetsPerTrigger=3000), processingTime="0 seconds")
    try:
        while len(query.batches) < 2:
            assert running.isActive
            running.awaitTermination(0.05)
        broker.kill()
        broker.start()
        kafka.wait()
        running.processAllAvailable()
    finally:
        running.stop()
        if not broker.alive():
            broker.start()
            kafka.wait()
    assert values(query.rows) == numbers(0, 16_000)


def test_group_offsets_follow_the_query(spark, kafka, query):
    from confluent_kafka import ConsumerGroupTopicPartitions

    topic = Topic(kafka)
    topic.write(numbers(0, 30))
    group = f"group-{topic.name}"
    query.run(stream(spark, topic, maxOffsetsPerTrigger=10, **{"kafka.group.id": group}))
    (answer,) = kafka.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    (place,) = answer.result(20).topic_partitions
    assert place.offset in (10, 20)  # commits come one batch late, and a newer one may wait for an older one
    assert values(query.rows) == numbers(0, 30)
