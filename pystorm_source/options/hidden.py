"""Options that hold a secret, under keys that Spark hides: in plans, on its pages, in the event log.

Spark hides an option whose key or text has a word such as ``password`` or ``secret`` (``spark.redaction.regex``), and
shows ``redis://:hunter2@host`` or a private key. So an option with a secret goes through Spark as ``secret.KEY``.
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
"""Before the key of any option: Spark hides the value, and the prefix is cut off again."""
_HIDDEN_BY_SPARK = re.compile("secret|password|token|access[.]?key", re.IGNORECASE)
"""The default of ``spark.redaction.regex``: for a key or a text."""


def hidden(texts: Mapping[str, str], asked: Iterable[str] = ()) -> dict[str, str]:
    """The options as they go through Spark: those that hold a secret under hidden keys. ``asked``: the keys as the user
    gave them, some under a hidden one."""
    by_user = {key[len(PREFIX) :].lower() for key in asked if key.lower().startswith(PREFIX)}
    return {
        PREFIX + key if key.lower() in by_user or _holds_secret(key, text) else key: text for key, text in texts.items()
    }


def revealed(given: Mapping[str, str]) -> dict[str, str]:
    """The options as they are meant, as Spark gives them; warns of secrets that it shows. Raises as ``meant``."""
    for key, text in given.items():
        if _holds_secret(key, text) and not _HIDDEN_BY_SPARK.search(f"{key} {text}"):
            logger.warning("Spark shows option %r, which holds a secret, in its plans: give %r", key, PREFIX + key)
    return meant(given)


def meant(given: Mapping[str, str]) -> dict[str, str]:
    """The options as they are meant. Raises OptionError for one that is given both ways."""
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
    """The text; JSON in the form in which ``redacted`` writes it, by which it differs without a secret, too."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.dumps(json_of(text))
    except (ValueError, RecursionError):
        return text
