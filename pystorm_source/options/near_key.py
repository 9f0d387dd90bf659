"""The key that a user may mean by an unknown one: by its letters, by its words, and by their synonyms.

Letters find typing errors. Users of Storm, streamparse, Kafka and Spark more often write another ending, another case
or another word: ``startAt`` shares more letters with ``startTime`` than with ``startingOffsets``.
"""

import difflib
import functools
import re
from collections.abc import Iterable

_SLIP = 0.8
"""Share of common letters that makes a key a typing error of another, whatever its words. Too large: joined words find
nothing. Too small: proposes keys of another sense."""
_LEAST = 0.6
"""The least score of a proposal. Too large: a key that is half right gets the list of all keys. Too small: proposes
keys with just one word in common."""
_LETTERS = 0.3
"""The weight of letters in the score; words have the rest. Too large: short keys beat the key with the same words. Too
small: chance decides among keys with the same words."""
_NO_EFFECT = 0.1
"""A key without effect must be nearer by this much. Too large: a typing error in such a key gets another proposal. Too
small: users are sent to a key that changes nothing."""
_LIKE = 0.75
"""Share of common letters that makes two words the same. Too large: typing errors count as other words. Too small:
any two short words are the same."""
_BEGIN = 0.9
"""Score of a word that begins with another one: ``starting`` and ``start``."""
_SENSE = 0.8
"""Score of a synonym. Less than ``_BEGIN``, because the word itself is the better proposal."""
_SHORTEST = 3
"""Least letters of a common beginning. Less: ``at`` begins ``attempts``."""

_SAME_SENSE = (
    "offset offsets at from position positions records messages rows bytes files",
    "trigger batch",
    "topic topics subscribe",
    "servers brokers broker server bootstrap",
    "acker ackers",
    "executors count number",
    "executors parallelism tasks",
    "secs seconds sec",
    "millis ms milliseconds",
    "timestamp time",
    "delimiter sep separator",
    "format deserializer",
    "pending inflight",
    "start starting begin beginning auto",
    "timeout deadline",
    "freq interval",
)
_SENSES = [frozenset(words.split()) for words in _SAME_SENSE]


def near_key(key: str, keys: Iterable[str], also: Iterable[str] = ()) -> str | None:
    """Returns the nearest of these keys, or None if no key is near. Case does not count.

    ``also``: known keys without effect, which must be nearer by ``_NO_EFFECT``.

    >>> near_key("startAt", ["path", "startTime", "startingOffsets", "startingTimestamp"])
    'startingOffsets'
    """
    scored = [(_score(key, known), known) for known in keys]
    scored += [(_score(key, known) - _NO_EFFECT, known) for known in also]
    best, known = max(scored, default=(0.0, ""))
    return known if best >= _LEAST else None


def _score(key: str, known: str) -> float:
    given, wanted = _words(key), _words(known)
    letters = difflib.SequenceMatcher(None, "".join(given), "".join(wanted)).ratio()
    precision, recall = _share(given, wanted), _share(wanted, given)
    words = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    mixed = _LETTERS * letters + (1 - _LETTERS) * words
    return max(mixed, letters) if letters >= _SLIP else mixed


def _words(key: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", key)]


def _share(words: list[str], others: list[str]) -> float:
    """Returns how much of these words the others have, weighted by length."""
    total = sum(map(len, words))
    found = sum(len(word) * max((_same(*sorted((word, other))) for other in others), default=0.0) for word in words)
    return found / total if total else 0.0


@functools.lru_cache(maxsize=4096)
def _same(word: str, other: str) -> float:
    """Returns how similar two words are; 1.0: equal."""
    if word == other:
        return 1.0
    if min(len(word), len(other)) >= _SHORTEST and (word.startswith(other) or other.startswith(word)):
        return _BEGIN
    if any(word in sense and other in sense for sense in _SENSES):
        return _SENSE
    letters = difflib.SequenceMatcher(None, word, other).ratio()
    return letters if letters >= _LIKE else 0.0
