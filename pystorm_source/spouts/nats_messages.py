"""Ranges of one JetStream stream, read by a consumer of the server that lives as long as they follow one another."""

import asyncio
import json
import logging
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import DataLossError
from pystorm_source.spouts.nats_connection import ANSWER_SECONDS, STREAM_NOT_FOUND, NatsConnection

PULL = 2000
"""Messages of one request. Fewer: more round trips. More: they leave the processor's cache."""
PULL_BYTES = 8 << 20
"""Bytes of one request; a larger message gets a request to itself."""
LEAST_BYTES = 64 << 10
"""Bytes of a request over a slow link. Less: more round trips. More: other answers wait behind it for too long."""
IDLE_SECONDS = 60.0
"""Until the server forgets a consumer. Less: each micro-batch of a slow query makes a new one. More: consumers of
killed tasks stay there for longer."""
LAG_SECONDS = 0.2
"""Until a replica that lags behind its leader is asked again."""
_OVER = ("404", "408")  # the status of a request that finds no more messages


class NatsMessage(NamedTuple):
    """A message of a stream, and when it was stored there, in microseconds since 1970."""

    sequence: int
    micros: int
    message: Any


class NatsMessages:
    """The messages of ``stream``; ``logger`` gets what was lost, without ``fail_on_data_loss``.

    ``page`` raises RetryLater and WorldError as the connection does, and may be called again: no message comes twice.

    The consumer acknowledges nothing and is numbered without gaps: a number that is missing was lost on the way, and
    a new consumer begins there.
    """

    def __init__(self, connection: NatsConnection, stream: str, fail_on_data_loss: bool, logger: logging.Logger):
        self._connection, self._stream, self._fail, self._log = connection, stream, fail_on_data_loss, logger
        self._partition = self._subject = ""
        self._position = self._behind = 0  # behind what was given, and behind what was received
        self._left: Sequence[NatsMessage] = ()  # received and not given
        self._client: Any = None  # that consumer and subscription belong to
        self._subscription: Any = None
        self._consumer = self._inbox = self._reply = ""
        self._requests = 0
        self._begins = True  # whether the next request needs a new consumer
        self._count = 0  # messages that it has delivered
        self._got: list[Any] = []
        self._awaited = 0  # messages of the last request that have not come yet
        self._bytes = PULL_BYTES
        self._whole, self._alone = asyncio.Event(), False

    def go_to(self, partition: str, subject: str, start: int) -> None:
        """The next pages are of this subject, which may have wildcards or be empty, from ``start`` on."""
        if (partition, start) != (self._partition, self._position):
            self._partition, self._subject = partition, subject
            self._position, self._behind, self._left = start, start, ()
            self._begins = True

    def page(self, end: int) -> Sequence[NatsMessage]:
        """The next messages below ``end``; none if there are no more. Raises DataLossError if some are gone unread."""
        if not self._left and self._position < end:
            self._left = self._received(end)
        cut = bisect_left(self._left, end, key=lambda each: each.sequence)
        page, self._left = self._left[:cut], self._left[cut:]
        self._position = page[-1].sequence + 1 if page and not self._left else end
        self._behind = max(self._behind, self._position)
        return page

    def _received(self, end: int) -> Sequence[NatsMessage]:
        try:
            got, is_over = self._connection.run(lambda client, js: self._pull(client, js, end))
            found = self._in_order(got)
            if not found and not is_over:
                raise RetryLater(0.0, f"stream {self._stream!r}: messages were lost on the way")
            missing = _first_missing(self._behind, found)
            if missing < end and (missing < found[-1].sequence if found else True):
                self._check(missing, end, is_over=not found)
        except self._connection.js_errors.NotFoundError as error:
            self._begins = True
            if error.err_code != STREAM_NOT_FOUND:
                raise RetryLater(LAG_SECONDS, str(error)) from None
            self._lost(f"stream {self._stream!r} is gone; sequences [{self._behind}, {end}) of it were to be read")
            return ()
        if found:
            self._behind = found[-1].sequence + 1
        return found

    async def _pull(self, client: Any, js: Any, end: int) -> tuple[list[Any], bool]:
        """Messages, and whether there are no more."""
        if self._begins or client is not self._client:
            await self._begin(client, js)
        if not self._awaited:
            await self._ask(client, end)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._whole.wait(), ANSWER_SECONDS)
        got, self._got = self._got, []
        if not got:
            raise TimeoutError
        if self._awaited:  # the link is slow: what has come so far counts, the rest is still on its way
            self._bytes = max(LEAST_BYTES, self._bytes // 2)
            return got, False
        if got[-1].reply:
            self._alone, self._bytes = False, min(PULL_BYTES, 2 * self._bytes)
            return got, False
        status, said = got[-1].headers.get("Status", ""), got.pop().headers.get("Description", "")
        if status in _OVER:
            return got, True
        self._alone = is_large = status == "409" and "MaxBytes" in said
        if not is_large:  # the consumer has expired, or its server is about to stop
            self._begins = True
            if not got and status != "503":
                raise RetryLater(LAG_SECONDS, f"stream {self._stream!r}: {status} {said}")
        return (got, False) if got else await self._pull(client, js, end)

    async def _ask(self, client: Any, end: int) -> None:
        self._awaited = 1 if self._alone else min(PULL, max(1, end - self._behind))
        self._whole.clear()
        self._requests += 1
        self._reply = f"{self._inbox}.{self._requests}"
        request = {"batch": self._awaited, "no_wait": True, **({} if self._alone else {"max_bytes": self._bytes})}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
        await client.publish(subject, json.dumps(request).encode(), reply=self._reply)

    async def _begin(self, client: Any, js: Any) -> None:
        api = self._connection.api
        if client is self._client:
            await self._subscription.unsubscribe()
            with suppress(self._connection.js_errors.APIError):  # it may have expired
                await js.delete_consumer(self._stream, self._consumer)
        self._client = None  # until all is made
        made = await js.add_consumer(
            self._stream,
            ack_policy=api.AckPolicy.NONE,
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=max(1, self._behind),
            filter_subject=self._subject or None,
            inactive_threshold=IDLE_SECONDS,
            mem_storage=True,
            num_replicas=1,
        )
        self._inbox = client.new_inbox()
        self._subscription = await client.subscribe(f"{self._inbox}.*", cb=self._take, pending_bytes_limit=0)
        self._client, self._consumer, self._count, self._begins = client, made.name, 0, False
        self._got, self._awaited = [], 0

    async def _take(self, message: Any) -> None:
        if not message.reply:  # what the server says of a request, maybe of one that was answered in full
            if message.subject != self._reply or not self._awaited:
                return
            self._awaited = 0
        self._got.append(message)
        self._awaited = max(0, self._awaited - 1)
        if not self._awaited:
            self._whole.set()

    def _in_order(self, got: list[Any]) -> list[NatsMessage]:
        """Up to one that is missing."""
        found = []
        for message in got:
            # $JS.ACK.stream.consumer.deliveries.sequence.number.nanoseconds.pending; domain and account may come before
            # the stream, and a token behind all.
            parts = message.reply.split(".")
            at = 5 if len(parts) == 9 else 7
            if int(parts[at + 1]) != self._count + 1:
                self._begins = True
                break
            self._count += 1
            found.append(NatsMessage(int(parts[at]), int(parts[at + 2]) // 1000, message))
        return found

    def _check(self, missing: int, end: int, is_over: bool) -> None:
        """Checks that sequences from ``missing`` on were deleted one by one, or have other subjects. ``is_over``: the
        consumer has no more below ``end``. Asks the stream's leader, because the consumer may be on a replica."""
        state = self._connection.run(lambda _, js: js.stream_info(self._stream)).state
        if state.first_seq > missing:
            upto = min(state.first_seq, end)
            self._lost(
                f"sequences [{missing}, {upto}) of stream {self._stream!r} are gone: it begins at {state.first_seq} now"
            )
        elif state.last_seq + 1 < end:
            self._lost(
                f"sequences [{state.last_seq + 1}, {end}) of stream {self._stream!r} are gone: it ends before them now"
            )
        elif is_over and self._leader_has(missing, end):
            raise RetryLater(LAG_SECONDS, f"stream {self._stream!r}: a replica lags behind its leader")

    def _leader_has(self, start: int, end: int) -> bool:
        subject = self._subject or ">"
        try:
            found = self._connection.run(lambda _, js: js.get_msg(self._stream, seq=start, subject=subject, next=True))
        except self._connection.js_errors.NotFoundError:
            return False
        return bool(found.seq < end)

    def _lost(self, what: str) -> None:
        if self._fail:
            raise DataLossError(
                f"{what}. Some data may be lost: keep messages for longer, or let the query go on without them with "
                f"option failOnDataLoss=false. Given: failOnDataLoss={True!r}",
                code="PYSTORM_DATA_LOST",
            )
        self._log.warning("%s; skipped, as failOnDataLoss is false", what)


def _first_missing(behind: int, found: Sequence[NatsMessage]) -> int:
    """The first sequence from ``behind`` on that is not among these."""
    for at, each in enumerate(found):
        if each.sequence != behind + at:
            return behind + at
    return behind + len(found)
