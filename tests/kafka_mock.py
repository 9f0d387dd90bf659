"""librdkafka's mock cluster, for faults that a real broker does not have at one's bidding.

    with mock_kafka() as mock:
        mock.create("orders")
        mock.fail("Fetch", "NOT_LEADER_FOR_PARTITION", times=2)    # the next two such requests
        mock.delay(5000)                                           # every answer

It runs in threads of the librdkafka that confluent-kafka has loaded, and is asked through its C interface.
"""

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaError

PRODUCER = 0
API_KEYS = {"Fetch": 1, "ListOffsets": 2, "OffsetCommit": 8, "FindCoordinator": 10}


class MockKafka:
    """A cluster of one broker. Talks to a real librdkafka over TCP: ``bootstrap`` is for any client."""

    def __init__(self, library: ctypes.CDLL, handle: int):
        self._library = library
        self._cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(ctypes.c_void_p(handle), 1))
        # Without a controller the admin client waits for one.
        assert library.rd_kafka_mock_set_controller_id(self._cluster, 1) == 0
        self.bootstrap = library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def create(self, topic: str, partitions: int = 1) -> str:
        assert self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1) == 0
        return topic

    def fail(self, request: str, error: str, times: int = 1) -> None:
        """The next ``times`` requests of this kind are answered by this error, or by a lost connection (_TRANSPORT)."""
        errors = (ctypes.c_int * times)(*[getattr(KafkaError, error)] * times)
        push = self._library.rd_kafka_mock_push_request_errors_array
        push(self._cluster, ctypes.c_int16(API_KEYS[request]), ctypes.c_size_t(times), errors)

    def recover(self) -> None:
        """No request fails any more, and answers come at once."""
        for key in API_KEYS.values():
            self._library.rd_kafka_mock_clear_request_errors(self._cluster, ctypes.c_int16(key))
        self.delay(0)

    def delay(self, millis: int) -> None:
        """Every answer comes so much later."""
        assert self._library.rd_kafka_mock_broker_set_rtt(self._cluster, -1, millis) == 0

    def stop(self) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)


@contextmanager
def mock_kafka() -> Iterator[MockKafka]:
    library = _loaded()
    said = ctypes.create_string_buffer(256)
    conf = ctypes.c_void_p(library.rd_kafka_conf_new())
    handle = library.rd_kafka_new(PRODUCER, conf, said, ctypes.c_size_t(len(said)))
    assert handle, said.value
    mock = MockKafka(library, handle)
    try:
        yield mock
    finally:
        mock.stop()
        library.rd_kafka_destroy(ctypes.c_void_p(handle))


def _loaded() -> ctypes.CDLL:
    """The librdkafka of this process; importing confluent-kafka has loaded it."""
    found = re.search(r"/\S*librdkafka\S*", Path("/proc/self/maps").read_text())
    assert found is not None
    library = ctypes.CDLL(found[0])
    for function in (library.rd_kafka_conf_new, library.rd_kafka_new, library.rd_kafka_mock_cluster_new):
        function.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return library
