"""The statements of each database: one for many keys, with the database's kind of upsert."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from pystorm_source.errors import InternalError, given

SQLITE_PARAMETERS = 500
"""Parameters of one statement of SQLite, which takes 999 or more, depending on its build."""

TYPES = {"key": "text", "value": "text", "txid": "bigint", "previous": "text"}


class Dialect(Protocol):
    """How a database is asked; ``database`` is a connection of SQLAlchemy, ``table`` a quoted name."""

    def create(self, table: str, names: Sequence[str]) -> str:
        """The statement that creates the table if it is not there; the first name is the primary key."""

    def select(self, database: Any, table: str, fields: Sequence[str], keys: list[str]) -> Iterable[Any]:
        """Rows of key and fields, of the keys that are there."""

    def upsert(self, database: Any, table: str, columns: Mapping[str, list[Any]]) -> int:
        """Inserts the rows, given by columns, or replaces those with the same key, which is the first column, unless
        they have a later txid. Returns how many it has written."""


class _Common:
    collation = ""
    storage = ""

    def create(self, table: str, names: Sequence[str]) -> str:
        key, *fields = names
        columns = [f"{key} {TYPES[key]}{self.collation} PRIMARY KEY", *(f"{name} {TYPES[name]}" for name in fields)]
        return f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)}){self.storage}"


class Sqlite(_Common):
    """The driver repeats a statement by itself, row by row."""

    def select(self, database: Any, table: str, fields: Sequence[str], keys: list[str]) -> Iterable[Any]:
        for start in range(0, len(keys), SQLITE_PARAMETERS):
            part = tuple(keys[start : start + SQLITE_PARAMETERS])
            asked = f"SELECT key, {', '.join(fields)} FROM {table} WHERE key IN ({', '.join('?' * len(part))})"
            yield from database.exec_driver_sql(asked, part)

    def upsert(self, database: Any, table: str, columns: Mapping[str, list[Any]]) -> int:
        values = f"({', '.join('?' * len(columns))})"
        insert = f"INSERT INTO {table} AS kept ({', '.join(columns)}) VALUES {values} {_replacing(columns)}"
        return int(database.exec_driver_sql(insert, list(zip(*columns.values(), strict=True))).rowcount)


class Postgresql(_Common):
    """A column is one parameter with a text per line, which takes a fifth of an array's time to make.

    No text contains a line break: keys and values have them escaped.
    """

    collation = ' COLLATE "C"'  # compares bytes, which is quicker than by the rules of a language
    # Pages have room for the new version of each row, so that the index needs no new entry: half the time of an upsert.
    # Less room: rows move to other pages. More: a larger table.
    storage = " WITH (fillfactor = 50)"

    def select(self, database: Any, table: str, fields: Sequence[str], keys: list[str]) -> Iterable[Any]:
        asked = f"SELECT key, {', '.join(fields)} FROM {table} WHERE key = ANY({_lines('key')})"
        return database.execute(_text(asked), {"key": _joined(keys)})

    def upsert(self, database: Any, table: str, columns: Mapping[str, list[Any]]) -> int:
        key, *fields = columns
        texts = [name for name in columns if TYPES[name] == "text"]
        # A txid is the same in all rows of a batch, hence one number.
        selected = [name if name in texts else f"CAST(:{name} AS {TYPES[name]}) AS {name}" for name in columns]
        rows = f"SELECT {', '.join(selected)} FROM unnest({', '.join(map(_lines, texts))}) AS line ({', '.join(texts)})"
        given = {name: _joined(each) if name in texts else _only(each) for name, each in columns.items()}
        # First an update, which takes half the time of an upsert: most keys are there.
        replaced = ", ".join(f"{name} = new.{name}" for name in fields)
        where = " AND ".join([f"kept.{key} = new.{key}", *_not_later(fields, "new")])
        update = f"UPDATE {table} AS kept SET {replaced} FROM ({rows}) AS new WHERE {where}"
        written: int = database.execute(_text(update), given).rowcount
        if written < len(columns[key]):
            missing = f"NOT EXISTS (SELECT FROM {table} AS kept WHERE kept.{key} = new.{key})"
            insert = f"INSERT INTO {table} AS kept ({', '.join(columns)}) SELECT * FROM ({rows}) AS new WHERE {missing}"
            written += database.execute(_text(f"{insert} {_replacing(columns)}"), given).rowcount
        return written


def _replacing(names: Iterable[str]) -> str:
    key, *fields = names
    where = "".join(f" WHERE {each}" for each in _not_later(fields, "excluded"))
    return f"ON CONFLICT ({key}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in fields)}{where}"


def _not_later(fields: Iterable[str], new: str) -> list[str]:
    """The condition that no later batch wrote the kept row: a put may arrive long after its batch has ended."""
    return [f"(kept.txid IS NULL OR kept.txid <= {new}.txid)"] if "txid" in fields else []


def _lines(parameter: str) -> str:
    """The array of a parameter's lines."""
    return rf"string_to_array(CAST(:{parameter} AS text), E'\n')"


def _joined(texts: list[str]) -> str:
    joined = "\n".join(texts)
    if joined.count("\n") != len(texts) - 1:
        raise InternalError(
            f"a key or a value of a state has a line break. Given: {given(texts)}", code="PYSTORM_INTERNAL_ERROR"
        )
    return joined


def _only(numbers: list[int]) -> int:
    if len(set(numbers)) != 1:
        raise InternalError(
            f"the entries of a put are of several batches. Given: {given(set(numbers))}", code="PYSTORM_INTERNAL_ERROR"
        )
    return numbers[0]


def _text(statement: str) -> Any:
    from sqlalchemy import text  # an extra

    return text(statement)


DIALECTS: dict[str, Dialect] = {"sqlite": Sqlite(), "postgresql": Postgresql()}
"""By SQLAlchemy's name of the database."""
