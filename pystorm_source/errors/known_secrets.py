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
"""Least characters of a secret to search for anywhere. Less: words such as "on" vanish from every message, and the gaps
in known sentences tell which word it is. More: shows short passwords that are no words. Shorter ones are replaced where
they are all that stands in quotes, as libraries quote a value."""
WORD_CHARACTERS = 8
"""Secrets of letters alone that are shorter may be parts of common words: "pass" is in every "password"."""
MOST = 1_000
"""Most secrets to remember, the newest ones. Fewer: a large topology's secrets are forgotten. More: each error searches
for all of them."""

_PLAIN = re.compile(r"true|false|none|null|\d{1,5}", re.IGNORECASE)
"""Texts that are common in messages and in options such as ``max.tokens``, and not passwords."""
_SWITCH = re.compile(r"on|off|yes|no", re.IGNORECASE)
_PASSWORD = re.compile(r"password|passphrase", re.IGNORECASE)
"""In the name of an option: its value is a password, also if it looks like something else."""
_TOKEN = re.compile(r"(token|secret|key)$", re.IGNORECASE)
"""At the end of the name of a secret option: its number is one, too. It is none in ``max.tokens``."""

_known: dict[str, re.Pattern[str] | None] = {}
"""Secret → where to replace it; None: anywhere."""


def remember(config: Mapping[str, Any]) -> None:
    """Remembers the secrets of a configuration."""
    for secret, is_password in _secrets_in("", config):
        if len(secret) >= SHORTEST and not _PLAIN.fullmatch(secret):
            # A word only as a word: the gap in "(redacted)word" would tell it.
            places = re.compile(rf"(?<![^\W\d_]){secret}(?![^\W\d_])") if _is_word(secret) else None
        elif secret.isascii() and secret.isdecimal() and len(secret) >= SHORTEST and is_password:
            places = re.compile(rf"(?<!\w){secret}(?!\w)")  # not inside of longer numbers
        elif secret and (is_password or not (_PLAIN.fullmatch(secret) or _SWITCH.fullmatch(secret))):
            places = re.compile(rf"(?<=['\"`]){re.escape(secret)}(?=['\"`])")
        else:
            continue
        _known.pop(secret, None)
        _known[secret] = places
    while len(_known) > MOST:
        del _known[next(iter(_known))]


def _is_word(secret: str) -> bool:
    return secret.isalpha() and len(secret) < WORD_CHARACTERS


def without_secrets(text: str) -> str:
    """Replaces by ``(redacted)`` each known secret, and each one visible in a URI or as ``password=…``."""
    known = _known.copy()  # another thread may add secrets
    for secret in sorted(known, key=len, reverse=True):
        if secret in text:
            places = known[secret]
            text = text.replace(secret, REDACTED) if places is None else places.sub(REDACTED, text)
    return without_inline(text)


def _secrets_in(key: str, value: Any) -> Iterator[tuple[str, bool]]:
    """Each secret, and whether it is surely one, whatever it looks like."""
    is_password = _PASSWORD.search(key) is not None
    if isinstance(value, Mapping):
        for inner, each in value.items():
            yield from _secrets_in(str(inner), each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _secrets_in(key, each)
    elif isinstance(value, int) and not isinstance(value, bool):
        if is_password or (is_secret(key) and _TOKEN.search(key)):
            yield str(value), True
    elif isinstance(value, str):
        if value.lstrip().startswith(("{", "[")):
            try:
                yield from _secrets_in(key, json.loads(value))
                return
            except (ValueError, RecursionError):
                pass
        if is_secret(key):
            yield value, is_password
            if value.lower().startswith(("bearer ", "basic ")):
                yield value.partition(" ")[2], is_password  # an error may quote the rest
        for found in (*inline_secrets(value), *url_secrets(value)):
            yield from ((each, True) for each in {found, unquote(found)})
