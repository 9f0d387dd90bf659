"""The statements of each database: many keys by one of them, an upsert as the database has it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

SQLITE_PARAMETERS = 500
"""Of one statement of SQLite's, which takes 999 or more, as it was built."""


class Dialect(Protocol):
    """How a database is asked; ``database`` is a connection of SQLAlchemy's, ``table`` a name as SQL has it."""

    def create(self, table: str, names: Sequence[str], types: Mapping[str, str]) -> str:
        """The statement that creates the table if it is not there; the first name is the primary key."""

    def select(self, database: Any, table: str, fields: Sequence[str], keys: list[str]) -> Iterable[Any]:
        """Rows of key and fields, of the keys that are there."""

    def upsert(
        self, database: Any, table: str, names: Sequence[str], types: Mapping[str, str], rows: list[tuple[Any, ...]]
    ) -> None:
        """Inserts the rows, or replaces those with the same key."""


class _Common:
    collation = ""

    def create(self, table: str, names: Sequence[str], types: Mapping[str, str]) -> str:
        key, *fields = names
        columns = [f"{key} {types[key]}{self.collation} PRIMARY KEY", *(f"{name} {types[name]}" for name in fields)]
        return f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)})"

    @staticmethod
    def replacing(names: Sequence[str]) -> str:
        key, *fields = names
        return f"ON CONFLICT ({key}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in fields)}"


class Sqlite(_Common):
    """The driver repeats a statement by itself, row by row."""

    def select(self, database: Any, table: str, fields: Sequence[str], keys: list[str]) -> Iterable[Any]:
        for start in range(0, len(keys), SQLITE_PARAMETERS):
            part = tuple(keys[start : start + SQLITE_PARAMETERS])
            asked = f"SELECT key, {', '.join(fields)} FROM {table} WHERE key IN ({', '.join('?' * len(part))})"
            yield from database.exec_driver_sql(asked, part)

    def upsert(
        self, database: Any, table: str, names: Sequence[str], types: Mapping[str, str], rows: list[tuple[Any, ...]]
    ) -> None:
        values = f"({', '.join('?' * len(names))})"
        insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES {values} {self.replacing(names)}"
        database.exec_driver_sql(insert, rows)


class Postgresql(_Common):
    """A column of the rows is one parameter, an array: the statement is as long for 10,000 keys as for one."""

    collation = ' COLLATE "C"'  # bytes are compared: quicker than by the rules of a language

    def select(self, database: Any, table: str, fields: Sequence[str], keys: list[str]) -> Iterable[Any]:
        asked = f"SELECT key, {', '.join(fields)} FROM {table} WHERE key = ANY(CAST(:keys AS text[]))"
        return database.execute(_text(asked), {"keys": keys})

    def upsert(
        self, database: Any, table: str, names: Sequence[str], types: Mapping[str, str], rows: list[tuple[Any, ...]]
    ) -> None:
        arrays = ", ".join(f"CAST(:{name} AS {types[name]}[])" for name in names)
        columns = ", ".join(names)
        insert = f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({arrays}) {self.replacing(names)}"
        given = {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
        database.execute(_text(insert), given)


def _text(statement: str) -> Any:
    from sqlalchemy import text  # an extra

    return text(statement)


DIALECTS: dict[str, Dialect] = {"sqlite": Sqlite(), "postgresql": Postgresql()}
"""By SQLAlchemy's name of the database."""
