"""Messages of an Amazon SQS queue, standard or FIFO."""

import base64
import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.queue_spout import QueueSpout
from pystorm_source.api.spec_config import spec_config
from pystorm_source.options import parse
from pystorm_source.spouts.sqs_options import SqsOptions
from pystorm_source.spouts.sqs_queue import MOST, SqsQueue

_LEASE_SECONDS = 30
"""For a queue whose own time-out is 0: SQS's default."""
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_Id = tuple[str, str]  # of a message, and the receipt handle of this delivery


class SqsSpout(QueueSpout):
    """The messages of an SQS queue, each exactly once. Needs ``journal.path``, and boto3 on every executor.

    Messages are kept from others until their rows are in the journal, then deleted. One that is delivered again makes
    no second row: it is known by its message id. An empty queue is asked by one call, which waits for a second. After a
    full answer, several calls at once ask for ``receive_count`` messages. The groups of a FIFO queue keep their order.

    A queue that throttles or does not answer is asked again after a second. ``SqsOptions`` has the options. A subclass
    may leave out fields of ``outputs``. Attributes of a message are text, binary ones in base64.

    Raises:
        OptionError: boto3 is not installed, or finds no region or profile.
        WorldError: there is no such queue, or SQS refuses the credentials.

    Example:
        >>> from pystorm_source.spouts import SqsSpout
        >>> class Shop(Topology):
        ...     orders = SqsSpout.spec(queue="orders", region_name="eu-central-1")
        >>> Shop.orders.config
        {'sqs.queue': 'orders', 'sqs.region_name': 'eu-central-1'}
    """

    Options = SqsOptions
    outputs = [
        *("body string", "message_id string", "group string", "sent timestamp", "receive_count int"),
        "attributes map<string,string>",
    ]
    receive_count = 80

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        queue: str | None = None,
        region_name: str | None = None,
        endpoint_url: str | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``.
            config (dict): as in ``Spout.spec``; further options such as ``{"sqs.visibility_timeout": 60}``.
            queue (str): ``sqs.queue``: URL or name of the queue. Defaults to the reader's option.
            region_name (str): ``sqs.region_name``. Defaults to the reader's option.
            endpoint_url (str): ``sqs.endpoint_url``. Defaults to the reader's option.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        given = {"sqs.queue": queue, "sqs.region_name": region_name, "sqs.endpoint_url": endpoint_url}
        return super().spec(name=name, par=par, config=spec_config(cls.config, config, given))

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self._options = parse(SqsOptions, conf)
        self._queue = SqsQueue(self._options, -(-self.receive_count // MOST))
        self._is_found = self._is_rich = False

    def receive(self, count: int) -> Iterable[tuple[_Id, dict[str, Any]]]:
        if not self._is_found:  # not in `initialize`, which a busy queue would end
            own = self._queue.visibility_timeout()
            self.lease_seconds = self._options.visibility_timeout or own or _LEASE_SECONDS
            self._is_found = True
        seconds = int(self.lease_seconds or _LEASE_SECONDS)
        found: list[Any] = []
        if self._is_rich:  # without a wait: so that the calls end together
            found = self._queue.receive(count, 0, seconds)
            self._is_rich = 2 * len(found) >= count
        if not found:
            found = self._queue.receive(min(MOST, count), self._options.wait_time_seconds, seconds)
            self._is_rich = len(found) == min(MOST, count)
        return [((each["MessageId"], each["ReceiptHandle"]), _row(each)) for each in found]

    def acknowledge(self, ids: Sequence[_Id]) -> None:
        self._queue.delete(handle for _, handle in ids)

    def extend(self, ids: Sequence[_Id]) -> None:
        self._queue.keep((handle for _, handle in ids), int(self.lease_seconds or _LEASE_SECONDS))

    def release(self, ids: Sequence[_Id]) -> None:
        self._queue.keep((handle for _, handle in ids), 0)

    def message_key(self, id: _Id) -> str:
        return id[0]

    def cleanup(self) -> None:
        self._queue.close()


def _row(message: Any) -> dict[str, Any]:
    known = message["Attributes"]
    attributes = {
        name: each["StringValue"] if "StringValue" in each else base64.b64encode(each["BinaryValue"]).decode()
        for name, each in message.get("MessageAttributes", {}).items()
    }
    return {
        "body": message["Body"],
        "message_id": message["MessageId"],
        "group": known.get("MessageGroupId"),
        "sent": _EPOCH + datetime.timedelta(milliseconds=int(known["SentTimestamp"])),
        "receive_count": int(known["ApproximateReceiveCount"]),
        "attributes": attributes,
    }
