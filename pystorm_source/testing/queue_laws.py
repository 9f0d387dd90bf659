"""The laws of every QueueSpout, each with its remedy and its check."""

from functools import cached_property
from typing import Any

from pystorm_source.api import QueueSpout
from pystorm_source.api.seen_keys import digest_of
from pystorm_source.errors import given
from pystorm_source.testing.law import Law, law_of
from pystorm_source.testing.polled_trial import PICKLES, ROWS_FIT, PolledTrial

LAWS: list[Law] = []
"""In the order in which they are tried. The last one takes the messages out of the queue."""

Received = dict[bytes, tuple[Any, Any, Any]]
"""Digest of a key → key, id and row."""


class QueueTrial(PolledTrial):
    """One QueueSpout."""

    def received(self, spout: Any) -> list[tuple[Any, Any]]:
        """Ids and rows of the messages that a spout gets, until it gets none."""
        found: list[tuple[Any, Any]] = []
        while len(found) < self.most_rows:
            messages = list(spout.receive(spout.receive_count))
            for message in messages:
                if not isinstance(message, tuple) or len(message) != 2:
                    self.broken("", "receive() to return messages as tuples of an id and a row", given(message))
            if not messages:
                break
            found += messages
        return found

    @cached_property
    def messages(self) -> Received:
        """Those of the queue. They are given back, if the spout can do so."""
        spout = self.task()
        found = self.first(lambda: self.received(spout))
        if not found:
            self.broken("", "a queue that holds something", "no messages")
        keyed = self.keyed(spout, found)
        if len(keyed) < len(found):
            self.broken("", f"a key for each of {len(found)} messages", f"{len(keyed)} keys, such as {_key(keyed)}")
        spout.release([id for id, _ in found])
        spout.cleanup()
        return keyed

    def keyed(self, spout: Any, messages: list[tuple[Any, Any]]) -> Received:
        """By key; of those with one key the last one."""
        keys = [spout.message_key(id) for id, _ in messages]
        return {digest_of(key): (key, *each) for key, each in zip(keys, messages, strict=True)}

    @property
    def gives_back(self) -> bool:
        """Whether what is released comes again at once."""
        return self.driven.cls.release is not QueueSpout.release


def _key(received: Received) -> str:
    return given(next(iter(received.values()))[0])


@law_of(
    LAWS,
    "each message has a key",
    "Return (id, row) for each message, and of message_key() what tells two messages apart: a message whose key is "
    "known makes no row",
)
def _check_keys(trial: QueueTrial) -> None:
    assert trial.messages


@law_of(
    LAWS,
    "what is released comes again, under its key",
    "Let release() make its messages visible, and return of message_key() what does not change when a message is "
    "delivered again: not a receipt handle or a delivery tag",
)
def _check_release(trial: QueueTrial) -> None:
    if not trial.gives_back:
        return
    before, spout = trial.messages, trial.task()
    found = trial.received(spout)
    again = trial.keyed(spout, found)
    lost = [each for digest, each in before.items() if digest not in again]
    strange = [each for digest, each in again.items() if digest not in before]
    if lost or strange:
        key = f"another key, {given(strange[0][0])}" if strange else f"{len(again)} messages"
        trial.broken("", f"the {len(before)} keys again, such as {given((lost or strange)[0][0])}", key)
    spout.release([id for id, _ in found])
    spout.cleanup()


LAWS.append(PICKLES)


@law_of(LAWS, *ROWS_FIT)
def _check_rows(trial: QueueTrial) -> None:
    # None is taken out of the queue: what a run that is no query has received is not given back.
    messages = [(id, row) for _, id, row in trial.messages.values()]

    def receive(spout: Any, count: int) -> list[tuple[Any, Any]]:
        found = messages[:count]
        del messages[:count]
        return found

    body = {"receive": receive, **dict.fromkeys(("acknowledge", "extend", "release"), lambda spout, ids: None)}
    trial.run(type(trial.driven.cls.__name__, (trial.driven.cls,), body))


@law_of(
    LAWS,
    "what is acknowledged does not come again",
    "Delete the messages in acknowledge(), by the ids that receive() has returned",
)
def _check_acknowledged(trial: QueueTrial) -> None:
    before, spout = trial.messages, trial.task()
    ids = [id for id, _ in trial.received(spout)] if trial.gives_back else [id for _, id, _ in before.values()]
    if ids:
        spout.acknowledge(ids)
    spout.cleanup()
    spout = trial.task()
    again = trial.keyed(spout, trial.received(spout))
    known = [key for digest, (key, _, _) in again.items() if digest in before]
    if known:
        trial.broken("", "no message of those before", f"{len(known)} of {len(before)}, such as {given(known[0])}")
