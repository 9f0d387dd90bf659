"""What the plugin pgoutput says in its messages, by protocol 1: transactions, tables, and rows in text form.

Begin, (Relation?, Insert | Update | Delete | Truncate)*, Commit. A Relation comes before the first change of a table,
and again when the table has changed; a decoder must see the messages of a slot from the first one on.
"""

import struct
from typing import NamedTuple

from pystorm_source.errors import InternalError, given

_BEGIN = struct.Struct(">qqI")  # position of the commit, its time, transaction
_INT32 = struct.Struct(">I")
_INT16 = struct.Struct(">H")
_TRUNCATE = struct.Struct(">IB")
TO_1970 = 946_684_800_000_000
"""Microseconds from 1970 to 2000, from which PostgreSQL counts."""

Row = dict[str, str | None]


class Relation(NamedTuple):
    """A table as its changes have it: ``keys``: the columns of its replica identity."""

    schema: str
    table: str
    columns: tuple[str, ...]
    keys: frozenset[str]


class Change(NamedTuple):
    """A changed row. ``lsn``: where its transaction's commit is; ``micros``: when that was, since 1970; ``seq``: its
    number in the transaction, from 0. ``row``: as it is now, of a delete what is known of it; ``old``: of an update or
    delete what is known of the row before; ``unchanged``: columns that are not sent, because they are large and were
    not changed."""

    schema: str
    table: str
    op: str
    lsn: int | None
    micros: int | None
    xid: int | None
    seq: int | None
    row: Row | None
    old: Row | None
    unchanged: list[str]


class PgOutput:
    """Decodes the messages of one slot, in their order."""

    def __init__(self) -> None:
        self.relations: dict[int, Relation] = {}
        self._commit = (0, 0, 0)
        self._seq = 0

    @property
    def lsn(self) -> int:
        """Where the commit is of the transaction that the last message belongs to."""
        return self._commit[0]

    def changes(self, message: bytes, start: int, end: int) -> list[Change]:
        """The changes that a message tells of, if its transaction's commit lies in [start, end)."""
        kind = message[0:1]
        if kind == b"B":
            self._commit, self._seq = _BEGIN.unpack_from(message, 1), 0
        elif kind == b"R":
            self._relation(message)
        elif kind in b"IUDT":
            return self._changes(kind, message) if start <= self._commit[0] < end else []
        elif kind not in b"CYOM":  # commit, type, origin, message
            raise InternalError(
                f"pgoutput sent a message of a kind that protocol 1 does not have. Given: {given(message[:40])}",
                code="PYSTORM_INTERNAL_ERROR",
            )
        return []

    def _changes(self, kind: bytes, message: bytes) -> list[Change]:
        if kind == b"T":
            count, _ = _TRUNCATE.unpack_from(message, 1)
            oids = struct.unpack_from(f">{count}I", message, 1 + _TRUNCATE.size)
            return [self._change(self.relations[oid], "truncate", None, None, []) for oid in oids]
        relation = self.relations[_INT32.unpack_from(message, 1)[0]]
        place, old, unchanged = 5, None, []
        mark = message[place : place + 1]
        if mark in b"KO":
            old, _, place = _tuple(relation, message, place + 1)
            if mark == b"K":
                old = {name: value for name, value in old.items() if name in relation.keys}
            mark = message[place : place + 1]
        if kind == b"D":
            return [self._change(relation, "delete", old, old, [])]
        row, missing, _ = _tuple(relation, message, place + 1)
        for name in missing:
            if old is not None and name in old:
                row[name] = old[name]  # the whole row before is known, and this value is the same
            else:
                unchanged.append(name)
        return [self._change(relation, "insert" if kind == b"I" else "update", row, old, unchanged)]

    def _change(self, relation: Relation, op: str, row: Row | None, old: Row | None, unchanged: list[str]) -> Change:
        lsn, micros, xid = self._commit
        seq, self._seq = self._seq, self._seq + 1
        return Change(relation.schema, relation.table, op, lsn, micros + TO_1970, xid, seq, row, old, unchanged)

    def _relation(self, message: bytes) -> None:
        (oid,) = _INT32.unpack_from(message, 1)
        schema, place = _name(message, 5)
        table, place = _name(message, place)
        (count,) = _INT16.unpack_from(message, place + 1)  # behind the replica identity
        place += 3
        columns, keys = [], set()
        for _ in range(count):
            is_key = message[place] & 1
            name, place = _name(message, place + 1)
            place += 8  # type and modifier
            columns.append(name)
            if is_key:
                keys.add(name)
        self.relations[oid] = Relation(schema or "pg_catalog", table, tuple(columns), frozenset(keys))


def _name(message: bytes, place: int) -> tuple[str, int]:
    end = message.index(b"\0", place)
    return message[place:end].decode("utf-8", "replace"), end + 1


def _tuple(relation: Relation, message: bytes, place: int) -> tuple[Row, list[str], int]:
    """The values of a row, the columns that are missing as unchanged, and the place behind it."""
    row: Row = {}
    missing: list[str] = []
    place += 2
    for name in relation.columns:
        kind = message[place]
        place += 1
        if kind == 0x74:  # t: text
            end = place + 4 + _INT32.unpack_from(message, place)[0]
            row[name] = str(message[place + 4 : end], "utf-8", "replace")
            place = end
        elif kind == 0x6E:  # n: null
            row[name] = None
        else:  # u: unchanged
            missing.append(name)
    return row, missing, place
