"""Names of tables as SQL writes them, by one rule for changes and for keys."""

import re

from pystorm_source.errors import OptionError, given

_PART = r'"(?:[^"]|"")+"|[^\s".,]+'
_NAME = re.compile(rf"[\s,]*(?:({_PART})\.)?({_PART})\s*(?:,|$)")
_NOTHING = re.compile(r"[\s,]*$")

TableName = tuple[str, str]
"""Schema and table."""


def table_names(text: str) -> list[TableName]:
    """The tables of a list with commas, each once. As in SQL, ``Orders`` is ``orders`` and ``"Orders"`` is not; a name
    without a schema is one of ``public``, whatever the user's search_path. Raises OptionError."""
    names: list[TableName] = []
    place = 0
    while not _NOTHING.match(text, place):
        found = _NAME.match(text, place)
        if found is None:
            raise OptionError(
                "option 'postgres.tables' has names as SQL writes them, separated by commas, such as "
                f'public.orders or public."Orders". Given: {given(text)}',
                code="PYSTORM_INVALID_OPTION",
            )
        schema, table = found.groups()
        names.append((_plain(schema) if schema else "public", _plain(table)))
        place = found.end()
    return list(dict.fromkeys(names))


def _plain(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()
