"""How attempts choose one winner on a store without atomic create: Disk Paxos.

Gafni and Lamport, DISC 2000, over one disk, the folder. Each attempt writes one object, its ballot, and reads the
ballots of the others. A value is decided when an attempt has written its ballot in both phases and has then seen no
higher round of another attempt. A later attempt finds the decided value in a ballot and keeps it. The store must
promise two things: objects appear whole, and a read or a list that begins after a write has ended sees that write (S3,
GCS and ADLS promise that). Attempts that collide again and again delay each other; they never decide differently.

Without rivals, an attempt costs two puts and two lists, and reads no other ballot.

Why not a conditional put? Object stores have one. On mounts without hard links (Databricks Volumes) and on HDFS,
neither pyarrow nor obstore offers one: obstore makes a local file exclusive by a hard link, too. They need the ballots
anyway, and one protocol for all stores is simpler than two.
"""

import base64
import json
import random
import zlib
from collections.abc import Callable
from typing import NamedTuple

from pystorm_source.errors import DataLossError, WorldError
from pystorm_source.journal.store import JournalStore

MOST_ROUNDS = 50
"""Rounds before the attempt fails. Too small: it fails because of a twin that is only slow. Too large: the task hangs
for longer than the 12 s that 50 rounds take on average."""
MOST_SECONDS = 0.5
"""The longest pause between two rounds. Too small: two attempts keep outbidding each other, and a round costs four
requests of an object store. Too large: a commit that met a twin waits for nothing."""


class Ballot(NamedTuple):
    """An attempt's promise (``promised``: round and attempt), its accepted round and value."""

    promised: tuple[int, str]
    accepted: tuple[int, str] | None = None
    value: bytes = b""

    def to_bytes(self) -> bytes:
        """With a CRC: a damaged ballot could make two attempts decide on two values."""
        entries = [self.promised, self.accepted, base64.b64encode(self.value).decode()]
        return json.dumps([*entries, zlib.crc32(json.dumps(entries).encode())]).encode()

    @classmethod
    def parse(cls, data: bytes, where: str) -> "Ballot":
        """Raises DataLossError if the bytes are not a ballot."""
        try:
            promised, accepted, value, _ = json.loads(data)
            ballot = cls(_number(promised), None if accepted is None else _number(accepted), base64.b64decode(value))
        except (ValueError, TypeError, RecursionError):
            ballot = None
        if ballot is None or ballot.to_bytes() != data:
            raise DataLossError(
                "a ballot in the journal is damaged: delete it while the query does not run. " + f"Given: {where!r}",
                code="PYSTORM_DATA_LOST",
            )
        return ballot


def decide(store: JournalStore, prefix: str, attempt: str, value: bytes, sleep: Callable[[float], None]) -> bytes:
    """Returns the one value of this prefix, the same for all attempts; ``value`` if none was decided before. Sleeps
    between rounds.

    Raises WorldError if other attempts interfere in every round.
    """
    name = f"{prefix}{attempt}.ballot"
    mine = Ballot((0, attempt))
    highest = 0
    for _ in range(MOST_ROUNDS):
        number = (highest + 1, attempt)
        mine = mine._replace(promised=number)
        store.replace(name, mine.to_bytes())
        others = _others(store, prefix, name)
        highest = max([number[0], *(other.promised[0] for other in others)])
        if all(other.promised < number for other in others):
            accepted = [other for other in (*others, mine) if other.accepted is not None]
            if accepted:
                value = max(accepted, key=lambda ballot: ballot.accepted or number).value
            mine = Ballot(number, number, value)
            store.replace(name, mine.to_bytes())
            others = _others(store, prefix, name)
            highest = max([highest, *(other.promised[0] for other in others)])
            if all(other.promised < number for other in others):
                return value
        sleep(random.uniform(0, MOST_SECONDS))
    raise WorldError(
        f"other attempts of this task were in the way {MOST_ROUNDS} times while they agreed whose tuples count: let "
        f"Spark try it again. Given: {store.folder}/{prefix}",
        code="PYSTORM_ATTEMPT_SUPERSEDED",
    )


def decided(store: JournalStore, prefix: str, attempt: str, sleep: Callable[[float], None]) -> bytes | None:
    """Returns the value of this prefix if some attempt may have decided on one, and makes it final; otherwise None."""
    values = [ballot for ballot in _others(store, prefix, "") if ballot.accepted is not None]
    return decide(store, prefix, attempt, values[0].value, sleep) if values else None


def _others(store: JournalStore, prefix: str, mine: str) -> list[Ballot]:
    names = [name for name in store.names() if name.startswith(prefix) and name.endswith(".ballot") and name != mine]
    found = [(name, store.read(name)) for name in names]
    return [Ballot.parse(data, f"{store.folder}/{name}") for name, data in found if data is not None]


def _number(given: list[object]) -> tuple[int, str]:
    counted, attempt = given
    if type(counted) is not int or not isinstance(attempt, str):
        raise ValueError
    return counted, attempt
