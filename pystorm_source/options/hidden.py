"""Options that hold a secret, under keys that Spark hides in plans, on its pages and in the event log.

Spark hides an option whose key or text has a word such as ``password`` or ``secret`` (``spark.redaction.regex``), but
shows ``redis://:hunter2@host`` or a private key. So an option with a secret passes through Spark as ``secret.KEY``.
"""

import json
import logging
import re
from collections.abc import Iterable, Mapping

from pystorm_source.errors import OptionError
from pystorm_source.errors.redaction import redacted
from pystorm_source.types.json_values import json_of

logger = logging.getLogger("pystorm.source")

PREFIX = "secret."
"""A prefix for the key of any option: Spark hides the value, and this package removes the prefix again."""
_HIDDEN_BY_SPARK = re.compile("secret|password|token|access[.]?key", re.IGNORECASE)
"""The default of ``spark.redaction.regex``, which applies to keys and texts."""


def hidden(texts: Mapping[str, str], asked: Iterable[str] = ()) -> dict[str, str]:
    """Returns the options as they pass through Spark, secrets under hidden keys. ``asked``: the keys as the user gave
    them, some already hidden."""
    by_user = {key[len(PREFIX) :].lower() for key in asked if key.lower().startswith(PREFIX)}
    return {
        PREFIX + key if key.lower() in by_user or _holds_secret(key, text) else key: text for key, text in texts.items()
    }


def revealed(given: Mapping[str, str]) -> dict[str, str]:
    """Returns Spark's options under their real keys; warns of secrets that Spark shows. Raises like ``meant``."""
    for key, text in given.items():
        if _holds_secret(key, text) and not _HIDDEN_BY_SPARK.search(f"{key} {text}"):
            logger.warning("Spark shows option %r, which holds a secret, in its plans: give %r", key, PREFIX + key)
    return meant(given)


def meant(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the options under their real keys. Raises OptionError for one that is given both ways."""
    found = {key: text for key, text in given.items() if not key.lower().startswith(PREFIX)}
    plain = {key.lower() for key in found}
    for key, text in given.items():
        if key.lower().startswith(PREFIX):
            meant = key[len(PREFIX) :]
            if meant.lower() in plain:
                raise OptionError(
                    f"option {meant!r} is given as {key!r}, too: keep that one, which Spark hides. "
                    f"Given: {[meant, key]!r}",
                    code="PYSTORM_OPTIONS_CONFLICT",
                )
            found[meant] = text
    return found


def _holds_secret(key: str, text: str) -> bool:
    return not key.lower().startswith(PREFIX) and redacted(key, text) not in (text, _as_redacted_writes(text))


def _as_redacted_writes(text: str) -> str:
    """Returns the text as ``redacted`` writes it, which reformats JSON even if it holds no secret."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.dumps(json_of(text))
    except (ValueError, RecursionError):
        return text
