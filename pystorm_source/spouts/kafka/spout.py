"""Records of Kafka, by tuple or as Arrow batches."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.partitioned_spout import PartitionedSpout, Snapshot
from pystorm_source.api.spec_config import spec_config
from pystorm_source.api.stream import Stream
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import OptionError
from pystorm_source.formats.decoding import Undecodable
from pystorm_source.spouts.kafka.consumers import CHUNK, Chunk, KafkaConsumers
from pystorm_source.spouts.kafka.options import KafkaOptions, named_by_partition
from pystorm_source.spouts.kafka.records import FIELDS, HEADERS, KafkaRecords, typed_fields
from pystorm_source.spouts.kafka.topics import KafkaTopics, Partition
from pystorm_source.types.arrow import concatenated

# next_batch adds nothing beyond so many rows, or bytes of columns. Too small: bolts and Spark take time for each batch.
# Too large: a batch leaves the processor's cache, and from a mebibyte on the operating system allocates its memory each
# time, which takes a fifth of all time for records of 100 bytes.
BATCH_ROWS = 16_000
BATCH_BYTES = 768 << 10

NULLED = "decode.errors.null"
"""The metric of keys and values that could not be decoded and are null."""


class _Kafka(PartitionedSpout):
    Options = KafkaOptions
    outputs = FIELDS
    clock: Clock = SystemClock()
    bounded = False
    # As Spark's Kafka source: rows leave with the next micro-batch. Brokers are made for two small requests each time;
    # spout.poll.seconds is for those that charge or limit requests.
    poll_seconds = 0.0

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        servers: str | None = None,
        subscribe: str | Iterable[str] | None = None,
        subscribe_pattern: str | None = None,
        assign: Mapping[str, list[int]] | None = None,
        fields: list[str] | None = None,
        include_headers: bool = False,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``.
            config (dict): as in ``Spout.spec``; further options such as ``{"kafka.isolation.level":
                "read_committed"}``.
            servers (str): ``kafka.bootstrap.servers``: host:port, separated by commas.
            subscribe (str | list[str]): topics, in a list or separated by commas.
            subscribe_pattern (str): ``subscribePattern``: a regular expression that the whole name of a topic matches.
            assign (dict[str, list[int]]): topic → partitions. Exactly one of the three says what is read.
            fields (list[str]): fields of Kafka's records, in this order, such as ``["key string", "value", "offset
                long"]``. A key or value without a type has the one that ``config`` decodes it to: ``{"value.format":
                "json", "value.schema": "id long, item string"}``. Defaults to all but headers.
            include_headers (bool): adds the field ``headers``. Defaults to False.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        if isinstance(subscribe, Iterable) and not isinstance(subscribe, str):
            subscribe = ",".join(subscribe)
        given = {
            "kafka.bootstrap.servers": servers,
            "subscribe": subscribe,
            "subscribePattern": subscribe_pattern,
            "assign": None if assign is None else json.dumps({topic: list(assign[topic]) for topic in assign}),
        }
        config = spec_config(cls.config, config, given)
        spec = super().spec(name=name, par=par, config=config)
        if fields is None and cls.outputs is FIELDS:
            fields = [field.split()[0] for field in FIELDS]
        if include_headers:
            fields = [*(cls.outputs if fields is None else fields), HEADERS]
        if fields is not None:
            fields = typed_fields(fields, config)
            spec.streams = Stream.all_of(fields, given_by=cls.__name__)
            spec.config["record.fields"] = list(fields)
        return spec

    @classmethod
    def named_offsets(cls, given: Mapping[str, Any]) -> Mapping[str, int] | None:
        """Driver. Spark's form of ``startingOffsets``: ``{"orders": {"0": 23, "1": -2}}``.

        Args:
            given (Mapping[str, Any]): the option's JSON.

        Returns:
            Mapping[str, int] | None: partition → offset; None if it is another form.
        """
        if not given or not all(isinstance(partitions, Mapping) for partitions in given.values()):
            return None
        return named_by_partition("startingOffsets", given, -2)

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Reads the options.

        Raises:
            OptionError: wrong options, or fields that do not fit them.
        """
        fields = conf.get("record.fields", self.outputs)
        options = self._options = KafkaOptions.of(conf)
        self._log = self.logger or logging.getLogger(f"pystorm.component.{type(self).__name__}")
        stream = next((s for s in Stream.all_of(fields, given_by=type(self).__name__) if s.name == "default"), Stream())
        self._records = KafkaRecords(stream, type(self).__name__, options, self._log, self._bury)
        if self.gives_batches() and self._records.untyped:
            raise OptionError(
                f"fields {self._records.untyped!r} need a type to be columns: write {type(self).__name__}.spec(fields="
                f"['value struct<id: bigint>', ...]), or take KafkaSpout. Given: {list(stream.fields)!r}",
                code="PYSTORM_INVALID_TYPE",
            )
        if options.include_headers and "headers" not in stream.fields:
            raise OptionError(
                "option 'includeHeaders' changes the fields of the stream, which the topology declares: write "
                f"{type(self).__name__}.spec(include_headers=True). Given: {list(stream.fields)!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        self._topics: KafkaTopics | None = None
        self._consumers = KafkaConsumers(options, self.clock, self._log)
        self._chunks: Iterator[Chunk] = iter(())
        # Whether the last chunk has given dead letters: their readers get a turn before the next one.
        self._yields = False

    def cleanup(self) -> None:
        self._consumers.close()

    def partitions(self) -> list[str]:
        return list(self.snapshot({}, {}).heads)

    def latest(self, partition: str) -> int:
        return self.snapshot({}, {}).heads[partition][1]

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        return self._watched().snapshot(known, state)

    def commit(self, offsets: Mapping[str, int]) -> None:
        self._watched().commit(offsets)

    def _watched(self) -> KafkaTopics:
        if self._topics is None:
            self._topics = KafkaTopics(self._options, self.clock, self._log)
        return self._topics

    def open(self, partition: str, start: int, end: int) -> None:
        self._at = Partition.parse(partition)
        self._chunks = self._consumers.take(self._at).chunks(self._at, start, end)
        self._nulled_before = self._records.nulled

    def close(self) -> None:
        nulled = self._records.nulled - self._nulled_before
        if nulled:
            self.report_metric(NULLED, nulled)

    def _bury(self, values: tuple[Any, ...], offset: int, lost: Undecodable) -> None:
        """Makes a dead letter of a record that cannot be decoded. Raises SchemaError if it fails the task."""
        policy = self._options.decode_errors
        if policy == "fail" or (self._pystorm_retries is None and policy != "drop"):
            raise lost.error()
        if self._pystorm_retries is not None:
            drop = "decode.errors is drop" if policy == "drop" else ""
            self._yields |= self._pystorm_retries.give_up_unread(values, offset, lost.reason, lost.error, drop)


class KafkaSpout(_Kafka):
    """Emits a tuple for each record of Kafka's topics.

    Options and fields have the names and meaning of Spark's Kafka source; docs/KAFKA.md compares them. A partition is
    called ``orders-0``. Offsets are Kafka's, so a range may have gaps. Needs ``pip install 'confluent-kafka>=2.6'``.

    Raises:
        OptionError: wrong options, when the query is loaded.
        DataLossError: unread records are gone, and ``failOnDataLoss`` is true.
        WorldError: the brokers do not answer.
        SchemaError: a key or value that is not what its field says, unless ``topology.dead.letter`` or
            ``decode.errors`` says otherwise.

    Example:
        >>> from pystorm_source.spouts import KafkaSpout
        >>> class Orders(Topology):
        ...     orders = KafkaSpout.spec(servers="broker:9092", subscribe="orders", fields=["key string", "value"])
        >>> Orders.orders.stream("default").types
        ('string', 'binary')
    """

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        super().initialize(conf, context)
        self._pairs: Iterator[tuple[tuple[Any, ...], int]] = iter(())

    def open(self, partition: str, start: int, end: int) -> None:
        super().open(partition, start, end)
        self._pairs = iter(())

    def next_tuple(self) -> Any:
        for values, offset in self._pairs:
            self.emit(values, offset)
            return None
        for pairs in map(self._pairs_of, self._chunks):
            self._pairs = pairs
            for values, offset in pairs:
                self.emit(values, offset)
                return None
            if self._yields:
                return None
        return False

    def _pairs_of(self, chunk: Chunk) -> Iterator[tuple[tuple[Any, ...], int]]:
        self._yields = False
        records = self._records.taken()
        records.add(*chunk)
        return self._records.pairs(self._at, records)


class KafkaBatchSpout(_Kafka):
    """Emits the records of ``KafkaSpout`` as Arrow batches: faster if the topology is only this spout.

    It has the options and errors of ``KafkaSpout``. Every field needs a type.

    Example:
        >>> from pystorm_source.spouts import KafkaBatchSpout
        >>> class Orders(Topology):
        ...     orders = KafkaBatchSpout.spec(servers="broker:9092", subscribe=["orders", "returns"])
        >>> Orders.orders.config["subscribe"]
        'orders,returns'
    """

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        super().initialize(conf, context)
        self._most = BATCH_ROWS if self._records.most_at_once is None else self._records.most_at_once
        self._wanted = min(CHUNK, self._most)

    def next_batch(self) -> pa.RecordBatch | None:
        batches = []
        rows = size = 0
        while rows < BATCH_ROWS and size < BATCH_BYTES and (batch := self._decoded()) is not None:
            batches.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if self._yields:
                break
        return concatenated(batches) if batches else None

    def _decoded(self) -> pa.RecordBatch | None:
        """Decodes the next records: twice as many each time, up to ``_most``, while all of them can be decoded. Then
        readers of the dead letters get their turn, and the number starts small again."""
        self._yields = False
        records = self._records.taken(columns=True)
        for offsets, messages in self._chunks:
            records.add(offsets, messages)
            offsets = messages = ()  # order: given up before the next ones are made, so that all stay in the cache
            if len(records) >= self._wanted or records.weigh() >= BATCH_BYTES:
                break
        if not records:
            return None
        nulled = self._records.nulled
        batch = self._records.batch(self._at, records)
        is_whole = batch.num_rows == len(records) and self._records.nulled == nulled
        self._wanted = min(2 * len(records) if is_whole else CHUNK, self._most)
        return batch
