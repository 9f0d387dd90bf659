"""Answers of brokers that go wrong, as librdkafka's mock cluster gives them: an error or recovery, and nothing lost."""

import logging

import pytest

from pystorm_source.errors import WorldError
from tests.kafka_mock import mock_kafka
from tests.spouts.kafka.topic import Topic, numbers, until, values_of

FOR_EVER = 10_000


@pytest.fixture(scope="module")
def cluster():
    with mock_kafka() as mock:
        mock.create("orders")
        Topic(mock, name="orders").write(numbers(0, 100))
        yield mock


@pytest.fixture
def mock(cluster):
    yield cluster
    cluster.recover()


def reads(mock, **options):
    return values_of(Topic(mock, name="orders").spout(**options).read("orders-0", 0, 100))


@pytest.mark.parametrize("error", ["NOT_LEADER_FOR_PARTITION", "REQUEST_TIMED_OUT", "UNKNOWN", "_TRANSPORT"])
def test_a_fetch_that_fails_for_once_costs_nothing(mock, error):
    mock.fail("Fetch", error)
    assert reads(mock) == numbers(0, 100)


def test_a_fetch_that_is_not_allowed_is_an_error_at_once(mock):
    mock.fail("Fetch", "TOPIC_AUTHORIZATION_FAILED", FOR_EVER)
    with pytest.raises(Exception) as caught:
        reads(mock)
    assert isinstance(caught.value.__cause__, WorldError)
    said = str(caught.value.__cause__)
    assert "orders-0 cannot be read at offset 0" in said and "TOPIC_AUTHORIZATION_FAILED" in said


@pytest.mark.parametrize("fails", [True, False])
def test_an_offset_that_is_there_is_not_lost_where_a_leader_denies_it(mock, fails):
    mock.fail("Fetch", "OFFSET_OUT_OF_RANGE", 2)
    assert reads(mock, failOnDataLoss=fails) == numbers(0, 100)


@pytest.mark.parametrize("error", ["OFFSET_OUT_OF_RANGE", "REQUEST_TIMED_OUT"])
def test_who_denies_it_for_ever_is_named_after_the_poll_timeout(mock, error):
    mock.fail("Fetch", error, FOR_EVER)
    with pytest.raises(Exception) as caught:
        reads(mock, kafkaConsumer_pollTimeoutMs=300, failOnDataLoss=False)
    assert isinstance(caught.value.__cause__, WorldError)
    assert "orders-0 gave nothing for 300 ms" in str(caught.value.__cause__)


@pytest.mark.parametrize("error", ["LEADER_NOT_AVAILABLE", "_TRANSPORT"])
def test_the_driver_asks_again_for_offsets(mock, error):
    mock.fail("ListOffsets", error, 2)
    driver = Topic(mock, name="orders").spout(fetchOffset_numRetries=200, fetchOffset_retryIntervalMs=50).driver
    assert driver.snapshot({}, {}).heads == {"orders-0": (0, 100)}


def test_the_driver_gives_up_after_its_retries_and_recovers_with_the_next_trigger(mock):
    mock.fail("ListOffsets", "LEADER_NOT_AVAILABLE", FOR_EVER)
    driver = Topic(mock, name="orders").spout(fetchOffset_numRetries=2, fetchOffset_retryIntervalMs=1).driver
    with pytest.raises(WorldError, match=r"LEADER_NOT_AVAILABLE.*asked 3 times"):
        driver.snapshot({}, {})
    mock.recover()
    assert driver.snapshot({}, {}).heads == {"orders-0": (0, 100)}


def test_answers_that_come_too_late_are_an_error_and_then_recovered_from(mock):
    options = {"kafka_default_api_timeout_ms": 400, "fetchOffset_numRetries": 0}
    driver = Topic(mock, name="orders").spout(**options).driver
    mock.delay(2000)
    with pytest.raises(WorldError, match="TIMED_OUT.*asked 1 times"):
        driver.snapshot({}, {})
    mock.delay(0)
    patient = Topic(mock, name="orders").spout().driver
    assert patient.snapshot({}, {}).heads == {"orders-0": (0, 100)}


@pytest.mark.parametrize(
    ("request_", "error"), [("FindCoordinator", "GROUP_AUTHORIZATION_FAILED"), ("OffsetCommit", "NOT_COORDINATOR")]
)
def test_a_commit_that_fails_is_told_and_the_next_one_is_made(mock, request_, error, caplog):
    caplog.set_level(logging.WARNING)
    driver = Topic(mock, name="orders").spout(kafka_group_id=f"group-{error}").driver
    # Again and again: the client looks for its coordinator by itself, too, and that would take the only error.
    mock.fail(request_, error, FOR_EVER)
    driver.commit({"orders-0": 5})
    # The client's own time-out of a request is a minute; on a busy machine its first connection needs a part of it.
    (failed, *_) = until(lambda: [said for said in caplog.messages if "are not committed" in said], seconds=75)
    assert error in failed
    mock.recover()
    told = len(caplog.messages)
    driver.commit({"orders-0": 6})
    committing = driver._topics._committing
    (place,) = committing.result(20).topic_partitions
    assert place.error is None and place.offset == 6
    assert not [said for said in caplog.messages[told:] if "are not committed" in said]
