"""The options of a run as its record file keeps them: what was given, without secrets, and never large."""

from collections.abc import Iterable
from typing import Any

from pystorm_source.errors import LONGEST_GIVEN, cut, given
from pystorm_source.errors.known_secrets import without_secrets
from pystorm_source.errors.redaction import redacted
from pystorm_source.options.table import Options, fields_of

MOST_OPTIONS = 200
"""Most options. More: a user's own keys make the first line of a record file too long to read quickly. Less: options
that change a query are missing."""
_INTS = 1 << 63  # the record's format has no larger numbers


def given_options(config: Iterable[tuple[str, Any]], *tables: Options) -> dict[str, Any]:
    """Key → value of a plan's configuration and of tables, without defaults. Cuts texts, and shows values that JSON
    lacks as in messages."""
    found = {str(key): value for key, value in config}
    for table in tables:
        for key, field in fields_of(type(table)).items():
            value = getattr(table, field.name)
            if value != field.default:
                found[key] = value
    if str(found.get("config", "")).lstrip().startswith("{"):
        del found["config"]  # the configuration already has its keys
    return {_text(key): _plain(redacted(key, found[key])) for key in sorted(found)[:MOST_OPTIONS]}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < _INTS):
        return value
    return _text(without_secrets(cut(value, LONGEST_GIVEN) if isinstance(value, str) else given(value)))


def _text(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
