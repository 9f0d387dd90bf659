"""Entries of Redis streams, by their ids."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
import pyarrow as pa
from msgspec import Meta

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.cursor_spout import CursorSpout, Page
from pystorm_source.api.spec_config import spec_config
from pystorm_source.errors import OptionError
from pystorm_source.options import Options, parse
from pystorm_source.options.names import distinct, joined
from pystorm_source.options.redis_url import check_redis_url
from pystorm_source.spouts.redis_entries import BEGIN, RedisEntries
from pystorm_source.types.arrow import field_type


class RedisStreamOptions(Options, frozen=True, kw_only=True):
    """Options of RedisStreamSpout."""

    further = ("redis.start", "redis.count")

    url: Annotated[
        str,
        Meta(description="redis://:password@host:6379/0 (rediss:// for TLS, unix:// for a socket)."),
    ] = msgspec.field(name="redis.url")
    streams: Annotated[str, Meta(description="Comma-separated keys of the streams.")] = msgspec.field(
        name="redis.streams"
    )
    start: Annotated[
        str,
        Meta(
            description="Where a new query starts: after this entry id. 0: at the first entry. $: after the last one."
        ),
    ] = msgspec.field(name="redis.start", default="0")
    count: Annotated[int, Meta(ge=1, le=1_000_000, description="Most entries per request.")] = msgspec.field(
        name="redis.count", default=1000
    )
    fail_on_data_loss: Annotated[
        bool, Meta(description="true: lost data fails the query. false: the loss is logged, and the query continues.")
    ] = msgspec.field(name="failOnDataLoss", default=True)

    def __post_init__(self) -> None:
        check_redis_url(self.url, "redis.url")
        if not self.names:
            raise OptionError(
                f"option 'redis.streams' names no stream. Given: {self.streams!r}", code="PYSTORM_INVALID_OPTION"
            )
        if not re.fullmatch(r"\$|\d+(-\d+)?", self.start):
            raise OptionError(
                f"option 'redis.start' is 0, $ or an entry id such as 1700000000000-0. Given: {self.start!r}",
                code="PYSTORM_INVALID_OPTION",
            )

    @property
    def names(self) -> list[str]:
        """Streams of ``redis.streams``."""
        return distinct(self.streams)


class RedisStreamSpout(CursorSpout):
    """The entries of Redis streams, each exactly once. Needs ``journal.path``, Redis 6.2, and the package redis on
    every executor.

    It uses a cursor, not a consumer group: the journal keeps the id of the last entry together with the rows before it.
    So nothing is written to Redis, nothing must be acknowledged or claimed, no entry comes twice, and two queries may
    read one stream. A group would also keep a list of pending entries in Redis. To share a stream with other consumers,
    write a ``QueueSpout`` over a group.

    Entries that were trimmed before they were read (``XTRIM``, ``MAXLEN``) fail the query with their number, or are
    logged with ``failOnDataLoss=false``. Redis counts them from 7.0 on.

    Fields are decoded as UTF-8; other bytes are replaced by U+FFFD. A subclass may declare other ``outputs``: besides
    ``stream``, ``id`` and ``fields``, each names a field of the entries, which is converted to its type. A missing one
    is null.

    Raises:
        OptionError: no package redis, or an invalid option.
        WorldError: a key that is no stream, or Redis refuses the user.
        DataLossError: entries were trimmed before they were read.

    Example:
        >>> from pystorm_source.spouts import RedisStreamSpout
        >>> class Orders(RedisStreamSpout):
        ...     outputs = ["id string", "item string", "quantity int"]
        >>> class Shop(Topology):
        ...     orders = Orders.spec(url="redis://localhost:6379/0", streams=["orders", "returns"])
        >>> Shop.orders.config["redis.streams"]
        'orders,returns'
    """

    Options = RedisStreamOptions
    outputs = ["stream string", "id string", "fields map<string,string>"]

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        url: str | None = None,
        streams: str | Sequence[str] | None = None,
        start: str | None = None,
        count: int | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``.
            config (dict): as in ``Spout.spec``.
            url (str): ``redis.url``. Defaults to the reader's option, where a password is hidden.
            streams (str | list[str]): ``redis.streams``: keys. Defaults to the reader's option.
            start (str): ``redis.start``: ``"0"``, ``"$"`` or an entry id. Defaults to the reader's option.
            count (int): ``redis.count``: entries of one request, at least 1. Defaults to 1000.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        given = {"redis.url": url, "redis.streams": joined(streams), "redis.start": start, "redis.count": count}
        return super().spec(name=name, par=par, config=spec_config(cls.config, config, given))

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        options = parse(RedisStreamOptions, conf)
        self._names, self._begin, self.page_rows = options.names, options.start, options.count
        self._entries = RedisEntries(options.url, options.fail_on_data_loss, self._any_logger())
        stream = next(each for each in self._streams() if each.name == "default")
        self._columns = [_column(*each) for each in zip(stream.fields, stream.types, strict=True)]

    def partitions(self) -> list[str]:
        return self._names

    def first_cursor(self, partition: str) -> Any:
        if self._begin == "$":
            return [self._entries.last(partition), None]
        return [BEGIN if self._begin == "0" else self._begin, None]

    def read(self, cursor: Any, limit: int) -> Page:
        position, count = cursor
        entries, following = self._entries.behind(self.partition, position, count, limit)
        columns = [column(self.partition, entries) for column in self._columns]
        return list(zip(*columns, strict=True)), following

    def cleanup(self) -> None:
        self._entries.close()


_Entries = Sequence[tuple[bytes, dict[bytes, bytes]]]


def _column(name: str, ddl: str | None) -> Callable[[str, _Entries], list[Any]]:
    """Stream and entries → the values of a field of ``outputs``."""
    if name == "stream":
        return lambda stream, entries: [stream] * len(entries)
    if name == "id":
        return lambda stream, entries: [id.decode() for id, _ in entries]
    if name == "fields":
        return _all_fields
    key, type = name.encode(), pa.string() if ddl is None else field_type(ddl, f"field {name!r}")
    return lambda stream, entries: _converted([fields.get(key) for _, fields in entries], type)


class _Names(dict[bytes, str]):
    """Names of fields as text, each decoded once: a page has few of them, a thousand times."""

    def __missing__(self, name: bytes) -> str:
        text = self[name] = _text(name)
        return text


def _all_fields(stream: str, entries: _Entries) -> list[Any]:
    names = _Names()
    return [{names[name]: str(value, "utf-8", "replace") for name, value in fields.items()} for _, fields in entries]


def _text(value: bytes) -> str:
    return str(value, "utf-8", "replace")


def _converted(values: list[bytes | None], type: pa.DataType) -> list[Any]:
    """Converts values to the type. One that does not fit stays text: its row is refused by name, the others are not."""
    if pa.types.is_binary(type):
        return values
    texts = [None if each is None else _text(each) for each in values]
    if pa.types.is_string(type):
        return texts
    try:
        return pa.array(texts, pa.string()).cast(type).to_pylist()
    except pa.ArrowInvalid:
        return texts if len(texts) == 1 else [_converted([each], type)[0] for each in values]
