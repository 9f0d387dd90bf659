"""Messages of a NATS JetStream stream, by their sequences."""

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.api.spec_config import spec_config
from pystorm_source.api.stream import Stream
from pystorm_source.errors import OptionError
from pystorm_source.options import parse
from pystorm_source.options.names import joined
from pystorm_source.spouts.either_way import EitherWaySpout
from pystorm_source.spouts.nats_connection import NatsConnection
from pystorm_source.spouts.nats_messages import NatsMessage, NatsMessages
from pystorm_source.spouts.nats_options import NatsOptions
from pystorm_source.spouts.nats_stream import NatsStream
from pystorm_source.types.arrow import field_type

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_Values = Callable[[Sequence[NatsMessage]], list[Any]]


class NatsSpout(EitherWaySpout):
    """The messages of a JetStream stream, each exactly once, in order. Needs nats-py on driver and executors.

    A stream is a log: each message has a sequence, and the same range of sequences gives the same messages whenever it
    is read. So the driver plans ranges, tasks read them by consumers that acknowledge nothing, and no journal is
    needed: Spark's checkpoint keeps the sequence. Messages that were deleted are gaps. If messages were removed from
    the start of the stream before they were read, the query fails, or logs it with ``failOnDataLoss=false``.

    The stream is one partition, which ``minPartitions`` cuts; with ``subjects``, each subject is one. A stream that was
    deleted and created again is another partition. ``NatsOptions`` has the options. A subclass may leave out fields of
    ``outputs``, and declare ``data string`` to have UTF-8 decoded; U+FFFD replaces invalid bytes.

    Raises:
        OptionError: nats-py is not installed, or an invalid option.
        WorldError: NATS refuses the user, or the stream deletes what was acknowledged.
        DataLossError: messages are gone unread.

    Example:
        >>> from pystorm_source.spouts import NatsSpout
        >>> class Shop(Topology):
        ...     orders = NatsSpout.spec(servers="nats://localhost:4222", stream="ORDERS", subjects=["orders.>"])
        >>> Shop.orders.config["nats.subjects"]
        'orders.>'
    """

    Options = NatsOptions
    outputs = [
        *("subject string", "sequence long", "time timestamp", "headers map<string,string>"),
        "data binary",
    ]
    bounded = False
    _pystorm_start_option = "nats.start"

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        servers: str | Sequence[str] | None = None,
        stream: str | None = None,
        subjects: str | Sequence[str] | None = None,
        start: str | int | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``.
            config (dict): as in ``Spout.spec``; further options such as ``{"nats.creds": "/etc/nats/app.creds"}``.
            servers (str | list[str]): ``nats.servers``. Defaults to the reader's option.
            stream (str): ``nats.stream``: name of the stream. Defaults to the reader's option.
            subjects (str | list[str]): ``nats.subjects``: a partition each. Defaults to all messages, one partition.
            start (str | int): ``nats.start``: first sequence of a new query, at least 1, or a time such as
                ``"2026-01-31T12:00:00Z"``. Defaults to what ``startingOffsets`` says.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        given = {
            "nats.servers": joined(servers),
            "nats.stream": stream,
            "nats.subjects": joined(subjects),
            "nats.start": None if start is None else str(start),
        }
        return super().spec(name=name, par=par, config=spec_config(cls.config, config, given))

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Reads the options.

        Raises:
            OptionError: wrong options, nats-py is not installed, or fields that no message has.
        """
        options = parse(NatsOptions, conf)
        self._connection = NatsConnection(options)
        self._heads = NatsStream(self._connection, options)
        self._messages = NatsMessages(self._connection, options.stream, options.fail_on_data_loss, self._any_logger())
        stream = next(each for each in self._streams() if each.name == "default")
        self._columns = _columns(stream, type(self).__name__)
        self._end = 0
        self._rows: Iterator[tuple[int, tuple[Any, ...]]] = iter(())

    def cleanup(self) -> None:
        self._connection.close()

    def partitions(self) -> list[str]:
        return list(self.snapshot({}, {}).heads)

    def latest(self, partition: str) -> int:
        return self.snapshot({}, {}).heads[partition][1]

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        return self._heads.snapshot(known, state)

    def open(self, partition: str, start: int, end: int) -> None:
        self._messages.go_to(partition, self._heads.subject_of(partition), start)
        self._end = end
        self._rows = iter(())

    def next_tuple(self) -> Any:
        for sequence, values in self._rows:
            self.emit(values, sequence)
            return None
        page = self._messages.page(self._end)
        if not page:
            return False
        columns = [values(page) for values, _ in self._columns.values()]
        self._rows = zip((each.sequence for each in page), zip(*columns, strict=True), strict=True)
        return None

    def next_batch(self) -> pa.RecordBatch | None:
        """The rows of ``next_tuple``, a page at a time. The engine calls it instead, if it may.

        Returns:
            pyarrow.RecordBatch | None: the next rows of the range; None at its end.
        """
        page = self._messages.page(self._end)
        if not page:
            return None
        arrays = [_array(name, values, type, page) for name, (values, type) in self._columns.items()]
        return pa.RecordBatch.from_arrays(arrays, names=list(self._columns))


def _columns(stream: Stream, spout: str) -> dict[str, tuple[_Values, pa.DataType]]:
    """Field → its values, and their type. Raises OptionError for one that no message has."""
    own = dict(field.split(" ", 1) for field in NatsSpout.outputs)
    found = {}
    for name, ddl in zip(stream.fields, stream.types, strict=True):
        type = field_type(ddl or own.get(name, ""), f"field {name!r}") if name in own else None
        if type is None or not (type == field_type(own[name], "") or (name == "data" and type == pa.string())):
            raise OptionError(
                f"{spout}: outputs may have {', '.join(NatsSpout.outputs)}, or data string. Given: "
                f"{name if ddl is None else f'{name} {ddl}'!r}",
                code="PYSTORM_INVALID_TYPE",
            )
        found[name] = (_texts if type == pa.string() and name == "data" else _VALUES[name]), type
    return found


def _texts(page: Sequence[NatsMessage]) -> list[Any]:
    return [str(each.message.data, "utf-8", "replace") for each in page]


_VALUES: dict[str, _Values] = {
    "subject": lambda page: [each.message.subject for each in page],
    "sequence": lambda page: [each.sequence for each in page],
    "time": lambda page: [_EPOCH + datetime.timedelta(microseconds=each.micros) for each in page],
    "headers": lambda page: [each.message.headers for each in page],
    "data": lambda page: [each.message.data for each in page],
}


def _array(name: str, values: _Values, type: pa.DataType, page: Sequence[NatsMessage]) -> pa.Array:
    if name == "time":  # not by way of a datetime each
        return pa.array([each.micros for each in page], pa.int64()).cast(type)
    if name == "headers":
        return pa.array([None if each is None else list(each.items()) for each in values(page)], type)
    return pa.array(values(page), type)
