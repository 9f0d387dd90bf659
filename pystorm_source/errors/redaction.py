"""Options without secrets, for reprs, messages and records.

A value is a secret if its key says so, at any depth, or if it is the password in a URI. Every class that holds options
and every message that quotes one uses this.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

REDACTED = "(redacted)"

# Words that make Spark redact an option in its plans (except in "tokenizer"), and the Kafka client's words for the same
# things.
_SECRET = re.compile(
    r"secret|password|token(?!iz)|access[._]?key|credential|sasl\.jaas|oauthbearer\.config|passphrase|key\.pem"
    r"|sas[._-]?key|keystore\.key|user\.info|(api|account|private|master|sse[._-]customer)[._-]?key"
    # HTTP headers, such as config={"auth.header": "Bearer …"}.
    r"|authorization|cookie|auth[._-]?header|(^|[._-])signature$",
    re.IGNORECASE,
)
# Up to the last @: a password that is not escaped may hold a slash or an @.
_CREDENTIALS = re.compile(r"://[^/@\s]*:[^\s]*@")
_PASSWORDS = re.compile(r"://[^/@\s:]*:([^\s,]*)@")
# Services of HTTP take tokens there. Elsewhere it may be a container, or just a user.
_USER_ALONE = re.compile(r"\bhttps?://([^/@\s:?#]+)@", re.IGNORECASE)
# In a text: the beginning of a URI with a password, and where the URI ends at the latest.
_USER = re.compile(r"://[^/@\s:]*:")
_END = re.compile(r"[\s\"'`<>]|\Z")
# The credentials of an HTTP header. After a bare scheme they must be long and hold a digit, = or _: "basic auth" is
# plain text.
_HEADER = re.compile(
    r"(\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:(?:basic|bearer|digest|token)\s+)?"
    r"|\bcookie\s*[:=]\s*|\bx-(?:api-key|signature)\s*[:=]\s*)"
    r"([^\s,;\"'}]+)"
    r"|(\b(?:bearer|basic)\s+)((?=\S*[\d=_])[\w.~+/=-]{8,})",
    re.IGNORECASE,
)
# In connection strings, JAAS texts and signed URIs.
_INLINE = re.compile(
    r"((?:password|secret|token|access[._]?key|account[._]?key|\bsig|signature)\s*=\s*)(\"[^\"]*\"|'[^']*'|[^;&\s]+)",
    re.IGNORECASE,
)


def redacted(key: str, value: Any) -> Any:
    """Returns the value of an option in a form that is safe to show: ``(redacted)`` replaces secrets.

    Looks into mappings, lists, items of a configuration (pairs of key and value), JSON objects as text, and URIs.
    """
    if _SECRET.search(key) and not (value is None or (isinstance(value, str) and not value)):
        return REDACTED
    if isinstance(value, Mapping):
        return {inner: redacted(str(inner), each) for inner, each in value.items()}
    if type(value) in (list, tuple) and value and all(_is_item(each) for each in value):
        return type(value)((inner, redacted(inner, each)) for inner, each in value)
    if type(value) in (list, tuple):
        return type(value)(redacted(key, each) for each in value)
    return _text(key, value) if isinstance(value, str) else value


def without_credentials(text: str) -> str:
    """Returns a URI without user, password and query. Keeps an ADLS container before the ``@``."""
    if "://" not in text:
        return text
    found = _CREDENTIALS.search(text)
    if found is None:
        return text.partition("?")[0]
    if "?" in found[0]:  # in the password, or before an @ in the query: neither may be shown, nor its end
        return f"{text[: found.start()]}://{REDACTED}"
    return _CREDENTIALS.sub("://", text.partition("?")[0])


def is_secret(key: str) -> bool:
    """Whether an option of that name holds a secret."""
    return _SECRET.search(key) is not None


def inline_secrets(text: str) -> list[str]:
    """Returns the secrets in a connection string, a JAAS text, a signed URI or an HTTP header."""
    headers = [found[1] or found[3] for found in _HEADER.findall(text)] if _may_have_header(text) else []
    return [found[1].strip("\"'") for found in _INLINE.findall(text)] + headers


def url_secrets(text: str) -> list[str]:
    """Returns the passwords in the URIs of an option, and users of HTTP without one, which may be tokens."""
    return [*_PASSWORDS.findall(text), *_USER_ALONE.findall(text)]


def without_inline(text: str) -> str:
    """Returns a text, such as an exception's message, without passwords in URIs, values of ``password=…`` and the like,
    and credentials in HTTP headers."""
    return _without_values(_without_passwords(text))


def _without_passwords(text: str) -> str:
    """Each password ends at the last @ of its word: one that is not escaped may hold any of ``/?#@``."""
    parts, done = [], 0
    while (user := _USER.search(text, done)) is not None:
        end = _END.search(text, user.end()).start()  # type: ignore[union-attr]
        at = text.rfind("@", user.end() + 1, end)
        parts += [text[done : user.end()], REDACTED, text[at:end]] if at >= 0 else [text[done:end]]
        done = end
    return "".join([*parts, text[done:]])


def _without_values(text: str) -> str:
    if _may_have_header(text):
        text = _HEADER.sub(lambda found: (found[1] or found[3]) + REDACTED, text)
    return _INLINE.sub(rf"\1{REDACTED}", text)


def _may_have_header(text: str) -> bool:
    """Whether the text has a word that each match of ``_HEADER`` needs: over 50 MB this search takes 0.15 s, the
    pattern 5 s."""
    lowered = text.lower()
    return any(word in lowered for word in ("authorization", "cookie", "x-api-key", "x-signature", "bearer", "basic"))


class RedactedRepr:
    """Base of dataclasses (with ``repr=False``) that hold options: their repr shows no secret."""

    def __repr__(self) -> str:
        named = (each.name for each in dataclasses.fields(self) if each.repr)  # type: ignore[arg-type]
        shown = ", ".join(f"{name}={redacted(name, getattr(self, name))!r}" for name in named)
        return f"{type(self).__qualname__}({shown})"


def _is_item(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)


def _text(key: str, text: str) -> str:
    if text.lstrip().startswith(("{", "[")):
        try:
            return json.dumps(redacted(key, json.loads(text)))
        except (ValueError, RecursionError):
            return f"({len(text)} characters)" if _SECRET.search(text) else text
    if "://" in text and _CREDENTIALS.search(text):
        text = without_credentials(text)
    return _without_values(text)
