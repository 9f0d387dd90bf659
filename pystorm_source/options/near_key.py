"""The key that a user may mean by one that is not known: by its letters, by its words, and by words of the same sense.

Letters find slips of the keyboard. Users of Storm, streamparse, Kafka and Spark rather write another ending,
another case or another word: ``startAt`` shares more letters with ``startTime`` than with ``startingOffsets``.
"""

import difflib
import functools
import re
from collections.abc import Iterable

_SLIP = 0.8
"""Share of letters in common from which a key is a slip of another one, whatever its words are. Too large: words that
were joined find nothing. Too small: keys of another sense are proposed."""
_LEAST = 0.6
"""The least score of a proposal. Too large: a key that is half right gets the list of all keys. Too small: keys that
have one word in common are proposed."""
_LETTERS = 0.3
"""The part of the letters in the score, the rest is that of the words. Too large: short keys beat the one of the same
words. Too small: chance decides among keys of the same words."""
_NO_EFFECT = 0.1
"""By so much a key without effect must be nearer. Too large: a slip in one of them gets another proposal. Too small:
users are sent to a key that changes nothing."""
_LIKE = 0.75
"""Share of letters in common from which two words are the same. Too large: slips count as other words. Too small: any
two short words are the same."""
_BEGIN = 0.9
"""What a word counts that begins as another one: ``start`` and ``starting``."""
_SENSE = 0.8
"""What a word counts of the same sense. Less than ``_BEGIN``: the word itself is the better proposal."""
_SHORTEST = 3
"""Letters of a begin. Less: ``at`` begins ``attempts``."""

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
    """The one of these keys that the given one is nearest to; None if it is near to none. Case does not count.

    ``also``: keys that are known and have no effect; one of them must be nearer by far.

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
    """How much of these words the others have, each by its length."""
    total = sum(map(len, words))
    found = sum(len(word) * max((_same(*sorted((word, other))) for other in others), default=0.0) for word in words)
    return found / total if total else 0.0


@functools.lru_cache(maxsize=4096)
def _same(word: str, other: str) -> float:
    """How much two words are the same; 1.0: they are."""
    if word == other:
        return 1.0
    if min(len(word), len(other)) >= _SHORTEST and (word.startswith(other) or other.startswith(word)):
        return _BEGIN
    if any(word in sense and other in sense for sense in _SENSES):
        return _SENSE
    letters = difflib.SequenceMatcher(None, word, other).ratio()
    return letters if letters >= _LIKE else 0.0
