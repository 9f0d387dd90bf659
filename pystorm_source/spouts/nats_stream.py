"""A JetStream stream from the driver: its partitions, and the sequences that it has.

A partition has the name of its subject, or of the stream if no subjects are given. A stream that was deleted and
created again begins at sequence 1. Its partitions are then called ``ORDERS 2``, so that the old ones have vanished. The
state of the snapshot remembers when the stream was created.
"""

import datetime
import json
from collections.abc import Mapping
from typing import Any

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.errors import OptionError, WorldError
from pystorm_source.spouts.nats_connection import (
    ANSWER_SECONDS,
    NO_MESSAGES,
    PAUSE_SECONDS,
    STREAM_NOT_FOUND,
    NatsConnection,
)
from pystorm_source.spouts.nats_options import NatsOptions


class NatsStream:
    """Asks by one request. Raises as the connection, RetryLater also for a stream that is not there yet."""

    def __init__(self, connection: NatsConnection, options: NatsOptions):
        self._connection, self._options = connection, options

    def subject_of(self, partition: str) -> str:
        """The filter of its messages; empty: all."""
        name = partition.partition(" ")[0]
        return name if self._options.filters else ""

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        """As in ``PartitionedSpout.snapshot``."""
        name = self._options.stream
        try:
            info = self._connection.run(lambda _, js: js.stream_info(name))
        except self._connection.js_errors.NotFoundError as error:
            if error.err_code == STREAM_NOT_FOUND and known:
                return Snapshot({}, state)  # it has vanished
            raise RetryLater(
                PAUSE_SECONDS,
                f"NATS has no stream {name!r}: create it, or name another one by nats.stream, or another account",
            ) from None
        if info.config.retention != self._connection.api.RetentionPolicy.LIMITS:
            raise WorldError(
                f"stream {name!r} deletes messages that its consumers have acknowledged, so they cannot be read again "
                "from a sequence: read another stream, which has this one as its source (nats stream add --source) and "
                f"keeps messages up to its limits. Given: retention {info.config.retention!r}",
                code="PYSTORM_EXTERNAL_FAILURE",
            )
        made, number = info.created.isoformat(), int(state.get("number", 1))
        if state and state["made"] != made:
            number += 1
        latest = info.state.last_seq + 1
        earliest = min(max(info.state.first_seq, 1), latest)
        if not known and not state:
            earliest = max(earliest, self._begin(earliest, latest))
        suffix = "" if number == 1 else f" {number}"
        heads = {f"{each}{suffix}": (earliest, latest) for each in self._options.filters or [name]}
        return Snapshot(heads, {"made": made, "number": number})

    def _begin(self, earliest: int, latest: int) -> int:
        """Returns where a new query begins."""
        sequence, time = self._options.start_sequence, self._options.start_time
        if sequence is not None and sequence > latest:
            raise OptionError(
                f"option 'nats.start' lies behind the end of stream {self._options.stream!r}, which is {latest - 1}. "
                f"Given: {self._options.start!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        if time is None:
            return sequence if sequence is not None else earliest
        return self._connection.run(lambda client, js: self._first_of(client, js, time, latest))

    async def _first_of(self, client: Any, js: Any, time: datetime.datetime, latest: int) -> int:
        """Returns the first sequence of this time or later; ``latest`` if no message is that late."""
        stream, api = self._options.stream, self._connection.api
        made = await js.add_consumer(
            stream,
            ack_policy=api.AckPolicy.NONE,
            deliver_policy=api.DeliverPolicy.BY_START_TIME,
            opt_start_time=time,
            inactive_threshold=PAUSE_SECONDS,
            mem_storage=True,
            num_replicas=1,
        )
        request = json.dumps({"batch": 1, "no_wait": True}).encode()
        found = await client.request(
            f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{made.name}", request, timeout=ANSWER_SECONDS, old_style=True
        )
        if found.reply:
            return int(found.metadata.sequence.stream)
        if (status := found.headers.get("Status")) != NO_MESSAGES:
            raise RetryLater(PAUSE_SECONDS, f"stream {stream!r}: {status} {found.headers.get('Description', '')}")
        return latest
