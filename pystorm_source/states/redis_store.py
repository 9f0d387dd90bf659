"""Entries in Redis: a JSON object under each key."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import msgspec

from pystorm_source.errors import ArgumentError, WorldError, given, said
from pystorm_source.errors.packages import package
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.states.store import Entry, Store
from pystorm_source.types.json_values import JsonDecoder

CHUNK = 1_000
"""Keys of one command. Fewer: more round trips. More: Redis keeps other clients waiting for longer."""

CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 60.0
"""To connect, and for an answer, unless the URL says otherwise (``?socket_timeout=120``). Longer: a task waits for a
Redis that is stopped. Shorter: one that writes its file fails tasks."""

PUT = """
local batch = tonumber(ARGV[1])
local function txid(text)
    local quick = string.match(text, '^{"value":[-+.%deE]+,"txid":(%d+)[,}]')
    return quick or cjson.decode(text).txid
end
for i, kept in ipairs(redis.call('MGET', unpack(KEYS))) do
    if kept then
        local known, found = pcall(txid, kept)
        if known and (tonumber(found) or 0) > batch then return 0 end
    end
end
local pairs = {}
for i, key in ipairs(KEYS) do
    pairs[2 * i - 1] = key
    pairs[2 * i] = ARGV[i + 1]
end
redis.call('MSET', unpack(pairs))
return #KEYS
"""
"""The script that puts a chunk, unless a later batch wrote one of its keys: how many it has written."""

MOST_KEYS = 3_500
"""Keys of one Redis call in a script, whose stack has room for about 8,000 keys and values."""

_FIELDS: JsonDecoder[dict[str, msgspec.Raw]] = JsonDecoder(dict[str, msgspec.Raw])
_TXID: JsonDecoder[int] = JsonDecoder(int)


class RedisStore(Store):
    """Entries in Redis, under ``name:key``, as ``{"value":12.5,"txid":7,"previous":10.0}``.

    Needs ``pip install 'redis>=5'``. A put is several commands, so a kill may cut it; the kinds with a txid tolerate
    that. They put with a Lua script, which changes nothing that a later batch wrote.

    Acknowledged writes must survive a crash of Redis: set ``appendonly yes`` and ``appendfsync always``. By default,
    Redis answers before the write has left the process, if a sync runs. A replica that takes over may lack the last
    writes, and no state can know about it. Redis Cluster does not work: a command's keys must be on one node there.

    Example:
        >>> from pystorm_source.states import RedisStore
        >>> RedisStore("redis://:secret@cache:6379/0", "totals")
        RedisStore('redis://cache:6379/0', 'totals')
    """

    def __init__(self, url: str, name: str, *, chunk: int = CHUNK):
        """Connects when it is first used.

        Args:
            url (str): "redis://:password@host:6379/0"; ``rediss://`` for TLS, ``unix://`` for a socket.
            name (str): the prefix of the keys.
            chunk (int): how many keys one command has, 3500 at most. Defaults to 1000.

        Raises:
            OptionError: the package redis is not installed.
        """
        package("redis", "RedisStore", "redis")
        self.url = url
        self.name = name
        self.chunk = min(chunk, MOST_KEYS)
        self._client: Any = None
        self._script: Any = None
        self._fields: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"RedisStore({without_credentials(self.url)!r}, {self.name!r})"

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_client": None, "_script": None}  # a connection belongs to its process

    def prepare(self, fields: Sequence[str]) -> None:
        """Blocking: connects and waits for an answer.

        Args:
            fields (Sequence[str]): the fields of ``Entry`` that the state uses.

        Raises:
            WorldError: Redis does not answer, or refuses.
        """
        self._fields = tuple(fields)
        with self._reaching():
            self.client().ping()

    def client(self) -> Any:
        """The client of this process, a ``redis.Redis``.

        Returns:
            Redis: connects when it is first used.
        """
        if self._client is None:
            self._client = package("redis", "RedisStore", "redis").Redis.from_url(
                self.url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=ANSWER_SECONDS
            )
        return self._client

    def multi_get(self, keys: Sequence[str]) -> Sequence[Entry | None]:
        """Blocking. The entries of these keys.

        Args:
            keys (Sequence[str]): the keys as texts.

        Returns:
            Sequence[Entry | None]: one for each key; None for a key that is not there.

        Raises:
            WorldError: Redis does not answer, or refuses.
            ArgumentError: a key has a value that no state of this kind has written.
        """
        texts: list[bytes | None] = []
        with self._reaching():
            for chunk in _chunks(keys, self.chunk):
                texts += self.client().mget([f"{self.name}:{key}" for key in chunk])
        return [None if text is None else self._entry(text, key) for text, key in zip(texts, keys, strict=True)]

    def multi_put(self, entries: Mapping[str, Entry]) -> int:
        """Blocking. Writes the entries; a kill may cut it between two chunks. It ends before the first chunk with a key
        that a later batch wrote.

        Args:
            entries (Mapping[str, Entry]): by key.

        Returns:
            int: how many it has written.

        Raises:
            WorldError: Redis does not answer, or refuses.
        """
        written = 0
        with self._reaching():
            for chunk in _chunks(entries.items(), self.chunk):
                put = self._put({f"{self.name}:{key}": self._text(entry) for key, entry in chunk}, chunk[0][1].txid)
                written += put
                if put < len(chunk):
                    break
        return written

    def _put(self, texts: dict[str, str], txid: int | None) -> int:
        if txid is None:
            self.client().mset(texts)
            return len(texts)
        if self._script is None:
            self._script = self.client().register_script(PUT)
        return int(self._script(list(texts), [txid, *texts.values()]))

    def _text(self, entry: Entry) -> str:
        return "{" + ",".join(f'"{field}":{getattr(entry, field)}' for field in self._fields) + "}"

    def _entry(self, text: bytes, key: str) -> Entry:
        """Raises ArgumentError for a text that no state of this kind has written."""
        try:
            found = _FIELDS.decode(text)
            if found.keys() == set(self._fields):
                raw = {field: bytes(value).decode() for field, value in found.items()}
                return Entry(raw["value"], _TXID.decode(raw["txid"]) if "txid" in raw else None, raw.get("previous"))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            pass
        raise ArgumentError(
            f"Redis has something else under {given(f'{self.name}:{key}')} than this kind of state writes, which is an "
            f"object of {', '.join(self._fields)}: give the state a unique name. Given: {given(text)}",
            code="PYSTORM_STATE_OF_ANOTHER_KIND",
        )

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except package("redis", "RedisStore", "redis").RedisError as error:
            raise WorldError(
                f"{self!r}: Redis does not answer, or refuses: check that it runs, and its permissions. When the "
                f"query starts again, it repeats the batch. Given: {said(error)}",
                code="PYSTORM_STORE_UNREACHABLE",
            ) from error


def _chunks(items: Any, size: int) -> Iterator[list[Any]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
