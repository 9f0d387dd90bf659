"""Options that hold a secret, under keys that Spark hides: in plans, on its pages, in the event log.

Spark hides an option whose key or text has a word such as ``password`` or ``secret`` (``spark.redaction.regex``), and
shows ``redis://:hunter2@host`` or a private key. So an option with a secret goes through Spark as ``secret.KEY``.
"""

import logging
import re
from collections.abc import Mapping

from pystorm_source.errors import OptionError
from pystorm_source.redaction import redacted

logger = logging.getLogger("pystorm.source")

PREFIX = "secret."
"""Before the key of any option: Spark hides the value, and the prefix is cut off again."""
_HIDDEN_BY_SPARK = re.compile("secret|password|token|access[.]?key", re.IGNORECASE)
"""The default of ``spark.redaction.regex``: for a key or a text."""


def hidden(texts: Mapping[str, str]) -> dict[str, str]:
    """The options as they go through Spark: those with a secret have hidden keys."""
    return {PREFIX + key if _holds_secret(key, text) else key: text for key, text in texts.items()}


def revealed(given: Mapping[str, str]) -> dict[str, str]:
    """The options as they are meant; warns of secrets that Spark shows. Raises OptionError if an option is given both
    ways."""
    found = {key: text for key, text in given.items() if not key.lower().startswith(PREFIX)}
    plain = {key.lower() for key in found}
    for key, text in found.items():
        if _holds_secret(key, text) and not _HIDDEN_BY_SPARK.search(f"{key} {text}"):
            logger.warning("Spark shows option %r, which holds a secret, in its plans: give %r", key, PREFIX + key)
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
    return not key.lower().startswith(PREFIX) and redacted(key, text) != text
