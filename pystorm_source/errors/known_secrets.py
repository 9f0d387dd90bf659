"""Keeps the secrets among this process's options out of the exceptions that leave it.

A library's exception may quote them: "401 for token abc", "cannot connect to postgresql://app:abc@host/db". Spark
writes the text into its logs, its UI and its event log.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from pystorm_source.errors.redaction import REDACTED, inline_secrets, is_secret, url_secrets, without_inline

SHORTEST = 4
"""Least characters of a secret to search for. Less: words such as "on" vanish from every message. More: shows short
passwords."""
MOST = 1_000
"""Most secrets to remember, the newest ones. Fewer: a large topology's secrets are forgotten. More: each error searches
for all of them."""

_PLAIN = re.compile(r"true|false|none|null|\d{1,5}", re.IGNORECASE)
"""Texts that are common in messages and in options such as ``max.tokens``, and not passwords."""

_known: dict[str, None] = {}


def remember(config: Mapping[str, Any]) -> None:
    """Remembers the secrets of a configuration."""
    for secret in _secrets_in("", config):
        if len(secret) >= SHORTEST and not _PLAIN.fullmatch(secret):
            _known.pop(secret, None)
            _known[secret] = None
    while len(_known) > MOST:
        del _known[next(iter(_known))]


def without_secrets(text: str) -> str:
    """Replaces by ``(redacted)`` each known secret, and each one visible in a URI or as ``password=…``."""
    known = _known.copy()  # another thread may add secrets
    for secret in sorted(known, key=len, reverse=True):
        if secret in text:
            text = text.replace(secret, REDACTED)
    return without_inline(text)


def _secrets_in(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner, each in value.items():
            yield from _secrets_in(str(inner), each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _secrets_in(key, each)
    elif isinstance(value, str):
        if value.lstrip().startswith(("{", "[")):
            try:
                yield from _secrets_in(key, json.loads(value))
                return
            except (ValueError, RecursionError):
                pass
        if is_secret(key):
            yield value
            if value.lower().startswith(("bearer ", "basic ")):
                yield value.partition(" ")[2]  # an error may quote the rest
        for found in (*inline_secrets(value), *url_secrets(value)):
            yield from {found, unquote(found)}
