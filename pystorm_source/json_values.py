"""JSON that users and Spark write. A document that is nested deeper than the stack of Python is a ValueError like any
other that cannot be read: callers need not know of the limit of the parser.
"""

import json
from collections.abc import Mapping
from typing import Any

TOO_DEEP = "nested too deeply"


def json_of(text: str) -> Any:
    """``json.loads``. Raises json.JSONDecodeError, a ValueError, for whatever cannot be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError(TOO_DEEP, "", 0) from None


def json_copy(value: Any) -> Any:
    """The value as it comes back out of JSON. Raises TypeError or ValueError if JSON cannot hold it."""
    try:
        return json.loads(json.dumps(value))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def object_in(text: Any) -> Mapping[str, Any]:
    """The object that JSON of Spark's progress holds; an empty one if it holds something else, or is a word.

    ``text``: what a progress has of a source: a str, an object already, or None.
    """
    if isinstance(text, str):
        try:
            text = json_of(text)
        except ValueError:
            return {}
    return text if isinstance(text, Mapping) else {}
