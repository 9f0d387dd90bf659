"""``kafka.oauth_cb``: the user's function that gives tokens for SASL/OAUTHBEARER, named as ``package.module:function``.

    def token(config: str) -> tuple[str, float]:     # config: the text of kafka.sasl.oauthbearer.config, if any
        return provider.token(), provider.expires    # seconds since 1970; also (…, principal, extensions)

librdkafka asks for the next token when four fifths of the time of the last one are over. The name travels, never the
function: driver and executors each import it.
"""

import importlib
import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any

from pystorm_source.clock import Clock
from pystorm_source.errors import OptionError, WorldError
from pystorm_source.errors.user_frames import trim
from pystorm_source.options.named import not_imported

KEY = "oauth_cb"
_OPTION = f"kafka.{KEY}"

# No token lasts so long. Too small: a good one is refused. Too large: milliseconds are taken for seconds, and no token
# is asked for when the first one ends.
LONGEST_SECONDS = 10 * 366 * 86_400.0

TokenFunction = Callable[[str], tuple[Any, ...]]


def check_oauth(properties: Mapping[str, str]) -> None:
    """Raises OptionError if ``oauth_cb`` is given and would not be called, or cannot be."""
    if KEY not in properties:
        return
    given = f"Given: {properties[KEY]!r}"
    protocol = properties.get("security.protocol", "plaintext").upper()
    mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "none")).upper()
    if not protocol.startswith("SASL_") or mechanism != "OAUTHBEARER":
        raise OptionError(
            f"option {_OPTION!r} is asked for tokens by SASL/OAUTHBEARER alone: set kafka.security.protocol=SASL_SSL "
            f"and kafka.sasl.mechanism=OAUTHBEARER beside it, not {protocol} and {mechanism}. {given}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    if properties.get("sasl.oauthbearer.method", "default").lower() != "default":
        raise OptionError(
            f"option {_OPTION!r} and kafka.sasl.oauthbearer.method={properties['sasl.oauthbearer.method']} both get "
            f"tokens: leave one of them out. {given}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    token_function(properties[KEY])


def token_function(name: str) -> TokenFunction:
    """The function of that name. Raises OptionError if it cannot be imported or called with one text."""
    given = f"Given: {name!r}"
    module_name, _, path = name.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), *path.split("."))):
        raise OptionError(
            f"option {_OPTION!r} names a function as package.module:function, such as 'jobs.tokens:of_kafka'. {given}",
            code="PYSTORM_INVALID_OPTION",
        )
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        what = f"option {_OPTION!r}: module {module_name!r}"
        raise not_imported(what, module_name, error, "", name) from trim(error)
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise OptionError(
            f"option {_OPTION!r}: {module_name!r} has no function {path!r}. {given}", code="PYSTORM_NAME_NOT_FOUND"
        )
    if inspect.iscoroutinefunction(found):
        raise OptionError(
            f"option {_OPTION!r} is a plain def, not async: its token is waited for. {given}",
            code="PYSTORM_INVALID_OPTION",
        )
    if not _takes_one(found):
        raise OptionError(
            f"option {_OPTION!r} is called with one argument, the text of kafka.sasl.oauthbearer.config. {given}",
            code="PYSTORM_INVALID_OPTION",
        )
    return found


def _takes_one(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind("")
    except ValueError:  # a builtin without a signature
        return True
    except TypeError:
        return False
    return True


class Tokens:
    """``Tokens(properties, clock, logger)``: one client's function for tokens.

    ``failure``: the function's last exception, or the fault of its answer; None if it answered.

    Threading law: called by the thread that makes the client until that is made, then by one of librdkafka's.
    """

    def __init__(self, properties: Mapping[str, str], clock: Clock, logger: logging.Logger):
        self._name = properties[KEY]
        self._function = token_function(self._name)
        self._clock = clock
        self._log = logger
        self._ends = 0.0
        self._first: tuple[Any, ...] | None = None
        self.failure: Exception | None = None

    @property
    def holds(self) -> bool:
        """Whether an earlier token is still good."""
        return self._clock.wall() < self._ends

    def error(self) -> WorldError | None:
        """The spout's error if there is no token because of a failure."""
        failure = self.failure
        if failure is None or self.holds:
            return None
        error = WorldError(
            f"Kafka's client has no token: {type(failure).__name__}: {failure!s:.500}. See that the function gets one "
            f"on the driver and on every executor. Given: {self}",
            code="PYSTORM_KAFKA_REFUSES",
        )
        error.__cause__ = failure
        return error

    def not_taken(self, error: Exception) -> WorldError:
        """The error if the client cannot be made although there is a token."""
        said = error.__cause__ if isinstance(error, SystemError) and error.__cause__ else error
        return WorldError(
            f"Kafka's client cannot be made, or does not take the token of the function ({said}): see that the token's "
            f"principal and extensions have names and values as RFC 7628 has them, and the client's log. Given: {self}",
            code="PYSTORM_KAFKA_REFUSES",
        )

    def fetch_first(self, config: str) -> None:
        """Gets the token that the first call answers, before there is a client. Raises WorldError.

        Workaround: confluent-kafka 2.16 waits ten seconds for the first token whatever the function raises, and then
        calls back with an exception set, which ends in a SystemError.
        """
        try:
            self._first = self(config)
        except Exception:
            error = self.error()
            assert error is not None
            raise error from error.__cause__

    def __call__(self, config: str) -> tuple[Any, ...]:
        first, self._first = self._first, None
        if first is not None:
            return first
        try:
            answer = self._checked(self._function(config or ""))
        except Exception as error:
            self.failure = error
            if self.holds:
                self._log.warning(
                    "%s gave no new token (%s); the last one still holds", self, type(error).__name__, exc_info=True
                )
            raise
        self.failure = None
        self._ends = float(answer[1])
        return answer

    def _checked(self, answer: Any) -> tuple[Any, ...]:
        """confluent-kafka only says that something was wrong. The token is in no message."""
        kinds: tuple[Any, ...] = (str, (int, float), str, dict)
        fits = isinstance(answer, tuple) and 2 <= len(answer) <= 4
        if not fits or not all(isinstance(each, kind) for each, kind in zip(answer, kinds, strict=False)):
            shape = [type(each).__name__ for each in answer] if isinstance(answer, tuple) else type(answer).__name__
            raise TypeError(
                "its answer is (token, seconds since 1970 at which it ends), and if need be a principal and a dict of "
                f"extensions. Given: {shape}"
            )
        ends, now = float(answer[1]), self._clock.wall()
        if not now < ends < now + LONGEST_SECONDS:
            raise ValueError(
                f"its token ends at {ends:.0f}, and it is {now:.0f}: the time is in seconds since 1970 (not in "
                "milliseconds, not a duration), and still to come"
            )
        return (answer[0], ends, *answer[2:])

    def __str__(self) -> str:
        return f"{_OPTION}={self._name}"
