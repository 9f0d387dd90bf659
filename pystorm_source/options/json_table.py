"""Options whose value is a table of names: a mapping, or the text of a JSON object."""

from collections.abc import Mapping
from typing import Any

from pystorm_source.errors import OptionError, given
from pystorm_source.types.json_values import json_of


def json_table(key: str, value: Mapping[str, Any] | str, example: str) -> Mapping[str, Any]:
    """Returns the table. Raises OptionError for anything else, with an ``example`` as the remedy."""
    remedy = f"give an object such as {example}"
    if isinstance(value, str):
        try:
            value = json_of(value) if value.strip() else {}
        except ValueError:
            raise refused(key, "is no JSON", value, remedy) from None
    if not isinstance(value, Mapping):
        raise refused(key, "is no table", value, remedy)
    return value


def refused(key: str, what: str, value: object, remedy: str) -> OptionError:
    """Builds the error for such an option. ``what`` is wrong with it."""
    return OptionError(f"option {key!r} {what}: {remedy}. Given: {given(value)}", code="PYSTORM_INVALID_OPTION")
